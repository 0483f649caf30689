//! Tables: what `kubectl get` shows of objects, column by column.
//!
//! Owns the columns and the cells of every kind, built-in and defined. Must not know lists, requests
//! or how rows carry their objects.

mod cluster;
mod columns;
mod defined;
mod duration;
mod events;
mod network;
mod pods;
mod read;
mod storage;
mod work;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use columns::Column;

use crate::kind::{Columns, Kind, Version};
use read::text;

/// How long ago a time in an object was, as tables show it: `5s`, `3m20s`, `47h`.
#[must_use]
pub fn age(time: Option<&Value>, now: Timestamp) -> String {
    duration::since(time, now)
}

/// The columns of a kind.
pub(crate) fn columns(kind: &Kind, version: &Version) -> Vec<Column> {
    match &version.columns {
        Columns::BuiltIn => columns::of_kind(&kind.kind).to_vec(),
        Columns::Defined(rows) => defined::columns(rows),
    }
}

/// The cells of one object, one for each column.
pub(crate) fn cells(kind: &Kind, version: &Version, object: &Value, now: Timestamp) -> Vec<Value> {
    match &version.columns {
        Columns::BuiltIn => built_in(&kind.kind, object, now),
        Columns::Defined(rows) => defined::cells(rows, object, now),
    }
}

/// What a row says of itself beside its cells: pods that are done. Null for all others.
pub(crate) fn row_conditions(kind: &Kind, object: &Value) -> Value {
    if kind.defined || kind.kind != "Pod" { Value::Null } else { pods::completed(object) }
}

/// An object and the time at which it is shown.
struct Shown<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl<'a> Shown<'a> {
    fn name(&self) -> &'a str {
        text(self.object, "/metadata/name")
    }

    /// How long ago the time at a JSON pointer was.
    fn since(&self, pointer: &str) -> String {
        duration::since(self.object.pointer(pointer), self.now)
    }

    fn age(&self) -> String {
        self.since("/metadata/creationTimestamp")
    }
}

/// The one column of a definition that asks for none, as a definition would write it.
pub(crate) fn age_row() -> Value {
    let description = columns::of_kind("").get(1).map(|column| column.description.as_str());
    json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": description.unwrap_or_default(),
    })
}

/// Whether a kind has columns of its own making; a list of none is empty there, and null elsewhere.
pub(crate) fn has_printer(kind: &Kind) -> bool {
    !kind.defined
        && !matches!(
            kind.kind.as_str(),
            "Role" | "ClusterRole" | "LimitRange" | "CustomResourceDefinition"
        )
}

fn built_in(kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let shown = Shown { object, now };
    match kind {
        "Pod" => pods::pod(&shown),
        "Node" => cluster::node(&shown),
        "Namespace" => cluster::namespace(&shown),
        "ConfigMap" => cluster::config_map(&shown),
        "Secret" => cluster::secret(&shown),
        "ServiceAccount" => cluster::service_account(&shown),
        "ResourceQuota" => cluster::resource_quota(&shown),
        "PriorityClass" => cluster::priority_class(&shown),
        "RuntimeClass" => cluster::runtime_class(&shown),
        "Lease" => cluster::lease(&shown),
        "RoleBinding" | "ClusterRoleBinding" => cluster::binding(&shown),
        "Event" => events::event(&shown),
        "Service" => network::service(&shown),
        "Endpoints" => network::endpoints(&shown),
        "EndpointSlice" => network::endpoint_slice(&shown),
        "NetworkPolicy" => network::policy(&shown),
        "PersistentVolume" => storage::volume(&shown),
        "PersistentVolumeClaim" => storage::claim(&shown),
        "StorageClass" => storage::class(&shown),
        "Job" => work::job(&shown),
        "PodDisruptionBudget" => work::disruption_budget(&shown),
        _ => plain(&shown),
    }
}

/// Name and creation.
fn plain(shown: &Shown<'_>) -> Vec<Value> {
    let created = duration::time(shown.object.pointer("/metadata/creationTimestamp"));
    let created = created.map_or_else(
        || "0001-01-01T00:00:00Z".to_owned(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    );
    vec![json!(shown.name()), json!(created)]
}

#[cfg(test)]
mod tests;
