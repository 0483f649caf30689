//! Startup, liveness and readiness probes: when they are due, how they are made, and what their
//! results mean for a container.
//!
//! Must not know how a container is reached or restarted: a [`Target`] reaches it, and what follows from
//! a [`Change`] is the pod's life cycle's.

mod drive;
mod http;
mod outcome;
mod plan;
mod run;
mod state;
mod tls;

pub(crate) use drive::{Report, drive};
pub(crate) use plan::Plan;
pub(crate) use run::Target;
pub(crate) use state::{Change, ContainerProbes};
