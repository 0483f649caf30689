//! Whether what is told matters: objects change often in ways that no decision looks at.

use crate::{Delta, GroupKey, Node, Pod, PodGroup, State};

impl State {
    /// Whether a decision could come out differently for it. What does not matter may be applied
    /// all the same.
    #[must_use]
    pub fn is_news(&self, delta: &Delta) -> bool {
        match delta {
            Delta::Pod(pod) => self.pod_is_news(pod),
            Delta::Node(node) => self.node_is_news(node),
            Delta::Group(group) => self.group_is_news(group),
            Delta::Queue(queue) => {
                let account = self.facts.accounts.get(&queue.name);
                account.and_then(|account| account.object.as_ref()).is_none_or(|known| {
                    let mut known = known.clone();
                    known.version = queue.version;
                    known.written = queue.written.clone();
                    known != **queue
                })
            }
            Delta::Class(class) => {
                let known = self.facts.classes.get(class.name());
                known.is_none_or(|known| {
                    known.value != class.value || known.global_default != class.global_default
                })
            }
            Delta::Namespace(namespace) => {
                let known = self.facts.namespaces.get(&namespace.name);
                known.is_none_or(|known| known.labels != namespace.labels)
            }
            Delta::Storage(delta) => self.facts.storage.is_news(delta),
            _ => true,
        }
    }

    fn pod_is_news(&self, pod: &Pod) -> bool {
        let id = self.facts.pods.id(&pod.key);
        let Some(record) = id.and_then(|id| self.facts.record(id)) else { return true };
        if record.pod.version == pod.version && pod.version != 0 {
            return false;
        }
        // What is said of a pod is said here.
        let mut known = record.pod.clone();
        known.version = pod.version;
        known.said.clone_from(&pod.said);
        known != *pod
    }

    fn node_is_news(&self, node: &Node) -> bool {
        let room = self.board.position(&node.name).and_then(|at| self.board.rooms.get(at));
        let Some(known) = room.and_then(|room| room.node.as_ref()) else { return true };
        let mut known = Node::clone(known);
        known.version = node.version;
        known != *node
    }

    fn group_is_news(&self, group: &PodGroup) -> bool {
        let (namespace, name) = (group.namespace.clone(), group.name.clone());
        let id = self.facts.groups.id(&GroupKey::PodGroup { namespace, name });
        let Some(known) = id.and_then(|id| self.facts.groups.get(id)) else { return true };
        let Some(object) = &known.object else { return true };
        if known.reported.as_ref().is_none_or(|report| !report.is_said_by(group)) {
            return object.version != group.version || group.version == 0;
        }
        let spec = |group: &PodGroup| PodGroup {
            version: 0,
            is_new: false,
            phase: crate::GroupPhase::Pending,
            running: 0,
            succeeded: 0,
            failed: 0,
            conditions: Vec::new(),
            ..group.clone()
        };
        spec(object) != spec(group)
    }
}
