//! Room that is kept for groups that have waited long, so that small ones do not overtake a large
//! one for ever.
//!
//! After a first bound a group goes first and nodes are kept for it; after a second nothing is
//! started that could delay it. A group that would not fit an empty cluster is kept nothing.

use std::sync::Arc;

use crate::cycle::{Cycle, Verdict};
use crate::fit::barred;
use crate::place::place;
use crate::room::{ALL, View};
use crate::serve::sum;
use crate::shape::Shape;

/// So many groups have nodes kept for them at a time.
const AT_ONCE: usize = 16;

/// Room kept for a group.
#[derive(Debug, Clone)]
pub(crate) struct Hold {
    pub(crate) unit: usize,
    takes: Vec<(usize, Arc<Shape>)>,
}

impl Cycle<'_> {
    /// Groups that have waited too long: before everything, share or not.
    pub(crate) fn overdue(&mut self) {
        for index in self.by_age(self.facts.config.overdue_after) {
            self.senior(index, true, true);
        }
    }

    /// Groups that have waited long: first within their share.
    pub(crate) fn aged(&mut self, may_borrow: bool) {
        for index in self.by_age(self.facts.config.reserve_after) {
            self.senior(index, may_borrow, false);
        }
    }

    fn senior(&mut self, index: usize, may_borrow: bool, is_overdue: bool) {
        let is_open = |cycle: &Self| {
            cycle.units.get(index).is_some_and(|unit| !unit.is_tried && !unit.standing.is_ready())
        };
        if !is_open(self) {
            return;
        }
        self.attempt(index, may_borrow);
        let verdict = self.units.get(index).and_then(|unit| unit.verdict.clone());
        match verdict {
            Some(Verdict::Limit(_)) if !self.press(index, may_borrow) => self.keep_limit(index),
            Some(Verdict::Room(_)) if !self.press(index, may_borrow) => {
                self.keep_room(index, is_overdue);
            }
            Some(Verdict::Share(_)) => self.keep_share(index),
            _ => {}
        }
    }

    /// Keeps what is left of the queue's share from those behind: the group is within it when
    /// others of its queue have ended.
    fn keep_share(&mut self, index: usize) {
        let Some(unit) = self.units.get(index) else { return };
        let chosen = unit.standing.enough(self.facts, &unit.standing.waiting).unwrap_or_default();
        let ask = sum(self.facts, &chosen);
        let Some(line) = self.lines.get_mut(unit.line) else { return };
        let is_within = ask.positive().all(|(resource, amount)| {
            let whole = unit.used.get(resource) + amount;
            self.facts.resources.is_pods(resource) || line.share.allows(resource, whole)
        });
        if is_within {
            line.kept_share.plus(&ask, 1);
        }
    }

    /// Keeps what is left of the queue's limit from those behind.
    fn keep_limit(&mut self, index: usize) {
        let Some(unit) = self.units.get(index) else { return };
        let chosen = unit.standing.enough(self.facts, &unit.standing.waiting).unwrap_or_default();
        let ask = sum(self.facts, &chosen);
        let Some(line) = self.lines.get_mut(unit.line) else { return };
        let could_ever = ask.positive().all(|(resource, amount)| {
            unit.used.get(resource) + amount <= line.share.limit.get(resource)
        });
        if could_ever {
            line.kept.plus(&ask, 1);
        }
    }

    /// Keeps nodes: those where the least has to leave.
    fn keep_room(&mut self, index: usize, is_overdue: bool) {
        let Some(unit) = self.units.get(index).filter(|_| self.holds.len() < AT_ONCE) else {
            return;
        };
        let chosen = unit.standing.enough(self.facts, &unit.standing.waiting).unwrap_or_default();
        let mark = self.board.mark();
        let own: Vec<_> =
            unit.standing.bound.iter().filter_map(|id| self.facts.record(*id)).collect();
        for record in own {
            if let Some(room) = self.board.position(record.node()) {
                self.board.take(room, &record.shape, [false, false, true], None);
            }
        }
        let request = crate::place::Request { views: ALL, ..self.request(index, View::Ever) };
        let found = place(&request, self.board, &chosen);
        self.board.undo(mark);
        let Ok(placed) = found else { return };
        let takes: Vec<(usize, Arc<Shape>)> = placed
            .iter()
            .filter_map(|(id, room)| Some((*room, self.facts.record(*id)?.shape.clone())))
            .collect();
        self.holds.push(Hold { unit: index, takes });
        self.lay_holds(&[self.holds.len() - 1]);
        if is_overdue && self.blockade.is_none() {
            self.keep_everything(index, &chosen);
        }
    }

    /// Keeps every node that the group could use.
    fn keep_everything(&mut self, index: usize, chosen: &[crate::slots::Id]) {
        let mut shapes: Vec<Arc<Shape>> = Vec::new();
        for record in chosen.iter().filter_map(|id| self.facts.record(*id)) {
            if !shapes.iter().any(|shape| Arc::ptr_eq(shape, &record.shape)) {
                shapes.push(record.shape.clone());
            }
        }
        for room in &mut self.board.rooms {
            let Some(node) = room.node.clone() else { continue };
            room.is_kept = shapes.iter().any(|shape| barred(shape, &node, self.facts).is_none());
        }
        self.blockade = Some(index);
    }

    /// Ends the keeping of every node.
    pub(crate) fn unblock(&mut self) {
        if self.blockade.is_some() {
            self.board.rooms.iter_mut().for_each(|room| room.is_kept = false);
        }
    }

    /// Whether somebody may use what is kept for another: only by priority, in one queue.
    fn outranks(&self, index: usize, other: usize) -> bool {
        match (self.units.get(index), self.units.get(other)) {
            (Some(one), Some(other)) => one.line == other.line && one.priority > other.priority,
            _ => false,
        }
    }

    pub(crate) fn is_kept_out(&self, index: usize) -> bool {
        self.blockade.is_some_and(|owner| owner != index && !self.outranks(index, owner))
    }

    /// Takes away what is kept for those that a group outranks, and for itself.
    pub(crate) fn lift_holds(&mut self, index: usize) -> Vec<usize> {
        let all = self.holds.iter().enumerate();
        let lifted = all.filter(|(_, hold)| hold.unit == index || self.outranks(index, hold.unit));
        let lifted: Vec<usize> = lifted.map(|(at, _)| at).collect();
        for at in &lifted {
            self.drop_hold(*at);
        }
        lifted
    }

    pub(crate) fn is_hold_of(&self, at: usize, index: usize) -> bool {
        self.holds.get(at).is_some_and(|hold| hold.unit == index)
    }

    /// Gives one group's room back.
    pub(crate) fn drop_hold(&mut self, at: usize) {
        for (room, shape) in self.holds.get(at).map(|hold| hold.takes.clone()).unwrap_or_default() {
            self.board.give(room, &shape, ALL, None);
        }
    }

    pub(crate) fn lay_holds(&mut self, lifted: &[usize]) {
        for at in lifted {
            for (room, shape) in
                self.holds.get(*at).map(|hold| hold.takes.clone()).unwrap_or_default()
            {
                self.board.take(room, &shape, ALL, None);
            }
        }
    }
}
