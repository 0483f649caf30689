//! Who belongs to whom: a graph of all objects by UID, and which of them a change concerns.
//!
//! Pure. It tells whom to look at; what is to be done then is in [`super::verdict`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::controllers::view::Meta;

/// Its owner waits for those that block it.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Its dependents are to be set free.
pub(super) const ORPHAN: &str = "orphan";

/// A UID, shared by all who name it.
pub(super) type Uid = Arc<str>;

/// A kind, by its place in the list of the shell.
pub(super) type KindId = u32;

/// How far a deletion has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Nobody has asked for deletion.
    Alive,
    /// Its dependents must be set free first.
    Orphaning,
    /// Its dependents must go first.
    WaitingForDependents,
    /// It goes; whoever holds it up is not our matter.
    Going,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: KindId,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) life: Life,
    /// UIDs of its owners, and whether it holds up their deletion.
    pub(super) owners: Box<[(Uid, bool)]>,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    /// Dependents by owner, whether the owner is known or not.
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    pub(super) fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Those that name this owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = (&Uid, &Node)> {
        let names = self.dependents.get(uid).into_iter().flatten();
        names.filter_map(|name| Some((name, self.nodes.get(name)?)))
    }

    /// Those that hold up the deletion of this owner.
    pub(super) fn blocking(&self, uid: &str) -> impl Iterator<Item = (&Uid, &Node)> {
        let blocks =
            move |node: &Node| node.owners.iter().any(|(owner, block)| **owner == *uid && *block);
        self.dependents(uid).filter(move |(_, node)| blocks(node))
    }

    /// How many objects are known.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn shared(&self, uid: &str) -> Uid {
        if let Some((known, _)) = self.nodes.get_key_value(uid) {
            return Arc::clone(known);
        }
        self.dependents
            .get_key_value(uid)
            .map_or_else(|| uid.into(), |(known, _)| Arc::clone(known))
    }

    /// An object is there, new or changed. Answers whom to look at.
    pub(super) fn there(&mut self, kind: KindId, meta: &Meta) -> Vec<Uid> {
        let uid = self.shared(&meta.uid);
        let owners: Box<[(Uid, bool)]> = meta
            .owner_references
            .iter()
            .map(|owner| (self.shared(&owner.uid), owner.block_owner_deletion.unwrap_or(false)))
            .collect();
        let node = Node {
            kind,
            namespace: meta.namespace.as_str().into(),
            name: meta.name.as_str().into(),
            life: life(meta),
            owners,
        };
        let old = self.nodes.get(&uid).cloned();
        if old.as_ref() == Some(&node) {
            return Vec::new();
        }
        let mut look = Vec::new();
        let owners_changed = old.as_ref().is_none_or(|old| old.owners != node.owners);
        if owners_changed {
            self.link(&uid, old.as_ref(), &node, &mut look);
        }
        let began = old.as_ref().is_none_or(|old| old.life != node.life);
        if began && node.life == Life::WaitingForDependents {
            look.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
        }
        if began && matches!(node.life, Life::WaitingForDependents | Life::Orphaning) {
            look.push(Arc::clone(&uid));
        }
        if owners_changed && node.life == Life::Alive && self.doubts(&node) {
            look.push(Arc::clone(&uid));
        }
        self.nodes.insert(uid, node);
        look
    }

    /// Puts the dependents' index right; owners that were waiting for a link are looked at again.
    fn link(&mut self, uid: &Uid, old: Option<&Node>, node: &Node, look: &mut Vec<Uid>) {
        for (owner, blocked) in old.into_iter().flat_map(|old| &old.owners) {
            let kept = node.owners.iter().find(|(other, _)| other == owner);
            if kept.is_none() {
                self.unlink(owner, uid);
            }
            let released = *blocked && kept.is_none_or(|(_, block)| !block);
            if released && self.waits(owner) {
                look.push(Arc::clone(owner));
            }
        }
        for (owner, _) in &node.owners {
            self.dependents.entry(Arc::clone(owner)).or_default().insert(Arc::clone(uid));
        }
    }

    fn unlink(&mut self, owner: &Uid, uid: &Uid) {
        if let Some(names) = self.dependents.get_mut(owner) {
            names.remove(uid);
            if names.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    fn waits(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(|node| node.life == Life::WaitingForDependents)
    }

    /// Whether an owner is not known, is in another namespace, or waits for its dependents.
    pub(super) fn doubts(&self, node: &Node) -> bool {
        node.owners.iter().any(|(owner, _)| match self.nodes.get(owner) {
            Some(owner) => owner.life == Life::WaitingForDependents || !reaches(owner, node),
            None => true,
        })
    }

    /// An object is gone. Answers whom to look at.
    pub(super) fn gone(&mut self, uid: &str) -> Vec<Uid> {
        let Some((uid, node)) = self.nodes.remove_entry(uid) else { return Vec::new() };
        let mut look: Vec<Uid> = self.dependents.get(&uid).into_iter().flatten().cloned().collect();
        for (owner, _) in &node.owners {
            self.unlink(owner, &uid);
            if self.waits(owner) {
                look.push(Arc::clone(owner));
            }
        }
        look
    }

    /// All objects of a kind, as listed. Answers whom to look at.
    pub(super) fn all<'a>(
        &mut self,
        kind: KindId,
        listed: impl Iterator<Item = &'a Meta>,
    ) -> Vec<Uid> {
        let mut look = Vec::new();
        let mut there = BTreeSet::new();
        for meta in listed {
            there.insert(meta.uid.clone());
            look.extend(self.there(kind, meta));
        }
        let missing = self.of_kind(kind).into_iter().filter(|uid| !there.contains(&**uid));
        for uid in missing {
            look.extend(self.gone(&uid));
        }
        look
    }

    /// The objects of a kind.
    pub(super) fn of_kind(&self, kind: KindId) -> Vec<Uid> {
        let of_kind = self.nodes.iter().filter(|(_, node)| node.kind == kind);
        of_kind.map(|(uid, _)| Arc::clone(uid)).collect()
    }

    /// All whose owners are in doubt.
    pub(super) fn doubtful(&self) -> Vec<Uid> {
        let doubtful = |node: &Node| node.life == Life::Alive && self.doubts(node);
        let nodes = self.nodes.iter().filter(|(_, node)| doubtful(node));
        nodes.map(|(uid, _)| Arc::clone(uid)).collect()
    }
}

/// Whether an owner's namespace is one that the dependent may name.
pub(super) fn reaches(owner: &Node, dependent: &Node) -> bool {
    owner.namespace.is_empty() || owner.namespace == dependent.namespace
}

fn life(meta: &Meta) -> Life {
    if !meta.is_deleting() {
        Life::Alive
    } else if meta.has_finalizer(ORPHAN) {
        Life::Orphaning
    } else if meta.has_finalizer(FOREGROUND) {
        Life::WaitingForDependents
    } else {
        Life::Going
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
