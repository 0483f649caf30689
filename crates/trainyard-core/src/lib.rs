//! Pure decisions: what to write next for a job, given what is there and the time.
//!
//! Owns every rule about the life of a job. It must not know I/O, clients, clocks, randomness or
//! iteration in hash order: the same input always gives the same plan.

pub mod aid;
mod batch;
pub mod child;
pub mod config;
mod container;
#[cfg(test)]
mod effort;
mod end;
mod min_resources;
pub mod node;
pub mod outcome;
pub mod patch;
pub mod phase;
pub mod plan;
pub mod pod_state;
mod removal;
pub mod tfjob;
pub mod view;
pub mod volcano;

pub use aid::Aid;
pub use child::Child;
pub use config::{Config, Gang};
pub use node::NodeView;
pub use outcome::{Outcome, Tongue, outcome_events};
pub use phase::{InPlaceRestart, Phase};
pub use plan::{Create, Delete, Event, EventType, Mark, Patch, Plan, Stage, Write};
pub use pod_state::PodState;
pub use tfjob::{Observed, plan};
pub use view::{ContainerState, ContainerView, Deletion, PodView, Role, ServiceView};
