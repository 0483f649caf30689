//! Who has what is short, those with the most first.
//!
//! Owns adding up and naming. What is short, and whose pods count, is for whoever asks to say.

use std::collections::BTreeMap;

use crate::facts::{Facts, Record, Stand};
use crate::room::Board;
use crate::vector::Vector;
use crate::{GroupKey, Holder, Node, Shortage};

/// Holders are named up to so many.
const NAMED: usize = 10;

/// What groups have, and in how many pods.
#[derive(Debug)]
pub(crate) struct Holdings<'f> {
    facts: &'f Facts,
    groups: BTreeMap<&'f GroupKey, (usize, Vector)>,
}

impl<'f> Holdings<'f> {
    /// What pods have on nodes: on those that are open, of those pods that count.
    pub(crate) fn on_nodes(
        facts: &'f Facts,
        board: &Board,
        is_open: impl Fn(&Node) -> bool,
        counts: impl Fn(&Record) -> bool,
    ) -> Self {
        let mut groups: BTreeMap<&'f GroupKey, (usize, Vector)> = BTreeMap::new();
        for room in &board.rooms {
            if !room.node.as_ref().is_some_and(|node| is_open(node)) {
                continue;
            }
            for other in room.pods.iter().filter_map(|id| facts.record(*id)) {
                let has_room = matches!(other.stand(), Stand::Bound | Stand::Leaving);
                if has_room && counts(other) {
                    let (pods, has) = groups.entry(&other.pod.group).or_default();
                    *pods += 1;
                    has.add(&other.shape.ask, 1);
                }
            }
        }
        Self { facts, groups }
    }

    /// Adds what a group is still to get for so many members.
    pub(crate) fn claim(&mut self, key: &'f GroupKey, members: usize, rest: &BTreeMap<&str, i64>) {
        let (pods, has) = self.groups.entry(key).or_default();
        *pods += members;
        for (name, amount) in rest {
            if let Some(resource) = self.facts.resources.known(name) {
                has.set(resource, has.get(resource).saturating_add(*amount));
            }
        }
    }

    /// Those that have something of what is short.
    pub(crate) fn named(self, shortages: &[Shortage]) -> Vec<Holder> {
        let resources = &self.facts.resources;
        let mut named: Vec<Holder> = self
            .groups
            .into_iter()
            .map(|(key, (pods, has))| {
                let all = resources.amounts(&has);
                let short = shortages.iter().map(|short| short.resource.as_str());
                let has = short.filter_map(|name| Some((name, all.named(name)?))).collect();
                Holder { group: key.clone(), pods, has }
            })
            .filter(|holder| !holder.has.is_empty())
            .collect();
        let first =
            |holder: &Holder| shortages.first().map_or(0, |short| holder.has.get(&short.resource));
        named.sort_by(|one, other| {
            first(other).cmp(&first(one)).then_with(|| one.group.cmp(&other.group))
        });
        named.truncate(NAMED);
        named
    }
}
