//! Scenarios of Volcano Jobs: plain functions over a [`Scene`](crate::volcano::Scene), one file per
//! intent.

mod commands;
mod depends;
mod exit_codes;
mod groups;
mod invalid;
mod leftovers;
mod plugins;
mod policies;
mod restarts;
mod scale;
mod seed;
mod states;
mod strangers;
mod success;
mod takeover;
mod timeouts;
mod volumes;

use super::Scenario;

/// Scenarios named after their functions, each in a scene of its own.
macro_rules! scenes {
    ($file:literal: $($play:ident),+ $(,)?) => {
        vec![$($crate::scenarios::Scenario::new(
            concat!("volcano/", $file, "/", stringify!($play)),
            |world| async move { $play($crate::volcano::Scene::open(world).await?).await },
        )),+]
    };
}
use scenes;

/// Those that share one operator, which looks after all namespaces.
pub(super) fn shared() -> Vec<Scenario> {
    [
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
    ]
    .concat()
}

/// Those that start operators of their own.
pub(super) fn own_operator() -> Vec<Scenario> {
    takeover::all()
}
