//! The commands, one file each.

mod client;
pub(crate) mod convert;
pub(crate) mod crd;
mod logs;
pub(crate) mod manifests;
pub(crate) mod node;
pub(crate) mod operator;
mod signals;

use crate::{cli::Command, failure::Failure};

/// Runs one command to its end.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Operator(flags) => operator::run(flags),
        Command::Node(flags) => node::run(flags),
        Command::Crd => crd::run(),
        Command::Manifests(manifests) => manifests.run(),
        Command::Convert(convert) => convert.run(),
    }
}
