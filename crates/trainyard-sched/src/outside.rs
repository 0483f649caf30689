//! Why a group that is not let into its queue waits: what is short, who has it, what would help.
//!
//! Its pods are not made yet, so its PodGroup is all there is to go by: its members are taken for
//! equal parts of what its minimum asks for. Computed on demand; must not decide anything.

use crate::admit::{Applicant, Gate, Refusal};
use crate::cycle::Cycle;
use crate::fit::Obstacle;
use crate::holders::Holdings;
use crate::room::{Room, View};
use crate::vector::{ENDLESS, PODS};
use crate::{Constraint, Explanation, Node, PodGroup, Remedy, Shortage};

/// One resource that the group asks for.
#[derive(Debug, Clone)]
struct Want<'f> {
    name: &'f str,
    /// Nothing when no node and no pod has ever named it.
    index: Option<usize>,
    asked: i64,
    /// What falls to one member; the most that it can be, rounded up.
    each: i64,
    /// What is free on nodes and spoken for by nobody.
    free: i64,
    /// What is left of the queue's limit; below zero when the queue is above it.
    left: i64,
}

impl Want<'_> {
    fn of(&self, room: &Room, view: View) -> i64 {
        self.index.map_or(0, |index| room.left(index, view).max(0))
    }

    fn within_reach(&self) -> i64 {
        self.free.min(self.left).max(0)
    }
}

/// What the group asks for, and where its members could be.
struct Plea<'c, 'f> {
    members: i64,
    wants: Vec<Want<'f>>,
    rooms: Vec<&'c Room>,
    /// Whether its members are alike, as far as that can be told.
    is_even: bool,
}

impl<'f> Cycle<'f> {
    /// Completes what is told of a group that is not let in.
    pub(crate) fn explain_outside(
        &self,
        told: Explanation,
        object: &'f PodGroup,
        one: &Applicant<'f>,
        gate: &Gate<'f>,
    ) -> Explanation {
        let Some(Some(refusal)) = gate.answers.get(one.key) else { return told };
        let Refusal { constraint, message } = refusal.clone();
        let (position, of) =
            one.line.map_or((0, 0), |line| self.position(line, one.seniority(), gate));
        let told = Explanation { position, of, constraint, message, ..told };
        if !matches!(constraint, Constraint::Room | Constraint::QueueLimit) {
            return told;
        }
        let is_limited = constraint == Constraint::QueueLimit;
        let plea = self.plea(object, one, gate);
        let constraint = if plea.could_ever() { constraint } else { Constraint::TooLarge };
        let shortages = plea.shortages(is_limited);
        let counts = |record: &crate::facts::Record| {
            !is_limited || record.charged.as_deref() == Some(object.queue.as_str())
        };
        let mut holdings = Holdings::on_nodes(self.facts, self.board, Node::is_in_use, counts);
        for other in gate.inside.iter().filter(|other| one.yields_to(other, is_limited)) {
            holdings.claim(other.key, other.missing, &other.rest);
        }
        let line = one.line.and_then(|line| self.lines.get(line));
        let mut notes = told.notes;
        notes.extend(line.and_then(|line| line.queue?.unheeded()));
        notes.push(format!(
            "its pods are not made yet; each is taken for an equal part of what the {} ask for",
            object.min_member
        ));
        let mut remedies = plea.remedies();
        if constraint == Constraint::QueueLimit {
            let raises = plea.raises(&object.queue, line.and_then(|line| line.queue));
            if raises.len() > 1 {
                notes.push(format!("queue {:?}: raise all that is named", object.queue));
            }
            remedies.extend(raises);
        }
        Explanation {
            constraint,
            reasons: plea.reasons(self.facts),
            holders: holdings.named(&shortages),
            shortages,
            remedies,
            notes,
            ..told
        }
    }

    fn plea(&self, object: &PodGroup, one: &Applicant<'f>, gate: &Gate<'f>) -> Plea<'_, 'f> {
        let members = i64::try_from(one.missing.max(1)).unwrap_or(i64::MAX);
        let rooms: Vec<&Room> = self.board.rooms.iter().filter(|room| room.is_in_use()).collect();
        let mut rest = one.rest.clone();
        rest.entry(PODS).or_insert(members);
        let tasks = object.min_task_member.values().filter(|least| **least > 0).count();
        let is_even = tasks <= 1 && rest.values().all(|asked| asked % members == 0);
        let spoken = |name: &str, same_line: bool| -> i64 {
            let before = gate.inside.iter().filter(|other| one.yields_to(other, same_line));
            before.filter_map(|other| other.rest.get(name)).sum()
        };
        let line = one.line.and_then(|line| self.lines.get(line));
        let account = self.facts.accounts.get(&object.queue);
        let wants = rest.into_iter().map(|(name, asked)| {
            let index = self.facts.resources.known(name);
            let each = asked / members + i64::from(asked % members > 0);
            let mut want = Want { name, index, asked, each, free: 0, left: ENDLESS };
            let free = rooms.iter().map(|room| want.of(room, View::Now));
            let free = free.fold(0_i64, i64::saturating_add);
            want.free = free.saturating_sub(spoken(name, false));
            if let Some(line) = line {
                let limit = index.map_or(ENDLESS, |index| line.share.limit.get(index));
                let said = line.queue.and_then(|queue| queue.capability.named(name));
                let used = index
                    .and_then(|index| Some(account?.used.get(index)))
                    .unwrap_or(0)
                    .saturating_add(spoken(name, true));
                want.left = limit.min(said.unwrap_or(ENDLESS)).saturating_sub(used);
            }
            want
        });
        Plea { members, wants: wants.collect(), rooms, is_even }
    }
}

impl Plea<'_, '_> {
    /// How many members there is room for on nodes, each asking `each` of a resource.
    fn fitting(&self, view: View, each: impl Fn(&Want<'_>) -> i64) -> i64 {
        let mut all = 0_i64;
        for room in &self.rooms {
            let parts = self
                .wants
                .iter()
                .map(|want| want.of(room, view).checked_div(each(want)).unwrap_or(self.members));
            all = all.saturating_add(parts.min().unwrap_or(self.members));
        }
        all.min(self.members)
    }

    /// Whether it would fit if everything scheduled here ended. Members that are not alike may be
    /// smaller than they are taken for, so that only what they ask for together counts.
    fn could_ever(&self) -> bool {
        let is_there = |want: &Want<'_>| {
            let ever = self.rooms.iter().map(|room| want.of(room, View::Ever));
            let most = ever.clone().max().unwrap_or(0);
            // One of them asks for the average at least.
            ever.fold(0, i64::saturating_add) >= want.asked && most >= want.asked / self.members
        };
        let fits = || self.fitting(View::Ever, |want| want.each) >= self.members;
        self.wants.iter().all(is_there) && (!self.is_even || fits())
    }

    fn shortages(&self, is_limited: bool) -> Vec<Shortage> {
        let all = self.wants.iter().filter_map(|want| {
            let free = if is_limited { want.within_reach() } else { want.free.max(0) };
            let most = self.rooms.iter().map(|room| want.of(room, View::Now)).max().unwrap_or(0);
            (free < want.asked || most < want.each).then(|| Shortage {
                resource: want.name.to_owned(),
                asked: want.asked,
                free,
                most_on_one_node: most,
                per_member: want.each,
            })
        });
        all.collect()
    }

    /// Why nodes have no room for one more than fit. Nothing can be told of members that differ.
    fn reasons(&self, facts: &crate::facts::Facts) -> std::collections::BTreeMap<String, usize> {
        let mut counts = std::collections::BTreeMap::new();
        if !self.is_even || self.fitting(View::Now, |want| want.each) >= self.members {
            return counts;
        }
        for room in &self.rooms {
            let whole = |want: &Want<'_>| want.of(room, View::Now) / want.each.max(1);
            let here = self.wants.iter().map(whole).min().unwrap_or(0);
            for want in self.wants.iter().filter(|want| whole(want) == here) {
                let words = match want.index {
                    _ if want.name == PODS => Obstacle::Pods.words(facts),
                    Some(index) => Obstacle::Short(index).words(facts),
                    None => format!("Insufficient {}", want.name),
                };
                *counts.entry(words).or_default() += 1;
            }
        }
        counts
    }

    fn remedies(&self) -> Vec<Remedy> {
        let mut remedies = Vec::new();
        let reach = self.wants.iter().map(|want| want.within_reach() / want.each.max(1));
        let fitting = self.fitting(View::Now, |want| want.each);
        let fitting = reach.min().unwrap_or(fitting).min(fitting);
        if fitting > 0 && fitting < self.members {
            let count = |number: i64| usize::try_from(number).unwrap_or(0);
            let (from, to) = (count(self.members), count(fitting));
            remedies.push(Remedy::FewerMembers { from, to });
        }
        if self.is_even {
            remedies.extend(self.wants.iter().filter_map(|want| self.smaller(want)));
        }
        remedies
    }

    /// How much of a resource each member may ask for, so that all fit.
    fn smaller(&self, one: &Want<'_>) -> Option<Remedy> {
        let fits = |amount: i64| {
            let each = |want: &Want<'_>| if want.name == one.name { amount } else { want.each };
            let is_within =
                |want: &Want<'_>| each(want).saturating_mul(self.members) <= want.within_reach();
            self.wants.iter().all(is_within) && self.fitting(View::Now, each) >= self.members
        };
        if one.name == PODS || !fits(0) {
            return None;
        }
        let (mut low, mut high) = (0, one.each);
        while high - low > 1 {
            let middle = i64::midpoint(low, high);
            if fits(middle) { low = middle } else { high = middle }
        }
        let resource = one.name.to_owned();
        (low > 0).then_some(Remedy::SmallerMembers { resource, from: one.each, to: low })
    }

    /// By how much the queue's capability is too small. What is kept for other queues cannot be
    /// had by raising it.
    fn raises(&self, name: &str, queue: Option<&crate::Queue>) -> Vec<Remedy> {
        let over = self.wants.iter().filter(|want| want.asked > want.left);
        let named = over
            .filter(|want| queue.is_some_and(|queue| queue.capability.named(want.name).is_some()));
        let raise = |want: &Want<'_>| Remedy::RaiseLimit {
            queue: name.to_owned(),
            resource: want.name.to_owned(),
            by: want.asked - want.left,
        };
        named.map(raise).collect()
    }
}
