//! Which events are about a job: its own and those of what belongs to it. Pure.

use serde_json::Value;
use trainyard_api::{names, volcano};

use crate::cluster::Kind;
use crate::present::{items, text};

/// The roles that replicas of a TFJob can have.
const ROLES: [&str; 6] = ["chief", "master", "worker", "ps", "evaluator", names::TENSORBOARD];

/// A job, as events tell of it.
#[derive(Debug)]
pub(in crate::commands) struct Subject {
    name: String,
    /// Empty when it is gone.
    uid: String,
    /// The kinds that events may call it.
    is_tfjob: bool,
    is_volcanos: bool,
    roles: Vec<String>,
}

impl Subject {
    /// A job that is there.
    pub(in crate::commands) fn of(kind: &Kind, job: &Value) -> Self {
        let is_volcanos = kind.is_volcano_job();
        let tasks = items(job, &["spec", "tasks"]).enumerate();
        let tasks = tasks.map(|(at, task)| match text(task, &["name"]) {
            "" => format!("default{at}"),
            name => name.to_owned(),
        });
        Self {
            name: text(job, &["metadata", "name"]).to_owned(),
            uid: text(job, &["metadata", "uid"]).to_owned(),
            is_tfjob: !is_volcanos,
            is_volcanos,
            roles: if is_volcanos { tasks.collect() } else { ROLES.map(str::to_owned).into() },
        }
    }

    /// A job of that name that is there no more.
    pub(in crate::commands) fn gone(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uid: String::new(),
            is_tfjob: true,
            is_volcanos: true,
            roles: ROLES.map(str::to_owned).into(),
        }
    }

    /// Whether an event is about the job itself.
    pub(in crate::commands) fn is_job(&self, event: &Value) -> bool {
        let kind = text(event, &["involvedObject", "kind"]);
        [names::KIND, volcano::names::KIND].contains(&kind)
            && text(event, &["involvedObject", "name"]) == self.name
            && self.is_in(event)
    }

    /// Whether an event is about it or something of it.
    pub(in crate::commands) fn is_in(&self, event: &Value) -> bool {
        let about = |field: &str| text(event, &["involvedObject", field]);
        let name = about("name");
        match about("kind") {
            names::KIND => self.is_tfjob && name == self.name,
            volcano::names::KIND => {
                let own = about("apiVersion") == volcano::names::API_VERSION;
                self.is_volcanos && own && name == self.name
            }
            "PodGroup" => name == self.name || self.is_own_group(name),
            "Service" if name == self.name => self.is_volcanos,
            "Pod" | "Service" | "EndpointSlice" => self.is_replica(name),
            _ => false,
        }
    }

    /// Volcano's groups are called after the job and its identity.
    fn is_own_group(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
        match rest {
            Some(uid) if self.is_volcanos && self.uid.is_empty() => {
                uid.len() == 36 && uid.split('-').count() == 5
            }
            Some(uid) => self.is_volcanos && uid == self.uid,
            None => false,
        }
    }

    /// Whether a name is that of one of its replicas: `mnist-worker-0`.
    fn is_replica(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|rest| rest.rsplit_once('-')).is_some_and(|(role, index)| {
            self.roles.iter().any(|known| known == role)
                && !index.is_empty()
                && index.bytes().all(|byte| byte.is_ascii_digit())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn about(subject: &Subject, version: &str, kind: &str, name: &str) -> bool {
        let object = json!({"apiVersion": version, "kind": kind, "name": name});
        subject.is_in(&json!({"involvedObject": object}))
    }

    #[test]
    fn events_of_a_tfjob_are_its_own_and_its_replicas() {
        let kind = Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
        let subject = Subject::of(&kind, &json!({"metadata": {"name": "mnist", "uid": "u"}}));
        let about = |kind: &str, name: &str| about(&subject, "", kind, name);
        assert!(about("TFJob", "mnist") && about("Pod", "mnist-worker-12"));
        assert!(about("Service", "mnist-tensorboard-0") && about("PodGroup", "mnist"));
        assert!(!about("TFJob", "mnist-2") && !about("Pod", "mnist-2-worker-0"));
        assert!(
            !about("Pod", "mnist") && !about("Pod", "mnist-worker-") && !about("Node", "mnist")
        );
        assert!(!about("Job", "mnist") && !about("PodGroup", "mnist-u"));
    }

    #[test]
    fn events_of_a_volcano_job_are_those_of_its_tasks_and_its_group() {
        let kind = Kind::example("batch.volcano.sh", "v1alpha1", "Job", "jobs", true);
        let job = json!({"metadata": {"name": "vj", "uid": "u-1"},
            "spec": {"tasks": [{"name": "ps-a"}, {}]}});
        let subject = Subject::of(&kind, &job);
        let own = |kind: &str, name: &str| about(&subject, "", kind, name);
        assert!(about(&subject, "batch.volcano.sh/v1alpha1", "Job", "vj"));
        assert!(!about(&subject, "batch/v1", "Job", "vj"));
        assert!(
            own("Pod", "vj-ps-a-0") && own("Pod", "vj-default1-3") && own("PodGroup", "vj-u-1")
        );
        assert!(!own("Pod", "vj-worker-0") && !own("PodGroup", "vj-u-2") && !own("TFJob", "vj"));
    }
}
