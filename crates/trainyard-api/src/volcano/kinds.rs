//! Which kinds of Volcano there are and where the API serves them.
//!
//! Owns versions, plurals and scopes. Must not know what the kinds hold.

use serde_json::Value;

/// One kind, as the API serves it.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its group.
    pub group: &'static str,
    /// The one version that is served.
    pub version: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Its name for one object, in lower case.
    pub singular: &'static str,
    /// Other names for command lines.
    pub short: &'static [&'static str],
    /// Whether its objects stand in namespaces.
    pub namespaced: bool,
}

/// Work: tasks of pods that start all together.
pub const JOB: Kind = Kind {
    group: "batch.volcano.sh",
    version: "v1alpha1",
    name: "Job",
    plural: "jobs",
    singular: "job",
    short: &["vcjob", "vj"],
    namespaced: true,
};

/// Something that a job is told to do.
pub const COMMAND: Kind = Kind {
    group: "bus.volcano.sh",
    version: "v1alpha1",
    name: "Command",
    plural: "commands",
    singular: "command",
    short: &[],
    namespaced: true,
};

/// Pods that are scheduled together.
pub const POD_GROUP: Kind = Kind {
    group: "scheduling.volcano.sh",
    version: "v1beta1",
    name: "PodGroup",
    plural: "podgroups",
    singular: "podgroup",
    short: &["pg", "podgroup-v1beta1"],
    namespaced: true,
};

/// A share of the cluster.
pub const QUEUE: Kind = Kind {
    group: "scheduling.volcano.sh",
    version: "v1beta1",
    name: "Queue",
    plural: "queues",
    singular: "queue",
    short: &["q", "queue-v1beta1"],
    namespaced: false,
};

/// All of them.
pub const KINDS: [&Kind; 4] = [&JOB, &COMMAND, &POD_GROUP, &QUEUE];

impl Kind {
    /// The kind of an object, if it is one of these.
    #[must_use]
    pub fn of(object: &Value) -> Option<&'static Self> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let (version, name) = (text("apiVersion"), text("kind"));
        KINDS.into_iter().find(|kind| kind.name == name && kind.api_version() == version)
    }

    /// Its `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Name of its definition.
    #[must_use]
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Where its objects are served; the namespace counts only where it has one.
    #[must_use]
    pub fn path(&self, namespace: &str) -> String {
        let (base, plural) = (format!("/apis/{}", self.api_version()), self.plural);
        if self.namespaced {
            format!("{base}/namespaces/{namespace}/{plural}")
        } else {
            format!("{base}/{plural}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::volcano::names;

    #[test]
    fn objects_have_the_kind_of_their_group() {
        let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind});
        assert_eq!(Kind::of(&object(names::API_VERSION, names::KIND)), Some(&JOB));
        assert_eq!(Kind::of(&object("scheduling.volcano.sh/v1beta1", "Queue")), Some(&QUEUE));
        assert_eq!(Kind::of(&object("batch/v1", "Job")), None);
        assert_eq!(Kind::of(&json!(null)), None);
        assert_eq!((JOB.crd_name().as_str(), JOB.plural), (names::CRD_NAME, names::PLURAL));
    }

    #[test]
    fn queues_stand_in_no_namespace() {
        assert_eq!(QUEUE.path("a"), "/apis/scheduling.volcano.sh/v1beta1/queues");
        assert_eq!(JOB.path("a"), "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs");
    }
}
