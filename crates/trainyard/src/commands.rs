//! The commands, one file each.

pub(crate) mod convert;
pub(crate) mod crd;
pub(crate) mod manifests;
pub(crate) mod operator;

use crate::{cli::Command, failure::Failure};

/// Runs one command to its end.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Operator(flags) => operator::run(flags),
        Command::Crd => crd::run(),
        Command::Manifests(manifests) => manifests.run(),
        Command::Convert(convert) => convert.run(),
    }
}
