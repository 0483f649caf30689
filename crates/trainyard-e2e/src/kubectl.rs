//! The real kubectl, by the name that the scenarios know it by.

pub use trainyard_testbed::kubectl::{Kubectl, Outcome};
