//! Volcano's kinds: Job, PodGroup, Queue and Command.
//!
//! Owns their types, names, defaults and definitions. Must not know clusters, clients or clocks.

#[doc(hidden)]
pub mod cases;
mod check;
pub mod crd;
mod job;
pub mod kinds;
pub mod names;
pub mod plugins;
mod spec;
mod status;
mod validate;

pub use job::VolcanoJob;
pub use kinds::Kind;
pub use spec::{Action, JobSpec, LifecyclePolicy, PolicyEvent, TaskSpec, VolumeSpec};
pub use status::{
    JobPhase, JobState, PhaseRecord, PodRecord, TaskCount, TimerRecord, VolcanoStatus,
};
pub use validate::{schema, validate};
