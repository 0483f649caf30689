//! Building a job's pods.
//!
//! A template goes into a pod as it came, field by field; only what the contract names is added.
//! Must not decide whether a pod is due.

use serde_json::{Map, Value, json};
use trainyard_api::{
    Meta,
    meta::OWN_ANNOTATIONS,
    volcano::{
        TaskSpec, VolcanoStatus,
        names::{
            ANNOTATION_GROUP, ANNOTATION_RETRY, ANNOTATION_TEMPLATE, ANNOTATION_VERSION,
            API_VERSION, KIND, LABEL_INDEX, LABEL_JOB, LABEL_NAMESPACE, LABEL_QUEUE, LABEL_TASK,
        },
    },
};

use super::{
    plugins::{Plugin, Scene},
    volumes,
};
use crate::{container::keep_last_words, plan::Create};

/// Labels of the job that its pods carry too.
const PASSED_LABELS: [&str; 2] = ["volcano.sh/preemptable", "volcano.sh/cooldown-time"];
/// Annotations of the job that its pods carry too; of the last two only the first that is there.
const PASSED_ANNOTATIONS: [&str; 3] =
    ["volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone"];
const BUDGETS: [&str; 2] = ["volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"];
const NUMA_POLICY: &str = "volcano.sh/numa-topology-policy";

/// The name of a pod.
#[must_use]
pub(super) fn pod_name(job: &str, task: &str, index: u32) -> String {
    format!("{job}-{task}-{index}")
}

/// The name of the job's PodGroup.
#[must_use]
pub(super) fn group_name(meta: &Meta) -> String {
    format!("{}-{}", meta.name, meta.uid)
}

/// The labels that tie an object to its job.
#[must_use]
pub(super) fn labels(meta: &Meta) -> Map<String, Value> {
    [(LABEL_JOB, &meta.name), (LABEL_NAMESPACE, &meta.namespace)]
        .map(|(key, value)| (key.to_owned(), Value::from(value.clone())))
        .into_iter()
        .collect()
}

/// Metadata of an object of the job.
#[must_use]
pub(super) fn metadata(meta: &Meta, name: &str) -> Value {
    json!({
        "name": name,
        "namespace": meta.namespace,
        "labels": labels(meta),
        "ownerReferences": [{
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": meta.name,
            "uid": meta.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    })
}

/// The job whose pods are built.
#[derive(Clone, Copy)]
pub(super) struct Builder<'a> {
    /// The job.
    pub scene: Scene<'a>,
    /// How often it has been restarted, and the like.
    pub status: &'a VolcanoStatus,
    /// Its plugins.
    pub plugins: &'a [Box<dyn Plugin>],
}

impl Builder<'_> {
    /// A pod of a task.
    #[must_use]
    pub(super) fn pod(&self, task: &TaskSpec, index: u32) -> Create {
        let Scene { meta, spec, .. } = self.scene;
        let name = pod_name(&meta.name, &task.name, index);
        let mut template = task.template.clone();
        let mut pod_spec = template.get_mut("spec").map(Value::take).unwrap_or_default();
        if !pod_spec.is_object() {
            pod_spec = json!({});
        }
        let metadata = self.metadata(task, index, &name, &template);
        default_to(&mut pod_spec, "schedulerName", &spec.scheduler_name);
        default_to(&mut pod_spec, "priorityClassName", &spec.priority_class);
        if pod_spec["hostNetwork"] == true {
            default_to(&mut pod_spec, "dnsPolicy", "ClusterFirstWithHostNet");
        }
        volumes::mount_in(&mut pod_spec, meta, spec);
        for plugin in self.plugins {
            plugin.dress(&self.scene, task, index, &mut pod_spec);
        }
        keep_last_words(&mut pod_spec);
        let body =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec});
        Create { name, group: task.name.clone().into(), index, body }
    }

    fn metadata(&self, task: &TaskSpec, index: u32, name: &str, template: &Value) -> Value {
        let Scene { meta, spec, .. } = self.scene;
        let mut metadata = metadata(meta, name);
        let given = |key: &str| template["metadata"][key].as_object().cloned().unwrap_or_default();
        if let Some(finalizers) = template["metadata"].get("finalizers") {
            metadata["finalizers"] = finalizers.clone();
        }
        let mut all = given("labels");
        all.extend(labels(meta));
        let mut notes = given("annotations");
        for (key, value) in &meta.annotations {
            if key.starts_with(OWN_ANNOTATIONS) {
                notes.entry(key).or_insert_with(|| value.clone().into());
            }
        }
        for (key, value) in [
            (LABEL_TASK, task.name.clone()),
            (LABEL_INDEX, index.to_string()),
            (LABEL_QUEUE, spec.queue.clone()),
        ] {
            all.insert(key.to_owned(), value.clone().into());
            notes.insert(key.to_owned(), value.into());
        }
        for key in PASSED_LABELS {
            all.extend(meta.labels.get(key).map(|value| (key.to_owned(), value.clone().into())));
        }
        let budget = BUDGETS.into_iter().find(|key| meta.annotations.contains_key(*key));
        for key in PASSED_ANNOTATIONS.into_iter().chain(budget) {
            let passed = meta.annotations.get(key);
            notes.extend(passed.map(|value| (key.to_owned(), value.clone().into())));
        }
        if !task.topology_policy.is_empty() {
            notes.insert(NUMA_POLICY.to_owned(), task.topology_policy.clone().into());
        }
        for (key, value) in [
            (LABEL_JOB, meta.name.clone()),
            (ANNOTATION_VERSION, self.status.version.to_string()),
            (ANNOTATION_RETRY, self.status.retry_count.to_string()),
            (ANNOTATION_TEMPLATE, format!("{}-{}", meta.name, task.name)),
            (ANNOTATION_GROUP, group_name(meta)),
        ] {
            notes.insert(key.to_owned(), value.into());
        }
        metadata["labels"] = Value::Object(all);
        metadata["annotations"] = Value::Object(notes);
        metadata
    }
}

/// Sets a text that is not given.
pub(super) fn default_to(pod_spec: &mut Value, key: &str, value: &str) {
    if !value.is_empty() && pod_spec[key].as_str().is_none_or(str::is_empty) {
        pod_spec[key] = value.into();
    }
}
