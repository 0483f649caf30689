//! How a story ends, without what differs from run to run: times, identities, the namespace.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::rest::Resource;
use crate::seen::{terminating, text};
use crate::world::World;

/// Fields of a Volcano Job's status that count attempts at something, measure a time or name an
/// object.
const UNSTEADY: [&str; 3] = ["version", "runningDuration", "lastCommand"];

/// The end of a story.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct End {
    /// Objects that are there, by resource and name, reduced to what must be equal.
    objects: BTreeMap<(Resource, String), Value>,
    /// Pods and services there have ever been.
    ever: [usize; 2],
}

impl End {
    /// What is there now.
    pub(super) fn of(world: &World) -> Self {
        let seen = world.seen();
        let mut objects = BTreeMap::new();
        for (name, job) in seen.all(Resource::Jobs) {
            let status = timeless(&job["status"], &world.namespace);
            objects.insert((Resource::Jobs, name.to_owned()), status);
        }
        for (name, pod) in seen.all(Resource::Pods) {
            let facts = serde_json::json!({
                "phase": pod["status"]["phase"], "terminating": terminating(pod),
                "labels": timeless(&pod["metadata"]["labels"], &world.namespace),
            });
            objects.insert((Resource::Pods, name.to_owned()), facts);
        }
        for (name, _) in seen.all(Resource::Services) {
            objects.insert((Resource::Services, name.to_owned()), Value::Null);
        }
        for (name, job) in seen.all(Resource::VolcanoJobs) {
            let mut status = timeless(&job["status"], &world.namespace);
            for key in UNSTEADY {
                status.as_object_mut().and_then(|status| status.remove(key));
            }
            if let Some(held) = status["controlledResources"].as_object_mut() {
                held.retain(|key, _| !key.starts_with("volume-"));
            }
            objects.insert((Resource::VolcanoJobs, name.to_owned()), status);
        }
        for (_, group) in seen.all(Resource::Groups) {
            let owner = text(&group["metadata"]["ownerReferences"][0]["name"]);
            objects.insert((Resource::Groups, owner.to_owned()), group["spec"].clone());
        }
        for (name, map) in seen.all(Resource::ConfigMaps) {
            if !map["metadata"]["ownerReferences"].is_null() {
                objects.insert((Resource::ConfigMaps, name.to_owned()), map["data"].clone());
            }
        }
        // Names of claims and Commands are made up.
        for resource in [Resource::Policies, Resource::Claims, Resource::Commands] {
            let count = seen.all(resource).count();
            objects.extend((0..count).map(|at| ((resource, at.to_string()), Value::Null)));
        }
        let ever = [Resource::Pods, Resource::Services].map(|resource| seen.ever(resource));
        Self { objects, ever }
    }

    /// Where this end differs from the wanted one, in words.
    pub(super) fn difference(&self, wanted: &Self) -> String {
        let mut lines = Vec::new();
        for key in self.objects.keys().chain(wanted.objects.keys()) {
            let (got, want) = (self.objects.get(key), wanted.objects.get(key));
            if got != want {
                let text = |value: Option<&Value>| value.map_or("-".to_owned(), Value::to_string);
                lines.push(format!("{key:?}\n     got {}\n  wanted {}", text(got), text(want)));
            }
        }
        lines.dedup();
        if self.ever != wanted.ever {
            lines.push(format!("pods, services ever: {:?}, not {:?}", self.ever, wanted.ever));
        }
        lines.join("\n")
    }
}

/// The value without times and identities; the namespace is `NS` everywhere.
fn timeless(value: &Value, namespace: &str) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !key.ends_with("Time") && *key != "uid")
            .map(|(key, value)| (key.clone(), timeless(value, namespace)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| timeless(item, namespace)).collect(),
        Value::String(text) => Value::String(without_times(&text.replace(namespace, "NS"))),
        other => other.clone(),
    }
}

/// A text in which no word is a time.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.trim_end_matches([':', '.', ',']).parse::<Timestamp>().is_ok();
    let word = |word| if is_time(word) { "TIME" } else { word };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_identities_and_the_namespace_are_taken_out() {
        let status = json!({
            "startTime": "2026-01-01T00:00:00Z", "restarts": 2,
            "conditions": [{"type": "Succeeded", "lastUpdateTime": "x",
                "message": "TFJob n-1/a since 2026-01-01T00:00:00Z: it waits."}],
            "replicaRecords": [{"replica": "worker-0", "uid": "u"}],
        });
        assert_eq!(
            timeless(&status, "n-1"),
            json!({
                "restarts": 2,
                "conditions": [{"type": "Succeeded", "message": "TFJob NS/a since TIME it waits."}],
                "replicaRecords": [{"replica": "worker-0"}],
            })
        );
    }
}
