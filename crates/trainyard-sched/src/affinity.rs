//! What a pod requires of its node's labels and name.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::selector::Expression;

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(crate) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Terms>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    preferred: Vec<Weighted>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
struct Weighted {
    weight: i64,
    preference: Term,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Terms {
    node_selector_terms: Vec<Term>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Term {
    match_expressions: Vec<Expression>,
    match_fields: Vec<Expression>,
}

/// What a node must look like.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Required {
    labels: BTreeMap<String, String>,
    terms: Option<Vec<Term>>,
    preferred: Vec<Weighted>,
}

impl NodeAffinity {
    /// How many conditions it has, each value that it names counted.
    pub(crate) fn conditions(&self) -> usize {
        let required = self.required.iter().flat_map(|terms| &terms.node_selector_terms);
        let preferred = self.preferred.iter().map(|one| &one.preference);
        required.chain(preferred).map(Term::conditions).sum()
    }
}

impl Required {
    pub(crate) fn new(labels: BTreeMap<String, String>, affinity: NodeAffinity) -> Self {
        let terms = affinity.required.map(|terms| terms.node_selector_terms);
        Self { labels, terms, preferred: affinity.preferred }
    }

    /// Whether a node looks so.
    pub(crate) fn admits(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let selected = self.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        let one_of = |terms: &Vec<Term>| terms.iter().any(|term| term.admits(name, labels));
        selected && self.terms.as_ref().is_none_or(one_of)
    }

    /// How much a node is liked: the weights of the preferences it meets.
    pub(crate) fn liking(&self, name: &str, labels: &BTreeMap<String, String>) -> i64 {
        let met = self.preferred.iter().filter(|one| one.preference.admits(name, labels));
        met.map(|one| one.weight).sum()
    }
}

impl Terms {
    /// Whether one of the terms admits a node.
    pub(crate) fn admits(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.node_selector_terms.iter().any(|term| term.admits(name, labels))
    }
}

impl Term {
    fn conditions(&self) -> usize {
        let all = self.match_expressions.iter().chain(&self.match_fields);
        all.map(Expression::conditions).sum()
    }

    fn admits(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        // A term that says nothing admits nothing.
        if self.match_expressions.is_empty() && self.match_fields.is_empty() {
            return false;
        }
        let by_label = |e: &Expression| e.holds(labels.get(&e.key).map(String::as_str));
        let by_field = |e: &Expression| e.key == "metadata.name" && e.holds(Some(name));
        self.match_expressions.iter().all(by_label) && self.match_fields.iter().all(by_field)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn admits(selector: serde_json::Value, terms: &serde_json::Value) -> bool {
        let affinity = json!(
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        let affinity = if terms.is_null() { json!({}) } else { affinity };
        let required = Required::new(from_value(selector).unwrap(), from_value(affinity).unwrap());
        let labels = [("zone", "a"), ("gpus", "4")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        required.admits("h10", &labels)
    }

    #[test]
    fn selectors_and_terms() {
        let none = json!({});
        assert!(admits(json!({"zone": "a"}), &json!(null)));
        assert!(!admits(json!({"zone": "b"}), &json!(null)));
        let term = |key: &str, operator: &str, values: &[&str]| json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]);
        assert!(admits(none.clone(), &term("zone", "In", &["a", "b"])));
        assert!(!admits(none.clone(), &term("zone", "NotIn", &["a"])));
        assert!(admits(none.clone(), &term("disk", "NotIn", &["a"])));
        assert!(admits(none.clone(), &term("disk", "DoesNotExist", &[])));
        assert!(admits(none.clone(), &term("gpus", "Gt", &["3"])));
        assert!(!admits(none.clone(), &term("gpus", "Lt", &["4"])));
        assert!(!admits(none.clone(), &term("zone", "Near", &["a"])));
        assert!(!admits(none.clone(), &json!([{}])));
        let field = json!([{"matchFields":
            [{"key": "metadata.name", "operator": "In", "values": ["h10"]}]}]);
        assert!(admits(none, &field));
    }
}
