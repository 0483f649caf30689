//! The commands, one file each.

pub(crate) mod apply;
mod client;
pub(crate) mod convert;
pub(crate) mod crd;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod disk;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod get;
mod job;
pub(crate) mod job_logs;
pub(crate) mod jobs;
mod logs;
mod machine;
pub(crate) mod manifests;
pub(crate) mod node;
pub(crate) mod operator;
pub(crate) mod render;
pub(crate) mod run;
pub(crate) mod scheduler;
mod selection;
pub(crate) mod signals;
mod span;
mod tend;
pub(crate) mod up;
pub(crate) mod wait;

use crate::{cli::Command, failure::Failure};

/// Runs one command to its end.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Operator(flags) => operator::run(flags),
        Command::Scheduler(flags) => scheduler::run(flags),
        Command::Explain(explain) => explain.run(),
        Command::Node(flags) => node::run(flags),
        Command::Run(flags) => run::run(flags),
        Command::Up(flags) => up::run(flags),
        Command::Down(flags) => up::down(flags),
        Command::Apply(apply) => apply.run(),
        Command::Delete(delete) => delete.run(),
        Command::Logs(logs) => logs.run(),
        Command::Describe(describe) => describe.run(),
        Command::Wait(wait) => wait.run(),
        Command::Suspend(suspend) => suspend.run(),
        Command::Resume(resume) => resume.run(),
        Command::Scale(scale) => scale.run(),
        Command::Events(events) => events.run(),
        Command::Ls(ls) => ls.run(),
        Command::Clean(clean) => clean.run(),
        Command::Get(get) => get.run(),
        Command::Crd(crd) => crd.run(),
        Command::Manifests(manifests) => manifests.run(),
        Command::Convert(convert) => convert.run(),
        Command::Render(flags) => render::run(flags),
    }
}
