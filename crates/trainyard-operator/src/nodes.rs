//! The nodes that cannot be reached, and what that means for the pods on them.
//!
//! Holds those alone: of a cluster whose nodes are well nothing is kept. A node that is deleted while
//! pods are bound to it counts as lost until they have gone. Must not know jobs, nor who watches nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainyard_core::{NodeView, PodView, node::on_lost_node, view::Unreachable};

use crate::{cache::Object, watch::News};

/// The nodes that cannot be reached, by name.
#[derive(Debug, Default)]
pub(crate) struct LostNodes {
    by_name: BTreeMap<Box<str>, Lost>,
}

#[derive(Debug, Clone, PartialEq)]
struct Lost {
    how: Unreachable,
    /// It does not exist any more.
    is_gone: bool,
}

impl LostNodes {
    /// Takes in news; gives back the nodes that are lost or found by it. `has_pods` tells whether pods
    /// are bound to a node.
    pub(crate) fn hear(
        &mut self,
        news: News<NodeView>,
        has_pods: &dyn Fn(&str) -> bool,
    ) -> BTreeSet<Box<str>> {
        // A sign of life of a node that is well, as most news are.
        if let News::There(node) = &news
            && node.unreachable.is_none()
            && !self.by_name.contains_key(&node.name)
        {
            return BTreeSet::new();
        }
        let before = self.by_name.clone();
        match news {
            News::All { objects, .. } => {
                let listed: BTreeSet<&str> = objects.iter().map(|node| &*node.name).collect();
                let missing =
                    self.by_name.iter_mut().filter(|(name, _)| !listed.contains(&***name));
                missing.for_each(|(_, lost)| lost.is_gone = true);
                for node in objects {
                    self.there(node);
                }
            }
            News::There(node) => self.there(node),
            News::Gone { last, .. } => {
                let unknown = Lost { how: Unreachable { since: None }, is_gone: true };
                if let Some(node) = last {
                    self.by_name.entry(node.name).or_insert(unknown).is_gone = true;
                }
            }
        }
        self.by_name.retain(|name, lost| !lost.is_gone || has_pods(name));
        self.changed(&before)
    }

    /// Nobody may or can tell of nodes; gives back those that were lost.
    pub(crate) fn forget(&mut self) -> BTreeSet<Box<str>> {
        std::mem::take(&mut self.by_name).into_keys().collect()
    }

    /// How many nodes are held.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The pods, with what is known of their nodes.
    pub(crate) fn judge(&self, pods: &[Arc<PodView>]) -> Vec<Arc<PodView>> {
        let judged = |pod: &Arc<PodView>| {
            let lost = self.by_name.get(&pod.node).and_then(|lost| on_lost_node(pod, lost.how));
            lost.map_or_else(|| Arc::clone(pod), Arc::new)
        };
        pods.iter().map(judged).collect()
    }

    fn there(&mut self, node: NodeView) {
        match node.unreachable {
            Some(how) => drop(self.by_name.insert(node.name, Lost { how, is_gone: false })),
            None => drop(self.by_name.remove(&node.name)),
        }
    }

    fn changed(&self, before: &BTreeMap<Box<str>, Lost>) -> BTreeSet<Box<str>> {
        let names = self.by_name.keys().chain(before.keys());
        let how = |map: &BTreeMap<Box<str>, Lost>, name| map.get(name).map(|lost: &Lost| lost.how);
        let changed = names.filter(|name| how(&self.by_name, *name) != how(before, *name));
        changed.cloned().collect()
    }
}

impl Object for NodeView {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        self.name == older.name && self.unreachable == older.unreachable
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{from_value, json};

    use super::*;

    const SINCE: Unreachable = Unreachable { since: Some(Timestamp::UNIX_EPOCH) };

    fn node(name: &str, unreachable: Option<Unreachable>) -> NodeView {
        NodeView { name: name.into(), uid: format!("uid-{name}").into(), version: 1, unreachable }
    }

    fn gone(name: &str) -> News<NodeView> {
        let last = node(name, None);
        News::Gone { uid: last.uid.to_string(), version: 2, last: Some(last) }
    }

    fn all(objects: Vec<NodeView>) -> News<NodeView> {
        News::All { objects, unreadable: vec![], version: 3 }
    }

    fn pod(name: &str, node: &str, phase: &str) -> Arc<PodView> {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node},
            "status": {"phase": phase}});
        Arc::new(from_value(pod).unwrap())
    }

    /// Names of the pods that are judged to be on lost nodes.
    fn lost(nodes: &LostNodes, pods: &[Arc<PodView>]) -> Vec<String> {
        let judged = nodes.judge(pods);
        let lost = judged.iter().filter(|pod| pod.unreachable.is_some());
        lost.map(|pod| pod.name.to_string()).collect()
    }

    fn told(changed: BTreeSet<Box<str>>) -> Vec<String> {
        changed.into_iter().map(String::from).collect()
    }

    #[test]
    fn only_lost_nodes_are_held_and_told() {
        let mut nodes = LostNodes::default();
        let mut hear = |news| (told(nodes.hear(news, &|_| true)), nodes.len());
        let both = vec![node("a", None), node("b", Some(SINCE))];
        assert_eq!(hear(all(both)), (vec!["b".to_owned()], 1));
        assert_eq!(hear(News::There(node("a", None))), (vec![], 1), "a sign of life");
        assert_eq!(hear(News::There(node("b", Some(SINCE)))), (vec![], 1));
        assert_eq!(hear(News::There(node("a", Some(SINCE)))), (vec!["a".to_owned()], 2));
        assert_eq!(hear(News::There(node("b", None))), (vec!["b".to_owned()], 1));
        assert_eq!(hear(all(vec![node("a", None)])), (vec!["a".to_owned()], 0));
    }

    #[test]
    fn pods_on_a_lost_node_are_unreachable_until_it_is_back() {
        let mut nodes = LostNodes::default();
        let pods =
            [pod("runs", "a", "Running"), pod("waits", "a", "Pending"), pod("done", "a", "Failed")];
        let others = [pod("elsewhere", "b", "Running"), pod("nowhere", "", "Pending")];
        let pods = [pods.as_slice(), others.as_slice()].concat();
        assert!(lost(&nodes, &pods).is_empty());
        nodes.hear(News::There(node("a", Some(SINCE))), &|_| true);
        assert_eq!(lost(&nodes, &pods), ["runs", "waits"]);
        assert_eq!(nodes.judge(&pods)[0].unreachable, Some(SINCE));
        nodes.hear(News::There(node("a", None)), &|_| true);
        assert!(lost(&nodes, &pods).is_empty());
    }

    #[test]
    fn a_deleted_node_is_lost_as_long_as_pods_are_bound_to_it() {
        let mut nodes = LostNodes::default();
        let pods = [pod("waits", "a", "Pending")];
        nodes.hear(News::There(node("a", Some(SINCE))), &|_| true);
        assert!(nodes.hear(gone("a"), &|_| true).is_empty(), "it was lost before");
        assert_eq!(nodes.judge(&pods)[0].unreachable, Some(SINCE));
        assert_eq!(
            told(nodes.hear(gone("b"), &|name| name == "b")),
            ["a", "b"],
            "a has no pods now"
        );
        assert_eq!((lost(&nodes, &pods).len(), nodes.len()), (0, 1));
        assert_eq!(told(nodes.hear(gone("c"), &|name| name == "b")), [""; 0], "nobody was on it");
        assert_eq!(told(nodes.hear(News::There(node("b", None)), &|_| true)), ["b"], "another");
        assert_eq!(nodes.len(), 0);
    }

    #[test]
    fn what_a_broken_watch_has_missed_is_in_the_list() {
        let mut nodes = LostNodes::default();
        let two = vec![node("a", Some(SINCE)), node("b", Some(SINCE))];
        nodes.hear(all(two), &|_| true);
        let changed = nodes.hear(all(vec![node("c", Some(SINCE))]), &|name| name == "a");
        assert_eq!(told(changed), ["b", "c"], "a is gone, and its pods are still there");
        assert_eq!(nodes.len(), 2);
    }

    #[test]
    fn without_the_right_to_read_nodes_none_is_lost() {
        let mut nodes = LostNodes::default();
        nodes.hear(News::There(node("a", Some(SINCE))), &|_| true);
        assert_eq!(told(nodes.forget()), ["a"]);
        assert!(nodes.forget().is_empty());
    }
}
