//! Which plugins a job may name.
//!
//! Owns their names. What they do is for those to know who build pods.

/// Plugins that are there.
pub const SUPPORTED: [&str; 3] = ["env", "svc", "tensorflow"];
/// Plugins of the reference that are not there yet.
pub const POSTPONED: [&str; 5] = ["ssh", "pytorch", "mpi", "ray", "hcclrank"];
