//! What a pod requires of its node's labels and name.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `spec.affinity`, as far as it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Wire {
    #[serde(rename = "nodeAffinity")]
    nodes: NodeAffinity,
    #[serde(rename = "podAffinity")]
    near: PodAffinity,
    #[serde(rename = "podAntiAffinity")]
    away: PodAffinity,
}

impl Wire {
    /// Whether other pods would have to be looked at.
    pub(crate) fn has_pod_terms(&self) -> bool {
        !self.near.required.is_empty() || !self.away.required.is_empty()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Vec<serde::de::IgnoredAny>,
}

impl PartialEq for PodAffinity {
    fn eq(&self, other: &Self) -> bool {
        self.required.len() == other.required.len()
    }
}

impl Eq for PodAffinity {}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Terms>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terms {
    node_selector_terms: Vec<Term>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Term {
    match_expressions: Vec<Expression>,
    match_fields: Vec<Expression>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

/// What a node must look like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Required {
    labels: BTreeMap<String, String>,
    terms: Option<Vec<Term>>,
}

impl Required {
    pub(crate) fn new(labels: BTreeMap<String, String>, affinity: Wire) -> Self {
        let terms = affinity.nodes.required.map(|terms| terms.node_selector_terms);
        Self { labels, terms }
    }

    /// Whether a node looks so.
    pub(crate) fn admits(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let selected = self.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        let one_of = |terms: &Vec<Term>| terms.iter().any(|term| term.admits(name, labels));
        selected && self.terms.as_ref().is_none_or(one_of)
    }
}

impl Term {
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

impl Expression {
    fn holds(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|one| one == value));
        let compared = |wanted: std::cmp::Ordering| {
            let bound = self.values.first().and_then(|bound| bound.parse::<i64>().ok());
            let number = value.and_then(|value| value.parse::<i64>().ok());
            matches!((number, bound), (Some(number), Some(bound)) if number.cmp(&bound) == wanted)
        };
        match self.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => compared(std::cmp::Ordering::Greater),
            "Lt" => compared(std::cmp::Ordering::Less),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn admits(selector: serde_json::Value, terms: &serde_json::Value) -> bool {
        let affinity = json!({"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
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
