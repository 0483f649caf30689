//! Services: what is special about them.
//!
//! Owns their defaults, the addresses and ports they are given, and what may change. Must not know how
//! they are reached.

mod allocate;
mod validate;

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{
    json::{clear, fill, items, items_mut, keep, number, text},
    metadata, naming,
};
use crate::{
    failure::Failure,
    kind::{Part, Rules, World},
};

/// The rules of services.
pub(super) struct Services;

/// How long a client stays with one pod.
const AFFINITY_SECONDS: i64 = 10_800;

impl Rules for Services {
    fn default(&self, object: &mut Value) {
        default(&mut object["spec"]);
    }

    fn admit(&self, object: &mut Value, world: &dyn World) -> Result<(), Failure> {
        first_address(&mut object["spec"]);
        if self.validate_create(object).is_empty() {
            allocate::allocate(object, world)?;
        }
        Ok(())
    }

    /// Addresses and ports are each given once.
    fn is_exclusive(&self, object: &Value) -> bool {
        text(&object["spec"], "clusterIP") != "None" && !is_headless(&object["spec"])
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"loadBalancer": {}});
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        errors.extend(validate::validate(object));
        errors
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Vec<String> {
        naming::label(&naming::masked(name, is_prefix))
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        if part == Part::Status {
            keep(new, old, "spec");
            return;
        }
        keep(new, old, "status");
        same_addresses(&mut new["spec"], &old["spec"]);
        drop_by_type(&mut new["spec"], &old["spec"]);
        if text(&new["spec"], "type") != "LoadBalancer" {
            new["status"]["loadBalancer"] = json!({});
        }
    }

    fn admit_update(
        &self,
        new: &mut Value,
        old: &Value,
        part: Part,
        world: &dyn World,
    ) -> Result<(), Failure> {
        if part == Part::Main && self.validate_update(new, old, part).is_empty() {
            allocate::allocate(new, world)?;
        }
        Ok(())
    }

    fn validate_update(&self, new: &Value, old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Status {
            let entries = items(&new["status"]["loadBalancer"], "ingress");
            if text(&new["spec"], "type") == "LoadBalancer" || entries.is_empty() {
                return Vec::new();
            }
            let words = "may only be used when `spec.type` is 'LoadBalancer'";
            return vec![FieldError::forbidden("status.loadBalancer.ingress", words)];
        }
        let mut errors = validate::addresses_stay(&new["spec"], &old["spec"]);
        errors.extend(validate::validate(new));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings(&object["spec"])
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        matches!(field, "spec.clusterIP" | "spec.type")
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        let spec = &object["spec"];
        vec![
            ("spec.clusterIP".into(), text(spec, "clusterIP").into()),
            ("spec.type".into(), text(spec, "type").into()),
        ]
    }
}

/// Whether a service has no address of its own.
fn is_headless(spec: &Value) -> bool {
    items(spec, "clusterIPs").first().is_some_and(|address| address == "None")
}

fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn has_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"].as_bool() != Some(false),
        _ => false,
    }
}

/// Whether it can be reached from outside.
fn is_external(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
        || (text(spec, "type") == "ClusterIP" && !items(spec, "externalIPs").is_empty())
}

fn default(spec: &mut Value) {
    fill(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => clear(spec, "sessionAffinityConfig"),
        "ClientIP" if spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() => {
            spec["sessionAffinityConfig"] =
                json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
        }
        _ => {}
    }
    fill(spec, "type", "ClusterIP");
    for port in items_mut(spec, "ports") {
        fill(port, "protocol", "TCP");
        if matches!(&port["targetPort"], Value::Null)
            || port["targetPort"] == 0
            || port["targetPort"] == ""
        {
            port["targetPort"] = json!(number(port, "port"));
        }
    }
    if is_external(spec) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// The one address also stands in the list.
fn first_address(spec: &mut Value) {
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() {
        fill(spec, "clusterIPs", json!([address]));
    }
}

/// What clients that know only one of two linked fields meant.
fn same_addresses(new: &mut Value, old: &Value) {
    let (one, before) = (text(new, "clusterIP").to_owned(), text(old, "clusterIP").to_owned());
    if items(new, "clusterIPs").is_empty() && one == before {
        keep(new, old, "clusterIPs");
    }
    if one != before && new["clusterIPs"] == old["clusterIPs"] {
        if one.is_empty() {
            clear(new, "clusterIPs");
        } else {
            new["clusterIPs"] = json!([one]);
        }
    }
    if has_address(new) && has_address(old) {
        if one.is_empty() {
            keep(new, old, "clusterIP");
        }
        if items(new, "clusterIPs").is_empty() {
            keep(new, old, "clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if new.get(key).is_none() {
                keep(new, old, key);
            }
        }
    }
    if has_node_ports(new) && has_node_ports(old) {
        known_ports(new, old);
    }
}

/// Ports keep the numbers that they were given, by their names.
fn known_ports(new: &mut Value, old: &Value) {
    let said: Vec<i64> = items(new, "ports").iter().map(|port| number(port, "nodePort")).collect();
    for port in items_mut(new, "ports") {
        let before = items(old, "ports").iter().find(|one| text(one, "name") == text(port, "name"));
        let known = before.map_or(0, |before| number(before, "nodePort"));
        if known != 0 && !said.contains(&known) {
            fill(port, "nodePort", known);
        }
    }
}

/// A change of type takes along what only the old type had.
fn drop_by_type(new: &mut Value, old: &Value) {
    if has_address(old) && !has_address(new) {
        if new["clusterIPs"] == old["clusterIPs"] {
            clear(new, "clusterIP");
            clear(new, "clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if new[key] == old[key] {
                clear(new, key);
            }
        }
    }
    let ports = |spec: &Value| -> Vec<i64> {
        items(spec, "ports").iter().map(|port| number(port, "nodePort")).collect()
    };
    let by_type = |spec: &Value| matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
    if by_type(old) && !by_type(new) && ports(new) == ports(old) {
        for port in items_mut(new, "ports") {
            clear(port, "nodePort");
        }
    }
    let key = "allocateLoadBalancerNodePorts";
    if text(old, "type") == "LoadBalancer"
        && text(new, "type") != "LoadBalancer"
        && new[key] == old[key]
    {
        clear(new, key);
    }
    let key = "externalTrafficPolicy";
    if is_external(old) && !is_external(new) && new[key] == old[key] {
        clear(new, key);
    }
}

fn warnings(spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_headless(spec) && text(spec, "sessionAffinity") != "None" {
        warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
    }
    if !items(spec, "externalIPs").is_empty() && !is_headless(spec) && has_address(spec) {
        let words =
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(words.to_owned());
    }
    if has_address(spec) && !text(spec, "externalName").is_empty() {
        let words = "spec.externalName is ignored when spec.type is not \"ExternalName\"";
        warnings.push(words.to_owned());
    }
    warnings
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
