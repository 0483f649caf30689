//! What is short for pods that fit nowhere: what they ask for, and what is free where they may go.
//!
//! Owns adding up, once for pods of the same shapes. Must not know why a group is not tried.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cycle::{Cycle, Unit};
use crate::facts::Record;
use crate::fit::barred;
use crate::place::Stuck;
use crate::room::View;
use crate::shape::Shape;
use crate::slots::Id;
use crate::vector::Vector;
use crate::{Shortage, words};

/// What is free on the nodes that some shapes may use: of each resource all, and the most on one.
type Free = Arc<Vec<(i64, i64)>>;

/// What is free for which shapes, on which board.
#[derive(Debug, Default)]
pub(crate) struct FreeFor(RefCell<BTreeMap<(u64, Vec<usize>), Free>>);

impl Cycle<'_> {
    /// The resources of which there is too little for these pods together, or for one of them on
    /// any node, by their names.
    pub(crate) fn shortages_of(&self, pods: &[Id], ask: &Vector) -> Vec<Shortage> {
        let records: Vec<_> = pods.iter().filter_map(|id| self.facts.record(*id)).collect();
        let free = self.free_for(&records);
        let mut shortages = Vec::new();
        for (resource, asked) in ask.positive() {
            let (free, most) = free.get(resource).copied().unwrap_or_default();
            let each = records.iter().map(|record| record.shape.ask.of(resource));
            let per_member = each.max().unwrap_or(0);
            if free < asked || most < per_member {
                shortages.push(Shortage {
                    resource: self.facts.resources.name(resource).to_owned(),
                    asked,
                    free,
                    most_on_one_node: most,
                    per_member,
                });
            }
        }
        shortages.sort_by(|one, other| one.resource.cmp(&other.resource));
        shortages
    }

    fn free_for(&self, records: &[&Record]) -> Free {
        let mut shapes: Vec<&Arc<Shape>> = records.iter().map(|record| &record.shape).collect();
        shapes.sort_by_key(|shape| Arc::as_ptr(shape).addr());
        shapes.dedup_by_key(|shape| Arc::as_ptr(shape).addr());
        let addresses = shapes.iter().map(|shape| Arc::as_ptr(shape).addr()).collect();
        let key = (self.board.generation(), addresses);
        if let Some(known) = self.free_for.0.borrow().get(&key) {
            return known.clone();
        }
        let mut free = vec![(0_i64, 0_i64); self.facts.resources.len()];
        for room in &self.board.rooms {
            let Some(node) = &room.node else { continue };
            if !shapes.iter().any(|shape| barred(shape, node, self.facts).is_none()) {
                continue;
            }
            for (resource, (all, most)) in free.iter_mut().enumerate() {
                let here = room.left(resource, View::Now).max(0);
                *all = all.saturating_add(here);
                *most = (*most).max(here);
            }
        }
        let free = Arc::new(free);
        self.free_for.0.borrow_mut().insert(key, free.clone());
        free
    }

    /// How many of a group's pods fit, and what is short for all of them: nothing for a group that
    /// has its minimum.
    pub(crate) fn short_words(&self, unit: &Unit<'_>, stuck: &Stuck) -> Option<String> {
        let (pods, ask) = unit.minimum();
        if unit.standing.is_ready() || pods.is_empty() {
            return None;
        }
        let fit =
            (pods.len() > 1).then(|| words::fitting(stuck.placed.min(pods.len()), pods.len()));
        let short = self.shortages_of(&pods, &ask);
        let all: Vec<String> = fit.into_iter().chain(short.iter().map(words::shortage)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
