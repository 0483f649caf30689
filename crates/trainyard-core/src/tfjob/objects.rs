//! Building the pods and services of replicas.
//!
//! A template goes into a pod as it came, field by field; only what the contract names is added.
//! Must not decide whether an object is due.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use trainyard_api::{
    JobStatus, Meta, ReplicaId, ReplicaSpec, ReplicaType, RestartPolicy, RestartScope, TfJobSpec,
    meta::OWN_ANNOTATIONS, names,
};

use super::{gang, tf_config::Cluster};
use crate::{
    config::Config,
    container::{keep_last_words, list},
    plan::Create,
};

/// The job that owns what is built.
#[derive(Debug, Clone, Copy)]
pub(super) struct Builder<'a> {
    /// Metadata of the job.
    pub meta: &'a Meta,
    /// What it asks for.
    pub spec: &'a TfJobSpec,
    /// Settings of the operator.
    pub config: &'a Config,
}

impl Builder<'_> {
    /// The pod of a replica.
    #[must_use]
    pub(super) fn pod(&self, replica: ReplicaId, status: &JobStatus) -> Option<Create> {
        let spec = self.spec.replicas.get(&replica.kind)?;
        let name = names::replica_name(&self.meta.name, replica.kind.lower(), replica.index);
        let mut labels = self.labels(replica.kind.lower(), replica.index);
        if self.is_master(replica) {
            labels.insert(names::LABEL_ROLE.into(), names::ROLE_MASTER.into());
        }
        if status.attempt > 0 {
            labels.insert(names::LABEL_ATTEMPT.into(), status.attempt.to_string().into());
        }
        let mut template = spec.template.clone();
        let mut metadata = self.metadata(&name, &labels);
        keep_template_metadata(&mut metadata, template.get("metadata"));
        pass_annotations_on(&mut metadata, &self.meta.annotations);
        let mut pod_spec = template.get_mut("spec").map(Value::take).unwrap_or_default();
        pod_spec["restartPolicy"] = self.pod_policy(spec).into();
        add_training_port(&mut pod_spec);
        keep_last_words(&mut pod_spec);
        let cluster = Cluster {
            job: &self.meta.name,
            namespace: &self.meta.namespace,
            spec: self.spec,
            config: self.config,
        };
        if let Some(text) = cluster.tf_config(replica) {
            set_tf_config(&mut pod_spec, &text);
        }
        if let Some(seconds) = self.spec.run_policy.node_loss_toleration_seconds {
            tolerate_node_loss(&mut pod_spec, seconds);
        }
        gang::enlist(&self.config.gang, self.meta, replica.kind, &mut metadata, &mut pod_spec);
        let body =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec});
        Some(Create { name, group: replica.kind.lower().into(), index: replica.index, body })
    }

    /// The headless service of a replica.
    #[must_use]
    pub(super) fn service(&self, replica: ReplicaId) -> Option<Create> {
        let spec = self.spec.replicas.get(&replica.kind)?;
        let name = names::replica_name(&self.meta.name, replica.kind.lower(), replica.index);
        let labels = self.labels(replica.kind.lower(), replica.index);
        let body = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(&name, &labels),
            "spec": {
                "clusterIP": "None",
                // A replica's name exists before it is ready: peers that start first find it.
                "publishNotReadyAddresses": true,
                "selector": labels,
                "ports": service_ports(&spec.template),
            },
        });
        Some(Create { name, group: replica.kind.lower().into(), index: replica.index, body })
    }

    /// The labels that tie an object to its job.
    #[must_use]
    pub(super) fn labels(&self, kind: &str, index: u32) -> Map<String, Value> {
        let mut labels = Map::new();
        labels.insert(names::LABEL_OPERATOR.into(), names::OPERATOR.into());
        labels.insert(names::LABEL_JOB.into(), self.meta.name.clone().into());
        labels.insert(names::LABEL_TYPE.into(), kind.into());
        labels.insert(names::LABEL_INDEX.into(), index.to_string().into());
        labels
    }

    /// Metadata of an object of the job.
    #[must_use]
    pub(super) fn metadata(&self, name: &str, labels: &Map<String, Value>) -> Value {
        json!({
            "name": name,
            "namespace": self.meta.namespace,
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": names::API_VERSION,
                "kind": names::KIND,
                "name": self.meta.name,
                "uid": self.meta.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        })
    }

    fn is_master(&self, replica: ReplicaId) -> bool {
        let has_chief = self.spec.replicas.keys().any(|kind| kind.is_chief());
        if has_chief {
            replica.kind.is_chief()
        } else {
            replica.kind == ReplicaType::Worker && replica.index == 0
        }
    }

    fn pod_policy(&self, spec: &ReplicaSpec) -> &'static str {
        match (self.spec.run_policy.restart_scope, spec.restart_policy) {
            // The operator restarts these itself; a kubelet must not get ahead of it.
            (RestartScope::Job, _) | (_, RestartPolicy::ExitCode) => "Never",
            (RestartScope::Replica, policy) => policy.as_str(),
        }
    }
}

/// The label selector of a type's pods.
#[must_use]
pub(super) fn selector(job: &str, kind: ReplicaType) -> String {
    format!(
        "{}={},{}={},{}={}",
        names::LABEL_JOB,
        job,
        names::LABEL_OPERATOR,
        names::OPERATOR,
        names::LABEL_TYPE,
        kind.lower()
    )
}

fn keep_template_metadata(metadata: &mut Value, template: Option<&Value>) {
    let Some(template) = template.and_then(Value::as_object) else {
        return;
    };
    for key in ["annotations", "finalizers"] {
        if let Some(value) = template.get(key).filter(|value| !value.is_null()) {
            metadata[key] = value.clone();
        }
    }
    let own = metadata.get_mut("labels").and_then(Value::as_object_mut);
    if let (Some(own), Some(given)) = (own, template.get("labels").and_then(Value::as_object)) {
        for (key, value) in given {
            own.entry(key).or_insert_with(|| value.clone());
        }
    }
}

/// What the job says to whoever runs its pods; the template's own word counts more. What it says
/// to Volcano is said of the job as a whole, and stays there.
pub(super) fn pass_annotations_on(metadata: &mut Value, annotations: &BTreeMap<String, String>) {
    let mut ours =
        annotations.iter().filter(|(key, _)| key.starts_with(OWN_ANNOTATIONS)).peekable();
    let Some(metadata) = metadata.as_object_mut().filter(|_| ours.peek().is_some()) else {
        return;
    };
    let own = metadata.entry("annotations").or_insert_with(|| json!({}));
    for (key, value) in ours {
        if let Some(own) = own.as_object_mut() {
            own.entry(key).or_insert_with(|| value.clone().into());
        }
    }
}

fn training_container(pod_spec: &mut Value) -> Option<&mut Map<String, Value>> {
    pod_spec
        .get_mut("containers")?
        .as_array_mut()?
        .iter_mut()
        .find(|container| container["name"] == names::CONTAINER)?
        .as_object_mut()
}

fn add_training_port(pod_spec: &mut Value) {
    let Some(ports) = training_container(pod_spec).and_then(|c| list(c, "ports")) else {
        return;
    };
    if !ports.iter().any(|port| port["name"] == names::PORT_NAME) {
        ports.push(json!({"name": names::PORT_NAME, "containerPort": names::PORT}));
    }
}

fn set_tf_config(pod_spec: &mut Value, text: &str) {
    let Some(env) = training_container(pod_spec).and_then(|c| list(c, "env")) else {
        return;
    };
    env.retain(|variable| variable["name"] != "TF_CONFIG");
    env.push(json!({"name": "TF_CONFIG", "value": text}));
}

/// Lets the pod stay on a node that is lost for so long, unless its template says for how long. The
/// same rule as that of the admission plugin that sets Kubernetes' own 300 seconds.
pub(super) fn tolerate_node_loss(pod_spec: &mut Value, seconds: i64) {
    let Some(tolerations) = pod_spec.as_object_mut().and_then(|spec| list(spec, "tolerations"))
    else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_any_or = |toleration: &Value, field: &str, word: &str| {
            let text = toleration[field].as_str().unwrap_or_default();
            text.is_empty() || text == word
        };
        let is_set = tolerations
            .iter()
            .any(|one| is_any_or(one, "key", key) && is_any_or(one, "effect", "NoExecute"));
        if !is_set {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds,
            }));
        }
    }
}

fn service_ports(template: &Value) -> Vec<Value> {
    let mut pod_spec = template.get("spec").cloned().unwrap_or_default();
    add_training_port(&mut pod_spec);
    let given = training_container(&mut pod_spec).and_then(|c| list(c, "ports")).cloned();
    let mut ports: Vec<Value> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for port in given.unwrap_or_default() {
        let number = &port["containerPort"];
        let name = match port["name"].as_str() {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => format!("port-{number}"),
        };
        let mut entry = json!({"name": name, "port": number});
        if let Some(protocol) = port["protocol"].as_str() {
            entry["protocol"] = protocol.into();
        }
        // A name holds no space.
        let keys = [name.clone(), format!("{number} {}", entry["protocol"])];
        let taken = keys.iter().filter_map(|key| places.get(key)).min().copied();
        let at = match taken {
            // The API server refuses a service with the same port twice; the named training port wins.
            Some(at) if name == names::PORT_NAME => {
                ports[at] = entry;
                at
            }
            Some(_) => continue,
            None => {
                ports.push(entry);
                ports.len() - 1
            }
        };
        places.extend(keys.map(|key| (key, at)));
    }
    ports
}

#[cfg(test)]
mod tests;
