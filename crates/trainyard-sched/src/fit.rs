//! Whether a pod fits a node beside what is there, and why not.

use std::collections::BTreeMap;

use crate::taint::repelled;
use crate::{Amounts, Node, Pod};

/// The resource that counts pods.
const PODS: &str = "pods";

/// What is taken of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    amounts: Amounts,
    pods: i64,
    /// Ports in use, each as often as it is used.
    ports: BTreeMap<(String, String, u32), u32>,
}

impl Taken {
    pub(crate) fn add(&mut self, pod: &Pod) {
        self.amounts.add(&pod.asks);
        self.pods += 1;
        for port in &pod.ports {
            *self.ports.entry(port.clone()).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, pod: &Pod) {
        self.amounts.remove(&pod.asks);
        self.pods -= 1;
        for port in &pod.ports {
            if let Some(count) = self.ports.get_mut(port) {
                *count -= 1;
                if *count == 0 {
                    self.ports.remove(port);
                }
            }
        }
    }

    pub(crate) fn amount(&self, resource: &str) -> i64 {
        self.amounts.get(resource)
    }

    fn has_port(&self, (address, protocol, number): &(String, String, u32)) -> bool {
        const ANY: &str = "0.0.0.0";
        self.ports.keys().any(|(other, other_protocol, other_number)| {
            other_number == number
                && other_protocol == protocol
                && (other == address || other == ANY || address == ANY)
        })
    }
}

/// Why a pod does not fit a node, in kube-scheduler's words; nothing when it fits.
pub(crate) fn obstacles(pod: &Pod, node: &Node, taken: &Taken) -> Vec<String> {
    if node.is_cordoned {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if !pod.required.admits(&node.name, &node.labels) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    if let Some(taint) = repelled(&node.taints, &pod.tolerations) {
        return vec![format!(
            "node(s) had untolerated taint(s) {{{}: {}}}",
            taint.key, taint.value
        )];
    }
    if pod.ports.iter().any(|port| taken.has_port(port)) {
        return vec!["node(s) didn't have free ports for the requested pod ports".to_owned()];
    }
    let mut obstacles = Vec::new();
    let room = node.has.get(PODS);
    if room > 0 && taken.pods >= room {
        obstacles.push("Too many pods".to_owned());
    }
    for (resource, asked) in pod.asks.iter() {
        if taken.amount(resource).saturating_add(asked) > node.has.get(resource) {
            obstacles.push(format!("Insufficient {resource}"));
        }
    }
    obstacles
}
