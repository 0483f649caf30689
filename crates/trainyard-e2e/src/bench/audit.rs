//! What somebody wrote, from the API server's own audit log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader, Lines},
};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, Identity};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<Object>,
    response_status: Option<Status>,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
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
    #[serde(default)]
    name: String,
}

/// When a pod was there and when it had its node, by the server's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) pod: String,
    pub(super) made: Timestamp,
    pub(super) bound: Timestamp,
}

fn lines(plane: &ControlPlane) -> Result<Lines<BufReader<File>>> {
    let log = File::open(plane.audit_log()).context("opening the audit log")?;
    Ok(BufReader::new(log).lines())
}

/// All pods that were made and bound.
pub(super) fn bound(plane: &ControlPlane) -> Result<Vec<Binding>> {
    bound_in(lines(plane)?)
}

fn bound_in(lines: impl Iterator<Item = std::io::Result<String>>) -> Result<Vec<Binding>> {
    let mut made = BTreeMap::new();
    let mut all = Vec::new();
    for line in lines {
        let Ok(entry) = serde_json::from_str::<Entry>(&line?) else { continue };
        let is_pod = |object: &Object| object.resource == "pods" && entry.verb == "create";
        let Some(object) = entry.object_ref.filter(is_pod) else { continue };
        if entry.response_status.is_none_or(|status| status.code != 201) {
            continue;
        }
        match &*object.subresource {
            "" => {
                made.insert(object.name, entry.stage_timestamp);
            }
            "binding" => {
                if let Some(made) = made.remove(&object.name) {
                    all.push(Binding { pod: object.name, made, bound: entry.stage_timestamp });
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Writes of somebody by verb and resource, in one namespace or everywhere.
pub(super) fn writes(
    plane: &ControlPlane,
    identity: Identity,
    namespace: Option<&str>,
) -> Result<BTreeMap<String, u32>> {
    let user = plane.user(identity);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for line in lines(plane)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(subresource: &str, code: u16, second: i64) -> String {
        let at = Timestamp::from_second(second).unwrap().to_string();
        let object = json!({"resource": "pods", "subresource": subresource, "name": "a"});
        let status = json!({"code": code});
        json!({"verb": "create", "user": {"username": "u"}, "objectRef": object,
            "responseStatus": status, "stageTimestamp": at})
        .to_string()
    }

    #[test]
    fn a_pod_is_bound_when_the_server_has_said_so() {
        let log = [
            line("", 201, 5),
            line("binding", 409, 6),
            "torn line".to_owned(),
            line("binding", 201, 8),
            line("binding", 201, 9),
        ];
        let [one] = &bound_in(log.into_iter().map(Ok)).unwrap()[..] else {
            panic!("one pod is bound once")
        };
        assert_eq!((one.made.as_second(), one.bound.as_second()), (5, 8));
    }
}
