//! What one namespace holds, kept current by watches, and short comparable words for it.
//!
//! Scenarios compare these words instead of whole objects. Must not write anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::rest::Resource;

/// The objects of a namespace at one moment.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    objects: BTreeMap<(Resource, String), Arc<Value>>,
    positions: BTreeMap<Resource, u64>,
    ever: BTreeSet<(Resource, String)>,
    writes: BTreeMap<(Resource, String), usize>,
}

impl Seen {
    /// One object; `null` when it is not there.
    #[must_use]
    pub fn object(&self, resource: Resource, name: &str) -> &Value {
        self.objects.get(&(resource, name.to_owned())).map_or(&Value::Null, |object| object)
    }

    /// All objects of a resource, by name.
    pub fn all(&self, resource: Resource) -> impl Iterator<Item = (&str, &Value)> {
        self.objects
            .iter()
            .filter(move |((kind, _), _)| *kind == resource)
            .map(|((_, name), object)| (name.as_str(), &**object))
    }

    /// A pod; `null` when it is not there.
    #[must_use]
    pub fn pod(&self, name: &str) -> &Value {
        self.object(Resource::Pods, name)
    }

    /// A service; `null` when it is not there.
    #[must_use]
    pub fn service(&self, name: &str) -> &Value {
        self.object(Resource::Services, name)
    }

    /// A job; `null` when it is not there.
    #[must_use]
    pub fn job(&self, name: &str) -> &Value {
        self.object(Resource::Jobs, name)
    }

    /// The status of a job.
    #[must_use]
    pub fn status(&self, job: &str) -> &Value {
        &self.job(job)["status"]
    }

    /// Names of all pods, those being deleted included.
    #[must_use]
    pub fn pods(&self) -> Vec<&str> {
        self.all(Resource::Pods).map(|(name, _)| name).collect()
    }

    /// Names of the pods that are not being deleted.
    #[must_use]
    pub fn live_pods(&self) -> Vec<&str> {
        self.all(Resource::Pods)
            .filter(|(_, pod)| !terminating(pod))
            .map(|(name, _)| name)
            .collect()
    }

    /// Names of the services.
    #[must_use]
    pub fn services(&self) -> Vec<&str> {
        self.all(Resource::Services).map(|(name, _)| name).collect()
    }

    /// Conditions of a job in list order, as `Created=True`.
    #[must_use]
    pub fn conditions(&self, job: &str) -> Vec<String> {
        self.condition_list(job)
            .iter()
            .map(|c| format!("{}={}", text(&c["type"]), text(&c["status"])))
            .collect()
    }

    /// Conditions of a job in list order, as `Created=True TFJobCreated: TFJob x is created.`.
    #[must_use]
    pub fn condition_lines(&self, job: &str) -> Vec<String> {
        self.condition_list(job)
            .iter()
            .map(|c| {
                let words = ["type", "status", "reason", "message"].map(|key| text(&c[key]));
                format!("{}={} {}: {}", words[0], words[1], words[2], words[3])
            })
            .collect()
    }

    fn condition_list(&self, job: &str) -> &[Value] {
        self.status(job)["conditions"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The condition of that type; `null` when it is not there.
    #[must_use]
    pub fn condition(&self, job: &str, kind: &str) -> &Value {
        self.condition_list(job).iter().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
    }

    /// Whether the condition of that type is `True`.
    #[must_use]
    pub fn is(&self, job: &str, kind: &str) -> bool {
        self.condition(job, kind)["status"] == "True"
    }

    /// Whether the job has succeeded or failed.
    #[must_use]
    pub fn finished(&self, job: &str) -> bool {
        self.is(job, "Succeeded") || self.is(job, "Failed")
    }

    /// `[active, succeeded, failed]` of a replica type.
    #[must_use]
    pub fn counts(&self, job: &str, kind: &str) -> [i64; 3] {
        let counts = &self.status(job)["replicaStatuses"][kind];
        ["active", "succeeded", "failed"].map(|key| counts[key].as_i64().unwrap_or(0))
    }

    /// Completed indices of a replica type, as `0-2`.
    #[must_use]
    pub fn completed(&self, job: &str, kind: &str) -> &str {
        text(&self.status(job)["replicaStatuses"][kind]["completedIndexes"])
    }

    /// Restarts counted for the job.
    #[must_use]
    pub fn restarts(&self, job: &str) -> i64 {
        self.status(job)["restarts"].as_i64().unwrap_or(0)
    }

    /// Events about a job in the order of their creation, as
    /// `Normal SuccessfulCreatePod Created pod: x-worker-0`, each as often as it was told.
    #[must_use]
    pub fn events(&self, job: &str) -> Vec<String> {
        self.events_about("TFJob", job)
    }

    /// The same about an object of any kind.
    #[must_use]
    pub fn events_about(&self, kind: &str, name: &str) -> Vec<String> {
        let mut events: Vec<_> = self
            .all(Resource::Events)
            .filter(|(_, event)| {
                event["involvedObject"]["name"] == name && event["involvedObject"]["kind"] == kind
            })
            .map(|(_, event)| event)
            .collect();
        events.sort_by_key(|event| version(event));
        events
            .iter()
            .flat_map(|e| {
                let line = ["type", "reason", "message"].map(|key| text(&e[key])).join(" ");
                let times = e["count"].as_u64().unwrap_or(1).clamp(1, 1000);
                std::iter::repeat_n(line, usize::try_from(times).unwrap_or(1))
            })
            .collect()
    }

    /// Whether an event about the job starts with these words (see [`Self::events`]).
    #[must_use]
    pub fn told(&self, job: &str, words: &str) -> bool {
        self.events(job).iter().any(|event| event.starts_with(words))
    }

    /// A value of the container `tensorflow`'s environment.
    #[must_use]
    pub fn env(&self, pod: &str, key: &str) -> Option<&str> {
        self.container(pod)["env"]
            .as_array()?
            .iter()
            .rev()
            .find(|entry| entry["name"] == key)
            .and_then(|entry| entry["value"].as_str())
    }

    /// The container `tensorflow` of a pod; `null` when it is not there.
    #[must_use]
    pub fn container(&self, pod: &str) -> &Value {
        self.pod(pod)["spec"]["containers"]
            .as_array()
            .and_then(|containers| containers.iter().find(|c| c["name"] == "tensorflow"))
            .unwrap_or(&Value::Null)
    }

    /// Identity of a pod; empty when it is not there.
    #[must_use]
    pub fn uid(&self, pod: &str) -> String {
        text(&self.pod(pod)["metadata"]["uid"]).to_owned()
    }

    /// How far the watch of a resource has come.
    #[must_use]
    pub fn position(&self, resource: Resource) -> u64 {
        self.positions.get(&resource).copied().unwrap_or(0)
    }

    pub(crate) fn advance(&mut self, resource: Resource, position: u64) {
        let known = self.positions.entry(resource).or_default();
        *known = position.max(*known);
    }

    /// How many objects of a resource there have ever been, those that are gone included.
    #[must_use]
    pub fn ever(&self, resource: Resource) -> usize {
        self.ever.iter().filter(|(kind, _)| *kind == resource).count()
    }

    /// How many versions of an object were seen; all of them, unless a watch broke.
    #[must_use]
    pub fn versions(&self, resource: Resource, name: &str) -> usize {
        self.writes.get(&(resource, name.to_owned())).copied().unwrap_or(0)
    }

    pub(crate) fn put(&mut self, resource: Resource, mut object: Value) {
        // Who wrote which field is half of an object's size and of no interest here.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        self.ever.insert((resource, text(&object["metadata"]["uid"]).to_owned()));
        let name = text(&object["metadata"]["name"]).to_owned();
        *self.writes.entry((resource, name.clone())).or_default() += 1;
        self.objects.insert((resource, name), Arc::new(object));
    }

    pub(crate) fn remove(&mut self, resource: Resource, object: &Value) {
        let name = text(&object["metadata"]["name"]).to_owned();
        self.objects.remove(&(resource, name));
    }

    pub(crate) fn replace_all(&mut self, resource: Resource, objects: Vec<Value>) {
        self.objects.retain(|(kind, _), _| *kind != resource);
        for object in objects {
            self.put(resource, object);
        }
    }

    /// Everything a person needs to see why an expectation did not come true.
    #[must_use]
    pub fn story(&self) -> String {
        let mut lines = Vec::new();
        for (name, job) in self.all(Resource::Jobs) {
            lines.push(format!("  tfjob {name}: {}", job["status"]));
            lines.extend(self.events(name).into_iter().map(|event| format!("    event {event}")));
        }
        for (name, pod) in self.all(Resource::Pods) {
            let going = if terminating(pod) { " (being deleted)" } else { "" };
            lines.push(format!("  pod {name}{going}: {}", pod["status"]));
        }
        lines.push(format!("  services {:?}", self.services()));
        for (name, job) in self.all(Resource::VolcanoJobs) {
            lines.push(format!("  volcano job {name}: {}", job["status"]));
            let events = self.events_about("Job", name);
            lines.extend(events.into_iter().map(|event| format!("    event {event}")));
        }
        for (name, group) in self.all(Resource::Groups) {
            lines.push(format!("  group {name}: {} {}", group["spec"], group["status"]));
        }
        lines.join("\n")
    }
}

/// Text of a value; empty when it is none.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether deletion of an object has been asked for.
#[must_use]
pub fn terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The version of an object as a number.
#[must_use]
pub fn version(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_for_a_job() {
        let mut seen = Seen::default();
        seen.put(
            Resource::Jobs,
            json!({"metadata": {"name": "a"}, "status": {
                "conditions": [
                    {"type": "Created", "status": "True"},
                    {"type": "Running", "status": "False"},
                ],
                "replicaStatuses": {"Worker": {"active": 2, "completedIndexes": "0"}},
            }}),
        );
        assert_eq!(seen.conditions("a"), ["Created=True", "Running=False"]);
        assert_eq!(seen.counts("a", "Worker"), [2, 0, 0]);
        assert_eq!(seen.completed("a", "Worker"), "0");
        assert!(!seen.is("a", "Running"));
        assert!(seen.conditions("b").is_empty());
    }

    #[test]
    fn the_last_value_of_a_variable_counts() {
        let mut seen = Seen::default();
        seen.put(
            Resource::Pods,
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "tensorflow",
                "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]}]}}),
        );
        assert_eq!(seen.env("p", "X"), Some("2"));
        assert_eq!(seen.env("p", "Y"), None);
    }
}
