//! Budgets of disruption: how many pods of an application may be missing at a time.
//!
//! As kube-scheduler has it they are a preference among those that could be evicted: whoever can go
//! within its budget goes first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::bundle::Bundle;
use crate::facts::Facts;
use crate::meta::Metadata;
use crate::selector::Selector;
use crate::slots::Id;

/// A budget (`PodDisruptionBudget`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct DisruptionBudget {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    selector: Option<Selector>,
    allowed: i64,
    /// Pods whose eviction is counted already.
    disrupted: BTreeSet<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    selector: Option<Selector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    disruptions_allowed: i64,
    disrupted_pods: BTreeMap<String, Option<String>>,
}

impl From<Wire> for DisruptionBudget {
    fn from(wire: Wire) -> Self {
        let Wire { metadata, spec, status } = wire;
        Self {
            version: metadata.version(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            // One that is empty means nobody.
            selector: spec.selector.filter(|selector| *selector != Selector::default()),
            allowed: status.disruptions_allowed,
            disrupted: status.disrupted_pods.into_keys().collect(),
        }
    }
}

impl DisruptionBudget {
    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// Its identity.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Its version; 0 when versions cannot be compared.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    fn covers(&self, pod: &crate::Pod) -> bool {
        pod.key.namespace == self.namespace
            && !pod.labels.is_empty()
            && self.selector.as_ref().is_some_and(|selector| selector.selects(&pod.labels))
            && !self.disrupted.contains(&pod.key.name)
    }
}

/// Puts those that can go within their budgets before the others, and of these the ones first with
/// the fewest pods beyond.
pub(crate) fn within_budgets_first(bundles: &mut Vec<Arc<Bundle<'_>>>, facts: &Facts) {
    if facts.budgets.is_empty() {
        return;
    }
    let mut left: BTreeMap<&(String, String), i64> =
        facts.budgets.iter().map(|(key, budget)| (key, budget.allowed)).collect();
    // A member above a minimum is in its group as a whole, too.
    let mut known: BTreeMap<Id, bool> = BTreeMap::new();
    let mut violates = |id: Id| {
        if let Some(violates) = known.get(&id) {
            return *violates;
        }
        let Some(record) = facts.record(id) else { return false };
        let mut violates = false;
        for (key, budget) in &facts.budgets {
            if budget.covers(&record.pod) {
                let left = left.entry(key).or_default();
                *left -= 1;
                violates |= *left < 0;
            }
        }
        known.insert(id, violates);
        violates
    };
    let mut within = Vec::new();
    let mut beyond = Vec::new();
    for bundle in std::mem::take(bundles) {
        // Each is counted, also behind the first that goes beyond its budget.
        let over = bundle.pods.iter().filter(|id| violates(**id)).count();
        if over == 0 { within.push(bundle) } else { beyond.push((over, bundle)) }
    }
    beyond.sort_by_key(|(over, _)| *over);
    within.extend(beyond.into_iter().map(|(_, bundle)| bundle));
    *bundles = within;
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_budget_covers_pods_with_labels_that_nobody_has_taken_already() {
        let budget: DisruptionBudget = from_value(json!({
            "metadata": {"namespace": "n", "name": "b"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
            "status": {"disruptedPods": {"gone": "2026-01-01T00:00:00Z"}},
        }))
        .unwrap();
        let covers = |namespace: &str, name: &str, labels: serde_json::Value| {
            let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
            budget.covers(&from_value(json!({"metadata": metadata})).unwrap())
        };
        assert!(covers("n", "p", json!({"tier": "back"})));
        assert!(!covers("m", "p", json!({"tier": "back"})));
        assert!(!covers("n", "gone", json!({"tier": "back"})));
        assert!(!covers("n", "p", json!({})), "one without labels is in no budget");
    }
}
