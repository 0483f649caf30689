//! Pure decisions: what to write next for a job, given what is there and the time.
//!
//! Owns every rule about the life of a job. It must not know I/O, clients, clocks, randomness or
//! iteration in hash order: the same input always gives the same plan.

pub mod config;
pub mod outcome;
pub mod patch;
pub mod plan;
pub mod tfjob;
pub mod view;

pub use config::Config;
pub use outcome::{Outcome, outcome_events};
pub use plan::{Create, Delete, Event, EventType, Mark, Plan, Stage, Write};
pub use tfjob::{Observed, plan};
pub use view::{ContainerState, ContainerView, Deletion, Phase, PodView, Role, ServiceView};
