//! The stories: what people do with Trainyard on a cluster, by kubectl, and what must come of it.

mod cleaning;
mod deletion;
mod gangs;
mod install;
mod life;
mod outages;
mod policies;
mod recorded;
mod refusals;
mod seeds;
mod training;
mod users;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use super::site::Scene;
use crate::harness::{Case, within};

/// A node is missed, or an operator, only after some time.
const LONGEST: Duration = Duration::from_mins(4);

/// On the operator alone, several at a time.
pub(super) fn with_operator() -> Vec<Case<Arc<Scene>>> {
    let all = [
        install::operator(),
        cleaning::all(),
        policies::all(),
        deletion::all(),
        life::all(),
        refusals::all(),
        users::all(),
        volumes::all(),
        recorded::all(),
    ];
    all.concat()
}

/// With Volcano's kinds and the gang scheduler, several at a time.
pub(super) fn with_scheduler() -> Vec<Case<Arc<Scene>>> {
    let claims = volumes::all().into_iter().map(|case| case.below("scheduler"));
    [gangs::all(), seeds::all(), claims.collect()].concat()
}

/// With the same, but with TensorFlow, which takes the whole machine.
pub(super) fn with_tensorflow() -> Vec<Case<Arc<Scene>>> {
    training::all()
}

/// Those that change what all others stand on: one after the other.
pub(super) fn alone() -> Vec<Case<Arc<Scene>>> {
    within(LONGEST, [install::changes(), outages::all(), recorded::alone()].concat())
}
