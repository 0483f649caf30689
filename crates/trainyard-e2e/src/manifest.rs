//! TFJobs for scenarios, as JSON. Says only what a scenario says; everything else is left to the
//! operator's defaults.

use serde_json::{Value, json};

use crate::seen::text;

/// A TFJob being written.
#[derive(Debug, Clone)]
pub struct Manifest(Value);

/// A job with no replica yet.
#[must_use]
pub fn tfjob(name: &str) -> Manifest {
    Manifest(json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": {}},
    }))
}

impl Manifest {
    /// Replicas of a type, with a template of one container.
    #[must_use]
    pub fn replicas(mut self, kind: &str, count: i64) -> Self {
        self.0["spec"]["tfReplicaSpecs"][kind] = json!({
            "replicas": count,
            "template": {"spec": {"containers": [
                {"name": "tensorflow", "image": "example.com/train:1"},
            ]}},
        });
        self
    }

    /// Workers.
    #[must_use]
    pub fn workers(self, count: i64) -> Self {
        self.replicas("Worker", count)
    }

    /// Parameter servers.
    #[must_use]
    pub fn ps(self, count: i64) -> Self {
        self.replicas("PS", count)
    }

    /// A chief.
    #[must_use]
    pub fn chief(self) -> Self {
        self.replicas("Chief", 1)
    }

    /// Evaluators.
    #[must_use]
    pub fn evaluators(self, count: i64) -> Self {
        self.replicas("Evaluator", count)
    }

    /// The restart policy of every type named so far.
    #[must_use]
    pub fn restart(mut self, policy: &str) -> Self {
        if let Some(specs) = self.0["spec"]["tfReplicaSpecs"].as_object_mut() {
            for spec in specs.values_mut() {
                spec["restartPolicy"] = policy.into();
            }
        }
        self
    }

    /// The restart policy of one type.
    #[must_use]
    pub fn restart_of(mut self, kind: &str, policy: &str) -> Self {
        self.0["spec"]["tfReplicaSpecs"][kind]["restartPolicy"] = policy.into();
        self
    }

    /// A field of the run policy.
    #[must_use]
    pub fn run_policy(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["spec"]["runPolicy"][key] = value.into();
        self
    }

    /// A field of the specification.
    #[must_use]
    pub fn spec(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["spec"][key] = value.into();
        self
    }

    /// The version it is written in.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.0["apiVersion"] = version.into();
        self
    }

    /// Edits the specification of one replica type.
    #[must_use]
    pub fn edit(mut self, kind: &str, edit: impl FnOnce(&mut Value)) -> Self {
        edit(&mut self.0["spec"]["tfReplicaSpecs"][kind]);
        self
    }

    /// Edits the container of one replica type.
    #[must_use]
    pub fn container(self, kind: &str, edit: impl FnOnce(&mut Value)) -> Self {
        self.edit(kind, |spec| {
            edit(&mut spec["template"]["spec"]["containers"][0]);
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        text(&self.0["metadata"]["name"])
    }

    /// The object.
    #[must_use]
    pub fn json(self) -> Value {
        self.0
    }
}

impl From<Manifest> for Value {
    fn from(manifest: Manifest) -> Self {
        manifest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_for_all_and_one_for_a_type() {
        let job =
            tfjob("a").workers(2).ps(1).restart("OnFailure").restart_of("PS", "Always").json();
        let specs = &job["spec"]["tfReplicaSpecs"];
        assert_eq!(specs["Worker"]["restartPolicy"], "OnFailure");
        assert_eq!(specs["PS"]["restartPolicy"], "Always");
        assert_eq!(specs["Worker"]["replicas"], 2);
        assert!(job["spec"]["runPolicy"].is_null());
    }
}
