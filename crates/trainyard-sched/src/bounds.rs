//! What a queue's limit and its share leave for a group.
//!
//! Must not try groups.

use crate::cycle::{Cycle, Line};
use crate::facts::Facts;
use crate::queue;
use crate::room::View;
use crate::vector::Vector;

impl<'f> Cycle<'f> {
    /// The first resource of which the queue's limit would be exceeded.
    pub(crate) fn over_limit(&self, index: usize, ask: &Vector, view: View) -> Option<usize> {
        self.over_limit_without(index, ask, view, &Vector::default())
    }

    /// The same, when its queue has given back so much.
    pub(crate) fn over_limit_without(
        &self,
        index: usize,
        ask: &Vector,
        view: View,
        freed: &Vector,
    ) -> Option<usize> {
        let line = self.units.get(index).and_then(|unit| self.lines.get(unit.line))?;
        let root = self.facts.accounts.get(queue::ROOT).and_then(|root| root.object.as_ref());
        let used = |line: &Line<'f>, resource: usize| {
            let leaving = if view == View::Now { line.leaving.get(resource) } else { 0 };
            line.used.get(resource) + leaving
        };
        let over = |resource: usize, amount: i64| {
            let own = used(line, resource) + line.kept.get(resource) - freed.get(resource);
            let name = self.facts.resources.name(resource);
            let limit = root.and_then(|root| root.capability.named(name));
            let all = || {
                let all = self.lines.iter().map(|line| used(line, resource)).sum::<i64>();
                all - freed.get(resource)
            };
            own.saturating_add(amount) > line.share.limit.get(resource)
                || limit.is_some_and(|limit| all().saturating_add(amount) > limit)
        };
        least_named(
            ask.positive().filter(|(resource, amount)| over(*resource, *amount)),
            self.facts,
        )
    }

    /// The first resource of which the queue's share would be exceeded.
    pub(crate) fn over_share(&self, index: usize, ask: &Vector) -> Option<usize> {
        let line = self.units.get(index).and_then(|unit| self.lines.get(unit.line))?;
        let over = |resource: usize, amount: i64| {
            !self.facts.resources.is_pods(resource)
                && !line.share.allows(
                    resource,
                    (line.used.get(resource) + line.kept_share.get(resource))
                        .saturating_add(amount),
                )
        };
        least_named(
            ask.positive().filter(|(resource, amount)| over(*resource, *amount)),
            self.facts,
        )
    }
}

/// Resources have no order of their own; their names do.
fn least_named(found: impl Iterator<Item = (usize, i64)>, facts: &Facts) -> Option<usize> {
    found.map(|(resource, _)| resource).min_by_key(|resource| facts.resources.name(*resource))
}
