//! Which PodGroups are let into their queue: the pods of a Volcano Job are made only then.
//!
//! Within the queue's limit, and as long as the cluster is not spoken for beyond a factor. What
//! waits at a lower priority does not count against a higher one. Pods that are there already are
//! tried whatever is spoken for: they take part in the shares, the order and the keeping of room.

use std::collections::BTreeMap;

use crate::cycle::{Block, Cycle, Line};
use crate::facts::Group;
use crate::group::GroupPhase;
use crate::room::View;
use crate::serve::sum;
use crate::vector::{ENDLESS, Vector};
use crate::{Amounts, Constraint, GroupKey, words};

/// A group that is in its queue or asks to be.
#[derive(Debug, Clone)]
pub(crate) struct Applicant<'f> {
    pub(crate) key: &'f GroupKey,
    queue: &'f str,
    pub(crate) line: Option<usize>,
    priority: i64,
    created: i64,
    is_in: bool,
    /// Members of its minimum that have no node yet.
    pub(crate) missing: usize,
    /// What of its minimum it does not have yet.
    pub(crate) rest: BTreeMap<&'f str, i64>,
}

impl<'f> Applicant<'f> {
    /// As [`crate::cycle::Unit::seniority`].
    pub(crate) fn seniority(&self) -> (i64, i64, &'f GroupKey) {
        (-self.priority, self.created, self.key)
    }

    /// Whether what another has still to get is out of this one's reach.
    pub(crate) fn yields_to(&self, other: &Self, same_line: bool) -> bool {
        other.priority >= self.priority && (!same_line || other.line == self.line)
    }
}

/// Why a group is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) constraint: Constraint,
    pub(crate) message: String,
}

/// Who is in its queue and who is not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate<'f> {
    /// Those that are in, or are let in now. Nobody as long as nobody asks.
    pub(crate) inside: Vec<Applicant<'f>>,
    /// Those that are not let in.
    pub(crate) outside: Vec<Applicant<'f>>,
    /// The groups that ask: let in, or why not.
    pub(crate) answers: BTreeMap<&'f GroupKey, Option<Refusal>>,
}

impl<'f> Cycle<'f> {
    /// Lets groups into their queues, or says why not.
    pub(crate) fn admit(&self) -> Gate<'f> {
        let mut gate = Gate::default();
        let asks = |group: &Group| phase_of(group) == Some(GroupPhase::Pending);
        if !self.facts.groups.iter().any(|(_, _, group)| asks(group)) {
            return gate;
        }
        let mut applicants: Vec<Applicant<'f>> = Vec::new();
        for (key, _, group) in self.facts.groups.iter() {
            applicants.extend(self.applicant(key, group));
        }
        applicants.sort_by_key(|one| (!one.is_in, -one.priority, one.created, one.key));
        let (used, free) = (self.used(), self.free());
        for one in applicants {
            if !one.is_in {
                let refusal = self
                    .refusal(&one, &gate.inside, &used, &free)
                    .or_else(|| self.behind(&one, &gate.outside));
                let is_refused = refusal.is_some();
                gate.answers.insert(one.key, refusal);
                if is_refused {
                    gate.outside.push(one);
                    continue;
                }
            }
            gate.inside.push(one);
        }
        gate
    }

    fn applicant(&self, key: &'f GroupKey, group: &'f Group) -> Option<Applicant<'f>> {
        let object = group.object.as_ref()?;
        let phase = phase_of(group)?;
        let is_in = phase != GroupPhase::Pending;
        if phase == GroupPhase::Completed {
            return None;
        }
        let bound: Vec<_> =
            group.members.iter().copied().filter(|id| !group.waiting.contains(id)).collect();
        let has = self.facts.resources.amounts(&sum(self.facts, &bound));
        let rest = object.min_resources.iter().map(|(name, least)| (name, least - has.get(name)));
        Some(Applicant {
            key,
            queue: &object.queue,
            line: self.lines.iter().position(|line| line.name == object.queue),
            priority: self.facts.priority_of(key, group),
            created: object.created,
            is_in,
            missing: object.min_member.saturating_sub(bound.len()),
            rest: rest.filter(|(_, amount)| *amount > 0).collect(),
        })
    }

    /// What pods have, ours or not, of the nodes that are shared.
    fn used(&self) -> Amounts {
        let mut used = Vector::default();
        for room in self.board.rooms.iter().filter(|room| room.is_in_use()) {
            used.plus(&room.has, 1);
            used.plus(room.free(crate::room::View::Soon), -1);
        }
        self.facts.resources.amounts(&used)
    }

    /// What is free on all nodes that are in use.
    fn free(&self) -> Amounts {
        let mut free = Vector::default();
        for room in self.board.rooms.iter().filter(|room| room.is_in_use()) {
            for resource in 0..self.facts.resources.len() {
                let here = room.left(resource, View::Now).max(0);
                free.set(resource, free.get(resource).saturating_add(here));
            }
        }
        self.facts.resources.amounts(&free)
    }

    /// What a group asks for that its queue could not give it if it were empty. Such a group is not
    /// tried, with pods or without.
    pub(crate) fn larger_than_queue(&self, group: &Group, line: &Line<'f>) -> Option<Block> {
        let object = group.object.as_ref().filter(|_| phase_of(group) == Some(GroupPhase::Pending));
        let larger = object?.min_resources.iter().find_map(|(name, asked)| {
            let limit = self.limit(line, name);
            (asked > limit).then(|| (name.to_owned(), asked, limit))
        });
        let (resource, asked, limit) = larger?;
        Some(Block::LargerThanQueue { resource, asked, limit })
    }

    /// What a queue may use of a resource, known or not.
    fn limit(&self, line: &Line<'f>, name: &str) -> i64 {
        // What nobody has is no matter of the queue's.
        let index = self.facts.resources.known(name);
        let limit = index.map_or(ENDLESS, |index| line.share.limit.get(index));
        let said = line.queue.and_then(|queue| queue.capability.named(name));
        said.map_or(limit, |said| said.min(limit))
    }

    /// Whether nobody of its queue waits before it and it is no larger than the cluster. Such a group
    /// is let in however full the cluster is: only who has pods can take the place of others, have
    /// its share taken back, have room kept for it, or make a cluster grow.
    fn is_first(&self, one: &Applicant<'f>, inside: &[Applicant<'f>]) -> bool {
        let waits_before = |other: &&Applicant<'f>| {
            other.line == one.line && other.priority >= one.priority && !other.rest.is_empty()
        };
        let could_ever = one.rest.iter().all(|(name, amount)| {
            let index = self.facts.resources.known(name);
            index.is_some_and(|index| *amount <= self.board.total.get(index))
        });
        could_ever && !inside.iter().any(|other| waits_before(&other))
    }

    /// In a queue that is served in order nobody is let in past one that is not.
    fn behind(&self, one: &Applicant<'f>, outside: &[Applicant<'f>]) -> Option<Refusal> {
        let queue = self.lines.get(one.line?)?.queue.filter(|queue| queue.is_fifo)?;
        let first = outside.iter().find(|other| other.line == one.line)?;
        let message = words::behind(&queue.name, first.key.name());
        Some(Refusal { constraint: Constraint::QueueOrder, message })
    }

    fn refusal(
        &self,
        one: &Applicant<'f>,
        inside: &[Applicant<'f>],
        used: &Amounts,
        free: &Amounts,
    ) -> Option<Refusal> {
        let refused = |constraint, message| Some(Refusal { constraint, message });
        let Some(line) = one.line.and_then(|line| self.lines.get(line)) else {
            return refused(Constraint::Queue, format!("unable to find queue: {}", one.queue));
        };
        let Some(queue) = line.queue else {
            return refused(Constraint::Queue, format!("unable to find queue: {}", line.name));
        };
        if !queue.is_open {
            let message = format!(
                "can only submit PodGroup to queue with state `Open`, queue `{}` status is `{}`.",
                queue.name, queue.state
            );
            return refused(Constraint::QueueClosed, message);
        }
        let resources = &self.facts.resources;
        let spoken = |name: &str, same_line: bool| -> i64 {
            let counted = inside.iter().filter(|other| one.yields_to(other, same_line));
            counted.filter_map(|other| other.rest.get(name)).sum()
        };
        let over = |limit: &dyn Fn(&str, i64) -> bool| -> Vec<(&str, i64)> {
            let asked = one.rest.iter().filter(|(name, amount)| limit(name, **amount));
            asked.map(|(name, amount)| (*name, *amount)).collect()
        };
        let left = |name: &str| {
            let used = resources.known(name).map_or(0, |index| line.used.get(index));
            self.limit(line, name) - used - spoken(name, true)
        };
        let beyond = over(&|name, amount| amount > left(name));
        if !beyond.is_empty() {
            let names: Vec<&str> = beyond.iter().map(|(name, _)| *name).collect();
            let short = short_words(&beyond, left);
            let message = format!(
                "queue resource quota insufficient: insufficient {} (queue {:?}: {short})",
                names.join(", "),
                queue.name
            );
            return refused(Constraint::QueueLimit, message);
        }
        let beyond = over(&|name, amount| {
            let total = resources.known(name).map_or(0, |index| self.board.total.get(index));
            let most = i128::from(total) * i128::from(self.facts.config.overcommit) / 100;
            i128::from(used.get(name) + spoken(name, false) + amount) > most
        });
        if beyond.is_empty() || self.is_first(one, inside) {
            return None;
        }
        let short = short_words(&beyond, |name| free.get(name) - spoken(name, false));
        let is_idle = |(name, _): &(&str, i64)| used.get(name) + spoken(name, false) == 0;
        let message = if beyond.iter().all(is_idle) {
            format!("there is not enough in the cluster: {short}")
        } else {
            format!("resource in cluster is overused: {short}")
        };
        refused(Constraint::Room, message)
    }
}

/// What is short of which resources.
fn short_words<'n>(short: &[(&'n str, i64)], free: impl Fn(&'n str) -> i64) -> String {
    let words = |(name, asked): &(&'n str, i64)| words::too_little(name, *asked, free(name).max(0));
    short.iter().map(words).collect::<Vec<_>>().join("; ")
}

/// How far a PodGroup has come, with what is not written yet.
fn phase_of(group: &Group) -> Option<GroupPhase> {
    let object = group.object.as_ref()?;
    let reported = group.reported.as_ref().map_or(object.phase, |report| report.phase);
    Some(reported.max(object.phase))
}
