//! What somebody wrote, from the API server's own audit log.

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

/// Writes of somebody by verb and resource, in one namespace or everywhere.
pub(super) fn writes(
    plane: &ControlPlane,
    identity: Identity,
    namespace: Option<&str>,
) -> Result<BTreeMap<String, u32>> {
    let user = plane.user(identity);
    let log = File::open(plane.audit_log()).context("opening the audit log")?;
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for line in BufReader::new(log).lines() {
        let Ok(entry) = serde_json::from_str::<Entry>(&line?) else { continue };
        let is_there = |object: &Object| namespace.is_none_or(|name| object.namespace == name);
        let Some(object) = entry.object_ref.filter(is_there) else { continue };
        let writes = matches!(&*entry.verb, "create" | "update" | "patch" | "delete");
        if writes && entry.user.username == user {
            let slash = if object.subresource.is_empty() { "" } else { "/" };
            let key = format!("{} {}{slash}{}", entry.verb, object.resource, object.subresource);
            *counts.entry(key).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Counts for each of so many.
pub(super) fn per(counts: BTreeMap<String, u32>, many: usize) -> Value {
    let many = f64::from(u32::try_from(many).unwrap_or(u32::MAX));
    let each = counts.into_iter().map(|(key, n)| (key, json!(super::round(f64::from(n) / many))));
    Value::Object(each.collect())
}
