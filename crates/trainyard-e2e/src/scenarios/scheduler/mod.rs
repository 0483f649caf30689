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
mod volumes;
mod waiting;

use crate::harness::Case;
use crate::volcano::Floor;
use crate::world::World;

/// Those that need no operator, or the shared one.
pub(super) fn shared() -> Vec<Case<World>> {
    let on_floors = on_floors([
        gangs::all(),
        jobs::all(),
        nodes::all(),
        peers::all(),
        pressure::all(),
        queues::all(),
        volumes::all(),
        waiting::all(),
    ]);
    [on_floors, leader::all(), waiting::own_scheduler()].concat()
}

/// Those that start operators of their own.
pub(super) fn own_operator() -> Vec<Case<World>> {
    on_floors([tfjobs::all()])
}

/// Each on a floor of its own.
fn on_floors(cases: impl IntoIterator<Item = Vec<Case<Floor>>>) -> Vec<Case<World>> {
    let open = async |world: World, _: &str| Floor::open(world).await;
    cases.into_iter().flatten().map(|case| case.over(open)).collect()
}
