//! Scenarios of the gang scheduler: plain functions over a [`Floor`](crate::volcano::Floor), which
//! has a scheduler and nodes of its own; one file per intent.

mod gangs;
mod jobs;
mod leader;
mod nodes;
mod peers;
mod pressure;
mod queues;
mod tfjobs;
mod waiting;

use super::Scenario;

/// Scenarios named after their functions, each on a floor of its own.
macro_rules! floors {
    ($file:literal: $($play:ident),+ $(,)?) => {
        vec![$($crate::scenarios::Scenario::new(
            concat!("scheduler/", $file, "/", stringify!($play)),
            |world| async move { $play($crate::volcano::Floor::open(world).await?).await },
        )),+]
    };
}
use floors;

/// Those that need no operator, or the shared one.
pub(super) fn shared() -> Vec<Scenario> {
    [
        gangs::all(),
        jobs::all(),
        leader::all(),
        nodes::all(),
        peers::all(),
        pressure::all(),
        queues::all(),
        waiting::all(),
    ]
    .concat()
}

/// Those that start operators of their own.
pub(super) fn own_operator() -> Vec<Scenario> {
    tfjobs::all()
}
