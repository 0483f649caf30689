//! Development only: what the project's tests stand on and do not test. A real Kubernetes control plane, a real
//! cluster with nodes, the real kubectl, packages of the machine.
//!
//! Must not know any crate of the project nor a Kubernetes client: the developer's commands link this and
//! start without compiling the product.

mod certificates;
pub mod cluster;
pub mod control_plane;
pub mod kubectl;
pub mod packages;

use std::io::Write as _;

/// Tells the developer about slow set-up, on standard error.
fn say(line: &str) {
    // A closed terminal is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}
