//! The custom resource definitions of Volcano's kinds, as data.
//!
//! Owns names, columns and subresources; one file per kind owns its schema. The rules in them stand
//! in place of the reference's webhooks: the API server evaluates them, and so does
//! [`crate::volcano::validate`]. Must not evaluate anything itself.

mod command;
mod fields;
mod job_rules;
mod job_spec;
mod job_status;
mod pod_group;
mod policy;
mod queue;
mod task_rules;

use serde_json::{Value, json};

use super::kinds::{self, Kind};
pub(crate) use policy::{ACTIONS, valid as valid_in_policies};

/// Label of a definition that is ours and not Volcano's own.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`LABEL_MANAGED_BY`].
pub const MANAGED_BY: &str = "trainyard";

/// The definition `jobs.batch.volcano.sh`.
#[must_use]
pub fn job_crd() -> Value {
    let mut crd = definition(&kinds::JOB, &job_columns());
    with_status_subresource(&mut crd);
    crd
}

/// The definition `commands.bus.volcano.sh`.
#[must_use]
pub fn command_crd() -> Value {
    definition(&kinds::COMMAND, &command_columns())
}

/// The definition `podgroups.scheduling.volcano.sh`. Its status is written with the object, as the
/// reference has it.
#[must_use]
pub fn pod_group_crd() -> Value {
    definition(&kinds::POD_GROUP, &pod_group_columns())
}

/// The definition `queues.scheduling.volcano.sh`.
#[must_use]
pub fn queue_crd() -> Value {
    let mut crd = definition(&kinds::QUEUE, &queue_columns());
    with_status_subresource(&mut crd);
    crd
}

/// All four.
#[must_use]
pub fn all() -> [Value; 4] {
    [job_crd(), command_crd(), pod_group_crd(), queue_crd()]
}

/// The schema of a kind.
#[must_use]
pub fn schema(kind: &Kind) -> Value {
    match kind.name {
        "Job" => fields::resource(
            "Tasks of pods that start all together, and what is done when something happens to \
             them.",
            &json!({"spec": job_spec::spec(), "status": job_status::status()}),
            job_rules::job(),
        ),
        "Command" => command::schema(),
        "PodGroup" => pod_group::schema(),
        _ => queue::schema(),
    }
}

fn definition(kind: &Kind, columns: &Value) -> Value {
    let mut names = json!({
        "kind": kind.name,
        "listKind": format!("{}List", kind.name),
        "plural": kind.plural,
        "singular": kind.singular,
    });
    if !kind.short.is_empty() {
        names["shortNames"] = json!(kind.short);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name(), "labels": {LABEL_MANAGED_BY: MANAGED_BY}},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "conversion": {"strategy": "None"},
            "versions": [{
                "name": kind.version,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": schema(kind)},
            }],
        },
    })
}

fn with_status_subresource(crd: &mut Value) {
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

/// A column that only `-o wide` shows.
fn wide(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path, "priority": 1})
}

fn age() -> Value {
    column("Age", "date", ".metadata.creationTimestamp")
}

/// Those of the reference first; ours only with `-o wide`.
fn job_columns() -> Value {
    json!([
        column("STATUS", "string", ".status.state.phase"),
        column("minAvailable", "integer", ".status.minAvailable"),
        column("RUNNINGS", "integer", ".status.running"),
        column("AGE", "date", ".metadata.creationTimestamp"),
        wide("QUEUE", "string", ".spec.queue"),
        wide("RETRIES", "integer", ".status.retryCount"),
        wide("REASON", "string", ".status.state.reason"),
        wide("MESSAGE", "string", ".status.state.message"),
    ])
}

fn command_columns() -> Value {
    json!([
        column("Action", "string", ".action"),
        column("Target", "string", ".target.name"),
        age(),
    ])
}

fn pod_group_columns() -> Value {
    json!([
        column("STATUS", "string", ".status.phase"),
        column("minMember", "integer", ".spec.minMember"),
        column("RUNNINGS", "integer", ".status.running"),
        column("AGE", "date", ".metadata.creationTimestamp"),
        wide("QUEUE", "string", ".spec.queue"),
        wide("MESSAGE", "string", ".status.conditions[-1:].message"),
    ])
}

fn queue_columns() -> Value {
    json!([
        column("PARENT", "string", ".spec.parent"),
        column("State", "string", ".status.state"),
        column("Weight", "integer", ".spec.weight"),
        wide("Running", "integer", ".status.running"),
        wide("Waiting", "integer", ".status.pending"),
        age(),
    ])
}

#[cfg(test)]
mod tests;
