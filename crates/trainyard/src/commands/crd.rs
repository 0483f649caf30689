//! `trainyard crd`: prints the custom resource definition.

use crate::{failure::Failure, output, yaml};

/// Prints the definition of TFJob as YAML.
pub(crate) fn run() -> Result<(), Failure> {
    output::print(&yaml::to_string([&trainyard_api::crd::tfjob_crd()]))
}
