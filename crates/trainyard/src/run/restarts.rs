//! How often replicas may fail before a run gives up on them. Pure.

use serde_json::Value;

use super::bundle::Job;
use crate::present::at;

/// Restarts in a row that a run allows where neither the command line nor the manifest says how many. With
/// the waits between them, which grow, that is about five minutes.
pub(crate) const USUAL: u64 = 5;

/// The bound of a job; none where its manifest sets one of its own, which its controller keeps.
pub(crate) fn bound(job: &Job, asked: Option<u64>) -> Option<u64> {
    let own = [&["spec", "runPolicy", "backoffLimit"][..], &["spec", "backoffLimit"]];
    let has_own = own.into_iter().any(|path| !at(&job.object, path).is_null());
    // A Job of Kubernetes has one by default.
    let is_batch = job.row.group == "batch";
    asked.or((!has_own && !is_batch).then_some(USUAL))
}

/// Why a job would never start by itself, and what to write; none where it would.
pub(crate) fn never_starts(job: &Job) -> Option<(String, String)> {
    let spec = &job.object["spec"];
    let field = ["runPolicy.suspend", "suspend"].into_iter().find(|field| {
        let path: Vec<&str> = field.split('.').collect();
        *at(spec, &path) == Value::Bool(true)
    });
    let is_volcanos = job.row.group.ends_with("volcano.sh");
    if let Some(field) = field.filter(|_| !is_volcanos) {
        return Some((
            format!(
                "{}: {} is suspended (spec.{field}), and nobody resumes it in a run",
                job.place, job.name
            ),
            format!(
                "remove spec.{field}, or keep the job in a yard: `trainyard up`, `trainyard resume {}`",
                job.name
            ),
        ));
    }
    if job.row.group != "batch" && (job.row.members)(&job.object).is_empty() {
        return Some((
            format!("{}: {} has no replicas at all: every count is 0", job.place, job.name),
            "write replicas: 1 or more for at least one type".to_owned(),
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::files::Manifest;
    use crate::run::bundle::Bundle;

    fn job(version: &str, kind: &str, spec: &Value) -> Job {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "mnist"},
            "spec": spec});
        let manifest = Manifest { place: "job.yaml: document 1".to_owned(), object };
        Bundle::sort(vec![manifest], "default", &[]).unwrap().jobs.remove(0)
    }

    fn tfjob(policy: &Value, replicas: u64) -> Job {
        let spec =
            json!({"runPolicy": policy, "tfReplicaSpecs": {"Worker": {"replicas": replicas}}});
        job("kubeflow.org/v1", "TFJob", &spec)
    }

    #[test]
    fn a_limit_of_the_manifest_goes_before_the_usual_one() {
        assert_eq!(bound(&tfjob(&json!({}), 1), None), Some(USUAL));
        assert_eq!(bound(&tfjob(&json!({}), 1), Some(2)), Some(2));
        assert_eq!(bound(&tfjob(&json!({"backoffLimit": 9}), 1), None), None);
        assert_eq!(bound(&tfjob(&json!({"backoffLimit": 9}), 1), Some(2)), Some(2));
        assert_eq!(bound(&job("batch/v1", "Job", &json!({})), None), None);
    }

    #[test]
    fn jobs_that_nothing_starts_are_found_before() {
        let words = |job: &Job| never_starts(job).map(|(problem, _)| problem).unwrap_or_default();
        assert!(words(&tfjob(&json!({}), 0)).contains("no replicas at all"));
        assert!(words(&tfjob(&json!({"suspend": true}), 1)).contains("spec.runPolicy.suspend"));
        assert!(words(&job("batch/v1", "Job", &json!({"suspend": true}))).contains("spec.suspend"));
        assert_eq!(words(&tfjob(&json!({"suspend": false}), 1)), "");
        assert_eq!(words(&job("batch/v1", "Job", &json!({"parallelism": 0}))), "");
    }
}
