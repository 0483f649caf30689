//! Whose logs are meant.

use std::path::Path;

use serde_json::Value;
use trainyard_api::names;

use super::super::events::Subject;
use super::super::job;
use crate::cluster::{Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::present::{one_line, text};

/// A job or a pod, and how its pods are found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The kind of pods.
    pub(super) pods: Kind,
    /// The job; none when a pod alone is meant, or the job is gone.
    pub(super) job: Option<(Kind, Value)>,
    /// The labels of its pods; none when a pod alone is meant.
    pub(super) selector: Option<String>,
}

/// Finds what a word means: a job by name, a pod if there is no such job, or `kind/name`.
pub(super) async fn find(
    cluster: &Cluster,
    kinds: &Kinds,
    word: &str,
    kept: Option<&Path>,
) -> Result<Found, Failure> {
    let pods = kinds.known("pods")?.clone();
    let found = |name: &str, job: Option<(Kind, Value)>, selector: Option<String>| Found {
        namespace: cluster.namespace.clone(),
        name: name.to_owned(),
        pods: pods.clone(),
        job,
        selector,
    };
    if let Some((kind, name)) = word.split_once('/') {
        let kind = kinds.known(kind)?;
        if kind.group.is_empty() && kind.kind == "Pod" {
            cluster.get(kind, &cluster.namespace, name, None).await?;
            return Ok(found(name, None, None));
        }
        let label = job::label(kind).ok_or_else(|| {
            Failure::usage(format!("a {} has no logs", kind.word()))
                .hint("name a TFJob, a Volcano Job, a Job or a pod")
        })?;
        let job = cluster.get(kind, &cluster.namespace, name, None).await?;
        return Ok(found(name, Some((kind.clone(), job)), Some(format!("{label}={name}"))));
    }
    if let Some((kind, object)) = job::named(cluster, kinds, word).await? {
        let selector = job::label(&kind).map(|label| format!("{label}={word}"));
        return Ok(found(word, Some((kind, object)), selector));
    }
    match cluster.get(&pods, &cluster.namespace, word, None).await {
        Ok(_) => return Ok(found(word, None, None)),
        Err(error) if error.code() == 404 => {}
        Err(error) => return Err(error.into()),
    }
    // A job that was deleted may have left its logs.
    let left = |state: &Path| trainyard_node::kept_runs(state, &cluster.namespace, word);
    if kept.and_then(|state| left(state).ok()).is_some_and(|runs| !runs.is_empty()) {
        let selector = format!("{}={word}", names::LABEL_JOB);
        return Ok(found(word, None, Some(selector)));
    }
    if let Some(gone) = deleted(cluster, kinds, word).await {
        return Err(gone);
    }
    Err(Failure::plain(format!(
        "there is neither a job nor a pod {word:?} in namespace {:?}",
        cluster.namespace
    ))
    .hint("`trainyard get` lists the jobs; -n names another namespace"))
}

/// That there was a job of that name, if events still tell of it.
async fn deleted(cluster: &Cluster, kinds: &Kinds, name: &str) -> Option<Failure> {
    let events = kinds.find("events.v1")?;
    let subject = Subject::gone(name);
    let all = cluster.objects(events, Some(&cluster.namespace), &Query::default()).await.ok()?;
    let mut own: Vec<Value> = all.into_iter().filter(|event| subject.is_job(event)).collect();
    crate::present::events::sort(&mut own);
    let last = own.last()?;
    let when = crate::present::events::when(last, jiff::Timestamp::now());
    let (reason, message) = (text(last, &["reason"]), one_line(text(last, &["message"])));
    let words = format!(
        "the job {name:?} is gone, and its pods with their logs; the last event of it, {when}, was \
         {reason}: {message}"
    );
    Some(Failure::plain(words).hint(format!(
        "`trainyard events {name}` shows the others; ttlSecondsAfterFinished has a job deleted so long \
         after its end"
    )))
}

/// The replica that a pod plays: `worker-0`; the pod's name when it plays none.
pub(crate) fn replica(pod: &Value) -> String {
    let labels = &pod["metadata"]["labels"];
    for (kind, index) in
        [(names::LABEL_TYPE, names::LABEL_INDEX), ("volcano.sh/task-spec", "volcano.sh/task-index")]
    {
        let (kind, index) = (text(labels, &[kind]), text(labels, &[index]));
        if !kind.is_empty() {
            return if index.is_empty() { kind.to_owned() } else { format!("{kind}-{index}") };
        }
    }
    text(pod, &["metadata", "name"]).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_named_by_their_labels() {
        let pod = json!({"metadata": {"name": "mnist-worker-0", "labels": {
            names::LABEL_TYPE: "worker", names::LABEL_INDEX: "0",
        }}});
        assert_eq!(replica(&pod), "worker-0");
        let pod = json!({"metadata": {"name": "vj-ps-1", "labels": {
            "volcano.sh/task-spec": "ps", "volcano.sh/task-index": "1",
        }}});
        assert_eq!(replica(&pod), "ps-1");
        assert_eq!(replica(&json!({"metadata": {"name": "alone"}})), "alone");
    }
}
