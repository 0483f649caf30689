//! The flags of `run`, and what they set.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::super::machine::Machine;
use super::super::span;
use super::{input, node_names};
use crate::failure::Failure;
use crate::present::paint::When;
use crate::run::script::{ENVIRONMENT, ENVIRONMENT_IMAGE, HOST};
use crate::run::voice::{Form, Manner};
use crate::yard::folder::Folder;

/// Train: run jobs from manifests, or a command as a job, on this machine to their end
///
/// Starts a private yard, shows what every replica prints, and ends with the job's result: 0 succeeded,
/// 1 failed, 2 usage, 3 invalid manifest, 4 cannot be run on this machine, 5 out of time, 130 interrupted,
/// 141 nobody reads. Logs and claims stay in your data folder under the job's name, so that the next run goes on from its
/// checkpoint. Needs neither root nor anything installed.
///
///   trainyard run job.yaml
///   trainyard run --workers 2 --ps 1 --chief -- python train.py --epochs 3
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub(crate) struct Flags {
    /// Files or folders with TFJobs, Volcano Jobs or Jobs and what they use; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// The same as FILE
    #[arg(short = 'f', long = "filename", value_name = "FILE", hide = true)]
    pub(super) more: Vec<PathBuf>,
    /// A command to run as a job, in this folder
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["files", "more"])]
    pub(super) command: Vec<String>,
    /// The namespace of objects that name none
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How many workers run the command
    #[arg(long, value_name = "N")]
    pub(super) workers: Option<u32>,
    /// How many parameter servers
    #[arg(long, value_name = "N")]
    pub(super) ps: Option<u32>,
    /// A chief that leads the training
    #[arg(long)]
    pub(super) chief: bool,
    /// An evaluator beside the training
    #[arg(long)]
    pub(super) evaluator: bool,
    /// A TensorBoard that shows the summaries in this folder; of a manifest's job, a folder of its
    /// containers
    #[arg(long, value_name = "DIR")]
    pub(super) tensorboard: Option<String>,
    /// The job's name; that of the program or of the manifest if not given
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// A variable in the environment of what trains
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = input::variable)]
    pub(super) env: Vec<(String, String)>,
    /// Python packages for every environment, as pip's requirements file lists them
    #[arg(long, value_name = "FILE")]
    pub(super) requirements: Option<PathBuf>,
    /// Print the job and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Leave a resource out of what jobs ask for, as nvidia.com/gpu
    #[arg(long, value_name = "RESOURCE")]
    pub(super) without: Vec<String>,
    /// Refuse files that mount anything of this machine by hostPath, with exit code 3
    #[arg(long)]
    pub(super) no_host_paths: bool,
    /// End the run after so long, with exit code 5
    #[arg(long, value_name = "TIME", value_parser = span::read)]
    pub(super) timeout: Option<Duration>,
    /// Give up when a replica has been restarted so often in a row; 5 where the manifest has no
    /// backoffLimit
    #[arg(long, value_name = "N")]
    pub(super) max_restarts: Option<u64>,
    /// End with the exit code of this replica, as worker-0
    #[arg(long, value_name = "REPLICA")]
    pub(super) exit_code_from: Option<String>,
    /// Keep the yard after the end, until Ctrl-C
    #[arg(long)]
    pub(super) keep: bool,
    /// Forget the claims and logs of earlier runs of this name
    #[arg(long)]
    pub(super) fresh: bool,
    /// Where runs keep their logs and claims
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// How the run is told: text or json, one object per line; with --dry-run yaml
    #[arg(short, long, value_enum, default_value = "text", hide_possible_values = true)]
    pub(super) output: Form,
    /// Whether replicas have colours
    #[arg(long, value_enum, default_value = "auto")]
    color: When,
    /// With each line's time
    #[arg(long)]
    timestamps: bool,
    /// Only what came of it
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Everything, TensorFlow's own messages too
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Virtual nodes: how many, or their names
    #[arg(long, value_name = "N|A,B,…", default_value = "1")]
    nodes: String,
    #[command(flatten)]
    machine: Machine,
}

impl Flags {
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    pub(super) const fn manner(&self) -> Manner {
        Manner {
            colour: self.color,
            verbose: self.verbose,
            quiet: self.quiet,
            timestamps: self.timestamps,
        }
    }

    /// The image that was named for the command.
    pub(super) fn image(&self) -> Result<Option<String>, Failure> {
        let mut plain = self.machine.clone().take_plain_images();
        match plain.len() {
            0 | 1 if !self.command.is_empty() => Ok(plain.pop()),
            0 => Ok(None),
            _ => Err(Failure::usage(format!(
                "--image {:?} does not say what stands for it",
                plain[0]
            ))
            .hint(
                "write NAME=tensorflow/tensorflow:X, NAME=env:DIR or NAME=host; a name alone \
                       is the image of a command",
            )),
        }
    }

    /// The names of the virtual nodes.
    pub(super) fn nodes(&self) -> Result<Vec<String>, Failure> {
        node_names(&self.nodes)
    }

    /// The node's settings.
    pub(super) fn node(&self, folder: &Folder) -> Result<trainyard_node::Options, Failure> {
        let mut machine = self.machine.clone();
        for image in machine.take_plain_images() {
            if image == HOST {
                machine.map_image("host=host");
            } else if image.starts_with(ENVIRONMENT) {
                machine.map_image(&format!("{ENVIRONMENT_IMAGE}={image}"));
            }
        }
        if self.command.is_empty() {
            input::requirements(self.requirements.as_deref())?
                .into_iter()
                .for_each(|package| machine.want(package));
        }
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        machine.options(self.nodes()?, folder.node(), listen)
    }
}
