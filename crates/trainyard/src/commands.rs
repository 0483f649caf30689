//! The commands, one file each.

mod client;
pub(crate) mod convert;
pub(crate) mod crd;
mod logs;
mod machine;
pub(crate) mod manifests;
pub(crate) mod node;
pub(crate) mod operator;
mod signals;
pub(crate) mod up;

use crate::{cli::Command, failure::Failure};

/// Runs one command to its end.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Operator(flags) => operator::run(flags),
        Command::Node(flags) => node::run(flags),
        Command::Up(flags) => up::run(flags),
        Command::Down(flags) => up::down(flags),
        Command::Crd => crd::run(),
        Command::Manifests(manifests) => manifests.run(),
        Command::Convert(convert) => convert.run(),
    }
}
