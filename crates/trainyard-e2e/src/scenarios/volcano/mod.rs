//! Scenarios of Volcano Jobs: plain functions over a [`Scene`](crate::volcano::Scene), one file per
//! intent.

mod commands;
mod depends;
mod exit_codes;
mod groups;
mod invalid;
mod leftovers;
mod lost_nodes;
mod plugins;
mod policies;
mod refused;
mod restarts;
mod scale;
mod seed;
mod states;
mod strangers;
mod success;
mod takeover;
mod timeouts;
mod volumes;

use crate::harness::Case;
use crate::volcano::Scene;
use crate::world::World;

/// Those that share one operator, which looks after all namespaces.
pub(super) fn shared() -> Vec<Case<World>> {
    in_scenes([
        commands::all(),
        depends::all(),
        exit_codes::all(),
        groups::all(),
        invalid::all(),
        leftovers::all(),
        plugins::all(),
        policies::all(),
        restarts::all(),
        scale::all(),
        seed::all(),
        states::all(),
        strangers::all(),
        success::all(),
        timeouts::all(),
        volumes::all(),
    ])
}

/// Those that start operators of their own.
pub(super) fn own_operator() -> Vec<Case<World>> {
    in_scenes([lost_nodes::all(), refused::all(), takeover::all()])
}

/// Each in a scene of its own.
fn in_scenes(cases: impl IntoIterator<Item = Vec<Case<Scene>>>) -> Vec<Case<World>> {
    let open = async |world: World, _: &str| Scene::open(world).await;
    cases.into_iter().flatten().map(|case| case.over(open)).collect()
}
