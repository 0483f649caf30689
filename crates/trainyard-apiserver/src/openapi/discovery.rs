//! What is served, told two ways: the plain documents of `/api` and `/apis`, and the aggregated list
//! that newer clients ask for. Pure functions of the rows.
//!
//! Owns the shape of these documents and their order. Must not know schemas.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    measured,
    subresource::{self, Subresource},
};
use crate::kind::{Kind, Verbs, Version};

/// `/api`; `address` is where clients reach this server, as `127.0.0.1:6443`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub(crate) fn groups(kinds: &[Arc<Kind>]) -> Value {
    let kinds = measured::with(kinds);
    let groups: Vec<Value> = named_groups(&kinds)
        .into_iter()
        .map(|name| {
            let mut group = group_body(name, &group_versions(&kinds, name));
            group["name"] = json!(name);
            group
        })
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub(crate) fn group(kinds: &[Arc<Kind>], name: &str) -> Option<Value> {
    let kinds = measured::with(kinds);
    let versions = group_versions(&kinds, name);
    if name.is_empty() || versions.is_empty() {
        return None;
    }
    let mut group = group_body(name, &versions);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    group["name"] = json!(name);
    Some(group)
}

fn group_body(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    json!({"versions": versions, "preferredVersion": preferred})
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn resources(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let kinds = measured::with(kinds);
    let served = served(&kinds, group, version);
    if served.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for (kind, version) in &served {
        resources.push(resource(kind, version));
        for part in subresource::of(kind, version) {
            resources.push(part_of(kind, &part));
        }
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version,
        "resources": resources,
    });
    // The core's list is older than this member.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

fn resource(kind: &Kind, version: &Version) -> Value {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind),
    });
    name_more(&mut resource, kind);
    if kind.verbs == Verbs::All && !measured::is(kind) {
        resource["storageVersionHash"] = json!(storage_hash(kind, version));
    }
    resource
}

fn part_of(kind: &Kind, part: &Subresource) -> Value {
    let mut resource = json!({
        "name": format!("{}/{}", kind.plural, part.name),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": part.kind,
        "verbs": part.verbs,
    });
    if let Some((group, version)) = part.group_version {
        resource["group"] = json!(group);
        resource["version"] = json!(version);
    }
    resource
}

fn name_more(resource: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
}

/// In the order in which the two kinds of servers name them.
fn verbs(kind: &Kind) -> &'static [&'static str] {
    if kind.verbs == Verbs::CreateOnly {
        &["create"]
    } else if measured::is(kind) {
        &["get", "list"]
    } else if kind.defined {
        &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    } else if kind.group.is_empty() && kind.plural == "namespaces" {
        &["create", "delete", "get", "list", "patch", "update", "watch"]
    } else {
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    }
}

/// Tells in which version objects are stored, without saying it.
fn storage_hash(kind: &Kind, version: &Version) -> String {
    let (group, stored) = match kind.storage_api_version.rsplit_once('/') {
        // The real server still stores definitions as it did in the beginning.
        Some((group @ "apiextensions.k8s.io", _)) => (group, "v1beta1"),
        Some(parts) => parts,
        None => ("", version.name.as_str()),
    };
    let digest = Sha256::digest(format!("{group}/{stored}/{}", kind.kind));
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// `/api` for those who ask for the aggregated list.
pub(crate) fn aggregated_core(kinds: &[Arc<Kind>]) -> Value {
    aggregated(&[aggregated_group(kinds, "")])
}

/// `/apis` for those who ask for the aggregated list.
pub(crate) fn aggregated_groups(kinds: &[Arc<Kind>]) -> Value {
    let kinds = measured::with(kinds);
    let names = named_groups(&kinds);
    let groups: Vec<Value> = names.into_iter().map(|name| aggregated_group(&kinds, name)).collect();
    aggregated(&groups)
}

fn aggregated(items: &[Value]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(kinds: &[Arc<Kind>], name: &str) -> Value {
    let versions: Vec<Value> = group_versions(kinds, name)
        .into_iter()
        .map(|version| {
            let resources: Vec<Value> = served(kinds, name, version)
                .iter()
                .map(|(kind, version)| aggregated_resource(kind, version))
                .collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(kind: &Kind, version: &Version) -> Value {
    // Built-in kinds leave out the group and version that their place already says.
    let place = if kind.defined || measured::is(kind) {
        (kind.group.as_str(), version.name.as_str())
    } else {
        ("", "")
    };
    let response = |(group, version): (&str, &str), kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response(place, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    name_more(&mut resource, kind);
    let parts: Vec<Value> = subresource::of(kind, version)
        .into_iter()
        .map(|part| {
            json!({
                "subresource": part.name,
                "responseKind": response(part.group_version.unwrap_or(place), &part.kind),
                "verbs": part.verbs,
            })
        })
        .collect();
    if !parts.is_empty() {
        resource["subresources"] = json!(parts);
    }
    resource
}

/// The built-in groups in the real server's order.
const ORDER: [&str; 14] = [
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    measured::GROUP,
];

/// The groups beside the core: built-in ones in the real server's order, then defined ones by name.
pub(super) fn named_groups(kinds: &[Arc<Kind>]) -> Vec<&str> {
    let names = kinds.iter().map(|kind| kind.group.as_str()).filter(|group| !group.is_empty());
    let mut groups: Vec<&str> = names.collect();
    let place = |group: &str| ORDER.iter().position(|known| *known == group);
    groups.sort_unstable_by_key(|group| (place(group).unwrap_or(ORDER.len()), *group));
    groups.dedup();
    groups
}

/// The versions of a group, the preferred one first.
pub(super) fn group_versions<'a>(kinds: &'a [Arc<Kind>], group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.group == group) {
        for version in &kind.versions {
            if !versions.contains(&version.name.as_str()) {
                versions.push(&version.name);
            }
        }
    }
    versions.sort_by(|one, other| rank(other).cmp(&rank(one)).then_with(|| one.cmp(other)));
    versions
}

/// `v2` before `v1` before `v2beta1` before `v1alpha1`; what is no such name comes last.
fn rank(version: &str) -> (u8, u64, u64) {
    let Some(numbers) = version.strip_prefix('v') else { return (0, 0, 0) };
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (major, rest) = numbers.split_at(digits(numbers));
    let Ok(major) = major.parse() else { return (0, 0, 0) };
    let (stage, minor) = if let Some(minor) = rest.strip_prefix("beta") {
        (2, minor)
    } else if let Some(minor) = rest.strip_prefix("alpha") {
        (1, minor)
    } else if rest.is_empty() {
        return (3, major, 0);
    } else {
        return (0, 0, 0);
    };
    minor.parse().map_or((0, 0, 0), |minor| (stage, major, minor))
}

/// The kinds of one version of a group, by their names in paths.
pub(super) fn served<'a>(
    kinds: &'a [Arc<Kind>],
    group: &str,
    version: &str,
) -> Vec<(&'a Kind, &'a Version)> {
    let mut served: Vec<_> = kinds
        .iter()
        .filter(|kind| kind.group == group)
        .filter_map(|kind| Some((&**kind, kind.version(version)?)))
        .collect();
    served.sort_by(|(one, _), (other, _)| one.plural.cmp(&other.plural));
    served
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
