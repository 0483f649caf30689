//! Who could make room: whole groups, or members that their group can do without.
//!
//! Owns what belongs together and in which order it would go. Who may go for whom is `press`'s.

use std::sync::Arc;

use crate::GroupKey;
use crate::budget::within_budgets_first;
use crate::cycle::Cycle;
use crate::serve::sum;
use crate::slots::Id;
use crate::vector::Vector;

/// Pods that go together.
#[derive(Debug, Clone)]
pub(crate) struct Bundle<'f> {
    pub(crate) key: &'f GroupKey,
    pub(crate) line: usize,
    pub(crate) priority: i64,
    pub(crate) created: i64,
    pub(crate) pods: Vec<Id>,
    /// What they have together.
    pub(crate) has: Vector,
    /// Whether the group ends with them.
    pub(crate) is_whole: bool,
    /// Whether the group has less than its minimum already.
    pub(crate) is_partial: bool,
}

impl<'f> Cycle<'f> {
    /// Everything that could be evicted for somebody, least worth first: members above a minimum
    /// before whole groups, low priority before high, young before old; whoever has no budget of
    /// disruption or is within it before all others.
    pub(crate) fn bundles(&mut self) -> &[Arc<Bundle<'f>>] {
        if self.bundles.is_none() {
            let bundles = self.gather();
            self.bundles = Some(bundles);
        }
        self.bundles.as_deref().unwrap_or_default()
    }

    fn gather(&self) -> Vec<Arc<Bundle<'f>>> {
        let facts = self.facts;
        let mut bundles = Vec::new();
        for (key, _, group) in facts.groups.iter() {
            if group.members.len() == group.waiting.len() {
                // Nobody of it has a node.
                continue;
            }
            let name = facts.queue_of(group);
            let Some(line) = self.lines.iter().position(|line| line.name == name) else { continue };
            let is_spared = group.object.as_ref().is_some_and(|object| !object.is_preemptable);
            let muster = facts.muster(key, group);
            let standing = &muster.standing;
            if standing.bound.is_empty() || is_spared {
                continue;
            }
            let may_go =
                |id: &Id| facts.record(*id).is_some_and(|record| record.pod.is_preemptable);
            let bundle = |pods: Vec<Id>, has: Vector, is_whole: bool| Bundle {
                key,
                line,
                priority: facts.priority_of(key, group),
                created: facts.created_of(group),
                has,
                pods,
                is_whole,
                is_partial: standing.is_partial(),
            };
            let above = standing.above_minimum(facts);
            let is_all_above = above.len() == standing.bound.len();
            let alone = |id: Id| bundle(vec![id], sum(facts, &[id]), false);
            bundles.extend(above.into_iter().filter(may_go).map(alone));
            // A group without a minimum has no whole to lose.
            if !is_all_above && muster.may_go {
                bundles.push(bundle(standing.bound.clone(), muster.used.clone(), true));
            }
        }
        bundles.sort_by(|one, other| {
            let order = |bundle: &Bundle<'f>| {
                (bundle.is_whole, bundle.priority, std::cmp::Reverse(bundle.created))
            };
            order(one).cmp(&order(other)).then_with(|| other.key.cmp(one.key))
        });
        let mut bundles = bundles.into_iter().map(Arc::new).collect();
        within_budgets_first(&mut bundles, facts);
        bundles
    }
}
