//! Why a group waits, as data: what binds it, what is short, who has it, what would help.
//!
//! Computed on demand from a copy; must not decide anything.

use std::collections::BTreeMap;

use crate::admit::{Applicant, Gate};
use crate::cycle::{Block, Cycle, Unit, Verdict};
use crate::facts::Record;
use crate::holders::Holdings;
use crate::place::place_some;
use crate::room::View;
use crate::serve::sum;
use crate::slots::Id;
use crate::{
    Amounts, Constraint, Explanation, GroupKey, Holder, Node, Remedy, Shortage, State, fit,
};

impl State {
    /// Why a group waits; nothing if it is not known.
    #[must_use]
    pub fn explain(&self, key: &GroupKey, now: i64) -> Option<Explanation> {
        let mut board = self.board.clone();
        let group = self.facts.groups.get(self.facts.groups.id(key)?)?;
        let mut cycle = Cycle::new(&self.facts, &mut board, now);
        let before = cycle.board.mark();
        cycle.settle();
        let gate = cycle.admit();
        // Of members that are there it says little why those that are missing are not made.
        let is_refused = matches!(gate.answers.get(key), Some(Some(_)));
        let is_told = |unit: &Unit<'_>| {
            let is_missing = matches!(unit.verdict, Some(Verdict::Blocked(Block::Missing(_))));
            unit.key == key && !(is_refused && is_missing)
        };
        let Some(index) = cycle.units.iter().position(is_told) else {
            let standing = &self.facts.muster(key, group).standing;
            let queue = self.facts.queue_of(group).to_owned();
            let mut told = cycle.at_rest(key, queue, standing);
            told.priority = self.facts.priority_of(key, group);
            told.since = self.facts.created_of(group);
            let applicant = gate.outside.iter().find(|one| one.key == key);
            if let Some((one, object)) = applicant.zip(group.object.as_ref()) {
                // What was decided just now is counted as what is spoken for.
                cycle.board.undo(before);
                told = cycle.explain_outside(told, object, one, &gate);
            } else if let Some(missing) = standing.missing() {
                told.message = crate::report::missing_words(key, &missing);
            }
            return Some(told.with_group(key, &self.facts));
        };
        Some(cycle.explain(index, &gate))
    }

    /// The groups with members that wait, in the order of their names.
    pub fn waiting(&self) -> impl Iterator<Item = &GroupKey> {
        self.facts.waiting.iter()
    }

    /// The group of a pod.
    #[must_use]
    pub fn group_of(&self, pod: &crate::PodName) -> Option<&GroupKey> {
        Some(&self.facts.record(self.facts.pods.id(pod)?)?.pod.group)
    }

    /// Pods of a scheduler that are in no group and have not ended.
    #[must_use]
    pub fn lone_pods(&self, scheduler: &str) -> Vec<crate::PodName> {
        let alone =
            self.facts.groups.iter().filter(|(key, ..)| matches!(key, GroupKey::Pod { .. }));
        let pods = alone.flat_map(|(_, _, group)| &group.members);
        let pods = pods.filter_map(|id| self.facts.record(*id)).filter(|record| {
            let pod = &record.pod;
            record.is_ours && pod.scheduler == scheduler && !pod.is_leaving && !pod.is_over()
        });
        pods.map(|record| record.pod.key.clone()).collect()
    }

    /// A PodGroup.
    #[must_use]
    pub fn pod_group(&self, namespace: &str, name: &str) -> Option<&crate::PodGroup> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let id = self.facts.groups.id(&GroupKey::PodGroup { namespace, name })?;
        self.facts.groups.get(id)?.object.as_ref()
    }

    /// What the pods of a queue use (`status.allocated`).
    #[must_use]
    pub fn allocated(&self, queue: &str) -> Amounts {
        let account = self.facts.accounts.get(queue);
        account.map_or_else(Amounts::default, |account| self.facts.resources.amounts(&account.used))
    }
}

impl<'f> Cycle<'f> {
    fn at_rest(
        &self,
        key: &GroupKey,
        queue: String,
        standing: &crate::gang::Standing,
    ) -> Explanation {
        Explanation {
            group: key.clone(),
            queue,
            priority: 0,
            minimum: standing.minimum,
            ready: standing.ready,
            waiting: 0,
            position: 0,
            of: 0,
            since: 0,
            constraint: if standing.missing().is_some() {
                Constraint::Members
            } else {
                Constraint::None
            },
            message: String::new(),
            nodes: self.board.nodes,
            reasons: BTreeMap::new(),
            shortages: Vec::new(),
            holders: Vec::new(),
            remedies: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn explain(&mut self, index: usize, gate: &Gate<'f>) -> Explanation {
        let facts = self.facts;
        let (position, of) = self
            .units
            .get(index)
            .map_or((0, 0), |unit| self.position(unit.line, unit.seniority(), gate));
        let shortages = self.shortages(index);
        let remedies = self.remedies(index);
        let constraint = self.constraint(index);
        let Some(unit) = self.units.get(index) else {
            let queue = String::new();
            let standing = crate::gang::Standing::default();
            let nobody = GroupKey::Pod { namespace: String::new(), name: String::new() };
            return self.at_rest(&nobody, queue, &standing);
        };
        let line = self.lines.get(unit.line);
        let reasons = match &unit.verdict {
            Some(Verdict::Room(stuck)) => self.reasons(stuck),
            _ => BTreeMap::new(),
        };
        let verdict = unit.verdict.as_ref();
        let message = verdict.map_or_else(String::new, |verdict| self.message(unit, verdict));
        // Where the others go on it is these that wait.
        let aside = unit.aside.first().filter(|_| constraint == Constraint::None);
        let (constraint, message) = aside.map_or((constraint, message), |(_, block)| {
            (of_block(block), self.block_words(unit, block))
        });
        Explanation {
            queue: line.map_or_else(String::new, |line| line.name.to_owned()),
            priority: unit.priority,
            position,
            of,
            since: unit.since,
            waiting: unit.standing.waiting.len() + unit.left_out.len() + unit.aside.len(),
            constraint,
            message,
            reasons,
            holders: self.holders(unit, &shortages),
            shortages,
            remedies,
            notes: line.and_then(|line| line.queue?.unheeded()).into_iter().collect(),
            ..self.at_rest(unit.key, String::new(), &unit.standing)
        }
        .with_group(unit.key, facts)
    }

    fn constraint(&mut self, index: usize) -> Constraint {
        let Some(unit) = self.units.get(index) else { return Constraint::None };
        match &unit.verdict {
            None | Some(Verdict::Placed | Verdict::Share(_)) => Constraint::None,
            Some(Verdict::Volumes) => Constraint::Volumes,
            Some(Verdict::Soon(_)) => Constraint::Releasing,
            Some(Verdict::Limit(_)) => Constraint::QueueLimit,
            Some(Verdict::Blocked(block)) => of_block(block),
            Some(Verdict::Room(_)) => {
                let chosen = self.wanted(index);
                let mark = self.board.mark();
                for at in (0..self.holds.len()).collect::<Vec<_>>() {
                    self.drop_hold(at);
                }
                let fits = self.find(index, &chosen, View::Ever).is_ok();
                self.board.undo(mark);
                if fits { Constraint::Room } else { Constraint::TooLarge }
            }
        }
    }

    /// The members whose placing failed.
    fn wanted(&self, index: usize) -> Vec<Id> {
        let Some(unit) = self.units.get(index) else { return Vec::new() };
        if unit.standing.is_ready() {
            return unit.left_out.clone();
        }
        let waiting = &unit.standing.waiting;
        unit.standing.enough(self.facts, waiting).unwrap_or_else(|| waiting.clone())
    }

    /// A place among the groups of a queue that wait, those included that are not let in, and how
    /// many those are.
    pub(crate) fn position(
        &self,
        line: usize,
        own: (i64, i64, &GroupKey),
        gate: &Gate<'f>,
    ) -> (usize, usize) {
        let is_waiting =
            |unit: &&Unit<'f>| unit.line == line && !matches!(unit.verdict, Some(Verdict::Placed));
        let units = self.units.iter().filter(is_waiting).map(Unit::seniority);
        let has_unit = |key: &GroupKey| self.units.iter().any(|unit| *unit.key == *key);
        let outside =
            gate.outside.iter().filter(|one| one.line == Some(line) && !has_unit(one.key));
        let all: Vec<_> = units.chain(outside.map(Applicant::seniority)).collect();
        (all.iter().filter(|one| **one <= own).count(), all.len())
    }

    fn shortages(&self, index: usize) -> Vec<Shortage> {
        let wanted = self.wanted(index);
        self.shortages_of(&wanted, &sum(self.facts, &wanted))
    }

    fn holders(&self, unit: &Unit<'f>, shortages: &[Shortage]) -> Vec<Holder> {
        let records = unit.standing.waiting.iter().chain(&unit.left_out);
        let records: Vec<_> = records.filter_map(|id| self.facts.record(*id)).collect();
        let is_open = |node: &Node| {
            let is_open = |record: &&Record| fit::barred(&record.shape, node, self.facts).is_none();
            records.iter().any(is_open)
        };
        let is_other = |record: &Record| record.pod.group != *unit.key;
        Holdings::on_nodes(self.facts, self.board, is_open, is_other).named(shortages)
    }

    fn remedies(&mut self, index: usize) -> Vec<Remedy> {
        let Some(unit) = self.units.get(index) else { return Vec::new() };
        let wanted = self.wanted(index);
        match unit.verdict.clone() {
            Some(Verdict::Blocked(Block::LargerThanQueue { resource, asked, limit })) => {
                let Some(line) = self.lines.get(unit.line) else { return Vec::new() };
                let queue = line.name.to_owned();
                vec![Remedy::RaiseLimit { queue, resource, by: asked - limit }]
            }
            Some(Verdict::Limit(resource)) => {
                let ask = sum(self.facts, &wanted);
                let Some(line) = self.lines.get(unit.line) else { return Vec::new() };
                let over = line.used.get(resource) + line.kept.get(resource) + ask.get(resource)
                    - line.share.limit.get(resource);
                vec![Remedy::RaiseLimit {
                    queue: line.name.to_owned(),
                    resource: self.facts.resources.name(resource).to_owned(),
                    by: over,
                }]
            }
            Some(Verdict::Room(_)) => {
                let mark = self.board.mark();
                let own: Vec<usize> =
                    (0..self.holds.len()).filter(|at| self.is_hold_of(*at, index)).collect();
                for at in own {
                    self.drop_hold(at);
                }
                let request = self.request(index, View::Now);
                let fitting = place_some(&request, self.board, &wanted).len();
                self.board.undo(mark);
                let mut remedies = Vec::new();
                if fitting > 0 && fitting < wanted.len() {
                    remedies.push(Remedy::FewerMembers { from: wanted.len(), to: fitting });
                }
                remedies.extend(self.smaller(index, &wanted));
                remedies
            }
            _ => Vec::new(),
        }
    }

    /// How much of a resource alike members may ask for to fit all.
    fn smaller(&self, index: usize, wanted: &[Id]) -> Vec<Remedy> {
        let facts = self.facts;
        let records: Vec<_> = wanted.iter().filter_map(|id| facts.record(*id)).collect();
        let Some(first) = records.first() else { return Vec::new() };
        let shape = &first.shape;
        let is_alike = records.iter().all(|one| std::sync::Arc::ptr_eq(&one.shape, shape));
        let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
        if !is_alike || !shape.spec.peers.is_empty() || !shape.spec.ports.is_empty() {
            return Vec::new();
        }
        let kept_out = self.is_kept_out(index);
        let rooms: Vec<_> = self
            .board
            .rooms
            .iter()
            .filter(|room| {
                let node = room.node.as_ref();
                node.is_some_and(|node| fit::barred(shape, node, facts).is_none())
                    && !(kept_out && room.is_kept)
            })
            .collect();
        let fits = |resource: usize, amount: i64| {
            let mut all = 0_i64;
            for room in &rooms {
                let each = shape.ask.0.iter().map(|(asked, own)| {
                    let own = if *asked == resource { amount } else { *own };
                    room.left(*asked, View::Now).max(0).checked_div(own).unwrap_or(count)
                });
                all = all.saturating_add(each.min().unwrap_or(count));
            }
            all >= count
        };
        let mut remedies = Vec::new();
        for (resource, asked) in &shape.ask.0 {
            if facts.resources.is_pods(*resource) || !fits(*resource, 0) {
                continue;
            }
            let (mut low, mut high) = (0, *asked);
            while high - low > 1 {
                let middle = i64::midpoint(low, high);
                if fits(*resource, middle) { low = middle } else { high = middle }
            }
            if low > 0 && low < *asked {
                remedies.push(Remedy::SmallerMembers {
                    resource: facts.resources.name(*resource).to_owned(),
                    from: *asked,
                    to: low,
                });
            }
        }
        remedies.sort_by(|one, other| named(one).cmp(named(other)));
        remedies
    }
}

fn of_block(block: &Block) -> Constraint {
    match block {
        Block::NoGroup => Constraint::PodGroup,
        Block::NoQueue => Constraint::Queue,
        Block::Closed => Constraint::QueueClosed,
        Block::LargerThanQueue { .. } => Constraint::QueueLimit,
        Block::Missing(_) => Constraint::Members,
        Block::Beyond(_) => Constraint::Unsupported,
        Block::Claim(_) => Constraint::Claim,
        Block::Behind(_) => Constraint::QueueOrder,
    }
}

fn named(remedy: &Remedy) -> &str {
    match remedy {
        Remedy::SmallerMembers { resource, .. } | Remedy::RaiseLimit { resource, .. } => resource,
        Remedy::FewerMembers { .. } => "",
    }
}

impl Explanation {
    fn with_group(mut self, key: &GroupKey, facts: &crate::facts::Facts) -> Self {
        self.group = key.clone();
        let id = facts.groups.id(key);
        let object = id.and_then(|id| facts.groups.get(id)).and_then(|group| group.object.as_ref());
        let class = object.map(|object| object.priority_class.as_str()).unwrap_or_default();
        if !class.is_empty() && !facts.classes.contains_key(class) {
            self.notes.push(format!("priority class {class:?} does not exist"));
        }
        self
    }
}
