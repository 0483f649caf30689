//! Whose logs are meant.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use trainyard_api::{names, volcano};

use super::super::events::Subject;
use super::super::job;
use crate::cluster::{Cluster, Kind, Kinds, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::{events, one_line, text};

/// A job or a pod, and how its pods are found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The kind of pods.
    pub(super) pods: Kind,
    /// The kind of events, where they are served.
    pub(super) events: Option<Kind>,
    /// The job; none when a pod alone is meant, or the job is gone or may not be read.
    pub(super) job: Option<(Kind, Value)>,
    /// The labels of its pods; none when a pod alone is meant.
    pub(super) selector: Option<String>,
}

/// Where is looked.
struct Place<'a> {
    cluster: &'a Cluster,
    kinds: &'a Kinds,
    pods: Kind,
    /// The folder with the logs of pods that are gone.
    kept: Option<&'a Path>,
}

/// Finds what a word means: a job by name, a pod if there is no such job, or `kind/name`.
pub(super) async fn find(
    cluster: &Cluster,
    kinds: &Kinds,
    word: &str,
    kept: Option<&Path>,
) -> Result<Found, Failure> {
    let place = Place { cluster, kinds, pods: kinds.known("pods")?.clone(), kept };
    match word.split_once('/') {
        Some((kind, name)) => place.by_kind(kinds.known(kind)?, name).await,
        None => place.by_name(word).await,
    }
}

impl Place<'_> {
    fn found(&self, name: &str, job: Option<(Kind, Value)>, selector: Option<String>) -> Found {
        Found {
            namespace: self.cluster.namespace.clone(),
            name: name.to_owned(),
            pods: self.pods.clone(),
            events: self.kinds.find("events.v1").cloned(),
            job,
            selector,
        }
    }

    async fn by_kind(&self, kind: &Kind, name: &str) -> Result<Found, Failure> {
        let namespace = &self.cluster.namespace;
        let is_pod = kind.group.is_empty() && kind.kind == "Pod";
        let label = job::label(kind);
        if !is_pod && label.is_none() {
            return Err(Failure::usage(format!("a {} has no logs", kind.word()))
                .hint("name a TFJob, a Volcano Job, a Job or a pod"));
        }
        match (self.cluster.get(kind, namespace, name, None).await, label) {
            (Ok(job), Some(label)) => {
                Ok(self.found(name, Some((kind.clone(), job)), Some(format!("{label}={name}"))))
            }
            (Ok(_), None) => Ok(self.found(name, None, None)),
            (Err(error), Some(label)) if error.code() == 404 => {
                match self.left(name, &[label]).await? {
                    Some(found) => Ok(found),
                    None => Err(error.into()),
                }
            }
            (Err(error), Some(label)) if error.code() == 403 => {
                match self.of_label(name, &[label]).await {
                    Some(found) => Ok(unseen(found, &error.into())),
                    None => Err(error.into()),
                }
            }
            (Err(error), None) if error.code() == 404 => {
                Err(self.gone_pod(name).await.unwrap_or_else(|| error.into()))
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    async fn by_name(&self, word: &str) -> Result<Found, Failure> {
        const LABELS: [&str; 2] = [names::LABEL_JOB, volcano::names::LABEL_JOB];
        match job::named(self.cluster, self.kinds, word).await {
            Ok(Some((kind, object))) => {
                let selector = job::label(&kind).map(|label| format!("{label}={word}"));
                return Ok(self.found(word, Some((kind, object)), selector));
            }
            Ok(None) => {}
            // Whoever may not read the job may be allowed to read its pods.
            Err(failure) => {
                return match self.of_label(word, &LABELS).await {
                    Some(found) => Ok(unseen(found, &failure)),
                    None => Err(failure),
                };
            }
        }
        match self.cluster.get(&self.pods, &self.cluster.namespace, word, None).await {
            Ok(_) => return Ok(self.found(word, None, None)),
            Err(error) if error.code() == 404 => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(found) = self.left(word, &LABELS).await? {
            return Ok(found);
        }
        Err(Failure::plain(format!(
            "there is neither a job nor a pod {word:?} in namespace {:?}",
            self.cluster.namespace
        ))
        .hint("`trainyard get` lists the jobs; -n names another namespace"))
    }

    /// What a job that is gone has left: its logs in a yard, pods that outlive it, or the word of events
    /// that there was one, which is a failure.
    async fn left(&self, name: &str, labels: &[&str]) -> Result<Option<Found>, Failure> {
        let runs = |state: &Path| trainyard_node::kept_runs(state, &self.cluster.namespace, name);
        if self.kept.and_then(|state| runs(state).ok()).is_some_and(|runs| !runs.is_empty()) {
            let selector = labels.first().map(|label| format!("{label}={name}"));
            return Ok(Some(self.found(name, None, selector)));
        }
        if let Some(found) = self.of_label(name, labels).await {
            output::warn(&format!("the job {name:?} is gone; these are pods that it has left"));
            return Ok(Some(found));
        }
        self.gone_job(name).await.map_or(Ok(None), Err)
    }

    /// The pods that name a job of that name by one of these labels, if there are any.
    async fn of_label(&self, name: &str, labels: &[&str]) -> Option<Found> {
        for label in labels {
            let selector = format!("{label}={name}");
            let query = Query::default().with("labelSelector", &selector);
            let pods =
                self.cluster.objects(&self.pods, Some(&self.cluster.namespace), &query).await;
            if pods.is_ok_and(|pods| !pods.is_empty()) {
                return Some(self.found(name, None, Some(selector)));
            }
        }
        None
    }

    /// The last of the events that are wanted, in words.
    async fn last_event(&self, wanted: impl Fn(&Value) -> bool) -> Option<String> {
        let kind = self.kinds.find("events.v1")?;
        let namespace = Some(self.cluster.namespace.as_str());
        let all = self.cluster.objects(kind, namespace, &Query::default()).await.ok()?;
        let mut own: Vec<Value> = all.into_iter().filter(|event| wanted(event)).collect();
        events::sort(&mut own);
        let last = own.last()?;
        let when = events::when(last, Timestamp::now());
        let (reason, message) = (text(last, &["reason"]), one_line(text(last, &["message"])));
        Some(format!("the last event of it, {when}, was {reason}: {message}"))
    }

    /// That there was a job of that name, if events still tell of it.
    async fn gone_job(&self, name: &str) -> Option<Failure> {
        let subject = Subject::gone(name);
        let last = self.last_event(|event| subject.is_job(event)).await?;
        let words = format!("the job {name:?} is gone, and its pods with their logs; {last}");
        Some(Failure::plain(words).hint(format!(
            "`trainyard events {name}` shows the others; ttlSecondsAfterFinished has a job deleted so \
             long after its end"
        )))
    }

    /// The same of a pod.
    async fn gone_pod(&self, name: &str) -> Option<Failure> {
        let is_own = |event: &Value| {
            let object = &event["involvedObject"];
            object["kind"] == "Pod" && object["name"] == name
        };
        let last = self.last_event(is_own).await?;
        Some(Failure::plain(format!("the pod {name:?} is gone, and its log with it; {last}")))
    }
}

/// Pods of a job that cannot be read itself, for the reason that is told.
fn unseen(found: Found, why: &Failure) -> Found {
    output::warn(&format!("only its pods are known: {}", why.words()));
    found
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
