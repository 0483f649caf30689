//! `trainyard events`: what has happened, to a job and everything that belongs to it, or at all.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use trainyard_api::names;

use super::selection;
use crate::cluster::{self, Access, Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::columns::Columns;
use crate::present::{events, text};

/// Show what has happened, in order
///
/// `trainyard events mnist` shows the events of that TFJob, its pods and its services; without a
/// name all events of the namespace.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// A TFJob's name
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Go on as things happen
    #[arg(short, long)]
    watch: bool,
    /// Only Warning, or only Normal
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with = "job")]
    all_namespaces: bool,
    /// Without the line of the columns' names
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    access: Access,
}

impl Events {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let word = self.job.clone().map(|job| vec![job]).unwrap_or_default();
        let job = selection::job_names(&word)?.first().map(|name| (*name).to_owned());
        cluster::run(async {
            let cluster = self.access.connect().await?;
            let kinds = Kinds::of(&cluster).await?;
            let kind = kinds.known("events.v1")?;
            if let Some(job) = &job {
                self.must_exist(&cluster, &kinds, kind, job).await?;
            }
            let mut layout = Columns::default();
            let scope = (!self.all_namespaces).then_some(cluster.namespace.as_str());
            let pages = cluster.list(kind, scope, &Query::default(), false).await?;
            let mut found: Vec<Value> = pages
                .iter()
                .flat_map(|page| page["items"].as_array().into_iter().flatten())
                .filter(|event| self.wants(event, job.as_deref()))
                .cloned()
                .collect();
            events::sort(&mut found);
            let mut rows: Vec<Vec<String>> = Vec::new();
            if !found.is_empty() && !self.no_headers {
                rows.push(events::header(self.all_namespaces));
            }
            let now = Timestamp::now();
            rows.extend(found.iter().map(|event| events::row(event, now, self.all_namespaces)));
            output::print(&layout.lines(&rows))?;
            if self.watch {
                let revision =
                    pages.last().map(|page| text(page, &["metadata", "resourceVersion"]));
                let revision = revision.unwrap_or_default().to_owned();
                return self.follow(&cluster, kind, job.as_deref(), layout, revision).await;
            }
            if found.is_empty() {
                let place = scope.map_or(String::new(), |name| format!(" in {name} namespace"));
                output::say(&format!("No events found{place}.\n"));
            }
            Ok(())
        })
    }

    /// A name that no job has, and no event tells of, is a slip.
    async fn must_exist(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
        events: &Kind,
        job: &str,
    ) -> Result<(), Failure> {
        let Some(kind) = kinds.find(names::CRD_NAME) else { return Ok(()) };
        match cluster.get(kind, &cluster.namespace, job, None).await {
            Err(error) if error.code() == 404 => {
                let all =
                    cluster.objects(events, Some(&cluster.namespace), &Query::default()).await?;
                if all.iter().any(|event| is_about(event, job)) {
                    return Ok(());
                }
                Err(Failure::from(error).hint("`trainyard get` lists the jobs"))
            }
            answer => answer.map(drop).map_err(Failure::from),
        }
    }

    fn wants(&self, event: &Value, job: Option<&str>) -> bool {
        let kind = text(event, &["type"]);
        let typed =
            self.types.is_empty() || self.types.iter().any(|one| one.eq_ignore_ascii_case(kind));
        typed && job.is_none_or(|job| is_about(event, job))
    }

    async fn follow(
        &self,
        cluster: &Cluster,
        kind: &Kind,
        job: Option<&str>,
        mut layout: Columns,
        mut revision: String,
    ) -> Result<(), Failure> {
        let scope = (!self.all_namespaces).then_some(cluster.namespace.as_str());
        loop {
            let query = Query::default().with("resourceVersion", &revision);
            let mut lines = cluster.watch(kind, scope, &query, false).await?;
            while let Some(line) = lines.next().await? {
                let change: Value = serde_json::from_slice(&line).unwrap_or_default();
                let event = &change["object"];
                match change["type"].as_str() {
                    Some("ERROR") => {
                        let why = text(event, &["message"]);
                        return Err(Failure::plain(format!("the watch ended: {why}")));
                    }
                    Some("ADDED" | "MODIFIED") if self.wants(event, job) => {
                        let row = events::row(event, Timestamp::now(), self.all_namespaces);
                        output::print(&layout.lines(&[row]))?;
                    }
                    _ => {}
                }
                let now_at = text(event, &["metadata", "resourceVersion"]);
                if !now_at.is_empty() {
                    now_at.clone_into(&mut revision);
                }
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Whether an event is about a job or one of its replicas.
pub(super) fn is_about(event: &Value, job: &str) -> bool {
    let (kind, name) =
        (text(event, &["involvedObject", "kind"]), text(event, &["involvedObject", "name"]));
    match kind {
        names::KIND | "PodGroup" => name == job,
        "Pod" | "Service" | "EndpointSlice" => is_replica(name, job),
        _ => false,
    }
}

/// Whether a name is that of a job's replica: `mnist-worker-0`.
fn is_replica(name: &str, job: &str) -> bool {
    let rest = name.strip_prefix(job).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(kind, index)| {
        let known = ["chief", "master", "worker", "ps", "evaluator", names::TENSORBOARD];
        known.contains(&kind)
            && !index.is_empty()
            && index.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_of_a_job_are_its_own_and_its_replicas() {
        let about = |kind: &str, name: &str| {
            is_about(&json!({"involvedObject": {"kind": kind, "name": name}}), "mnist")
        };
        assert!(about("TFJob", "mnist") && about("Pod", "mnist-worker-12"));
        assert!(about("Service", "mnist-tensorboard-0"));
        assert!(!about("TFJob", "mnist-2") && !about("Pod", "mnist-2-worker-0"));
        assert!(
            !about("Pod", "mnist") && !about("Pod", "mnist-worker-") && !about("Node", "mnist")
        );
    }
}
