//! `trainyard suspend`, `resume` and `scale`: one field of a TFJob each; of a Volcano Job a Command, as
//! Volcano's own tool writes it, or a task's count.
//!
//! Owns the flags and how a change is carried out; what is to be changed is beside, one file per kind.

mod tfjob;
mod volcano;

use std::borrow::Cow;

use clap::Args;
use serde_json::{Value, json};

use super::job;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::text;

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// Stop jobs without losing them: their pods go, and come back with `resume`
#[derive(Debug, Args)]
pub(crate) struct Suspend {
    /// The jobs' names; tfjob/NAME or vcjob/NAME where both kinds have one
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    #[command(flatten)]
    access: Access,
}

/// Let suspended jobs run again
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The jobs' names; tfjob/NAME or vcjob/NAME where both kinds have one
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    #[command(flatten)]
    access: Access,
}

/// Change how many replicas of one type, or pods of one task, a job has
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// The jobs' names; tfjob/NAME or vcjob/NAME where both kinds have one
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// How many
    #[arg(long, value_name = "N")]
    replicas: u32,
    /// Of which type; of a Volcano Job, of which task
    #[arg(long, alias = "task", value_name = "TYPE", default_value = "Worker")]
    replica_type: String,
    #[command(flatten)]
    access: Access,
}

impl Suspend {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        change(&self.access, &self.jobs, |kind, job| suspended(kind, job, true))
    }
}

impl Resume {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        change(&self.access, &self.jobs, |kind, job| suspended(kind, job, false))
    }
}

impl Scale {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let (wanted, replicas) = (self.replica_type.as_str(), self.replicas);
        change(&self.access, &self.jobs, |kind, job| {
            if kind.is_volcano_job() {
                volcano::scaled(job, wanted, replicas)
            } else {
                tfjob::scaled(job, wanted, replicas)
            }
        })
    }
}

fn suspended(kind: &Kind, job: &Value, wanted: bool) -> Result<Change, String> {
    if kind.is_volcano_job() {
        volcano::suspended(job, wanted)
    } else {
        tfjob::suspended(job, wanted)
    }
}

/// What to change, and what is said then; nothing to change is said too.
#[derive(Debug, PartialEq)]
struct Change {
    act: Act,
    said: Cow<'static, str>,
}

/// What is done.
#[derive(Debug, PartialEq)]
enum Act {
    Nothing,
    /// A merge patch of the job.
    Merge(Value),
    /// A JSON patch of the job, which tests what it relies on.
    Patch(Value),
    /// An object that is made.
    Create(Value),
}

/// Changes jobs one by one; one that cannot be changed does not keep the others.
fn change(
    access: &Access,
    words: &[String],
    plan: impl Fn(&Kind, &Value) -> Result<Change, String>,
) -> Result<(), Failure> {
    cluster::run(async {
        let cluster = access.connect().await?;
        let kinds = Kinds::of(&cluster).await?;
        let mut failures = Vec::new();
        for word in words {
            if let Err(failure) = one(&cluster, &kinds, word, &plan).await {
                failures.push(failure);
            }
        }
        Failure::all(failures)
    })
}

async fn one(
    cluster: &Cluster,
    kinds: &Kinds,
    word: &str,
    plan: &impl Fn(&Kind, &Value) -> Result<Change, String>,
) -> Result<(), Failure> {
    let (kind, job) = job::find(cluster, kinds, word).await?;
    let name = text(&job, &["metadata", "name"]);
    let change =
        plan(&kind, &job).map_err(|problem| Failure::plain(format!("{name}: {problem}")))?;
    let place = (cluster.namespace.as_str(), name, "");
    let query = Query::default().with("fieldManager", "trainyard");
    match change.act {
        Act::Nothing => {}
        Act::Merge(patch) => merge(cluster, &kind, &job, patch).await?,
        Act::Patch(patch) => {
            cluster.patch(&kind, place, JSON_PATCH, &patch, &query).await?;
        }
        Act::Create(object) => {
            let (version, name) = (text(&object, &["apiVersion"]), text(&object, &["kind"]));
            let kind = kinds.exact(version, name).ok_or_else(|| {
                Failure::plain(format!("the server does not know {name} of {version}"))
            })?;
            cluster.create(kind, &cluster.namespace, &object, &query).await?;
        }
    }
    output::print(&format!("{}/{name} {}\n", kind.word(), change.said))
}

async fn merge(
    cluster: &Cluster,
    kind: &Kind,
    job: &Value,
    mut patch: Value,
) -> Result<(), Failure> {
    // What was read is what is changed: somebody else's change in between is not overwritten.
    patch["metadata"] = json!({"resourceVersion": text(job, &["metadata", "resourceVersion"])});
    let place = (cluster.namespace.as_str(), text(job, &["metadata", "name"]), "");
    let query = Query::default().with("fieldManager", "trainyard");
    let sent = cluster.patch(kind, place, MERGE, &patch, &query).await;
    if sent.as_ref().is_err_and(|error| error.code() == 409) {
        // The operator writes statuses all the time: once more, without looking.
        if let Some(patch) = patch.as_object_mut() {
            patch.remove("metadata");
        }
        cluster.patch(kind, place, MERGE, &patch, &query).await?;
    } else {
        sent?;
    }
    Ok(())
}
