//! Nodes that have refused a pod that was bound to them (`OutOfcpu` and the like): left in peace for
//! a while, longer each time, so that nobody binds for ever what is refused for ever.

use std::collections::BTreeMap;

use crate::room::Board;

/// How long a node is left in peace after a first refusal, in seconds; twice as long after each
/// further one.
const FIRST: i64 = 30;
/// The longest such pause.
const LONGEST: i64 = 480;
/// A node that has refused nothing for so long begins anew.
const FORGIVEN: i64 = 900;

#[derive(Debug, Clone, Default)]
struct Refusal {
    /// Whether it is newer than the last decision, whose time is the only one known here.
    is_new: bool,
    at: i64,
    pause: i64,
}

/// Refusals by the names of nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(BTreeMap<String, Refusal>);

impl Refusals {
    pub(crate) fn note(&mut self, node: &str) {
        self.0.entry(node.to_owned()).or_default().is_new = true;
    }

    /// Brings the rooms up to a time.
    pub(crate) fn pass(&mut self, now: i64, board: &mut Board) {
        for (node, refusal) in &mut self.0 {
            if std::mem::take(&mut refusal.is_new) {
                let is_first = refusal.pause == 0;
                refusal.pause = if is_first { FIRST } else { (refusal.pause * 2).min(LONGEST) };
                refusal.at = now;
            }
            let is_refusing = now < refusal.at + refusal.pause;
            if let Some(room) = board.position(node).and_then(|at| board.rooms.get_mut(at)) {
                room.is_refusing = is_refusing;
            }
        }
        self.0.retain(|_, refusal| now < refusal.at + refusal.pause.max(FORGIVEN));
    }

    /// When nodes are tried again.
    pub(crate) fn ends(&self) -> impl Iterator<Item = i64> {
        self.0.values().map(|refusal| refusal.at + refusal.pause)
    }
}
