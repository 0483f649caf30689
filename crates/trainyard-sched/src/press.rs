//! Makes room for a group by evicting others: lower priorities in its own queue (preemption), or
//! what other queues use above their share (reclaim).
//!
//! Whole groups or members above a minimum; nobody if it would not help; nobody more than needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bundle::Bundle;
use crate::cycle::{Cycle, Verdict};
use crate::place::Placed;
use crate::room::{SOON, View};
use crate::serve::sum;
use crate::slots::Id;
use crate::vector::Vector;
use crate::{Cause, GroupKey};

/// When nothing helps in order, so many are tried each by itself.
const ONE_BY_ONE: usize = 64;

impl<'f> Cycle<'f> {
    /// Makes room for all groups of this pass that found none, in their order.
    pub(crate) fn press_all(&mut self, may_borrow: bool) {
        for index in 0..self.units.len() {
            let Some(unit) = self.units.get(index) else { return };
            let is_stuck = matches!(unit.verdict, Some(Verdict::Room(_) | Verdict::Limit(_)));
            if is_stuck && !unit.standing.is_ready() && !unit.is_pressed {
                self.press(index, may_borrow);
            }
        }
    }

    /// Makes room for one group; whether that went well.
    pub(crate) fn press(&mut self, index: usize, may_borrow: bool) -> bool {
        let Some(unit) = self.units.get_mut(index) else { return false };
        unit.is_pressed = true;
        let Some(unit) = self.units.get(index) else { return false };
        let (chosen, ask) = unit.minimum();
        let (chosen, ask) = (&*chosen, &*ask);
        if unit.standing.is_ready() || chosen.is_empty() || !unit.muster.may_preempt {
            return false;
        }
        if self.is_kept_out(index) {
            return false;
        }
        let (priority, line, key) = (unit.priority, unit.line, unit.key);
        let (rank, is_partial) = ((-priority, unit.created, key), unit.standing.is_partial());
        // Where the queue's limit is in the way, it helps wherever somebody leaves.
        let is_limited = matches!(unit.verdict, Some(Verdict::Limit(_)));
        if is_partial || self.has_lower(line, priority) {
            let lower = self.candidates(chosen, is_limited, |bundle| {
                // Names are dear to compare, and there are many bundles.
                let is_behind = || (-bundle.priority, bundle.created, bundle.key) > rank;
                let is_lower = bundle.line == line && bundle.priority < priority;
                (is_lower || (is_partial && bundle.is_partial && is_behind())) && bundle.key != key
            });
            if self.make_room(index, chosen, lower, &Cause::Preempted(key.clone())) {
                return true;
            }
        }
        if is_limited || (may_borrow && self.over_share(index, ask).is_some()) {
            return false;
        }
        let above = self.lines_above_share(ask);
        if above.is_empty() {
            return false;
        }
        let over = self.candidates(chosen, false, |bundle| {
            bundle.line != line && above.contains(&bundle.line) && bundle.key != key
        });
        let over = self.above_share(over, ask);
        self.make_room(index, chosen, over, &Cause::Reclaimed(key.clone()))
    }

    /// Whether a queue has anybody below a priority who could go. Most groups wait among equals.
    fn has_lower(&mut self, line: usize, priority: i64) -> bool {
        if let Some(known) = self.lower.get(&(line, priority)) {
            return *known;
        }
        let is_lower = |bundle: &Arc<Bundle<'f>>| bundle.line == line && bundle.priority < priority;
        let has_lower = self.bundles().iter().any(is_lower);
        self.lower.insert((line, priority), has_lower);
        has_lower
    }

    /// Those that may go and whose going would be felt where the chosen could be.
    fn candidates(
        &mut self,
        chosen: &[Id],
        is_anywhere: bool,
        may_go: impl Fn(&Bundle<'f>) -> bool,
    ) -> Vec<Arc<Bundle<'f>>> {
        self.bundles();
        let facts = self.facts;
        let ask = sum(facts, chosen);
        let shapes: Vec<_> =
            chosen.iter().filter_map(|id| Some(&facts.record(*id)?.shape)).collect();
        let first = shapes.first().copied();
        let is_alike = shapes.iter().all(|one| first.is_some_and(|first| Arc::ptr_eq(one, first)));
        let helps = |id: &Id| {
            let Some(record) = facts.record(*id) else { return false };
            let shared = record.shape.ask.0.iter().any(|(resource, _)| ask.get(*resource) > 0);
            let room =
                self.board.position(record.node()).and_then(|room| self.board.rooms.get(room));
            let Some(node) = room.and_then(|room| room.node.as_ref()) else { return false };
            let looked_at = if is_alike { shapes.get(..1) } else { Some(shapes.as_slice()) };
            shared
                && looked_at.is_some_and(|shapes| {
                    shapes.iter().any(|shape| crate::fit::barred(shape, node, facts).is_none())
                })
        };
        let fresh = |bundle: &&Arc<Bundle<'f>>| {
            may_go(bundle) && !bundle.pods.first().is_some_and(|id| self.evicted.contains_key(id))
        };
        let all = self.bundles.iter().flatten();
        let useful =
            all.filter(fresh).filter(|bundle| is_anywhere || bundle.pods.iter().any(helps));
        useful.cloned().collect()
    }

    /// The queues that use more than their share of something that is asked for, and may be asked
    /// to give it back.
    fn lines_above_share(&self, ask: &Vector) -> BTreeSet<usize> {
        let is_above = |line: &crate::cycle::Line<'f>| {
            let asked = ask.positive().map(|(resource, _)| resource);
            line.queue.is_some_and(|queue| queue.is_reclaimable)
                && asked
                    .filter(|resource| !self.facts.resources.is_pods(*resource))
                    .any(|resource| !line.share.allows(resource, line.used.get(resource)))
        };
        let lines = self.lines.iter().enumerate().filter(|(_, line)| is_above(line));
        lines.map(|(index, _)| index).collect()
    }

    /// Of those, what can go without taking a queue below its share.
    fn above_share(&self, candidates: Vec<Arc<Bundle<'f>>>, ask: &Vector) -> Vec<Arc<Bundle<'f>>> {
        let mut used: BTreeMap<usize, Vector> = BTreeMap::new();
        let mut chosen = Vec::new();
        let mut members: BTreeSet<Id> = BTreeSet::new();
        for bundle in candidates {
            let Some(line) = self.lines.get(bundle.line) else { continue };
            if !line.queue.is_some_and(|queue| queue.is_reclaimable) {
                continue;
            }
            let left = used.entry(bundle.line).or_insert_with(|| line.used.clone());
            let fresh: Vec<Id> =
                bundle.pods.iter().copied().filter(|id| !members.contains(id)).collect();
            let takes = sum(self.facts, &fresh);
            let mut after = left.clone();
            after.plus(&takes, -1);
            let asked =
                |resource: usize| ask.get(resource) > 0 && !self.facts.resources.is_pods(resource);
            // Above its share before, in something that is asked for, and not below it afterwards.
            let is_above = takes.positive().any(|(resource, _)| {
                asked(resource) && !line.share.allows(resource, left.get(resource))
            });
            let stays =
                takes.positive().filter(|(resource, _)| asked(*resource)).any(|(resource, _)| {
                    after.get(resource) >= line.share.deserved(resource)
                        && !line.share.allows(resource, left.get(resource))
                });
            let is_kept = takes.positive().all(|(resource, _)| {
                let kept = line.share.guarantee.get(resource);
                after.get(resource) >= kept || left.get(resource) < kept
            });
            if is_above && stays && is_kept {
                *left = after;
                members.extend(fresh);
                chosen.push(bundle);
            }
        }
        chosen
    }

    /// Evicts as few of the candidates as it takes, from the front of their order.
    fn make_room(
        &mut self,
        index: usize,
        chosen: &[Id],
        candidates: Vec<Arc<Bundle<'f>>>,
        cause: &Cause,
    ) -> bool {
        if candidates.is_empty() || !self.could_help(index, chosen, &candidates) {
            return false;
        }
        let lifted = self.lift_holds(index);
        let victims = self.fewest(index, chosen, candidates);
        let found = victims.and_then(|victims| {
            let placed = self.with_room(index, chosen, &victims)?;
            Some((victims, placed))
        });
        let is_made = found.is_some();
        if let Some((victims, placed)) = found {
            self.evict(&victims, cause);
            self.promised.extend(placed.iter().copied());
            self.settle_unit(index, View::Soon, placed);
        }
        self.lay_holds(&lifted);
        is_made
    }

    /// Whether what is free and what could be freed is enough at all.
    fn could_help(&self, index: usize, chosen: &[Id], candidates: &[Arc<Bundle<'f>>]) -> bool {
        let ask = sum(self.facts, chosen);
        // Members above a minimum are counted twice, with their whole too: this is no promise.
        let mut enough = Vector::default();
        for bundle in candidates {
            enough.plus(&bundle.has, 1);
        }
        for room in self.board.rooms.iter().filter(|room| room.node.is_some()) {
            for (resource, _) in ask.positive() {
                let free = room.free(View::Soon).get(resource).max(0);
                enough.set(resource, enough.get(resource).saturating_add(free));
            }
        }
        // What is kept for the group itself is hidden in the sums.
        let has_hold = self.holds.iter().any(|hold| hold.unit == index);
        has_hold || ask.positive().all(|(resource, amount)| enough.get(resource) >= amount)
    }

    /// The shortest beginning of the candidates that makes room, without those that are not needed.
    fn fewest(
        &mut self,
        index: usize,
        chosen: &[Id],
        candidates: Vec<Arc<Bundle<'f>>>,
    ) -> Option<Vec<Arc<Bundle<'f>>>> {
        let Some(mut victims) = self.shortest(index, chosen, &candidates) else {
            let alone = candidates.into_iter().take(ONE_BY_ONE).map(|bundle| vec![bundle]);
            return alone.into_iter().find(|one| self.helps(index, chosen, one));
        };
        // Only where the group would go does anybody have to leave.
        if let Some(placed) = self.trial(index, chosen, &victims) {
            let rooms: BTreeSet<usize> = placed.into_iter().map(|(_, room)| room).collect();
            let nearby: Vec<Arc<Bundle<'f>>> =
                victims.iter().filter(|bundle| self.lies_in(bundle, &rooms)).cloned().collect();
            if self.helps(index, chosen, &nearby) {
                victims = nearby;
            }
        }
        for at in (0..victims.len()).rev() {
            let mut fewer = victims.clone();
            fewer.remove(at);
            if self.helps(index, chosen, &fewer) {
                victims = fewer;
            }
        }
        Some(victims)
    }

    fn lies_in(&self, bundle: &Bundle<'f>, rooms: &BTreeSet<usize>) -> bool {
        let room = |id: &Id| self.board.position(self.facts.record(*id)?.node());
        bundle.pods.iter().filter_map(room).any(|room| rooms.contains(&room))
    }

    fn shortest(
        &mut self,
        index: usize,
        chosen: &[Id],
        candidates: &[Arc<Bundle<'f>>],
    ) -> Option<Vec<Arc<Bundle<'f>>>> {
        let all = candidates.len();
        let (mut short, mut long) = (0, 1);
        while !self.helps(index, chosen, candidates.get(..long.min(all))?) {
            if long >= all {
                return None;
            }
            short = long;
            long *= 2;
        }
        long = long.min(all);
        while long - short > 1 {
            let middle = usize::midpoint(short, long);
            if self.helps(index, chosen, candidates.get(..middle)?) {
                long = middle;
            } else {
                short = middle;
            }
        }
        Some(candidates.get(..long)?.to_vec())
    }

    fn helps(&mut self, index: usize, chosen: &[Id], victims: &[Arc<Bundle<'f>>]) -> bool {
        self.trial(index, chosen, victims).is_some()
    }

    /// Where the group would go without these, and everything as it was.
    fn trial(
        &mut self,
        index: usize,
        chosen: &[Id],
        victims: &[Arc<Bundle<'f>>],
    ) -> Option<Placed> {
        let mark = self.board.mark();
        let placed = self.with_room(index, chosen, victims);
        self.board.undo(mark);
        placed
    }

    fn with_room(
        &mut self,
        index: usize,
        chosen: &[Id],
        victims: &[Arc<Bundle<'f>>],
    ) -> Option<Placed> {
        let own = self.units.get(index)?.line;
        let mut gone: BTreeSet<Id> = BTreeSet::new();
        let mut freed = Vector::default();
        for bundle in victims {
            for id in &bundle.pods {
                let Some(record) = self.facts.record(*id).filter(|_| gone.insert(*id)) else {
                    continue;
                };
                if let Some(room) = self.board.position(record.node()) {
                    self.board.give(room, &record.shape, SOON, Some(*id));
                }
                if bundle.line == own {
                    freed.add(&record.shape.ask, 1);
                }
            }
        }
        let ask = sum(self.facts, chosen);
        if self.over_limit_without(index, &ask, View::Soon, &freed).is_some() {
            return None;
        }
        self.find(index, chosen, View::Soon).ok()
    }

    fn evict(&mut self, victims: &[Arc<Bundle<'f>>], cause: &Cause) {
        for bundle in victims {
            for id in &bundle.pods {
                if self.evicted.insert(*id, cause.clone()).is_some() {
                    continue;
                }
                let Some(record) = self.facts.record(*id) else { continue };
                if let Some(line) = self.lines.get_mut(bundle.line) {
                    line.used.add(&record.shape.ask, -1);
                    line.leaving.add(&record.shape.ask, 1);
                }
            }
        }
        // A group that loses its spare members has another whole; it is left alone in this round.
        let keys: BTreeSet<&GroupKey> = victims.iter().map(|bundle| bundle.key).collect();
        if let Some(bundles) = &mut self.bundles {
            bundles.retain(|bundle| !(bundle.is_whole && keys.contains(bundle.key)));
        }
    }
}
