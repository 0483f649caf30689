//! The job that a word means: `mnist`, `tfjob/mnist`, `vcjob/mnist`.
//!
//! A name alone is a TFJob's, or a Volcano Job's where there is no such TFJob. Must not know what is done
//! with it.

use serde_json::Value;
use trainyard_api::{names, volcano};

use crate::cluster::{Cluster, Kind, Kinds};
use crate::failure::Failure;

/// A job and its kind.
pub(super) type Job = (Kind, Value);

/// The kinds of job that a name alone may mean, in this order.
fn kinds_of_jobs(kinds: &Kinds) -> impl Iterator<Item = &Kind> {
    [names::CRD_NAME, volcano::names::CRD_NAME].into_iter().filter_map(|name| kinds.find(name))
}

/// The job of that name; none if there is no such job. A kind that may not be read hides no other.
pub(super) async fn named(
    cluster: &Cluster,
    kinds: &Kinds,
    name: &str,
) -> Result<Option<Job>, Failure> {
    let mut forbidden = None;
    for kind in kinds_of_jobs(kinds) {
        match cluster.get(kind, &cluster.namespace, name, None).await {
            Ok(object) => return Ok(Some((kind.clone(), object))),
            Err(error) if error.code() == 404 => {}
            Err(error) if error.code() == 403 => forbidden = forbidden.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    forbidden.map_or(Ok(None), |error| Err(error.into()))
}

/// The job that a word means.
pub(super) async fn find(cluster: &Cluster, kinds: &Kinds, word: &str) -> Result<Job, Failure> {
    if let Some((kind, name)) = word.split_once('/') {
        let kind = kinds.known(kind)?;
        if !kind.is_training() || name.is_empty() {
            return Err(not_a_job(word));
        }
        return Ok((kind.clone(), cluster.get(kind, &cluster.namespace, name, None).await?));
    }
    if word.is_empty() {
        return Err(Failure::usage("a job's name is empty"));
    }
    // Without any, what is missing is said.
    kinds_of_jobs(kinds).next().map_or_else(|| kinds.known(names::CRD_NAME), Ok)?;
    named(cluster, kinds, word).await?.ok_or_else(|| {
        let place = &cluster.namespace;
        let volcanos = kinds.find(volcano::names::CRD_NAME).is_some();
        let what = if volcanos { "neither a TFJob nor a Volcano Job" } else { "no TFJob" };
        Failure::plain(format!("there is {what} {word:?} in namespace {place:?}"))
            .hint("`trainyard get` lists the jobs; -n names another namespace")
    })
}

fn not_a_job(word: &str) -> Failure {
    Failure::usage(format!("{word:?} is neither a TFJob nor a Volcano Job"))
        .hint("write the job's name, tfjob/NAME or vcjob/NAME")
}

/// The label by which the pods of a kind of job name their job.
pub(super) fn label(kind: &Kind) -> Option<&'static str> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        _ if kind.is_tfjob() => Some(names::LABEL_JOB),
        _ if kind.is_volcano_job() => Some(volcano::names::LABEL_JOB),
        ("batch", "Job") => Some("job-name"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_found_by_the_label_of_their_kind() {
        let label = |group: &str, version: &str, kind: &str| {
            label(&Kind::example(group, version, kind, "x", true))
        };
        assert_eq!(label("kubeflow.org", "v1", "TFJob"), Some("training.kubeflow.org/job-name"));
        assert_eq!(label("batch.volcano.sh", "v1alpha1", "Job"), Some("volcano.sh/job-name"));
        assert_eq!(label("batch", "v1", "Job"), Some("job-name"));
        assert_eq!(label("", "v1", "Pod"), None);
    }
}
