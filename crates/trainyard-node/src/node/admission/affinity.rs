//! A pod's `nodeSelector` and required node affinity against a Node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Pod};

type Labels = BTreeMap<String, String>;

/// Whether the Node is one the pod may be on.
pub(super) fn matches(pod: &Pod, node: &Node) -> bool {
    let Some(spec) = &pod.spec else { return true };
    let unlabelled = Labels::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&unlabelled);
    let selected =
        spec.node_selector.iter().flatten().all(|(name, value)| labels.get(name) == Some(value));
    let required =
        spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref()).and_then(
            |affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref(),
        );
    let name = node.metadata.name.as_deref().unwrap_or_default();
    selected
        && required.is_none_or(|selector| {
            selector.node_selector_terms.iter().any(|term| term_matches(term, labels, name))
        })
}

/// An empty term, and one with an expression that makes no sense, match nothing.
fn term_matches(term: &NodeSelectorTerm, labels: &Labels, name: &str) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or(&[]);
    let fields = term.match_fields.as_deref().unwrap_or(&[]);
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|one| label_matches(one, labels) == Some(true))
        && fields.iter().all(|one| field_matches(one, name) == Some(true))
}

/// None where the expression makes no sense.
fn label_matches(wanted: &NodeSelectorRequirement, labels: &Labels) -> Option<bool> {
    let values = wanted.values.as_deref().unwrap_or(&[]);
    let held = labels.get(&wanted.key);
    let listed = || held.is_some_and(|held| values.contains(held));
    let compared = |good: fn(&i64, &i64) -> bool| {
        let [bound] = values else { return None };
        let bound: i64 = bound.parse().ok()?;
        Some(held.and_then(|held| held.parse().ok()).is_some_and(|held| good(&held, &bound)))
    };
    match wanted.operator.as_str() {
        "In" if !values.is_empty() => Some(listed()),
        "NotIn" if !values.is_empty() => Some(!listed()),
        "Exists" if values.is_empty() => Some(held.is_some()),
        "DoesNotExist" if values.is_empty() => Some(held.is_none()),
        "Gt" => compared(i64::gt),
        "Lt" => compared(i64::lt),
        _ => None,
    }
}

fn field_matches(wanted: &NodeSelectorRequirement, name: &str) -> Option<bool> {
    let [value] = wanted.values.as_deref().unwrap_or(&[]) else { return None };
    let held = if wanted.key == "metadata.name" { name } else { "" };
    match wanted.operator.as_str() {
        "In" => Some(held == value),
        "NotIn" => Some(held != value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn taken(spec: &Value) -> bool {
        let mut spec = spec.clone();
        spec["containers"] = json!([]);
        let pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
        let node = json!({
            "metadata": { "name": "n1", "labels": { "disk": "ssd", "cores": "8", "odd": "x" } }
        });
        matches(&pod, &serde_json::from_value(node).unwrap())
    }

    fn term(term: &Value) -> bool {
        taken(&json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] }
        } } }))
    }

    #[test]
    fn node_selectors() {
        assert!(taken(&json!({})));
        assert!(taken(&json!({ "nodeSelector": { "disk": "ssd" } })));
        assert!(!taken(&json!({ "nodeSelector": { "disk": "hdd" } })));
        assert!(!taken(&json!({ "nodeSelector": { "disk": "ssd", "zone": "a" } })));
    }

    #[test]
    fn expressions() {
        for (key, operator, values, good) in [
            ("disk", "In", json!(["hdd", "ssd"]), true),
            ("disk", "In", json!(["hdd"]), false),
            ("disk", "In", json!([]), false),
            ("zone", "In", json!(["a"]), false),
            ("disk", "NotIn", json!(["hdd"]), true),
            ("disk", "NotIn", json!(["ssd"]), false),
            ("zone", "NotIn", json!(["a"]), true),
            ("disk", "Exists", json!([]), true),
            ("zone", "Exists", json!([]), false),
            ("zone", "DoesNotExist", json!([]), true),
            ("disk", "DoesNotExist", json!([]), false),
            ("cores", "Gt", json!(["7"]), true),
            ("cores", "Gt", json!(["8"]), false),
            ("cores", "Lt", json!(["9"]), true),
            ("odd", "Gt", json!(["1"]), false),
            ("zone", "Lt", json!(["1"]), false),
            ("cores", "Gt", json!(["many"]), false),
            ("cores", "Gt", json!(["1", "2"]), false),
            ("disk", "Like", json!(["s"]), false),
        ] {
            let one = json!({ "key": key, "operator": operator, "values": values });
            assert_eq!(term(&json!({ "matchExpressions": [one] })), good, "{one}");
        }
    }

    #[test]
    fn fields_and_terms() {
        let name = |operator: &str, value: &str| {
            json!({ "matchFields":
                [{ "key": "metadata.name", "operator": operator, "values": [value] }] })
        };
        assert!(term(&name("In", "n1")));
        assert!(!term(&name("In", "n2")));
        assert!(term(&name("NotIn", "n2")));
        assert!(!term(&name("Exists", "n1")));
        assert!(!term(&json!({})));
        let either = json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution":
                { "nodeSelectorTerms": [name("In", "n2"), name("In", "n1")] }
        } } });
        assert!(taken(&either));
        let nowhere = json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [] }
        } } });
        assert!(!taken(&nowhere));
    }
}
