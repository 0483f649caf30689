//! What every node has and what is taken of it, now, soon and ever.
//!
//! Owns the sums and undoing them; who takes what and why is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Node;
use crate::pod::Port;
use crate::shape::Shape;
use crate::slots::Id;
use crate::storage::{Choice, ClaimKey};
use crate::vector::{Ask, Resources, Vector};

/// The time at which room is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// What is free now.
    Now,
    /// What is free when those that are leaving have left.
    Soon,
    /// What is free when everything that is scheduled here has ended.
    Ever,
}

/// Several views.
pub(crate) type Views = [bool; 3];
pub(crate) const ALL: Views = [true, true, true];
pub(crate) const NOW: Views = [true, false, false];
pub(crate) const SOON: Views = [false, true, false];
pub(crate) const NOW_AND_SOON: Views = [true, true, false];

/// One node's room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) has: Vector,
    free: [Vector; 3],
    /// Ports in use, each as often as it is used.
    ports: BTreeMap<Port, [i32; 3]>,
    pub(crate) pods: BTreeSet<Id>,
    /// Whether an overdue group waits for this node.
    pub(crate) is_kept: bool,
    /// Whether the node has refused a pod a short time ago.
    pub(crate) is_refusing: bool,
}

impl Room {
    pub(crate) fn free(&self, view: View) -> &Vector {
        let [now, soon, ever] = &self.free;
        match view {
            View::Now => now,
            View::Soon => soon,
            View::Ever => ever,
        }
    }

    /// Whether there is so much. What is free now and promised to somebody for soon is not.
    pub(crate) fn covers(&self, ask: &Ask, view: View) -> bool {
        self.free(view).covers(ask) && (view != View::Now || self.free(View::Soon).covers(ask))
    }

    /// How much of one resource somebody may take.
    pub(crate) fn left(&self, resource: usize, view: View) -> i64 {
        let left = self.free(view).get(resource);
        if view == View::Now { left.min(self.free(View::Soon).get(resource)) } else { left }
    }

    fn shift(&mut self, shape: &Shape, views: Views, times: i64) {
        for (free, _) in self.free.iter_mut().zip(views).filter(|(_, is_meant)| *is_meant) {
            free.add(&shape.ask, -times);
        }
        let change: i32 = if times > 0 { 1 } else { -1 };
        for port in &shape.spec.ports {
            let counts = self.ports.entry(port.clone()).or_default();
            for (count, _) in counts.iter_mut().zip(views).filter(|(_, is_meant)| *is_meant) {
                *count += change;
            }
            if *counts == [0; 3] {
                self.ports.remove(port);
            }
        }
    }

    pub(crate) fn has_port(&self, view: View, (address, protocol, number): &Port) -> bool {
        const ANY: &str = "0.0.0.0";
        let used = |[now, soon, ever]: &[i32; 3]| match view {
            View::Now => *now > 0 || *soon > 0,
            View::Soon => *soon > 0,
            View::Ever => *ever > 0,
        };
        self.ports.iter().any(|((other, other_protocol, other_number), counts)| {
            other_number == number
                && other_protocol == protocol
                && (other == address || other == ANY || address == ANY)
                && used(counts)
        })
    }

    /// Whether what it has is there for queues to share.
    pub(crate) fn is_in_use(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_in_use())
    }

    /// What of it queues share.
    fn shared(&self) -> Vector {
        if self.is_in_use() { self.has.clone() } else { Vector::default() }
    }

    fn is_forgotten(&self) -> bool {
        self.node.is_none() && self.pods.is_empty()
    }
}

/// A change that can be undone.
#[derive(Debug, Clone)]
struct Change {
    room: usize,
    shape: Arc<Shape>,
    views: Views,
    times: i64,
    /// A pod that came to be in the room.
    guest: Option<Id>,
    /// A pod that is taken for gone.
    departed: Option<Id>,
    /// What its claims get there that have nothing yet.
    choices: Vec<Choice>,
    serial: u64,
}

impl Change {
    /// The claims that its pod uses.
    fn claims(&self) -> impl Iterator<Item = ClaimKey> {
        let claims = self.guest.and(self.shape.spec.claims.as_ref());
        claims.into_iter().flat_map(|(namespace, names)| {
            names.iter().map(|name| (namespace.clone(), name.clone()))
        })
    }
}

/// All rooms, by the names of their nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    pub(crate) rooms: Vec<Room>,
    journal: Vec<Change>,
    serial: u64,
    /// What the nodes have together that are ready and not cordoned.
    pub(crate) total: Vector,
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// How many pods are on their way out.
    pub(crate) leavers: usize,
    /// How many pods in rooms want others to stay away.
    pub(crate) loners: usize,
    /// Where claims are provisioned and which volumes they get, as far as decided for a time.
    pub(crate) claims: BTreeMap<ClaimKey, (usize, Option<String>)>,
    /// The volumes among these.
    pub(crate) volumes: BTreeSet<String>,
    /// Pods that are taken for gone for a time.
    pub(crate) departed: BTreeSet<Id>,
    /// How many pods that are in rooms for a time use a claim.
    pub(crate) guests: BTreeMap<ClaimKey, usize>,
}

impl Board {
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.rooms.binary_search_by(|room| room.name.as_str().cmp(name)).ok()
    }

    fn room(&mut self, name: &str) -> Option<&mut Room> {
        let index = match self.rooms.binary_search_by(|room| room.name.as_str().cmp(name)) {
            Ok(index) => index,
            Err(index) => {
                let room = Room { name: name.to_owned(), ..Room::default() };
                self.rooms.insert(index, room);
                index
            }
        };
        self.rooms.get_mut(index)
    }

    fn tidy(&mut self, name: &str) {
        if let Some(index) = self.position(name)
            && self.rooms.get(index).is_some_and(Room::is_forgotten)
        {
            self.rooms.remove(index);
        }
    }

    /// A node is there, changed, or gone.
    pub(crate) fn set_node(&mut self, name: &str, node: Option<Node>, resources: &mut Resources) {
        let mut has = Vector::default();
        if let Some(node) = &node {
            for (resource, amount) in node.has.iter() {
                has.set(resources.index(resource), amount);
            }
        }
        let Some(room) = self.room(name) else { return };
        for free in &mut room.free {
            free.plus(&room.has, -1);
            free.plus(&has, 1);
        }
        let before = room.shared();
        let was_there = room.node.is_some();
        room.has = has;
        room.node = node.map(Arc::new);
        let is_there = room.node.is_some();
        let after = room.shared();
        self.total.plus(&before, -1);
        self.total.plus(&after, 1);
        self.nodes = self.nodes + usize::from(is_there) - usize::from(was_there);
        self.tidy(name);
    }

    /// A pod is in a room.
    pub(crate) fn enter(&mut self, name: &str, pod: Id, shape: &Shape, views: Views) {
        self.loners += usize::from(!shape.spec.peers.away.is_empty());
        self.leavers += usize::from(views == NOW);
        if let Some(room) = self.room(name) {
            room.shift(shape, views, 1);
            room.pods.insert(pod);
        }
    }

    /// A pod has left a room.
    pub(crate) fn leave(&mut self, name: &str, pod: Id, shape: &Shape, views: Views) {
        self.loners -= usize::from(!shape.spec.peers.away.is_empty());
        self.leavers -= usize::from(views == NOW);
        if let Some(room) = self.room(name) {
            room.shift(shape, views, -1);
            room.pods.remove(&pod);
        }
        self.tidy(name);
    }

    /// Takes room for a time: everything since a [`Board::mark`] can be undone.
    pub(crate) fn take(
        &mut self,
        room: usize,
        shape: &Arc<Shape>,
        views: Views,
        guest: Option<Id>,
    ) {
        self.take_with(room, shape, views, guest, Vec::new());
    }

    /// Takes room for a time, and what the claims of its pod get there.
    pub(crate) fn take_with(
        &mut self,
        room: usize,
        shape: &Arc<Shape>,
        views: Views,
        guest: Option<Id>,
        choices: Vec<Choice>,
    ) {
        let shape = shape.clone();
        let (times, departed, serial) = (1, None, 0);
        self.change(Change { room, shape, views, times, guest, departed, choices, serial });
    }

    /// Gives room back for a time. A pod that is named has departed for as long.
    pub(crate) fn give(
        &mut self,
        room: usize,
        shape: &Arc<Shape>,
        views: Views,
        departed: Option<Id>,
    ) {
        self.change(Change {
            room,
            shape: shape.clone(),
            views,
            times: -1,
            guest: None,
            departed,
            choices: Vec::new(),
            serial: 0,
        });
    }

    fn change(&mut self, mut change: Change) {
        self.serial += 1;
        change.serial = self.serial;
        let is_loner = change.guest.is_some() && !change.shape.spec.peers.away.is_empty();
        self.loners += usize::from(is_loner);
        if let Some(room) = self.rooms.get_mut(change.room) {
            room.shift(&change.shape, change.views, change.times);
            room.pods.extend(change.guest);
        }
        self.departed.extend(change.departed);
        for key in change.claims() {
            *self.guests.entry(key).or_default() += 1;
        }
        for (key, volume) in &change.choices {
            self.claims.insert(key.clone(), (change.room, volume.clone()));
            self.volumes.extend(volume.clone());
        }
        self.journal.push(change);
    }

    /// The same number means the same board, as long as one decision lasts.
    pub(crate) fn generation(&self) -> u64 {
        self.journal.last().map_or(0, |change| change.serial)
    }

    pub(crate) fn mark(&self) -> usize {
        self.journal.len()
    }

    pub(crate) fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark {
            let Some(change) = self.journal.pop() else { return };
            let is_loner = change.guest.is_some() && !change.shape.spec.peers.away.is_empty();
            self.loners -= usize::from(is_loner);
            if let Some(room) = self.rooms.get_mut(change.room) {
                room.shift(&change.shape, change.views, -change.times);
                if let Some(guest) = change.guest {
                    room.pods.remove(&guest);
                }
            }
            if let Some(departed) = &change.departed {
                self.departed.remove(departed);
            }
            for key in change.claims() {
                if let Some(count) = self.guests.get_mut(&key) {
                    *count -= 1;
                }
            }
            for (key, volume) in &change.choices {
                self.claims.remove(key);
                if let Some(volume) = volume {
                    self.volumes.remove(volume);
                }
            }
        }
    }
}
