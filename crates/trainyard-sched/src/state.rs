//! The state of the cluster as far as scheduling goes: told of changes, asked for decisions.
//!
//! Owns keeping the sums true with every change; what is decided is `cycle`'s.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::Config;
use crate::cycle::Cycle;
use crate::facts::{Facts, Group, Record, Stand};
use crate::refuse::Refusals;
use crate::room::{ALL, Board, NOW, NOW_AND_SOON, Views};
use crate::slots::Id;
use crate::storage::ClaimKey;
use crate::{Decision, Delta, Doing, GroupKey, GroupReport, Pod, PodGroup, PodName, Reported};

/// All that is known.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(crate) facts: Facts,
    pub(crate) board: Board,
    /// Groups that something has happened to since the last decision.
    pub(crate) touched: BTreeSet<GroupKey>,
    /// Nodes that have refused what was bound to them.
    refusals: Refusals,
}

impl State {
    /// A state for pods that name one of these schedulers.
    #[must_use]
    pub fn new(schedulers: impl IntoIterator<Item = String>) -> Self {
        let schedulers = schedulers.into_iter().collect();
        Self::with(Config { schedulers, ..Config::default() })
    }

    /// A state with settings.
    #[must_use]
    pub fn with(config: Config) -> Self {
        let facts = Facts { config, ..Facts::default() };
        Self { facts, ..Self::default() }
    }

    /// Takes note of a change.
    pub fn apply(&mut self, delta: Delta) {
        let facts = &mut self.facts;
        match delta {
            Delta::Pod(pod) => self.pod(*pod),
            Delta::PodGone(key) => self.forget(&key),
            Delta::Node(node) => {
                let name = node.name.clone();
                self.board.set_node(&name, Some(*node), &mut facts.resources);
            }
            Delta::NodeGone(name) => self.board.set_node(&name, None, &mut facts.resources),
            Delta::Group(group) => self.group(*group),
            Delta::GroupGone(namespace, name) => {
                self.set_group(&GroupKey::PodGroup { namespace, name }, None);
            }
            Delta::Queue(queue) => {
                let name = queue.name.clone();
                facts.accounts.entry(name).or_default().object = Some(*queue);
            }
            Delta::QueueGone(name) => {
                if let Some(account) = facts.accounts.get_mut(&name) {
                    account.object = None;
                }
                self.tidy_account(&name);
            }
            Delta::Class(class) => {
                facts.classes.insert(class.name().to_owned(), class);
            }
            Delta::ClassGone(name) => {
                facts.classes.remove(&name);
            }
            Delta::Namespace(namespace) => {
                facts.namespaces.insert(namespace.name.clone(), *namespace);
            }
            Delta::NamespaceGone(name) => drop(facts.namespaces.remove(&name)),
            Delta::Budget(budget) => {
                facts.budgets.insert(budget.key(), *budget);
            }
            Delta::BudgetGone(namespace, name) => {
                facts.budgets.remove(&(namespace, name));
            }
            Delta::Storage(delta) => {
                if let Some(claim) = facts.storage.apply(*delta) {
                    self.forget_promises(&claim);
                }
            }
            Delta::ClaimWritten(written) => facts.storage.assumed_mut().written(&written),
            Delta::Doing(key, uid, doing) => self.doing(&key, &uid, doing),
            Delta::Failed(key, uid, doing) => self.failed(&key, &uid, &doing),
            Delta::Reported(reported) => self.was_reported(*reported),
        }
    }

    /// A claim is not to be provisioned where its pod was to go: its group is placed anew.
    fn forget_promises(&mut self, claim: &ClaimKey) {
        let facts = &mut self.facts;
        let groups: BTreeSet<Id> = facts
            .storage
            .users(claim)
            .filter_map(|id| facts.record(id).map(|record| record.group))
            .collect();
        for id in groups {
            let waiting = facts.groups.get(id).map(|group| group.waiting.clone());
            for member in waiting.unwrap_or_default() {
                if let Some(record) = facts.pods.get_mut(member) {
                    // What its status names does not count any more.
                    record.promised = Some(String::new());
                }
            }
        }
    }

    /// Something could not be done: the pod is as it was before.
    fn failed(&mut self, key: &PodName, uid: &str, doing: &Doing) {
        self.with_record(key, uid, |record| match doing {
            Doing::Binding(_) => record.assumed = None,
            Doing::Promising(_) => record.promised = None,
            Doing::Evicting => record.is_evicted = false,
            Doing::Telling => record.told = None,
        });
    }

    /// When something is to be decided without a change, in seconds since 1970: what waits grows
    /// old, and a node that has refused a pod is tried again. Nothing as long as nothing waits.
    #[must_use]
    pub fn next_due(&self, now: i64) -> Option<i64> {
        let facts = &self.facts;
        let bounds = [facts.config.reserve_after, facts.config.overdue_after];
        let groups = facts.waiting.iter().filter_map(|key| facts.groups.get(facts.groups.id(key)?));
        let since = groups.filter_map(|group| {
            group.waiting.iter().filter_map(|id| Some(facts.record(*id)?.pod.created)).min()
        });
        let ages = since.flat_map(|since| bounds.map(|bound| since.saturating_add(bound)));
        let refusals = self.refusals.ends().filter(|_| !facts.waiting.is_empty());
        let volumes = facts.storage.assumed().ends();
        ages.chain(refusals).chain(volumes).filter(|due| *due > now).min()
    }

    /// The names of all pods.
    #[must_use]
    pub fn pod_names(&self) -> Vec<PodName> {
        self.facts.pods.keys().cloned().collect()
    }

    /// The names of all nodes.
    #[must_use]
    pub fn node_names(&self) -> Vec<String> {
        let known = self.board.rooms.iter().filter(|room| room.node.is_some());
        known.map(|room| room.name.clone()).collect()
    }

    /// What follows from the state at a time, in seconds since 1970. Decisions are taken for done:
    /// whoever carries them out tells of each pod again, or that it failed.
    pub fn decide(&mut self, now: i64) -> Vec<Decision> {
        self.refusals.pass(now, &mut self.board);
        self.facts.storage.pass(now);
        let touched = std::mem::take(&mut self.touched);
        let decisions = Cycle::new(&self.facts, &mut self.board, now).run(&touched);
        for decision in &decisions {
            match decision {
                Decision::Bind { pod, uid, node } => {
                    self.doing(pod, uid, Doing::Binding(node.clone()));
                }
                Decision::Promise { pod, uid, node } => {
                    self.doing(pod, uid, Doing::Promising(node.clone()));
                }
                Decision::Evict { pod, uid, .. } => {
                    self.doing(pod, uid, Doing::Evicting);
                }
                Decision::BindClaim(bind) => self.facts.storage.assumed_mut().bind(bind),
                Decision::ReleaseClaim(one) => self.facts.storage.assumed_mut().release(one),
                Decision::Wait { pod, message, .. } => self.told(pod, message),
                Decision::Report(report) => self.reported(report),
            }
        }
        decisions
    }

    fn told(&mut self, pod: &PodName, message: &Arc<str>) {
        let id = self.facts.pods.id(pod);
        if let Some(record) = id.and_then(|id| self.facts.pods.get_mut(id)) {
            record.told = Some(message.clone());
        }
    }

    fn reported(&mut self, report: &GroupReport) {
        let (namespace, name) = (report.namespace.clone(), report.name.clone());
        let id = self.facts.groups.id(&GroupKey::PodGroup { namespace, name });
        if let Some(group) = id.and_then(|id| self.facts.groups.get_mut(id)) {
            group.reported = Some(report.clone());
            group.reported_at = None;
        }
    }

    /// A report was written, or is to be made again.
    fn was_reported(&mut self, reported: Reported) {
        let Reported { namespace, name, uid, version } = reported;
        let key = GroupKey::PodGroup { namespace, name };
        let id = self.facts.groups.id(&key);
        let Some(group) = id.and_then(|id| self.facts.groups.get_mut(id)) else { return };
        if group.object.as_ref().is_none_or(|object| object.uid != uid) {
            return;
        }
        group.reported_at = version;
        if version.is_none() {
            group.reported = None;
        }
        if group.is_contradicted() {
            group.reported = None;
        }
        if group.reported.is_none() {
            self.touched.insert(key);
        }
    }

    fn doing(&mut self, key: &PodName, uid: &str, doing: Doing) {
        self.with_record(key, uid, |record| match doing {
            Doing::Binding(node) => {
                record.assumed = Some(node);
                record.promised = None;
                record.told = None;
            }
            Doing::Promising(node) => record.promised = Some(node),
            Doing::Evicting => record.is_evicted = true,
            Doing::Telling => {}
        });
    }

    /// Changes what is known of a pod, sums included.
    fn with_record(&mut self, key: &PodName, uid: &str, change: impl FnOnce(&mut Record)) {
        let Some(id) = self.facts.pods.id(key) else { return };
        if self.facts.record(id).is_none_or(|record| record.pod.uid != uid) {
            return;
        }
        self.uncharge(id);
        if let Some(record) = self.facts.pods.get_mut(id) {
            change(record);
        }
        self.charge(id);
    }

    fn pod(&mut self, pod: Pod) {
        let known = self.facts.pods.id(&pod.key).and_then(|id| Some((id, self.facts.record(id)?)));
        let same = known.filter(|(_, record)| record.pod.uid == pod.uid);
        let kept = same.map(|(_, record)| {
            // What the API server has taken note of need not be assumed any more.
            let assumed = record.assumed.clone().filter(|_| pod.node.is_empty());
            let promised = record.promised.clone().filter(|at| *at != pod.nominated);
            (assumed, promised, record.is_evicted, record.told.clone())
        });
        let was_accepted = same.is_some_and(|(_, record)| {
            record.is_ours && !record.pod.is_over() && !record.node().is_empty()
        });
        if was_accepted && pod.is_refused && pod.phase == crate::Phase::Failed {
            self.refusals.note(&pod.node);
        }
        self.forget(&pod.key);
        // One that is new here may have been told before.
        let (assumed, promised, is_evicted, told) =
            kept.unwrap_or_else(|| (None, None, false, pod.said.clone()));
        let facts = &mut self.facts;
        let shape = facts.shapes.of(&pod, &mut facts.resources);
        let is_ours = facts.config.schedulers.contains(&pod.scheduler);
        let key = pod.group.clone();
        let group = match facts.groups.id(&key) {
            Some(id) => id,
            None => facts.groups.insert(key, Group::default()),
        };
        let name = pod.key.clone();
        let record = Record {
            pod,
            shape,
            group,
            assumed,
            promised,
            is_evicted,
            told,
            is_ours,
            charged: None,
        };
        let id = self.facts.pods.insert(name, record);
        let Facts { pods, storage, .. } = &mut self.facts;
        if let Some(record) = pods.get(id) {
            storage.used_by(&record.pod, id, true);
        }
        self.regroup(group, |group| {
            group.members.insert(id);
        });
        self.charge(id);
    }

    fn forget(&mut self, key: &PodName) {
        let Some(id) = self.facts.pods.id(key) else { return };
        self.uncharge(id);
        let Some(group) = self.facts.record(id).map(|record| record.group) else { return };
        self.regroup(group, |group| {
            group.members.remove(&id);
            group.waiting.remove(&id);
        });
        if let Some(record) = self.facts.pods.remove(key) {
            self.facts.storage.used_by(&record.pod, id, false);
            self.tidy_group(&record.pod.group);
            self.facts.shapes.release(record.shape);
        }
    }

    fn group(&mut self, group: PodGroup) {
        let (namespace, name) = (group.namespace.clone(), group.name.clone());
        self.set_group(&GroupKey::PodGroup { namespace, name }, Some(group));
    }

    fn set_group(&mut self, key: &GroupKey, object: Option<PodGroup>) {
        let id = match self.facts.groups.id(key) {
            Some(id) => id,
            None => self.facts.groups.insert(key.clone(), Group::default()),
        };
        self.regroup(id, |group| {
            let uid = |object: &Option<PodGroup>| object.as_ref().map(|object| object.uid.clone());
            if uid(&group.object) != uid(&object) {
                group.reported = None;
                group.reported_at = None;
            }
            group.object = object;
            if group.is_contradicted() {
                group.reported = None;
            }
        });
        self.touched.insert(key.clone());
        self.tidy_group(key);
    }

    /// Changes a group; its members are charged anew where its queue has changed.
    fn regroup(&mut self, id: Id, change: impl FnOnce(&mut Group)) {
        let queue =
            |facts: &Facts| facts.groups.get(id).map(|group| facts.queue_of(group).to_owned());
        let before = queue(&self.facts);
        let Some(group) = self.facts.groups.get_mut(id) else { return };
        group.muster.take();
        change(group);
        if queue(&self.facts) != before {
            let members = self.facts.groups.get(id).map(|group| group.members.clone());
            for member in members.unwrap_or_default() {
                if self.facts.record(member).is_some_and(|record| record.charged.is_some()) {
                    self.uncharge(member);
                    self.charge(member);
                }
            }
        }
    }

    fn tidy_group(&mut self, key: &GroupKey) {
        let Some(id) = self.facts.groups.id(key) else { return };
        let is_empty = |group: &Group| group.object.is_none() && group.members.is_empty();
        if self.facts.groups.get(id).is_some_and(is_empty) {
            self.facts.groups.remove(key);
            self.touched.remove(key);
        }
    }

    fn tidy_account(&mut self, queue: &str) {
        let unused =
            |account: &crate::facts::Account| account.object.is_none() && account.pods == 0;
        if self.facts.accounts.get(queue).is_some_and(unused) {
            self.facts.accounts.remove(queue);
        }
    }

    /// Adds a pod to the sums.
    fn charge(&mut self, id: Id) {
        let facts = &mut self.facts;
        let Some(record) = facts.pods.get(id) else { return };
        let Some(group) = facts.groups.get(record.group) else { return };
        let queue = facts.queue_of(group).to_owned();
        let stand = record.stand();
        if let Some(views) = views(record, stand) {
            self.board.enter(record.node(), id, &record.shape, views);
        }
        let key = record.pod.group.clone();
        if record.is_ours {
            let account = facts.accounts.entry(queue.clone()).or_default();
            account.pods += 1;
            match stand {
                Stand::Bound => account.used.add(&record.shape.ask, 1),
                Stand::Leaving => account.leaving.add(&record.shape.ask, 1),
                Stand::Waiting => account.wanted.add(&record.shape.ask, 1),
                _ => {}
            }
            if stand == Stand::Waiting
                && let Some(group) = facts.groups.get_mut(record.group)
            {
                group.waiting.insert(id);
                facts.waiting.insert(key.clone());
            }
        }
        if let Some(group) = facts.groups.get_mut(record.group) {
            group.muster.take();
        }
        if let Some(record) = facts.pods.get_mut(id) {
            record.charged = Some(queue);
        }
        self.touched.insert(key);
    }

    /// Takes a pod out of the sums, as [`State::charge`] put it in.
    fn uncharge(&mut self, id: Id) {
        let facts = &mut self.facts;
        let Some(record) = facts.pods.get_mut(id) else { return };
        let Some(queue) = record.charged.take() else { return };
        let stand = record.stand();
        if let Some(views) = views(record, stand) {
            let node = record.node().to_owned();
            self.board.leave(&node, id, &record.shape, views);
        }
        self.touched.insert(record.pod.group.clone());
        if let Some(group) = facts.groups.get_mut(record.group) {
            group.muster.take();
        }
        if !record.is_ours {
            return;
        }
        if let Some(account) = facts.accounts.get_mut(&queue) {
            account.pods -= 1;
            match stand {
                Stand::Bound => account.used.add(&record.shape.ask, -1),
                Stand::Leaving => account.leaving.add(&record.shape.ask, -1),
                Stand::Waiting => account.wanted.add(&record.shape.ask, -1),
                _ => {}
            }
        }
        if let Some(group) = facts.groups.get_mut(record.group) {
            group.waiting.remove(&id);
            if group.waiting.is_empty() {
                facts.waiting.remove(&record.pod.group);
            }
        }
        self.tidy_account(&queue);
    }
}

/// Of which times a pod takes room; nothing for one without.
fn views(record: &Record, stand: Stand) -> Option<Views> {
    match stand {
        Stand::Bound if record.is_ours => Some(NOW_AND_SOON),
        Stand::Bound => Some(ALL),
        Stand::Leaving => Some(NOW),
        _ => None,
    }
}
