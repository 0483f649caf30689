//! Where a pod may run: checks of tolerations, affinities and the selectors in them.

use serde_json::Value;
use trainyard_schema::FieldError;

use crate::kinds::{
    json::{items, number, text},
    metadata, naming,
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks tolerations.
pub(super) fn tolerations(tolerations: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, toleration) in tolerations.as_array().into_iter().flatten().enumerate() {
        errors.extend(one_toleration(toleration, &format!("{path}[{at}]")));
    }
    errors
}

fn one_toleration(toleration: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
    if !key.is_empty() {
        errors.extend(key_faults(key, &format!("{path}.key")));
    }
    let operator_path = format!("{path}.operator");
    if key.is_empty() && operator != "Exists" {
        let words = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, words));
    }
    let effect_path = format!("{path}.effect");
    if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
        let words = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&effect_path, effect, words));
    }
    match operator {
        "Equal" | "" => {
            let faults = naming::label_value(value);
            if !faults.is_empty() {
                errors.push(FieldError::invalid(operator_path, value, faults.join(";")));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let words = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(operator_path, value, words));
            }
        }
        other => {
            errors.push(FieldError::not_supported(operator_path, other, &["Equal", "Exists"]));
        }
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(effect_path, effect, &EFFECTS));
    }
    errors
}

/// Checks the effect of a taint or toleration.
pub(crate) fn effect(effect: &str, path: &str) -> Option<FieldError> {
    if effect.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    (!EFFECTS.contains(&effect)).then(|| FieldError::not_supported(path, effect, &EFFECTS))
}

fn key_faults(key: &str, path: &str) -> Vec<FieldError> {
    let faults = naming::qualified(key).into_iter();
    faults.map(|fault| FieldError::invalid(path, key, fault)).collect()
}

/// Checks affinities.
pub(super) fn affinity(affinity: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let node = &affinity["nodeAffinity"];
    if let Some(required) = node.get(REQUIRED) {
        errors.extend(node_selector(required, &format!("{path}.nodeAffinity.{REQUIRED}")));
    }
    for (at, term) in items(node, PREFERRED).iter().enumerate() {
        let path = format!("{path}.nodeAffinity.{PREFERRED}[{at}]");
        errors.extend(weight(term, &path));
        errors.extend(node_term(&term["preference"], &format!("{path}.preference")));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = format!("{path}.{kind}");
        for (at, term) in items(&affinity[kind], REQUIRED).iter().enumerate() {
            errors.extend(pod_term(term, &format!("{path}.{REQUIRED}[{at}]")));
        }
        for (at, term) in items(&affinity[kind], PREFERRED).iter().enumerate() {
            let path = format!("{path}.{PREFERRED}[{at}]");
            errors.extend(weight(term, &path));
            errors.extend(pod_term(&term["podAffinityTerm"], &format!("{path}.podAffinityTerm")));
        }
    }
    errors
}

fn weight(term: &Value, path: &str) -> Option<FieldError> {
    let weight = number(term, "weight");
    let words = "must be in the range 1-100";
    (!(1..=100).contains(&weight))
        .then(|| FieldError::invalid(format!("{path}.weight"), weight, words))
}

/// Checks a selector of nodes.
pub(crate) fn node_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let path = format!("{path}.nodeSelectorTerms");
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        return vec![FieldError::required(path, "must have at least one node selector term")];
    }
    terms
        .iter()
        .enumerate()
        .flat_map(|(at, term)| node_term(term, &format!("{path}[{at}]")))
        .collect()
}

fn node_term(term: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, requirement) in items(term, "matchExpressions").iter().enumerate() {
        errors.extend(node_requirement(requirement, &format!("{path}.matchExpressions[{at}]")));
    }
    errors
}

fn node_requirement(requirement: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let values = items(requirement, "values");
    let values_path = format!("{path}.values");
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                errors.push(FieldError::required(&values_path, SOME_VALUES));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                errors.push(FieldError::forbidden(&values_path, NO_VALUES));
            }
        }
        "Gt" | "Lt" => {
            if values.len() != 1 {
                let words = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(&values_path, words));
            }
        }
        other => errors.push(FieldError::invalid(
            format!("{path}.operator"),
            other,
            "not a valid selector operator",
        )),
    }
    errors.extend(key_faults(text(requirement, "key"), &format!("{path}.key")));
    errors.extend(value_faults(values, &values_path));
    errors
}

const SOME_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const NO_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

fn value_faults(values: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        let faults = naming::label_value(value).into_iter();
        errors
            .extend(faults.map(|fault| FieldError::invalid(format!("{path}[{at}]"), value, fault)));
    }
    errors
}

/// Checks a selector of labels.
pub(crate) fn label_selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = metadata::labels(&selector["matchLabels"], &format!("{path}.matchLabels"));
    for (at, requirement) in items(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let values = items(requirement, "values");
        let values_path = format!("{path}.values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(FieldError::required(&values_path, SOME_VALUES));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.push(FieldError::forbidden(&values_path, NO_VALUES));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        errors.extend(key_faults(text(requirement, "key"), &format!("{path}.key")));
        errors.extend(value_faults(values, &values_path));
    }
    errors
}

/// Checks how pods are spread.
pub(super) fn spread(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, constraint) in items(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{at}]");
        let skew = number(constraint, "maxSkew");
        if skew <= 0 {
            let path = format!("{path}.maxSkew");
            errors.push(FieldError::invalid(path, skew, "must be greater than zero"));
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.push(FieldError::required(format!("{path}.topologyKey"), "can not be empty"));
        }
        let (action, actions) =
            (text(constraint, "whenUnsatisfiable"), ["DoNotSchedule", "ScheduleAnyway"]);
        if !actions.contains(&action) {
            let path = format!("{path}.whenUnsatisfiable");
            errors.push(FieldError::not_supported(path, action, &actions));
        }
        let selector = &constraint["labelSelector"];
        errors.extend(label_selector(selector, &format!("{path}.labelSelector")));
    }
    errors
}

fn pod_term(term: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = label_selector(&term["labelSelector"], &format!("{path}.labelSelector"));
    for (at, namespace) in items(term, "namespaces").iter().enumerate() {
        let namespace = namespace.as_str().unwrap_or_default();
        let path = format!("{path}.namespaces[{at}]");
        let faults = naming::label(namespace).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&path, namespace, fault)));
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(format!("{path}.topologyKey"), "can not be empty"));
    }
    errors.extend(key_faults(key, &format!("{path}.topologyKey")));
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_are_checked() {
        let given = json!([
            {"operator": "Equal"},
            {"key": "a", "operator": "Exists", "value": "x", "tolerationSeconds": 1},
            {"key": "a", "operator": "Like", "effect": "Never"},
        ]);
        let told: Vec<String> = tolerations(&given, "t").iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "t[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                "t[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                "t[1].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
                "t[2].operator: Unsupported value: \"Like\": supported values: \"Equal\", \"Exists\"",
                "t[2].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ]
        );
    }

    #[test]
    fn selectors_of_nodes_have_terms() {
        let told = affinity(&json!({"nodeAffinity": {REQUIRED: {}}}), "a");
        assert_eq!(
            told[0].to_string(),
            "a.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"
        );
    }
}
