//! Volcano Jobs for scenarios, as JSON. Says only what a scenario says; everything else is left to
//! defaults.

use serde_json::{Value, json};

/// A Volcano Job being written.
#[derive(Debug, Clone)]
pub(crate) struct VolcanoManifest(Value);

/// A job without a task.
pub(crate) fn vcjob(name: &str) -> VolcanoManifest {
    VolcanoManifest(json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
        "spec": {"tasks": []},
    }))
}

/// A task being written.
#[derive(Debug, Clone)]
pub(crate) struct Task(Value);

/// A task with so many pods of one container, which nobody restarts in place.
pub(crate) fn task(name: &str, replicas: i64) -> Task {
    Task(json!({
        "name": name, "replicas": replicas,
        "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "tensorflow", "image": "example.com/train:1"}],
        }},
    }))
}

/// What is done when something happens: `policy("PodFailed", "RestartJob")`.
pub(crate) fn policy(event: &str, action: &str) -> Value {
    json!({"event": event, "action": action})
}

impl Task {
    /// Any field of the task.
    pub(crate) fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0[key] = value.into();
        self
    }

    /// How many of its pods the job needs.
    pub(crate) fn min(self, count: i64) -> Self {
        self.set("minAvailable", count)
    }

    /// What is done when something happens to it.
    #[expect(clippy::needless_pass_by_value, reason = "scenarios write the value in place")]
    pub(crate) fn policy(self, policy: Value) -> Self {
        self.policies(json!([policy]))
    }

    /// The same for several.
    pub(crate) fn policies(self, policies: Value) -> Self {
        self.set("policies", policies)
    }

    /// A field of its pods' specification.
    pub(crate) fn pod(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["template"]["spec"][key] = value.into();
        self
    }

    /// A field of its container.
    pub(crate) fn container(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["template"]["spec"]["containers"][0][key] = value.into();
        self
    }

    /// What its container asks for.
    #[expect(clippy::needless_pass_by_value, reason = "scenarios write the value in place")]
    pub(crate) fn asks(self, requests: Value) -> Self {
        self.container("resources", json!({"requests": requests}))
    }

    /// Kubelets restart its containers in place.
    pub(crate) fn restarts_in_place(self) -> Self {
        self.pod("restartPolicy", "OnFailure")
    }

    /// The tasks that must be ready before.
    pub(crate) fn after(self, names: &[&str]) -> Self {
        self.set("dependsOn", json!({"name": names}))
    }

    /// One of these must be ready before.
    pub(crate) fn after_any(self, names: &[&str]) -> Self {
        self.set("dependsOn", json!({"name": names, "iteration": "any"}))
    }
}

impl VolcanoManifest {
    /// Adds a task.
    pub(crate) fn task(mut self, task: Task) -> Self {
        if let Some(tasks) = self.0["spec"]["tasks"].as_array_mut() {
            tasks.push(task.0);
        }
        self
    }

    /// Any field of the specification.
    pub(crate) fn spec(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["spec"][key] = value.into();
        self
    }

    /// How many pods start together.
    pub(crate) fn min(self, count: i64) -> Self {
        self.spec("minAvailable", count)
    }

    /// What is done when something happens.
    #[expect(clippy::needless_pass_by_value, reason = "scenarios write the value in place")]
    pub(crate) fn policy(self, policy: Value) -> Self {
        self.spec("policies", json!([policy]))
    }

    /// A plugin with arguments.
    pub(crate) fn plugin(mut self, name: &str, words: &[&str]) -> Self {
        self.0["spec"]["plugins"][name] = json!(words);
        self
    }

    /// A label or annotation: `meta("labels", "a", "b")`.
    pub(crate) fn meta(mut self, part: &str, key: &str, value: &str) -> Self {
        self.0["metadata"][part][key] = value.into();
        self
    }

    /// The object.
    pub(crate) fn json(self) -> Value {
        self.0
    }
}

impl From<VolcanoManifest> for Value {
    fn from(manifest: VolcanoManifest) -> Self {
        manifest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_stand_in_the_order_of_their_naming() {
        let job = vcjob("a").task(task("ps", 1)).task(task("worker", 2).min(1)).json();
        assert_eq!(job["spec"]["tasks"][0]["name"], "ps");
        assert_eq!(job["spec"]["tasks"][1]["minAvailable"], 1);
        assert!(job["spec"]["minAvailable"].is_null());
    }
}
