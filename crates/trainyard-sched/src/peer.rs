//! What a pod wants of the pods around it: inter-pod affinity, anti-affinity, topology spread.
//!
//! Owns reading the required kinds. Whether they are met on a node is `around`'s.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::selector::Selector;

/// `podAffinity` or `podAntiAffinity`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PeerAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Vec<TermWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TermWire {
    label_selector: Option<Selector>,
    topology_key: String,
    namespaces: Vec<String>,
    namespace_selector: Option<Selector>,
    match_label_keys: Vec<String>,
    mismatch_label_keys: Vec<String>,
}

impl PeerAffinity {
    /// How many terms there are.
    pub(crate) fn len(&self) -> usize {
        self.required.len()
    }

    /// How many conditions on labels, and names of namespaces.
    pub(crate) fn conditions(&self) -> usize {
        let of = |selector: &Option<Selector>| selector.as_ref().map_or(0, Selector::conditions);
        let in_all = |term: &TermWire| {
            of(&term.label_selector)
                + of(&term.namespace_selector)
                + term.namespaces.len()
                + term.match_label_keys.len()
                + term.mismatch_label_keys.len()
        };
        self.required.iter().map(in_all).sum()
    }
}

/// One of `topologySpreadConstraints`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SpreadWire {
    max_skew: i64,
    topology_key: String,
    when_unsatisfiable: String,
    label_selector: Option<Selector>,
    min_domains: Option<usize>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
    match_label_keys: Vec<String>,
}

/// Pods that are to be near or away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    /// No selector selects no pod.
    selector: Option<Selector>,
    /// The label of nodes that says what is near.
    pub(crate) topology: String,
    /// By name. The pod's own is meant where nothing else is said.
    namespaces: Vec<String>,
    /// By their labels.
    of_namespaces: Option<Selector>,
}

/// How evenly pods are to lie.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spread {
    pub(crate) skew: i64,
    pub(crate) topology: String,
    selector: Option<Selector>,
    pub(crate) domains: Option<usize>,
    /// Whether nodes that the pod's own node affinity rules out are left out of the count.
    pub(crate) by_affinity: bool,
    /// Whether nodes with taints that the pod does not tolerate are left out of the count.
    pub(crate) by_taints: bool,
}

/// Everything that a pod requires of the pods around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peers {
    pub(crate) near: Vec<Term>,
    pub(crate) away: Vec<Term>,
    pub(crate) spread: Vec<Spread>,
}

/// A pod as terms of others look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neighbour<'p> {
    pub(crate) namespace: &'p str,
    pub(crate) labels: &'p BTreeMap<String, String>,
    /// The labels of its namespace; nothing where that is not known.
    pub(crate) of_namespace: Option<&'p BTreeMap<String, String>>,
}

impl Term {
    /// Whether a pod is meant for certain; `own` is the namespace of whose term it is.
    pub(crate) fn means(&self, own: &str, other: Neighbour<'_>) -> bool {
        self.reaches(own, other).unwrap_or(false) && self.selects(other)
    }

    /// The same, where a namespace of which nothing is known could be meant, too.
    pub(crate) fn may_mean(&self, own: &str, other: Neighbour<'_>) -> bool {
        self.reaches(own, other).unwrap_or(true) && self.selects(other)
    }

    fn selects(&self, other: Neighbour<'_>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.selects(other.labels))
    }

    /// Whether pods of the other's namespace are meant; nothing if that cannot be told.
    fn reaches(&self, own: &str, other: Neighbour<'_>) -> Option<bool> {
        let Some(by_labels) = &self.of_namespaces else {
            let is_own = self.namespaces.is_empty() && own == other.namespace;
            return Some(is_own || self.names(other.namespace));
        };
        if self.names(other.namespace) || *by_labels == Selector::default() {
            return Some(true);
        }
        other.of_namespace.map(|labels| by_labels.selects(labels))
    }

    fn names(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|one| one == namespace)
    }
}

impl Spread {
    /// Whether a pod with these labels is meant.
    pub(crate) fn means(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.selects(labels))
    }

    /// Whether a pod that is there counts. Where everybody is meant kube-scheduler counts nobody.
    pub(crate) fn counts(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref() != Some(&Selector::default()) && self.means(labels)
    }
}

impl Peers {
    /// What is required.
    pub(crate) fn read(
        labels: &BTreeMap<String, String>,
        near: &PeerAffinity,
        away: &PeerAffinity,
        spread: &[SpreadWire],
    ) -> Self {
        let terms = |wire: &PeerAffinity| -> Vec<Term> {
            wire.required.iter().map(|term| term.resolved(labels)).collect()
        };
        let hard = spread.iter().filter(|one| one.when_unsatisfiable != "ScheduleAnyway");
        Self {
            near: terms(near),
            away: terms(away),
            spread: hard.map(|one| one.resolved(labels)).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.away.is_empty() && self.spread.is_empty()
    }
}

/// Adds what the pod's own labels say under these keys.
fn narrowed(
    selector: Option<&Selector>,
    keys: &[String],
    operator: &str,
    labels: &BTreeMap<String, String>,
) -> Option<Selector> {
    let mut selector = selector?.clone();
    for key in keys {
        if let Some(value) = labels.get(key) {
            selector.and(key, operator, value);
        }
    }
    Some(selector)
}

impl TermWire {
    fn resolved(&self, labels: &BTreeMap<String, String>) -> Term {
        let selector = narrowed(self.label_selector.as_ref(), &self.match_label_keys, "In", labels);
        Term {
            selector: narrowed(selector.as_ref(), &self.mismatch_label_keys, "NotIn", labels),
            topology: self.topology_key.clone(),
            namespaces: self.namespaces.clone(),
            of_namespaces: self.namespace_selector.clone(),
        }
    }
}

impl SpreadWire {
    /// How many conditions on labels it has.
    pub(crate) fn conditions(&self) -> usize {
        let selector = self.label_selector.as_ref().map_or(0, Selector::conditions);
        selector + self.match_label_keys.len()
    }

    fn resolved(&self, labels: &BTreeMap<String, String>) -> Spread {
        Spread {
            skew: self.max_skew.max(1),
            topology: self.topology_key.clone(),
            selector: narrowed(self.label_selector.as_ref(), &self.match_label_keys, "In", labels),
            domains: self.min_domains,
            by_affinity: self.node_affinity_policy.as_deref() != Some("Ignore"),
            by_taints: self.node_taints_policy.as_deref() == Some("Honor"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn read(away: &Value, spread: Value) -> Peers {
        let labels = [("app".to_owned(), "a".to_owned())].into();
        let away = json!({"requiredDuringSchedulingIgnoredDuringExecution": away});
        Peers::read(
            &labels,
            &PeerAffinity::default(),
            &from_value(away).unwrap(),
            &from_value::<Vec<SpreadWire>>(spread).unwrap(),
        )
    }

    #[test]
    fn terms_mean_pods_of_the_own_namespace_unless_told() {
        let labels = [("app".to_owned(), "a".to_owned())].into();
        let selector = json!({"matchLabels": {"app": "a"}});
        let of_team = json!({"matchLabels": {"team": "x"}});
        let peers = read(
            &json!([
                {"labelSelector": selector, "topologyKey": "zone"},
                {"labelSelector": selector, "topologyKey": "zone", "namespaces": ["m"]},
                {"labelSelector": selector, "topologyKey": "zone", "namespaceSelector": {}},
                {"topologyKey": "zone"},
                {"labelSelector": {}, "topologyKey": "zone", "mismatchLabelKeys": ["app"]},
                {"labelSelector": selector, "topologyKey": "zone", "namespaceSelector": of_team},
                {"labelSelector": selector, "topologyKey": "zone", "namespaceSelector": of_team,
                    "namespaces": ["n"]},
            ]),
            json!([]),
        );
        let team = [("team".to_owned(), "x".to_owned())].into();
        let none = BTreeMap::new();
        let by = |namespace, of_namespace, means: fn(&Term, &str, Neighbour<'_>) -> bool| {
            let other = Neighbour { namespace, labels: &labels, of_namespace };
            peers.away.iter().map(|term| means(term, "n", other)).collect::<Vec<_>>()
        };
        let meant = |namespace, of_namespace| by(namespace, of_namespace, Term::means);
        assert_eq!(meant("n", Some(&none)), [true, false, true, false, false, false, true]);
        assert_eq!(meant("m", Some(&none)), [false, true, true, false, false, false, false]);
        assert_eq!(meant("m", Some(&team)), [false, true, true, false, false, true, true]);
        // Of a namespace that is not known neither is said.
        assert_eq!(meant("m", None), [false, true, true, false, false, false, false]);
        let may = by("m", None, Term::may_mean);
        assert_eq!(may, [false, true, true, false, false, true, true]);
    }

    #[test]
    fn only_hard_constraints_bind() {
        let soft = json!([{"whenUnsatisfiable": "ScheduleAnyway"}]);
        assert!(read(&json!([]), soft).is_empty());
        let hard =
            json!([{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]);
        assert_eq!(read(&json!([]), hard).spread[0].skew, 2);
    }
}
