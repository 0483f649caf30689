//! The command line: which commands there are.
//!
//! Owns parsing; what a command does is in `commands`.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::commands::{
    apply::Apply, convert::Convert, crd::Crd, delete::Delete, describe::Describe, disk,
    events::Events, explain::Explain, get::Get, job_logs::Logs, jobs, manifests::Manifests, node,
    operator, render, run, scheduler, up, wait::Wait,
};

/// Runs distributed TensorFlow training jobs from the manifests people already have.
#[derive(Debug, Parser)]
#[command(name = "trainyard", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Flags>),
    Up(Box<up::Flags>),
    Down(up::Down),
    Ls(disk::Ls),
    Clean(disk::Clean),
    Get(Box<Get>),
    Apply(Box<Apply>),
    Delete(Box<Delete>),
    Logs(Box<Logs>),
    Describe(Box<Describe>),
    Events(Box<Events>),
    Wait(Box<Wait>),
    Explain(Explain),
    Suspend(jobs::Suspend),
    Resume(jobs::Resume),
    Scale(jobs::Scale),
    // What the others say about themselves stands at their arguments.
    Operator(Box<operator::Flags>),
    Scheduler(Box<scheduler::Flags>),
    Node(Box<node::Flags>),
    Crd(Crd),
    Manifests(Manifests),
    Convert(Convert),
    Render(Box<render::Flags>),
}

/// Reads a command line. The flags of operator and scheduler may be written with one dash, as Go
/// programs take them. Under the name of simpletfjob this program takes that one's command line.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if render::called_as_simpletfjob(args.first()) {
        let render::Simpletfjob { flags } = render::Simpletfjob::try_parse_from(args)?;
        return Ok(Cli { command: Command::Render(Box::new(flags)) });
    }
    if args.get(1).is_some_and(|command| command == "operator" || command == "scheduler") {
        args[2..].iter_mut().for_each(operator::two_dashes);
    }
    Cli::try_parse_from(args)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }
}
