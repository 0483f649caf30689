//! The stories: what people do with Trainyard on a cluster, by kubectl, and what must come of it.

mod cleaning;
mod deletion;
mod developer;
mod gangs;
mod install;
mod life;
mod logs;
mod lost;
mod nodes;
mod outages;
mod policies;
mod recorded;
mod refusals;
mod restarts;
mod seeds;
mod training;
mod users;
mod volcano;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use super::site::Scene;
use crate::harness::{Case, within};

/// A node is missed, or an operator, only after some time.
const LONGEST: Duration = Duration::from_mins(4);

/// On the operator alone, several at a time.
pub(super) fn with_operator() -> Vec<Case<Arc<Scene>>> {
    // Those that wait longest begin first.
    let all = [
        recorded::all(),
        restarts::all(),
        refusals::all(),
        install::operator(),
        cleaning::all(),
        policies::all(),
        deletion::all(),
        life::all(),
        logs::all(),
        users::all(),
        volumes::all(),
    ];
    all.concat()
}

/// With Volcano's kinds and the gang scheduler, several at a time.
pub(super) fn with_scheduler() -> Vec<Case<Arc<Scene>>> {
    let claims = [volumes::all(), volumes::of_gangs()].concat();
    let claims = claims.into_iter().map(|case| case.below("scheduler"));
    // Those that wait longest begin first.
    [seeds::all(), gangs::all(), volcano::all(), claims.collect()].concat()
}

/// On the same, with `TensorFlow`.
pub(super) fn with_tensorflow() -> Vec<Case<Arc<Scene>>> {
    training::all()
}

/// On the same; they take long, and are indifferent to what becomes of the operator meanwhile.
pub(super) fn long() -> Vec<Case<Arc<Scene>>> {
    [training::all(), seeds::slow(), developer::all()].concat()
}

/// Those that change the operator, or take it away: one after the other.
pub(super) fn of_the_operator() -> Vec<Case<Arc<Scene>>> {
    within(LONGEST, [outages::all(), install::changes()].concat())
}

/// Those that leave no job alone that runs beside them: one after the other.
pub(super) fn of_all_jobs() -> Vec<Case<Arc<Scene>>> {
    within(LONGEST, [nodes::all(), install::definition()].concat())
}

/// Those that lose the same node at the same time.
pub(super) fn of_a_lost_node() -> Vec<Case<Arc<Scene>>> {
    within(LONGEST, [lost::all(), logs::of_a_lost_node(), recorded::alone()].concat())
}
