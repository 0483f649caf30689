//! Tries one group, and goes through the queues in their order.
//!
//! The queue of the highest priority first, then the one that uses the least of its share; in a
//! queue the highest priority, those that are not whole yet, who has the least, the oldest.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::GroupKey;
use crate::cycle::{Block, Cycle, Line, Unit, Verdict};
use crate::facts::Facts;
use crate::place::{Placed, Request, Stuck, ordered, place, place_some, reasons};
use crate::room::{NOW_AND_SOON, SOON, View};
use crate::slots::Id;
use crate::vector::{Ask, Vector};

/// A place in a queue: priority, how far the group is, what it has, age, name.
type Rank<'f> = (i64, u8, i64, i64, &'f GroupKey);

/// When it is a queue's turn: priority, how much of its share it uses, age, name.
type Turn<'f> = (i64, i64, i64, &'f str);

/// Pods that fit the same nodes at the same time: their shape, the time, whether nodes are kept.
pub(crate) type Likeness = (usize, u8, bool);

impl<'f> Cycle<'f> {
    /// Groups that were promised nodes come first: room is being made for them.
    pub(crate) fn keep_promises(&mut self) {
        for index in 0..self.units.len() {
            let Some(unit) = self.units.get(index) else { return };
            let promise = |id: &Id| {
                let record = self.facts.record(*id)?;
                let room = self.board.position(record.promise())?;
                Some((*id, room))
            };
            let pods = unit.standing.waiting.iter();
            let promised: Placed = pods.filter_map(promise).collect();
            if promised.is_empty() {
                continue;
            }
            if unit.standing.is_ready() {
                self.keep_promises_of_more(index, &promised);
                continue;
            }
            if self.block(index).is_none() && self.redeem(index, &promised) {
                continue;
            }
            self.attempt(index, true);
        }
    }

    /// Further members of a group that is ready keep the nodes for which their volumes are made, or
    /// have just been made.
    fn keep_promises_of_more(&mut self, index: usize, promised: &Placed) {
        for (id, room) in promised {
            let Some(record) = self.facts.record(*id) else { continue };
            if record.pod.claims.is_empty() || self.block(index).is_some() {
                continue;
            }
            let ask = sum(self.facts, &[*id]);
            let request = self.request(index, View::Now);
            if self.over_limit(index, &ask, View::Now).is_some()
                || crate::around::matters(record, self.board)
                || !request.fits(record, self.board, *room)
                || request.choices(record, self.board, *room).is_err()
            {
                continue;
            }
            request.take(self.board, *room, *id, record);
            self.settle_unit(index, View::Now, vec![(*id, *room)]);
        }
    }

    /// Takes exactly the nodes that were promised, now or soon.
    fn redeem(&mut self, index: usize, promised: &Placed) -> bool {
        let Some(unit) = self.units.get(index) else { return false };
        let ids: Vec<Id> = promised.iter().map(|(id, _)| *id).collect();
        let Some(chosen) = unit.standing.enough(self.facts, &ids) else { return false };
        let ask = sum(self.facts, &chosen);
        for view in [View::Now, View::Soon] {
            if self.over_limit(index, &ask, view).is_some() {
                continue;
            }
            let mark = self.board.mark();
            let request = self.request(index, view);
            let mut placed = Placed::new();
            for (id, room) in promised.iter().filter(|(id, _)| chosen.contains(id)) {
                let Some(record) = self.facts.record(*id) else { break };
                let is_entangled = crate::around::matters(record, self.board);
                if is_entangled
                    || !request.fits(record, self.board, *room)
                    || request.choices(record, self.board, *room).is_err()
                {
                    break;
                }
                request.take(self.board, *room, *id, record);
                placed.push((*id, *room));
            }
            if placed.len() == chosen.len() {
                self.settle_unit(index, view, placed);
                return true;
            }
            self.board.undo(mark);
        }
        false
    }

    /// Goes through all queues until nothing more can be done.
    pub(crate) fn serve(&mut self, may_borrow: bool) {
        let mut rows: Vec<BTreeSet<(Rank<'f>, usize)>> =
            self.lines.iter().map(|_| BTreeSet::new()).collect();
        for (index, unit) in self.units.iter().enumerate().filter(|(_, unit)| !unit.is_tried) {
            if let Some(row) = rows.get_mut(unit.line) {
                row.insert((self.rank(unit), index));
            }
        }
        let mut turns: Vec<Turn<'f>> = self.lines.iter().map(|line| self.turn(line)).collect();
        while let Some(line) = next_line(&rows, &turns) {
            let Some((_, index)) = rows.get_mut(line).and_then(BTreeSet::pop_first) else { return };
            let has_more = self.attempt(index, may_borrow);
            let Some(unit) = self.units.get(index) else { return };
            let is_placed =
                matches!(unit.verdict, Some(Verdict::Placed | Verdict::Soon(_) | Verdict::Volumes));
            // Only who has got something uses more of the queue's share than before.
            if let Some((turn, line)) =
                turns.get_mut(line).zip(self.lines.get(line)).filter(|_| is_placed)
            {
                *turn = self.turn(line);
            }
            if !has_more {
                continue;
            }
            let rank = self.rank(unit);
            if let Some(row) = rows.get_mut(line) {
                row.insert((rank, index));
            }
        }
    }

    fn turn(&self, line: &Line<'f>) -> Turn<'f> {
        let queue = line.queue.map_or((0, 0), |queue| (-queue.priority, queue.created));
        let used = line.share.used(&line.used, &self.facts.resources);
        (queue.0, used, queue.1, line.name)
    }

    fn rank(&self, unit: &Unit<'f>) -> Rank<'f> {
        let stage = match (unit.standing.is_ready(), unit.standing.is_partial()) {
            (false, true) => 0,
            (false, false) => 1,
            (true, _) => 2,
        };
        let share = dominant(&unit.used, &self.board.total, self.facts);
        (-unit.priority, stage, share, unit.created, unit.key)
    }

    /// Tries a group: its minimum as a whole, or one further member. Whether there is more to try.
    pub(crate) fn attempt(&mut self, index: usize, may_borrow: bool) -> bool {
        let verdict = match self.block(index) {
            Some(block) => Verdict::Blocked(block),
            None => self.fit(index, may_borrow),
        };
        let Some(unit) = self.units.get_mut(index) else { return false };
        let line = self.lines.get_mut(unit.line);
        let is_placed = matches!(verdict, Verdict::Placed | Verdict::Soon(_) | Verdict::Volumes);
        let is_fifo = |line: &&mut Line<'f>| line.queue.is_some_and(|queue| queue.is_fifo);
        if let Some(line) = line.filter(is_fifo).filter(|_| !is_placed) {
            line.stopped_by.get_or_insert(index);
        }
        let (is_final, has_more) = match &verdict {
            Verdict::Placed => (unit.standing.waiting.is_empty(), true),
            // Another pass may be kinder.
            Verdict::Share(_) | Verdict::Blocked(Block::Behind(_)) => (may_borrow, false),
            Verdict::Room(stuck) if unit.standing.is_ready() => {
                // Others of the group may be of another shape.
                drop_alike(unit, stuck.pod, self.facts);
                (unit.standing.waiting.is_empty(), true)
            }
            _ => (true, false),
        };
        unit.is_tried = is_final;
        unit.verdict = Some(verdict);
        has_more && !is_final
    }

    /// Why a group cannot even be tried.
    pub(crate) fn block(&self, index: usize) -> Option<Block> {
        let unit = self.units.get(index)?;
        let line = self.lines.get(unit.line)?;
        if matches!(unit.key, GroupKey::PodGroup { .. }) && unit.group.object.is_none() {
            return Some(Block::NoGroup);
        }
        let Some(queue) = line.queue else { return Some(Block::NoQueue) };
        if !queue.is_open {
            return Some(Block::Closed);
        }
        if let Some(missing) = unit.standing.missing() {
            return Some(Block::Missing(missing));
        }
        if let Some(larger) = self.larger_than_queue(unit.group, line) {
            return Some(larger);
        }
        if unit.muster.beyond.is_some() || unit.muster.has_claims {
            let troubles = || unit.standing.waiting.iter().filter_map(|id| self.trouble_of(*id));
            let is_beyond = |trouble: &Block| matches!(trouble, Block::Beyond(_));
            if let Some(trouble) = troubles().find(is_beyond).or_else(|| troubles().next()) {
                return Some(trouble);
            }
        }
        line.stopped_by.filter(|first| *first != index).map(Block::Behind)
    }

    fn fit(&mut self, index: usize, may_borrow: bool) -> Verdict {
        let Some(unit) = self.units.get(index) else { return Verdict::Placed };
        let further = unit.further();
        if further.is_none() && unit.standing.is_ready() {
            return Verdict::Placed;
        }
        let (chosen, ask) = match further {
            Some(id) => (Cow::Owned(vec![id]), Cow::Owned(sum(self.facts, &[id]))),
            None => unit.minimum(),
        };
        let (chosen, ask) = (&*chosen, &*ask);
        if let Some(resource) = self.over_limit(index, ask, View::Soon) {
            return Verdict::Limit(resource);
        }
        if let Some(resource) = self.over_share(index, ask).filter(|_| !may_borrow) {
            return Verdict::Share(resource);
        }
        let lifted = self.lift_holds(index);
        let is_within = self.over_limit(index, ask, View::Now).is_none();
        let now = is_within.then(|| self.find(index, chosen, View::Now));
        let found = match now {
            Some(Ok(placed)) => Ok((View::Now, placed)),
            // Nobody leaves: later is as now.
            Some(Err(short)) if self.board.leavers == 0 && self.evicted.is_empty() => Err(short),
            // What is short now is what is said.
            Some(Err(short)) => {
                let soon = self.find(index, chosen, View::Soon);
                soon.map(|placed| (View::Soon, placed)).map_err(|_| short)
            }
            None => {
                let soon = self.find(index, chosen, View::Soon);
                let soon = soon.map(|placed| (View::Soon, placed));
                soon.map_err(|stuck| self.explained(index, stuck))
            }
        };
        self.lay_holds(&lifted);
        match found {
            Ok((view, placed)) => self.settle_unit(index, view, placed),
            Err(stuck) => Verdict::Room(stuck),
        }
    }

    /// Nodes for the chosen ones, or for others that are as good.
    pub(crate) fn find(
        &mut self,
        index: usize,
        chosen: &[Id],
        view: View,
    ) -> Result<Placed, Stuck> {
        let request = self.request(index, view);
        let likeness = self.likeness(index, chosen, &request);
        if let Some(stuck) = likeness.and_then(|likeness| self.known(&likeness, index, chosen)) {
            return Err(stuck);
        }
        let stuck = match place(&request, self.board, chosen) {
            Ok(placed) => return Ok(placed),
            Err(stuck) => stuck,
        };
        let stuck = match likeness {
            None if view == View::Now => {
                // Not the first of them that does not fit is in the way of all behind it.
                let mark = self.board.mark();
                let placed = place_some(&request, self.board, chosen).len();
                self.board.undo(mark);
                Stuck { placed, ..stuck }
            }
            _ => stuck,
        };
        if let Some(likeness) = likeness {
            let told = (self.board.generation(), chosen.len(), stuck.clone());
            self.failures.insert(likeness, told);
        }
        let Some(unit) = self.units.get(index) else { return Err(stuck) };
        let standing = &unit.standing;
        if standing.is_ready() || standing.waiting.len() <= chosen.len() {
            return Err(stuck);
        }
        let mark = self.board.mark();
        let some = place_some(&request, self.board, &standing.waiting);
        self.board.undo(mark);
        let some: BTreeSet<Id> = some.into_iter().map(|(id, _)| id).collect();
        let waiting = standing.waiting.iter().filter(|id| some.contains(id));
        let waiting: Vec<Id> = waiting.copied().collect();
        match standing.enough(self.facts, &waiting) {
            Some(others) => place(&request, self.board, &others).map_err(|_| stuck),
            None => Err(stuck),
        }
    }

    /// Adds why something does not fit, where it was left open.
    fn explained(&self, index: usize, stuck: Stuck) -> Stuck {
        let Some(record) = self.facts.record(stuck.pod) else { return stuck };
        let request = Request { is_explained: true, ..self.request(index, View::Soon) };
        Stuck { reasons: reasons(&request, self.board, record, None), ..stuck }
    }

    /// What tells one group of alike pods from another as far as room goes; nothing for others.
    fn likeness(&self, index: usize, chosen: &[Id], request: &Request<'f>) -> Option<Likeness> {
        let unit = self.units.get(index)?;
        let shape = |id: &Id| Some(&self.facts.record(*id)?.shape);
        let first = shape(chosen.first()?)?;
        let is_alike = match &unit.muster.alike {
            Some(_) if unit.is_minimum(chosen) => true,
            _ => chosen
                .iter()
                .all(|id| shape(id).is_some_and(|other| std::sync::Arc::ptr_eq(first, other))),
        };
        let is_all = chosen.len() == unit.standing.waiting.len();
        let is_plain = first.spec.peers.is_empty() && self.board.loners == 0;
        (is_alike && is_all && is_plain).then(|| {
            (std::sync::Arc::as_ptr(first).addr(), request.view as u8, request.is_kept_out)
        })
    }

    /// Why as few alike ones have not found room a moment ago, when nothing has changed since.
    fn known(&self, likeness: &Likeness, index: usize, chosen: &[Id]) -> Option<Stuck> {
        let (generation, count, stuck) = self.failures.get(likeness)?;
        if *generation != self.board.generation() || *count > chosen.len() {
            return None;
        }
        let unit = self.units.get(index)?;
        let counted = unit.muster.alike.as_deref().filter(|_| unit.is_minimum(chosen));
        let pod = match counted {
            Some(order) => order.get(stuck.placed).copied()?,
            None => ordered(self.facts, chosen).get(stuck.placed).copied()?,
        };
        Some(Stuck { pod, ..stuck.clone() })
    }

    pub(crate) fn request(&self, index: usize, view: View) -> Request<'f> {
        let mut companions: BTreeMap<usize, i64> = BTreeMap::new();
        let bound = self.units.get(index).map(|unit| unit.standing.bound.iter());
        for record in bound.into_iter().flatten().filter_map(|id| self.facts.record(*id)) {
            if let Some(room) = self.board.position(record.node()) {
                *companions.entry(room).or_default() += 1;
            }
        }
        Request {
            facts: self.facts,
            view,
            views: if view == View::Soon { SOON } else { NOW_AND_SOON },
            is_kept_out: self.is_kept_out(index),
            is_explained: view == View::Now,
            ignores_selected: false,
            companions,
        }
    }

    /// Notes what was found; the board has taken it already.
    pub(crate) fn settle_unit(&mut self, index: usize, view: View, placed: Placed) -> Verdict {
        let ids: Vec<Id> = placed.iter().map(|(id, _)| *id).collect();
        let ask = sum(self.facts, &ids);
        let awaits_volumes = view == View::Now && self.await_volumes(&ids);
        let Some(unit) = self.units.get_mut(index) else { return Verdict::Placed };
        if let Some(line) = self.lines.get_mut(unit.line) {
            line.used.plus(&ask, 1);
        }
        if awaits_volumes {
            self.reserved.extend(placed.iter().copied());
            // Nobody of a group is bound before the volumes of all are.
            if !unit.standing.is_ready() {
                unit.is_tried = true;
                unit.verdict = Some(Verdict::Volumes);
                return Verdict::Volumes;
            }
        }
        if view == View::Now {
            unit.used.plus(&ask, 1);
            unit.standing.to_mut().advance(self.facts, &ids);
            if !awaits_volumes {
                self.bound.extend(placed);
            }
            unit.verdict = Some(Verdict::Placed);
            unit.is_tried = unit.standing.waiting.is_empty();
            return Verdict::Placed;
        }
        unit.is_tried = true;
        unit.verdict = Some(Verdict::Soon(placed.clone()));
        Verdict::Soon(placed)
    }
}

/// The queue whose turn it is.
fn next_line(rows: &[BTreeSet<(Rank<'_>, usize)>], turns: &[Turn<'_>]) -> Option<usize> {
    let waiting = rows.iter().zip(turns).enumerate().filter(|(_, (row, _))| !row.is_empty());
    let first = waiting.min_by_key(|(_, (_, turn))| *turn);
    first.map(|(index, _)| index)
}

/// What pods ask for together.
pub(crate) fn sum(facts: &Facts, pods: &[Id]) -> Vector {
    let mut sum = Vector::default();
    for record in pods.iter().filter_map(|id| facts.record(*id)) {
        let ask: &Ask = &record.shape.ask;
        sum.add(ask, 1);
    }
    sum
}

/// The largest part of the cluster that a group has of any resource, in millionths.
pub(crate) fn dominant(used: &Vector, total: &Vector, facts: &Facts) -> i64 {
    let counted = used.positive().filter(|(resource, _)| !facts.resources.is_pods(*resource));
    let parts = counted.map(|(resource, amount)| {
        let part = i128::from(amount) * 1_000_000 / i128::from(total.get(resource).max(1));
        i64::try_from(part).unwrap_or(i64::MAX)
    });
    parts.max().unwrap_or(0)
}

/// A further member that found no room is not tried again, nor are those like it.
fn drop_alike(unit: &mut Unit<'_>, pod: Id, facts: &Facts) {
    let shape = facts.record(pod).map(|record| record.shape.clone());
    let is_like = |id: &Id| {
        let other = facts.record(*id).map(|record| &record.shape);
        shape.as_ref().zip(other).is_some_and(|(one, other)| std::sync::Arc::ptr_eq(one, other))
    };
    let (alike, others): (Vec<Id>, Vec<Id>) =
        unit.standing.waiting.iter().copied().partition(|id| *id == pod || is_like(id));
    unit.standing.to_mut().waiting = others;
    unit.left_out.extend(alike);
}
