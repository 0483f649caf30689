//! `TF_CONFIG`: how a replica learns the cluster and its own place in it.
//!
//! Byte for byte what TensorFlow programs have been given so far, with one correction: the
//! evaluator stands only in its own map, because it is no member of the training cluster. Must not
//! know pods.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use trainyard_api::{ReplicaId, ReplicaType, TfJobSpec, names};

use crate::config::Config;

/// The job whose replicas are to find each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cluster<'a> {
    /// Name of the job.
    pub job: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// What it asks for.
    pub spec: &'a TfJobSpec,
    /// Settings of the operator.
    pub config: &'a Config,
}

#[derive(Serialize)]
struct Task {
    r#type: &'static str,
    index: u32,
}

#[derive(Serialize)]
struct Dense {
    cluster: BTreeMap<&'static str, Vec<String>>,
    task: Task,
    environment: &'static str,
}

#[derive(Serialize)]
struct Sparse {
    cluster: SparseCluster,
    task: Task,
}

#[derive(Serialize)]
struct SparseCluster {
    worker: BTreeMap<String, String>,
    ps: Vec<String>,
}

impl Cluster<'_> {
    /// The text for one replica; none when the job has a single replica.
    #[must_use]
    pub(super) fn tf_config(&self, replica: ReplicaId) -> Option<String> {
        if self.spec.total() == 1 {
            return None;
        }
        let task = Task { r#type: replica.kind.lower(), index: replica.index };
        let text = if self.spec.dynamic_workers {
            serde_json::to_string(&Sparse { cluster: self.sparse(replica), task })
        } else {
            let cluster = self.dense(replica.kind);
            serde_json::to_string(&Dense { cluster, task, environment: "cloud" })
        };
        text.ok()
    }

    fn dense(&self, own: ReplicaType) -> BTreeMap<&'static str, Vec<String>> {
        let listed = |kind: ReplicaType| {
            kind != ReplicaType::Evaluator
                || own == ReplicaType::Evaluator
                || self.config.evaluator_in_cluster
        };
        let kinds = self.spec.replicas.keys().copied().filter(|kind| listed(*kind));
        kinds.map(|kind| (kind.lower(), self.endpoints(kind))).collect()
    }

    fn sparse(&self, replica: ReplicaId) -> SparseCluster {
        match replica.kind {
            ReplicaType::Worker => SparseCluster {
                worker: BTreeMap::from([(
                    replica.index.to_string(),
                    self.endpoint(replica, self.port(replica.kind)),
                )]),
                ps: self.endpoints(ReplicaType::Ps),
            },
            ReplicaType::Ps => SparseCluster {
                worker: BTreeMap::new(),
                ps: vec![self.endpoint(replica, self.port(replica.kind))],
            },
            _ => SparseCluster { worker: BTreeMap::new(), ps: Vec::new() },
        }
    }

    fn endpoints(&self, kind: ReplicaType) -> Vec<String> {
        let port = self.port(kind);
        let endpoint = |index| self.endpoint(ReplicaId { kind, index }, port);
        (0..self.spec.count(kind)).map(endpoint).collect()
    }

    /// All replicas of a type have one; a template is long to look through.
    fn port(&self, kind: ReplicaType) -> i64 {
        let spec = self.spec.replicas.get(&kind);
        spec.map_or(names::PORT, |spec| training_port(&spec.template))
    }

    fn endpoint(&self, replica: ReplicaId, port: i64) -> String {
        let name = names::replica_name(self.job, replica.kind.lower(), replica.index);
        let domain = self
            .config
            .cluster_domain
            .as_deref()
            .filter(|domain| !domain.is_empty())
            .map(|domain| format!(".{domain}"))
            .unwrap_or_default();
        format!("{name}.{}.svc{domain}:{port}", self.namespace)
    }
}

/// The port under which a replica of this template is reached.
#[must_use]
pub(super) fn training_port(template: &Value) -> i64 {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    containers
        .into_iter()
        .flatten()
        .filter(|container| container["name"] == names::CONTAINER)
        .filter_map(|container| container["ports"].as_array())
        .flatten()
        .find(|port| port["name"] == names::PORT_NAME)
        .and_then(|port| port["containerPort"].as_i64())
        .unwrap_or(names::PORT)
}

#[cfg(test)]
mod tests;
