//! `trainyard logs`: what the replicas of a job print, merged, with each line's replica before it.
//!
//! Owns the flags and which way is taken; the ways themselves are beside.

mod absent;
mod before;
pub(crate) mod find;
mod follow;
mod gone;
mod kept;
mod missing;
mod once;
mod pods;
pub(crate) mod source;
pub(crate) mod wait;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::span;
use crate::cluster::{self, Access, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::paint::{Painter, When};

/// Show what the replicas of a job print, all of them or some
///
/// `trainyard logs mnist` merges the logs of all replicas in the order of time; with -f it goes on
/// until the job has finished, and takes up pods that come later. A pod of no job is named with
/// `pod/NAME`. What cannot be shown is named at the end, and the exit code is 1 then.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub(crate) struct Logs {
    /// A job's name, or tfjob/NAME, vcjob/NAME, job/NAME, pod/NAME
    #[arg(value_name = "WHAT")]
    what: String,
    /// Go on until the job has finished
    #[arg(short, long)]
    follow: bool,
    /// Only these replicas: worker-0, or worker for all of them
    #[arg(short, long, value_name = "REPLICA", value_delimiter = ',')]
    replica: Vec<String>,
    /// Only this container
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// All containers of each pod
    #[arg(long, conflicts_with = "container")]
    all_containers: bool,
    /// Only so many lines from the end of each log; -1 for all
    #[arg(long, value_name = "LINES", allow_negative_numbers = true)]
    tail: Option<i64>,
    /// Only what was printed in the last 5m, 1h, …
    #[arg(long, value_name = "TIME", value_parser = span::read)]
    since: Option<Duration>,
    /// Only what was printed since this time, as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "WHEN", conflicts_with = "since")]
    since_time: Option<Timestamp>,
    /// With each line's time
    #[arg(long)]
    timestamps: bool,
    /// The run before the present one, of each replica; of pods that were replaced, what became of them
    #[arg(short, long, conflicts_with_all = ["follow", "all"])]
    previous: bool,
    /// Earlier runs too, those of pods that are gone included
    #[arg(long)]
    all: bool,
    /// With the replica before each line, whether there are several or not
    #[arg(long, value_enum, default_value = "auto", num_args = 0..=1,
          default_missing_value = "always", require_equals = true)]
    prefix: When,
    /// Whether replicas have colours
    #[arg(long, value_enum, default_value = "auto")]
    color: When,
    /// The folder of the yard, where it keeps logs of pods that are gone
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    access: Access,
}

impl Logs {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let kept = kept::folder(&cluster, self.data_dir.as_deref())?;
            if self.all && kept.is_none() {
                output::warn(
                    "only what the server still has is shown: this is no yard of this machine; \
                     --data-dir names a yard's folder",
                );
            }
            let found = find::find(&cluster, &kinds, &self.what, kept.as_deref()).await?;
            let painter = Painter::new(self.color, self.prefix, self.timestamps);
            if self.follow {
                follow::run(self, &cluster, &found, kept.as_deref(), painter).await
            } else {
                once::run(self, &cluster, &found, kept.as_deref(), painter, None).await
            }
        })
    }

    /// Whether a replica is one of those that were asked for.
    fn wants(&self, replica: &str) -> bool {
        self.replica.is_empty()
            || self.replica.iter().any(|wanted| {
                let wanted = wanted.to_lowercase();
                wanted == replica
                    || replica.rsplit_once('-').is_some_and(|(kind, _)| kind == wanted)
            })
    }

    fn tail_lines(&self) -> Option<usize> {
        self.tail.and_then(|lines| usize::try_from(lines).ok())
    }

    fn begin(&self) -> Option<Timestamp> {
        let ago = |since: Duration| Timestamp::now().checked_sub(since).ok();
        self.since_time.or_else(|| self.since.and_then(ago))
    }

    /// What a server is asked for a container's log. Times are always wanted: they give the order.
    fn query(&self, container: &str) -> Query {
        let since = self.since.map(|since| since.as_secs().max(1).to_string());
        Query::default()
            .with("container", container)
            .with("timestamps", "true")
            .maybe("tailLines", self.tail_lines().map(|lines| lines.to_string()))
            .maybe("sinceSeconds", since)
            .maybe("sinceTime", self.since_time.map(|time| time.to_string()))
    }
}
