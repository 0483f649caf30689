//! What containers ask for: checks of requests and limits, and the class of service that follows.
//!
//! Owns those rules. Must not know nodes.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_schema::{
    FieldError,
    quantity::{self, Quantity},
};

use crate::kinds::{
    json::{items, members},
    naming,
};

const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Names that stand for something without a prefix.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is one of a device or another extension.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && naming::qualified(&format!("requests.{name}")).is_empty()
}

/// Whether less may be promised than is allowed.
fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

fn amount(value: &Value) -> Quantity {
    value.as_str().and_then(|text| quantity::parse(text).ok()).unwrap_or_default()
}

/// Checks `resources` of a container.
pub(super) fn validate(resources: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (limits_path, requests_path) = (format!("{path}.limits"), format!("{path}.requests"));
    for (name, value) in members(resources, "limits") {
        let path = format!("{limits_path}[{name}]");
        errors.extend(resource_name(name, &path));
        errors.extend(resource_amount(name, value, &path));
    }
    for (name, value) in members(resources, "requests") {
        let path = format!("{requests_path}[{name}]");
        errors.extend(resource_name(name, &path));
        errors.extend(resource_amount(name, value, &path));
        let limit = resources["limits"].get(name);
        errors.extend(against_limit(name, value, limit, &requests_path, &limits_path));
    }
    let has = |wanted: fn(&str) -> bool| {
        ["limits", "requests"]
            .into_iter()
            .any(|key| members(resources, key).any(|(name, _)| wanted(name)))
    };
    if has(is_huge_pages) && !has(|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    errors
}

fn against_limit(
    name: &str,
    value: &Value,
    limit: Option<&Value>,
    requests_path: &str,
    limits_path: &str,
) -> Option<FieldError> {
    let Some(limit) = limit else {
        let words = "Limit must be set for non overcommitable resources";
        return (!is_overcommitted(name)).then(|| FieldError::required(limits_path, words));
    };
    let (asked, allowed) = (amount(value), amount(limit));
    let words = if asked != allowed && !is_overcommitted(name) {
        format!("must be equal to {name} limit of {allowed}")
    } else if asked > allowed {
        format!("must be less than or equal to {name} limit of {allowed}")
    } else {
        return None;
    };
    Some(FieldError::invalid(requests_path, asked.to_string(), words))
}

/// Checks a name that a quota may have.
pub(crate) fn quota_name(name: &str, path: &str) -> Vec<FieldError> {
    let mut errors = any_name(name, path);
    let is_counted = STANDARD.contains(&name) || is_huge_pages(name);
    if !name.contains('/') && !is_counted && !name.starts_with("requests.hugepages-") {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

fn any_name(name: &str, path: &str) -> Vec<FieldError> {
    let faults = naming::qualified(name);
    let mut errors: Vec<FieldError> =
        faults.into_iter().map(|fault| FieldError::invalid(path, name, fault)).collect();
    let is_standard = STANDARD.contains(&name) || is_huge_pages(name);
    if errors.is_empty() && !name.contains('/') && !is_standard {
        let words = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, words));
    }
    errors
}

fn resource_name(name: &str, path: &str) -> Vec<FieldError> {
    let mut errors = any_name(name, path);
    let is_plain = !name.contains('/');
    if is_plain && !OF_CONTAINERS.contains(&name) && !is_huge_pages(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
    } else if !is_plain && !is_native(name) && !is_extended(name) {
        let words = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, words));
    }
    errors
}

/// Checks an amount: not negative, whole where only whole ones are there.
pub(crate) fn resource_amount(name: &str, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let amount = amount(value);
    if amount < Quantity::ZERO {
        let words = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, amount.to_string(), words));
    }
    let is_whole =
        STANDARD.get(9..).unwrap_or_default().contains(&name) && !name.contains("storage");
    if (is_whole || is_extended(name)) && amount.millis() % 1000 != 0 {
        errors.push(FieldError::invalid(path, amount.to_string(), "must be an integer"));
    }
    errors
}

/// The class of service of a pod.
pub(super) fn class_of_service(spec: &Value) -> &'static str {
    let mut sums: [BTreeMap<&str, Quantity>; 2] = Default::default();
    let mut guaranteed = true;
    let whole = spec.get("resources").filter(|resources| !resources.is_null());
    let holders: Vec<&Value> = match whole {
        Some(_) => vec![spec],
        None => items(spec, "containers").iter().chain(items(spec, "initContainers")).collect(),
    };
    for holder in holders {
        for (sum, key) in sums.iter_mut().zip(["requests", "limits"]) {
            let mut found = 0;
            for (name, value) in members(&holder["resources"], key) {
                let amount = amount(value);
                if matches!(name.as_str(), "cpu" | "memory") && amount > Quantity::ZERO {
                    let total = sum.entry(name.as_str()).or_default();
                    *total = *total + amount;
                    found += 1;
                }
            }
            guaranteed &= key == "requests" || found == 2;
        }
    }
    let [requests, limits] = sums;
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_stay_below_limits() {
        let resources = json!({
            "limits": {"cpu": "1", "nvidia.com/gpu": "2"},
            "requests": {"cpu": "2", "nvidia.com/gpu": "1", "floppies": "1"},
        });
        let told: Vec<String> = validate(&resources, "r").iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
                "r.requests[floppies]: Invalid value: \"floppies\": must be a standard resource type or fully qualified",
                "r.requests[floppies]: Invalid value: \"floppies\": must be a standard resource for containers",
                "r.requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2",
            ]
        );
        let half = json!({"limits": {"nvidia.com/gpu": "500m", "memory": "-1"}});
        let told: Vec<String> = validate(&half, "r").iter().map(ToString::to_string).collect();
        assert_eq!(
            told[0],
            "r.limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0"
        );
        assert_eq!(
            told[1],
            "r.limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer"
        );
    }

    #[test]
    fn the_class_follows_from_what_is_asked() {
        let of =
            |resources: Value| class_of_service(&json!({"containers": [{"resources": resources}]}));
        assert_eq!(of(json!({})), "BestEffort");
        assert_eq!(of(json!({"requests": {"cpu": "1"}})), "Burstable");
        let all = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(of(json!({"requests": all, "limits": all})), "Guaranteed");
        assert_eq!(
            of(json!({"requests": {"cpu": "1", "memory": "1"}, "limits": all})),
            "Burstable"
        );
    }
}
