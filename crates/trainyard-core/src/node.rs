//! What decisions read of nodes: which of them cannot be reached, and what that means for a pod.
//!
//! Reading one from an API object skips all other fields. Must not know who keeps them.

use jiff::Timestamp;
use serde::Deserialize;
use trainyard_api::Meta;

use crate::view::{PodView, Unreachable};

/// A node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "NodeWire")]
pub struct NodeView {
    /// Its name.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
    /// Its version.
    pub version: u64,
    /// Whether the control plane has lost it.
    pub unreachable: Option<Unreachable>,
}

#[derive(Deserialize)]
struct NodeWire {
    metadata: Meta,
    #[serde(default)]
    status: StatusWire,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusWire {
    conditions: Vec<ConditionWire>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConditionWire {
    r#type: Box<str>,
    status: Box<str>,
    last_transition_time: Option<Timestamp>,
}

impl From<NodeWire> for NodeView {
    fn from(wire: NodeWire) -> Self {
        // `False` is the word of a kubelet, which can be reached.
        let is_lost = |one: &&ConditionWire| &*one.r#type == "Ready" && &*one.status == "Unknown";
        let lost = wire.status.conditions.iter().find(is_lost);
        Self {
            unreachable: lost.map(|ready| Unreachable { since: ready.last_transition_time }),
            version: wire.metadata.version(),
            name: wire.metadata.name.into(),
            uid: wire.metadata.uid.into(),
        }
    }
}

/// The pod as it is known when its node cannot be reached; none where that is nothing new. What has
/// ended has ended.
#[must_use]
pub fn on_lost_node(pod: &PodView, how: Unreachable) -> Option<PodView> {
    let is_news = pod.unreachable.is_none() && !pod.phase.is_finished();
    is_news.then(|| PodView { unreachable: Some(how), ..pod.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_node_is_lost_when_nobody_knows_whether_it_is_ready() {
        let node = |ready: &str| -> NodeView {
            from_value(json!({
                "metadata": {"name": "n", "uid": "u", "resourceVersion": "7"},
                "spec": {"taints": [{"key": "x", "effect": "NoExecute"}]},
                "status": {"capacity": {"cpu": "4"}, "conditions": [
                    {"type": "MemoryPressure", "status": "Unknown"},
                    {"type": "Ready", "status": ready, "reason": "r",
                     "lastTransitionTime": "2027-01-15T08:00:00Z"}]},
            }))
            .unwrap()
        };
        let since = Some("2027-01-15T08:00:00Z".parse().unwrap());
        assert_eq!(node("Unknown").unreachable, Some(Unreachable { since }));
        assert_eq!((&*node("True").name, node("True").version), ("n", 7));
        for word in ["True", "False", ""] {
            assert_eq!(node(word).unreachable, None, "{word}");
        }
        let new: NodeView = from_value(json!({"metadata": {"name": "n"}})).unwrap();
        assert_eq!(new.unreachable, None);
    }

    #[test]
    fn only_pods_that_have_not_ended_are_lost_with_their_node() {
        let pod = |status: serde_json::Value| -> PodView {
            let spec = json!({"nodeName": "n"});
            from_value(json!({"metadata": {"name": "p"}, "spec": spec, "status": status})).unwrap()
        };
        let how = Unreachable { since: Some(Timestamp::UNIX_EPOCH) };
        let unready = json!([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]);
        for (phase, is_lost) in
            [("Pending", true), ("Running", true), ("Succeeded", false), ("Failed", false)]
        {
            let pod = pod(json!({"phase": phase, "conditions": unready}));
            assert_eq!(&*pod.node, "n");
            assert_eq!(pod.unreachable, None, "{phase}: it does not show it");
            let lost = on_lost_node(&pod, how);
            assert_eq!(lost.and_then(|pod| pod.unreachable), is_lost.then_some(how), "{phase}");
        }
        let shows_it = pod(json!({"phase": "Unknown"}));
        assert_eq!(on_lost_node(&shows_it, how), None, "its own word stays");
    }
}
