//! What the operator wrote, from the API server's own audit log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader},
};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, Identity};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<Object>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct Object {
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    subresource: String,
}

/// Writes of the operator in a namespace, by verb and resource, per job.
pub(super) fn writes_per_job(plane: &ControlPlane, namespace: &str, jobs: usize) -> Result<Value> {
    let operator = plane.user(Identity::Operator);
    let log = File::open(plane.audit_log()).context("opening the audit log")?;
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for line in BufReader::new(log).lines() {
        let Ok(entry) = serde_json::from_str::<Entry>(&line?) else { continue };
        let Some(object) = entry.object_ref.filter(|object| object.namespace == namespace) else {
            continue;
        };
        let writes = matches!(&*entry.verb, "create" | "update" | "patch" | "delete");
        if writes && entry.user.username == operator {
            let slash = if object.subresource.is_empty() { "" } else { "/" };
            let key = format!("{} {}{slash}{}", entry.verb, object.resource, object.subresource);
            *counts.entry(key).or_default() += 1;
        }
    }
    let jobs = f64::from(u32::try_from(jobs).unwrap_or(u32::MAX));
    let per_job =
        counts.into_iter().map(|(key, n)| (key, json!(super::round(f64::from(n) / jobs))));
    Ok(Value::Object(per_job.collect()))
}
