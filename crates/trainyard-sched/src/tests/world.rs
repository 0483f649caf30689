//! A small cluster to test with: objects in few words, and decisions carried out at once.

use std::collections::BTreeMap;

use serde_json::{Value, from_value, json};

use crate::{Cause, Config, Decision, Delta, GroupKey, GroupReport, PodName, State};

/// A cluster whose API server does at once what is decided.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) now: i64,
    pub(crate) said: BTreeMap<String, String>,
    pub(crate) reports: BTreeMap<String, GroupReport>,
    pub(crate) causes: BTreeMap<String, Cause>,
}

pub(crate) fn key(group: &str) -> GroupKey {
    GroupKey::PodGroup { namespace: "n".into(), name: group.into() }
}

pub(crate) fn name(pod: &str) -> PodName {
    PodName { namespace: "n".into(), name: pod.into() }
}

/// A time as objects write it.
pub(crate) fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap().to_string()
}

pub(crate) fn node_value(name: &str, has: &Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": has},
    })
}

pub(crate) fn node_delta(value: Value) -> Delta {
    Delta::Node(Box::new(from_value(value).unwrap()))
}

pub(crate) fn pod_delta(value: &Value) -> Delta {
    Delta::Pod(Box::new(from_value(value.clone()).unwrap()))
}

pub(crate) fn queue_delta(name: &str, spec: &Value) -> Delta {
    let value = json!({"metadata": {"name": name}, "spec": spec});
    Delta::Queue(Box::new(from_value(value).unwrap()))
}

pub(crate) fn group_delta(name: &str, created: i64, spec: &Value) -> Delta {
    let value = json!({
        "metadata": {"namespace": "n", "name": name, "uid": name,
            "creationTimestamp": time(created)},
        "spec": spec, "status": {"phase": "Inqueue"},
    });
    Delta::Group(Box::new(from_value(value).unwrap()))
}

/// A pod of a PodGroup.
pub(crate) fn member(name: &str, group: &str, created: i64, asks: &Value) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "uid": format!("{name}-{created}"),
            "creationTimestamp": time(created), "labels": {"pod": name},
            "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": "volcano", "containers": [{"resources": {"requests": asks}}]},
    })
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(mut config: Config) -> Self {
        config.schedulers = ["volcano".to_owned()].into();
        Self {
            state: State::with(config),
            pods: BTreeMap::new(),
            now: 1_000,
            said: BTreeMap::new(),
            reports: BTreeMap::new(),
            causes: BTreeMap::new(),
        }
    }

    pub(crate) fn node(&mut self, name: &str, cpu: &str) -> &mut Self {
        self.node_with(name, &json!({"cpu": cpu, "pods": "110"}))
    }

    pub(crate) fn node_with(&mut self, name: &str, has: &Value) -> &mut Self {
        self.state.apply(node_delta(node_value(name, has)));
        self
    }

    pub(crate) fn queue(&mut self, name: &str, spec: &Value) -> &mut Self {
        self.state.apply(queue_delta(name, spec));
        self
    }

    /// A PodGroup whose whole is its minimum, and its pods `<name>-0`, `<name>-1` …
    pub(crate) fn gang(&mut self, name: &str, size: usize, cpu: &str) -> &mut Self {
        self.gang_with(name, size, &json!({"minMember": size}), &json!({"cpu": cpu}))
    }

    pub(crate) fn gang_with(
        &mut self,
        name: &str,
        size: usize,
        spec: &Value,
        asks: &Value,
    ) -> &mut Self {
        self.now += 1;
        let now = self.now;
        self.state.apply(group_delta(name, now, spec));
        for index in 0..size {
            self.pod(member(&format!("{name}-{index}"), name, now, asks));
        }
        self
    }

    pub(crate) fn pod(&mut self, value: Value) -> &mut Self {
        self.state.apply(pod_delta(&value));
        let name = value["metadata"]["name"].as_str().unwrap().to_owned();
        self.pods.insert(name, value);
        self
    }

    pub(crate) fn change(&mut self, pod: &str, change: impl FnOnce(&mut Value)) -> &mut Self {
        let mut value = self.pods[pod].clone();
        change(&mut value);
        self.pod(value)
    }

    pub(crate) fn gone(&mut self, pod: &str) -> &mut Self {
        self.pods.remove(pod);
        self.state.apply(Delta::PodGone(name(pod)));
        self
    }

    pub(crate) fn end(&mut self, pod: &str) -> &mut Self {
        self.change(pod, |value| value["status"] = json!({"phase": "Succeeded"}))
    }

    /// Everything of a group has ended.
    pub(crate) fn end_group(&mut self, group: &str) -> &mut Self {
        let all = self.pods.iter();
        let own = all.filter(|(_, value)| {
            value["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == *group
        });
        for pod in own.map(|(pod, _)| pod.clone()).collect::<Vec<_>>() {
            self.end(&pod);
        }
        self
    }

    /// Decides and carries out, evictions as deletions that have begun.
    pub(crate) fn decide(&mut self) -> Vec<Decision> {
        let decisions = self.state.decide(self.now);
        for decision in &decisions {
            match decision {
                Decision::Bind { pod, node, .. } => {
                    let node = node.clone();
                    self.change(&pod.name, |value| value["spec"]["nodeName"] = json!(node));
                }
                Decision::Evict { pod, cause, .. } => {
                    self.causes.insert(pod.name.clone(), cause.clone());
                    let now = time(self.now);
                    self.change(&pod.name, |value| {
                        value["metadata"]["deletionTimestamp"] = json!(now);
                    });
                }
                Decision::Promise { pod, node, .. } => {
                    let node = node.clone();
                    self.change(&pod.name, |value| {
                        value["status"]["nominatedNodeName"] = json!(node);
                    });
                }
                Decision::BindClaim(_) | Decision::ReleaseClaim(_) => {}
                Decision::Wait { pod, message, .. } => {
                    self.said.insert(pod.name.clone(), message.to_string());
                }
                Decision::Report(report) => {
                    self.reports.insert(report.name.clone(), (**report).clone());
                }
            }
        }
        decisions
    }

    /// What is leaving has left.
    pub(crate) fn clear(&mut self) -> &mut Self {
        let leaving: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, value)| !value["metadata"]["deletionTimestamp"].is_null())
            .map(|(pod, _)| pod.clone())
            .collect();
        for pod in leaving {
            self.gone(&pod);
        }
        self
    }

    pub(crate) fn node_of(&self, pod: &str) -> Option<&str> {
        self.pods.get(pod)?["spec"]["nodeName"].as_str()
    }

    /// How many pods of a group have a node and stay.
    pub(crate) fn placed(&self, group: &str) -> usize {
        let own = self.pods.values().filter(|value| {
            value["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == *group
        });
        let placed = own.filter(|value| {
            value["spec"]["nodeName"].is_string()
                && value["metadata"]["deletionTimestamp"].is_null()
                && value["status"]["phase"] != "Succeeded"
        });
        placed.count()
    }

    pub(crate) fn evicted(&self) -> Vec<&str> {
        self.causes.keys().map(String::as_str).collect()
    }
}
