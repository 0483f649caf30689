//! `trainyard suspend`, `resume` and `scale`: one field of a job each.

use clap::Args;
use serde_json::{Value, json};
use trainyard_api::names;

use super::selection;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::{items, text};

const MERGE: &str = "application/merge-patch+json";

/// Stop jobs without losing them: their pods go, and come back with `resume`
#[derive(Debug, Args)]
pub(crate) struct Suspend {
    /// The jobs' names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    #[command(flatten)]
    access: Access,
}

/// Let suspended jobs run again
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The jobs' names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    #[command(flatten)]
    access: Access,
}

/// Change how many replicas of one type a job has
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// The jobs' names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// How many
    #[arg(long, value_name = "N")]
    replicas: u32,
    /// Of which type
    #[arg(long, value_name = "TYPE", default_value = "Worker")]
    replica_type: String,
    #[command(flatten)]
    access: Access,
}

impl Suspend {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        change(&self.access, &self.jobs, |job| suspended(job, true))
    }
}

impl Resume {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        change(&self.access, &self.jobs, |job| suspended(job, false))
    }
}

impl Scale {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        change(&self.access, &self.jobs, |job| scaled(job, &self.replica_type, self.replicas))
    }
}

/// What to change, and what is said then; nothing to change is said too.
struct Change {
    patch: Option<Value>,
    said: &'static str,
}

/// Changes jobs one by one; one that cannot be changed does not keep the others.
fn change(
    access: &Access,
    words: &[String],
    plan: impl Fn(&Value) -> Result<Change, String>,
) -> Result<(), Failure> {
    let jobs = selection::job_names(words)?;
    cluster::run(async {
        let cluster = access.connect().await?;
        let kinds = Kinds::of(&cluster).await?;
        let kind = kinds.known(names::CRD_NAME)?;
        let mut failures = Vec::new();
        for name in jobs {
            if let Err(failure) = one(&cluster, kind, name, &plan).await {
                failures.push(failure);
            }
        }
        Failure::all(failures)
    })
}

async fn one(
    cluster: &Cluster,
    kind: &Kind,
    name: &str,
    plan: &impl Fn(&Value) -> Result<Change, String>,
) -> Result<(), Failure> {
    let job = cluster.get(kind, &cluster.namespace, name, None).await?;
    let change = plan(&job).map_err(|problem| Failure::plain(format!("{name}: {problem}")))?;
    if let Some(mut patch) = change.patch {
        // What was read is what is changed: somebody else's change in between is not overwritten.
        patch["metadata"] =
            json!({"resourceVersion": text(&job, &["metadata", "resourceVersion"])});
        let place = (cluster.namespace.as_str(), name, "");
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
    }
    output::print(&format!("{}/{name} {}\n", kind.word(), change.said))
}

fn finished(job: &Value) -> Option<&str> {
    items(job, &["status", "conditions"])
        .filter(|condition| condition["status"] == "True")
        .map(|condition| text(condition, &["type"]))
        .find(|kind| ["Succeeded", "Failed"].contains(kind))
}

fn suspended(job: &Value, wanted: bool) -> Result<Change, String> {
    if let Some(how) = finished(job) {
        return Err(format!("the job has {} already", how.to_lowercase()));
    }
    let now = job["spec"]["runPolicy"]["suspend"] == true;
    let said = match (wanted, now == wanted) {
        (true, true) => "is suspended already",
        (true, false) => "suspended",
        (false, true) => "is not suspended",
        (false, false) => "resumed",
    };
    let patch = (now != wanted).then(|| json!({"spec": {"runPolicy": {"suspend": wanted}}}));
    Ok(Change { patch, said })
}

fn scaled(job: &Value, replica_type: &str, replicas: u32) -> Result<Change, String> {
    if let Some(how) = finished(job) {
        return Err(format!("the job has {} already", how.to_lowercase()));
    }
    let types: Vec<&String> = job["spec"]["tfReplicaSpecs"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
        .collect();
    let Some(key) = types.iter().find(|key| key.eq_ignore_ascii_case(replica_type)) else {
        let there: Vec<&str> = types.iter().map(|key| key.as_str()).collect();
        return Err(format!(
            "the job has no replicas of type {replica_type}: it has {}",
            there.join(", ")
        ));
    };
    let now = job["spec"]["tfReplicaSpecs"][key.as_str()]["replicas"].as_u64().unwrap_or(1);
    if now == u64::from(replicas) {
        return Ok(Change { patch: None, said: "has that many already" });
    }
    let patch = json!({"spec": {"tfReplicaSpecs": {key.as_str(): {"replicas": replicas}}}});
    Ok(Change { patch: Some(patch), said: "scaled" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Value {
        json!({"spec": {"tfReplicaSpecs": {"WORKER": {"replicas": 2}, "PS": {}}}})
    }

    #[test]
    fn suspension_is_one_field() {
        let change = suspended(&job(), true).unwrap();
        assert_eq!(change.patch, Some(json!({"spec": {"runPolicy": {"suspend": true}}})));
        assert_eq!(change.said, "suspended");
        let change = suspended(&job(), false).unwrap();
        assert_eq!((change.patch, change.said), (None, "is not suspended"));
    }

    #[test]
    fn the_spelling_of_types_is_the_manifests() {
        let change = scaled(&job(), "Worker", 5).unwrap();
        let patch = json!({"spec": {"tfReplicaSpecs": {"WORKER": {"replicas": 5}}}});
        assert_eq!(change.patch, Some(patch));
        assert_eq!(scaled(&job(), "ps", 1).unwrap().patch, None, "one is the default");
        let problem = scaled(&job(), "Chief", 1).err().unwrap();
        assert_eq!(problem, "the job has no replicas of type Chief: it has PS, WORKER");
    }

    #[test]
    fn what_is_over_stays_as_it_is() {
        let mut job = job();
        job["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
        assert_eq!(suspended(&job, true).err().unwrap(), "the job has succeeded already");
        assert!(scaled(&job, "Worker", 1).is_err());
    }
}
