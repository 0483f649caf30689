//! Nodes: taints, resources and what their kubelet alone says.

use std::collections::HashSet;

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{
    json::{faults, fill, items, keep, members, text},
    metadata, naming,
    pods::{resources, round_up, scheduling},
};
use crate::{
    failure::Failure,
    kind::{Part, Rules, World},
};

/// The rules of nodes.
pub(super) struct Nodes;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl Rules for Nodes {
    fn default(&self, object: &mut Value) {
        let Some(status) = object.get_mut("status") else { return };
        if let Some(capacity) = status.get("capacity").cloned() {
            fill(status, "allocatable", capacity);
        }
        for key in ["capacity", "allocatable"] {
            if let Some(list) = status.get_mut(key) {
                round_up(list);
            }
        }
    }

    /// A new node takes no pods until it says that it is ready.
    fn admit(&self, object: &mut Value, _world: &dyn World) -> Result<(), Failure> {
        fill(object, "spec", json!({}));
        let spec = &mut object["spec"];
        let known = items(spec, "taints")
            .iter()
            .any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule");
        if !known {
            fill(spec, "taints", json!([]));
            if let Some(taints) = spec["taints"].as_array_mut() {
                taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            }
        }
        Ok(())
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        errors.extend(taints(object));
        errors.extend(amounts(object));
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        keep(new, old, if part == Part::Main { "status" } else { "spec" });
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = metadata::again(&new["metadata"], false, self);
        errors.extend(amounts(new));
        let mut addresses = HashSet::new();
        for (at, address) in items(&new["status"], "addresses").iter().enumerate() {
            if !addresses.insert((text(address, "type"), text(address, "address"))) {
                let path = format!("status.addresses[{at}]");
                errors.push(FieldError::duplicate(path, address.clone()));
            }
        }
        let (now, before) = (&new["spec"], &old["spec"]);
        for (key, told) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
            if before.get(key).is_some() && now[key] != before[key] {
                let words = format!("node updates may not change {told} except from \"\" to valid");
                errors.push(FieldError::forbidden(format!("spec.{key}"), words));
            }
        }
        errors.extend(taints(new));
        errors
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        field == "spec.unschedulable"
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        let unschedulable = object["spec"]["unschedulable"].as_bool() == Some(true);
        vec![("spec.unschedulable".into(), unschedulable.to_string().into())]
    }
}

/// The real server tells taints as if they stood in the metadata.
fn taints(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (at, taint) in items(&node["spec"], "taints").iter().enumerate() {
        let path = format!("metadata.taints[{at}]");
        let (key, value, effect) =
            (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        errors.extend(faults(naming::qualified(key), key, &format!("{path}.key")));
        let wrong = naming::label_value(value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(format!("{path}.value"), value, wrong.join(";")));
        }
        errors.extend(scheduling::effect(effect, &format!("{path}.effect")));
        if !seen.insert((key, effect)) {
            let mut error = FieldError::duplicate(path, taint.clone());
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
    errors
}

fn amounts(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["capacity", "allocatable"] {
        for (name, value) in members(&node["status"], key) {
            let path = format!("status.{key}[{name}]");
            errors.extend(resources::resource_amount(name, value, &path));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::Few;

    #[test]
    fn a_new_node_is_not_ready_and_has_all_it_has_to_give() {
        let mut made =
            json!({"metadata": {"name": "n"}, "spec": {}, "status": {"capacity": {"cpu": "2"}}});
        Nodes.default(&mut made);
        Nodes.admit(&mut made, &Few::default()).unwrap();
        assert_eq!(made["status"]["allocatable"], json!({"cpu": "2"}));
        assert_eq!(made["spec"]["taints"], json!([{"key": NOT_READY, "effect": "NoSchedule"}]));
        assert!(Nodes.validate_create(&made).is_empty());
    }

    #[test]
    fn taints_are_checked() {
        let node = json!({"spec": {"taints": [{"key": "a", "effect": "X"}, {"key": "b"}]}});
        let told: Vec<String> =
            Nodes.validate_create(&node).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "metadata.taints[0].effect: Unsupported value: \"X\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                "metadata.taints[1].effect: Required value",
            ]
        );
    }
}
