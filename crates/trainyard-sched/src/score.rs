//! Which of the nodes that fit is the best.
//!
//! Wishes of the pod first, then the nodes where its group already is, then the node that takes the
//! most of the group at once, and among those the fullest: packed groups leave whole nodes, and
//! whole sets of devices, free for others.

use crate::Node;
use crate::room::{Room, View};
use crate::shape::Shape;
use crate::taint::disliked;

/// The part of a node's worth that does not change while a group is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Worth {
    /// Wishes of the pod, and that a pod without devices stays away from nodes that have some.
    pub(crate) wishes: (i64, i64, bool),
    fullness: (i64, i64),
}

pub(crate) fn worth(shape: &Shape, room: &Room, node: &Node, view: View) -> Worth {
    let spec = &shape.spec;
    let wishes = (
        -disliked(&node.taints, &spec.tolerations),
        spec.required.liking(&node.name, &node.labels),
        !shape.devices.is_empty() || !node.has_devices,
    );
    let devices = shape.devices.iter().map(|device| fullness(room, view, *device));
    let asked = shape.ask.0.iter().map(|(resource, _)| fullness(room, view, *resource));
    let (devices, asked) = (devices.max().unwrap_or(0), asked.max().unwrap_or(0));
    // Who waits for everybody to leave waits best where the least has to leave.
    let sign = if view == View::Ever { -1 } else { 1 };
    Worth { wishes, fullness: (sign * devices, sign * asked) }
}

/// How full a node is of one resource, in thousandths.
fn fullness(room: &Room, view: View, resource: usize) -> i64 {
    let has = room.has.get(resource);
    if has <= 0 {
        return 0;
    }
    // A group that waits looks at what is taken now: what it waits for is free in its view.
    let view = if view == View::Ever { View::Soon } else { view };
    let taken = i128::from(has) - i128::from(room.free(view).get(resource));
    i64::try_from(taken * 1000 / i128::from(has)).unwrap_or(i64::MAX)
}
