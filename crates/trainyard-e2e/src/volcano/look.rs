//! Short comparable words for a Volcano Job and what belongs to it. Must not write anything.

use serde_json::Value;

use crate::rest::Resource;
use crate::seen::{Seen, text};

/// One Volcano Job as it is seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    seen: &'a Seen,
    name: &'a str,
}

impl Seen {
    /// A Volcano Job.
    pub(crate) const fn vc<'a>(&'a self, name: &'a str) -> Look<'a> {
        Look { seen: self, name }
    }

    /// Names of the objects of a resource.
    pub(crate) fn names(&self, resource: Resource) -> Vec<&str> {
        self.all(resource).map(|(name, _)| name).collect()
    }

    /// The node of a pod; empty while it has none.
    pub(crate) fn node_of(&self, pod: &str) -> &str {
        text(&self.pod(pod)["spec"]["nodeName"])
    }

    /// Names of the pods that have a node and have not ended.
    pub(crate) fn placed(&self) -> Vec<&str> {
        let is_placed = |pod: &Value| {
            !text(&pod["spec"]["nodeName"]).is_empty()
                && !matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
        };
        self.all(Resource::Pods).filter(|(_, pod)| is_placed(pod)).map(|(name, _)| name).collect()
    }

    /// Why a pod has no node; empty when nobody has said.
    pub(crate) fn unplaced(&self, pod: &str) -> &str {
        let conditions = self.pod(pod)["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .find(|one| one["type"] == "PodScheduled" && one["status"] == "False")
            .map_or("", |one| text(&one["message"]))
    }
}

impl<'a> Look<'a> {
    /// The object; `null` when it is not there.
    pub(crate) fn object(self) -> &'a Value {
        self.seen.object(Resource::VolcanoJobs, self.name)
    }

    /// Its status.
    pub(crate) fn status(self) -> &'a Value {
        &self.object()["status"]
    }

    /// How far it is.
    pub(crate) fn phase(self) -> &'a str {
        text(&self.status()["state"]["phase"])
    }

    /// Why, for people.
    pub(crate) fn message(self) -> &'a str {
        text(&self.status()["state"]["message"])
    }

    /// The phases that are written down, in their order.
    pub(crate) fn visits(self) -> Vec<&'a str> {
        let visits = self.status()["conditions"].as_array();
        visits.into_iter().flatten().map(|visit| text(&visit["status"])).collect()
    }

    /// The phases it went through, in the order of their last visit.
    pub(crate) fn phases(self) -> Vec<&'a str> {
        let visits = self.visits();
        let is_last = |at: usize, phase: &str| !visits.iter().skip(at + 1).any(|one| *one == phase);
        let last = visits.iter().enumerate().filter(|(at, phase)| is_last(*at, phase));
        last.map(|(_, phase)| *phase).collect()
    }

    /// A number of its status; 0 when it is not written.
    pub(crate) fn count(self, key: &str) -> i64 {
        self.status()[key].as_i64().unwrap_or(0)
    }

    /// `[pending, running, succeeded, failed, terminating]`
    pub(crate) fn counts(self) -> [i64; 5] {
        ["pending", "running", "succeeded", "failed", "terminating"].map(|key| self.count(key))
    }

    /// How often it was restarted.
    pub(crate) fn retries(self) -> i64 {
        self.count("retryCount")
    }

    /// Its identity.
    pub(crate) fn uid(self) -> &'a str {
        text(&self.object()["metadata"]["uid"])
    }

    /// The name of its PodGroup.
    pub(crate) fn group_name(self) -> String {
        format!("{}-{}", self.name, self.uid())
    }

    /// Its PodGroup; `null` when it is not there.
    pub(crate) fn group(self) -> &'a Value {
        self.seen.object(Resource::Groups, &self.group_name())
    }

    /// The config map with its hosts; `null` when it is not there.
    pub(crate) fn hosts(self) -> &'a Value {
        self.seen.object(Resource::ConfigMaps, &format!("{}-svc", self.name))
    }

    /// Whether nothing but the job and ended pods is left of it.
    pub(crate) fn is_cleared(self) -> bool {
        self.seen.service(self.name).is_null()
            && self.hosts().is_null()
            && self.seen.object(Resource::Policies, self.name).is_null()
            && self.group().is_null()
    }

    /// Events about it, as [`Seen::events`] gives them.
    pub(crate) fn events(self) -> Vec<String> {
        self.seen.events_about("Job", self.name)
    }

    /// Whether an event about it starts with these words.
    pub(crate) fn told(self, words: &str) -> bool {
        self.events().iter().any(|event| event.starts_with(words))
    }

    /// How many events start with these words.
    pub(crate) fn told_times(self, words: &str) -> usize {
        self.events().iter().filter(|event| event.starts_with(words)).count()
    }
}
