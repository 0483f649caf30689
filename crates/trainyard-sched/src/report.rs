//! What comes out of a decision: writes, and what is said of those that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::admit::Refusal;
use crate::cycle::{Block, Cycle, Unit, Verdict};
use crate::gang::{Missing, Standing};
use crate::group::GroupPhase;
use crate::place::Stuck;
use crate::slots::Id;
use crate::{Condition, Decision, GroupKey, GroupReport, PodName, words};

impl<'f> Cycle<'f> {
    pub(crate) fn decisions(&self, touched: &BTreeSet<GroupKey>) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (id, cause) in &self.evicted {
            if let Some((pod, uid)) = self.named(*id) {
                decisions.push(Decision::Evict { pod, uid, cause: cause.clone() });
            }
        }
        decisions.sort_by(|one, other| subject(one).cmp(&subject(other)));
        for (id, room) in &self.bound {
            if let (Some((pod, uid)), Some(node)) = (self.named(*id), self.node(*room)) {
                decisions.push(Decision::Bind { pod, uid, node });
            }
        }
        for (id, room) in &self.promised {
            if let (Some((pod, uid)), Some(node)) = (self.named(*id), self.node(*room)) {
                decisions.push(Decision::Promise { pod, uid, node });
            }
        }
        self.volume_decisions(&mut decisions);
        for unit in &self.units {
            self.waits(unit, &mut decisions);
            self.waits_aside(unit, &mut decisions);
        }
        self.waits_for_volumes(&mut decisions);
        self.reports(touched, &mut decisions);
        decisions
    }

    fn named(&self, id: Id) -> Option<(PodName, String)> {
        let pod = &self.facts.record(id)?.pod;
        Some((pod.key.clone(), pod.uid.clone()))
    }

    fn node(&self, room: usize) -> Option<String> {
        self.board.rooms.get(room).map(|room| room.name.clone())
    }

    /// What is new to say of the members that wait.
    fn waits(&self, unit: &Unit<'f>, decisions: &mut Vec<Decision>) {
        let Some(verdict) = unit.verdict.as_ref() else { return };
        if matches!(verdict, Verdict::Volumes) {
            // Each is told of its own volumes.
            return;
        }
        let soon: BTreeMap<Id, usize> = match verdict {
            Verdict::Soon(placed) => placed.iter().copied().collect(),
            _ => BTreeMap::new(),
        };
        for id in unit.standing.waiting.iter().chain(&unit.left_out) {
            let Some(record) = self.facts.record(*id) else { continue };
            let message: Arc<str> = match soon.get(id).and_then(|room| self.node(*room)) {
                Some(node) => format!(
                    "Pod {}/{} can possibly be assigned to {node}, once resource is released and \
                     minAvailable is satisfied",
                    record.pod.key.namespace, record.pod.key.name
                )
                .into(),
                None => self.said(unit, verdict).clone(),
            };
            if record.told.as_ref() != Some(&message) {
                let (pod, uid) = (record.pod.key.clone(), record.pod.uid.clone());
                decisions.push(Decision::Wait { pod, uid, message });
            }
        }
    }

    /// What is new to say of members that cannot be tried, while the others go on.
    fn waits_aside(&self, unit: &Unit<'f>, decisions: &mut Vec<Decision>) {
        for (id, block) in &unit.aside {
            let Some((pod, uid)) = self.named(*id) else { continue };
            let message = self.block_words(unit, block);
            let told = self.facts.record(*id).and_then(|record| record.told.as_deref());
            if told != Some(&message) {
                decisions.push(Decision::Wait { pod, uid, message: message.into() });
            }
        }
    }

    /// What is said to pods: what is short before what the nodes say.
    fn words(&self, unit: &Unit<'f>, verdict: &Verdict) -> String {
        let message = self.message(unit, verdict);
        match (verdict, unit.key) {
            (Verdict::Room(stuck), GroupKey::PodGroup { .. }) => {
                match self.short_words(unit, stuck) {
                    Some(short) => format!("{short}; {message}"),
                    None => message,
                }
            }
            _ => message,
        }
    }

    /// What is new to say of the pods that wait for volumes.
    fn waits_for_volumes(&self, decisions: &mut Vec<Decision>) {
        for (id, _) in &self.reserved {
            let Some((pod, uid, message)) = self.volume_words(*id) else { continue };
            let told = self.facts.record(*id).and_then(|record| record.told.as_deref());
            if told != Some(&message) {
                decisions.push(Decision::Wait { pod, uid, message: message.into() });
            }
        }
    }

    /// Why a group waits, put into words once; the very words that were told where they still hold.
    fn said<'u>(&self, unit: &'u Unit<'f>, verdict: &Verdict) -> &'u Arc<str> {
        unit.said.get_or_init(|| {
            let message = self.words(unit, verdict);
            let first = unit.standing.waiting.first().and_then(|id| self.facts.record(*id));
            let told = first.and_then(|record| record.told.clone());
            told.filter(|told| **told == *message).unwrap_or_else(|| message.into())
        })
    }

    /// Why a group waits, in words.
    pub(crate) fn message(&self, unit: &Unit<'f>, verdict: &Verdict) -> String {
        match verdict {
            Verdict::Blocked(block) => self.block_words(unit, block),
            Verdict::Limit(resource) => self.limit_words(unit, *resource),
            Verdict::Share(resource) => format!(
                "queue {:?} has its fair share of {}",
                self.lines.get(unit.line).map_or("", |line| line.name),
                self.facts.resources.name(*resource)
            ),
            Verdict::Room(stuck) => self.room_words(unit, stuck),
            Verdict::Volumes => "waiting for its volumes to be bound".to_owned(),
            Verdict::Soon(_) | Verdict::Placed => {
                "waiting for those that are leaving to have left".to_owned()
            }
        }
    }

    pub(crate) fn block_words(&self, unit: &Unit<'f>, block: &Block) -> String {
        let line = self.lines.get(unit.line);
        let queue = line.map_or("", |line| line.name);
        match block {
            Block::NoGroup => format!("pod group {:?} not found", unit.key.name()),
            Block::NoQueue => format!("unable to find queue: {queue}"),
            Block::Closed => format!(
                "can only submit PodGroup to queue with state `Open`, queue `{queue}` status is \
                 `{}`.",
                line.and_then(|line| line.queue).map_or("", |queue| queue.state.as_str())
            ),
            Block::LargerThanQueue { resource, asked, limit } => format!(
                "queue resource quota insufficient: insufficient {resource} ({} asked for, queue \
                 {queue:?} may use {})",
                crate::written(resource, *asked),
                crate::written(resource, *limit)
            ),
            Block::Missing(missing) => missing_words(unit.key, missing),
            Block::Beyond(what) => {
                format!("{what} cannot be honoured by this scheduler: remove it from the pod")
            }
            Block::Claim(trouble) => trouble.clone(),
            Block::Behind(first) => {
                words::behind(queue, self.units.get(*first).map_or("", |unit| unit.key.name()))
            }
        }
    }

    fn limit_words(&self, unit: &Unit<'f>, resource: usize) -> String {
        let name = self.facts.resources.name(resource);
        let said = format!("queue resource quota insufficient: insufficient {name}");
        let Some(line) = self.lines.get(unit.line) else { return said };
        let limit = crate::amounts::written(name, line.share.limit.get(resource));
        let used = crate::amounts::written(name, line.used.get(resource));
        let (_, ask) = unit.minimum();
        // Of a group that has its minimum one more pod is asked for.
        let asked = Some(ask.get(resource)).filter(|_| !unit.standing.is_ready());
        let asked = asked.map(|asked| format!("{} asked for, ", crate::written(name, asked)));
        let asked = asked.unwrap_or_default();
        format!("{said} ({asked}queue {:?} uses {used} of {limit})", line.name)
    }

    fn room_words(&self, unit: &Unit<'f>, stuck: &Stuck) -> String {
        let reasons = self.reasons(stuck);
        let size = unit.standing.minimum;
        match unit.key {
            GroupKey::PodGroup { .. } if !unit.standing.is_ready() => {
                let pod = self.facts.record(stuck.pod).map_or("", |record| &record.pod.key.name);
                let standing = &unit.standing;
                let mut states: BTreeMap<&str, usize> = BTreeMap::new();
                let all = [
                    ("Pending", standing.waiting.len()),
                    ("Bound", standing.bound.len() - standing.running.min(standing.bound.len())),
                    ("Running", standing.running),
                    ("Releasing", standing.leaving),
                    ("Succeeded", standing.succeeded),
                    ("Failed", standing.failed),
                ];
                states.extend(all.into_iter().filter(|(_, count)| *count > 0));
                states.insert("minAvailable", standing.minimum);
                let fits = stuck.placed.min(standing.waiting.len());
                let by_cause =
                    [("Schedulable", fits), ("Unschedulable", standing.waiting.len() - fits)];
                let pending = by_cause.into_iter().filter(|(_, count)| *count > 0).collect();
                words::not_ready(&states, &pending, pod, self.board.nodes, &reasons)
            }
            GroupKey::Gang { name, .. } if size > 1 && !unit.standing.is_ready() => {
                words::with_gang(&words::unavailable(self.board.nodes, &reasons), name, size)
            }
            _ => words::unavailable(self.board.nodes, &reasons),
        }
    }

    pub(crate) fn reasons(&self, stuck: &Stuck) -> BTreeMap<String, usize> {
        let all = stuck.reasons.iter();
        all.map(|(obstacle, count)| (obstacle.words(self.facts), *count)).collect()
    }

    /// The status of PodGroups that something has happened to or that wait.
    fn reports(&self, touched: &BTreeSet<GroupKey>, decisions: &mut Vec<Decision>) {
        let admitted = self.admit().answers;
        let units: BTreeMap<&GroupKey, &Unit<'f>> =
            self.units.iter().map(|unit| (unit.key, unit)).collect();
        let mut keys: BTreeSet<&GroupKey> = touched.iter().chain(units.keys().copied()).collect();
        keys.extend(admitted.keys().copied());
        for key in keys {
            let id = self.facts.groups.id(key);
            let Some(group) = id.and_then(|id| self.facts.groups.get(id)) else { continue };
            let Some(object) = &group.object else { continue };
            let mut members = group.members.iter().filter_map(|id| self.facts.record(*id));
            if !group.members.is_empty() && !members.any(|record| record.is_ours) {
                // Another scheduler's.
                continue;
            }
            let unit = units.get(key).copied();
            let standing = &self.facts.muster(key, group).standing;
            let condition = self.condition(standing, unit, admitted.get(key));
            let is_stuck = condition.as_ref().is_some_and(|one| one.kind == "Unschedulable");
            let is_admitted = admitted.get(key).is_some_and(Option::is_none);
            let known = group.reported.as_ref().map_or(object.phase, |report| report.phase);
            let report = GroupReport {
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                uid: object.uid.clone(),
                phase: phase(standing, known.max(object.phase), is_stuck, is_admitted),
                running: standing.running,
                succeeded: standing.succeeded,
                failed: standing.failed,
                condition,
            };
            let is_said = match &group.reported {
                Some(said) => *said == report,
                None => report.is_said_by(object),
            };
            if !is_said {
                decisions.push(Decision::Report(Box::new(report)));
            }
        }
    }

    fn condition(
        &self,
        standing: &Standing,
        unit: Option<&Unit<'f>>,
        refused: Option<&Option<Refusal>>,
    ) -> Option<Condition> {
        // Of pods that are there more is known than of their group.
        let is_tried =
            |unit: &Unit<'f>| !matches!(unit.verdict, Some(Verdict::Blocked(Block::Missing(_))));
        if let Some(Some(refusal)) = refused.filter(|_| !unit.is_some_and(is_tried)) {
            return Some(Condition {
                kind: "Unschedulable",
                reason: "NotEnoughResources",
                message: refusal.message.clone(),
            });
        }
        let Some(unit) = unit.filter(|unit| !unit.standing.is_ready()) else {
            let is_ready = unit.map_or(standing, |unit| &*unit.standing).is_ready();
            let has_any = standing.ready + standing.waiting.len() > 0;
            return (is_ready && has_any).then(|| Condition {
                kind: "Scheduled",
                reason: "tasks in gang are ready to be scheduled",
                message: String::new(),
            });
        };
        let verdict = unit.verdict.as_ref()?;
        let reason = match verdict {
            Verdict::Blocked(Block::Missing(Missing::OfTask { .. })) => "NotEnoughPodsOfTask",
            Verdict::Blocked(Block::Missing(Missing::Members { .. })) => "NotEnoughTasks",
            _ => "NotEnoughResources",
        };
        let message = match verdict {
            Verdict::Room(stuck) => {
                let short =
                    unit.standing.minimum.saturating_sub(unit.standing.ready + stuck.placed);
                let all = unit.group.members.len();
                let rest = self.message(unit, verdict);
                let first = self.short_words(unit, stuck).map(|first| format!("{first}; "));
                let first = first.unwrap_or_default();
                format!("{first}{short}/{all} tasks in gang unschedulable: {rest}")
            }
            _ => self.said(unit, verdict).to_string(),
        };
        Some(Condition { kind: "Unschedulable", reason, message })
    }
}

/// How far a PodGroup has come.
fn phase(standing: &Standing, known: GroupPhase, is_stuck: bool, is_admitted: bool) -> GroupPhase {
    let ended = standing.succeeded + standing.failed;
    let scheduled = standing.bound.len() + standing.leaving + ended;
    if standing.running > 0 && is_stuck {
        GroupPhase::Unknown
    } else if scheduled > 0 && scheduled >= standing.minimum {
        if ended == scheduled && standing.waiting.is_empty() {
            GroupPhase::Completed
        } else {
            GroupPhase::Running
        }
    } else if is_admitted || known == GroupPhase::Inqueue {
        GroupPhase::Inqueue
    } else {
        GroupPhase::Pending
    }
}

pub(crate) fn missing_words(key: &GroupKey, missing: &Missing) -> String {
    match (key, missing) {
        (GroupKey::PodGroup { .. }, Missing::Members { present, minimum }) => {
            format!("Not enough valid tasks for gang-scheduling, valid: {present}, min: {minimum}")
        }
        (_, Missing::Members { present, minimum }) => format!(
            "waiting for {} more of the {minimum} pods of {:?}",
            minimum - present,
            key.name()
        ),
        (_, Missing::OfTask { task, present, minimum }) => format!(
            "Not enough valid pods of each task for gang-scheduling: task {task:?} has {present} \
             of {minimum}"
        ),
    }
}

fn subject(decision: &Decision) -> Option<&PodName> {
    match decision {
        Decision::Evict { pod, .. } => Some(pod),
        _ => None,
    }
}
