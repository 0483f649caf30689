//! Pods of one PodGroup, as JSON. Says only what a scenario says.

use serde_json::{Value, json};

/// Pods of one PodGroup, to be made together.
#[derive(Debug, Clone)]
pub(crate) struct Gang {
    name: String,
    pods: usize,
    spec: Value,
    pod: Value,
    asks: Value,
    limits: Value,
    notes: Value,
}

impl Gang {
    /// So many pods that start together or not at all and ask for a processor each.
    pub(crate) fn new(name: &str, pods: usize) -> Self {
        Self {
            name: name.to_owned(),
            pods,
            spec: json!({"minMember": pods}),
            pod: json!({"schedulerName": "volcano"}),
            asks: json!({"cpu": "1"}),
            limits: json!({}),
            notes: json!({"scheduling.k8s.io/group-name": name}),
        }
    }

    /// So many of them are enough.
    pub(crate) fn min(self, count: usize) -> Self {
        self.spec("minMember", count)
    }

    /// What each asks for.
    pub(crate) fn asks(mut self, requests: Value) -> Self {
        self.asks = requests;
        self
    }

    /// What each may have at most.
    pub(crate) fn limits(mut self, limits: Value) -> Self {
        self.limits = limits;
        self
    }

    /// An annotation of the pods.
    pub(crate) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.notes[key] = value.into();
        self
    }

    /// A field of the PodGroup's specification.
    pub(crate) fn spec(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.spec[key] = value.into();
        self
    }

    /// A field of the pods' specification.
    pub(crate) fn pod(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.pod[key] = value.into();
        self
    }

    /// Its pods, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        (0..self.pods).map(|index| format!("{}-{index}", self.name)).collect()
    }

    /// Its PodGroup.
    pub(super) fn group(&self) -> Value {
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": self.name}, "spec": self.spec,
        })
    }

    /// One of its pods.
    pub(super) fn member(&self, name: &str) -> Value {
        let mut spec = self.pod.clone();
        spec["restartPolicy"] = "Never".into();
        let mut container = json!({"name": "tensorflow", "image": "example.com/train:1",
            "resources": {"requests": self.asks, "limits": self.limits}});
        if let Some(ports) = spec.as_object_mut().and_then(|spec| spec.remove("ports")) {
            container["ports"] = ports;
        }
        spec["containers"] = json!([container]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"gang": self.name}, "annotations": self.notes},
            "spec": spec,
        })
    }
}
