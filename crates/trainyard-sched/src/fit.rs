//! Whether a pod fits a node beside what is there, and why not.

use crate::facts::Facts;
use crate::room::{Room, View};
use crate::shape::Shape;
use crate::taint::{Taint, repelled};
use crate::{Node, storage, words};

/// Why a pod does not fit a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Obstacle {
    Cordoned,
    Selector,
    Features,
    Taint(String, String),
    Volume,
    VolumeGone,
    NoVolume,
    NoSpace,
    Zone,
    InUse,
    TooManyVolumes,
    Ports,
    Pods,
    Short(usize),
    Near,
    Away,
    Unwelcome,
    Uneven,
    UnevenLabel,
    Kept,
    Refusing,
}

impl Obstacle {
    /// In kube-scheduler's words.
    pub(crate) fn words(&self, facts: &Facts) -> String {
        let words = match self {
            Self::Cordoned => "node(s) were unschedulable",
            Self::Selector => "node(s) didn't match Pod's node affinity/selector",
            Self::Features => "node(s) didn't match Pod's required features",
            Self::Taint(key, value) => return words::taint(key, value),
            Self::Volume => "node(s) had volume node affinity conflict",
            Self::VolumeGone => {
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            }
            Self::NoVolume => "node(s) didn't find available persistent volumes to bind",
            Self::NoSpace => "node(s) did not have enough free storage",
            Self::Zone => "node(s) had no available volume zone",
            Self::InUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
                 already in-use by another pod"
            }
            Self::TooManyVolumes => "node(s) exceed max volume count",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::Pods => "Too many pods",
            Self::Short(resource) => {
                return format!("Insufficient {}", facts.resources.name(*resource));
            }
            Self::Near => "node(s) didn't match pod affinity rules",
            Self::Away => "node(s) didn't match pod anti-affinity rules",
            Self::Unwelcome => "node(s) didn't satisfy existing pods anti-affinity rules",
            Self::Uneven => "node(s) didn't match pod topology spread constraints",
            Self::UnevenLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::Kept => "node(s) were kept for a group that has waited longer",
            Self::Refusing => "node(s) refused a pod that was bound to them a short time ago",
        };
        words.to_owned()
    }
}

/// The taint that a cordoned node has in effect.
fn cordon() -> [Taint; 1] {
    [Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: "NoSchedule".to_owned(),
    }]
}

/// Why a node is out of the question whatever is free there.
pub(crate) fn barred(shape: &Shape, node: &Node, facts: &Facts) -> Option<Obstacle> {
    let spec = &shape.spec;
    if node.is_cordoned && repelled(&cordon(), &spec.tolerations).is_some() {
        return Some(Obstacle::Cordoned);
    }
    if !spec.required.admits(&node.name, &node.labels) {
        return Some(Obstacle::Selector);
    }
    if let Some(taint) = repelled(&node.taints, &spec.tolerations) {
        return Some(Obstacle::Taint(taint.key.clone(), taint.value.clone()));
    }
    if !spec.features.iter().all(|feature| node.features.iter().any(|one| one == feature)) {
        return Some(Obstacle::Features);
    }
    let (namespace, claims) = spec.claims.as_ref().filter(|_| facts.config.knows_volumes)?;
    storage::bars(namespace, claims, node, facts)
}

/// Whether there is room for one more. `is_kept_out`: what waits longer goes first.
pub(crate) fn has_room(shape: &Shape, room: &Room, view: View, is_kept_out: bool) -> bool {
    room.covers(&shape.ask, view)
        && (!room.is_refusing || view == View::Ever)
        && !(is_kept_out && room.is_kept && !shape.is_best_effort)
        && !shape.spec.ports.iter().any(|port| room.has_port(view, port))
}

/// Puts everything that is in the way on one node into a list that is empty: there are many nodes.
pub(crate) fn obstacles(
    shape: &Shape,
    room: &Room,
    view: View,
    is_kept_out: bool,
    facts: &Facts,
    found: &mut Vec<Obstacle>,
) {
    let Some(node) = &room.node else { return };
    if let Some(obstacle) = barred(shape, node, facts) {
        return found.push(obstacle);
    }
    if shape.spec.ports.iter().any(|port| room.has_port(view, port)) {
        return found.push(Obstacle::Ports);
    }
    let short =
        shape.ask.0.iter().filter(|(resource, amount)| room.left(*resource, view) < *amount);
    found.extend(short.map(|(resource, _)| {
        let is_pods = facts.resources.is_pods(*resource);
        if is_pods { Obstacle::Pods } else { Obstacle::Short(*resource) }
    }));
    if found.is_empty() && room.is_refusing && view != View::Ever {
        found.push(Obstacle::Refusing);
    }
    if found.is_empty() && is_kept_out && room.is_kept && !shape.is_best_effort {
        found.push(Obstacle::Kept);
    }
}

/// How many pods of a shape there is room for, at most `most`.
pub(crate) fn capacity(shape: &Shape, room: &Room, view: View, most: i64) -> i64 {
    if !shape.spec.ports.is_empty() {
        return most.min(1);
    }
    shape.ask.0.iter().fold(most, |least, (resource, amount)| {
        least.min(room.left(*resource, view).max(0) / (*amount).max(1))
    })
}
