//! When a group may run: its minimum and the minimum of each of its tasks.
//!
//! Owns counting members. Must not know nodes or queues.

use std::collections::BTreeMap;

use crate::GroupKey;
use crate::facts::{Facts, Group, Record, Stand};
use crate::pod::Phase;
use crate::slots::Id;

/// How a group stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    /// Members needed at least.
    pub(crate) minimum: usize,
    /// Members of each task needed at least; empty when they do not count.
    tasks: BTreeMap<String, usize>,
    /// Members that have a node or have ended well.
    pub(crate) ready: usize,
    ready_by_task: BTreeMap<String, usize>,
    /// Members that wait, in the order of their task.
    pub(crate) waiting: Vec<Id>,
    /// Members on their way out.
    pub(crate) leaving: usize,
    /// Members that have a node and stay.
    pub(crate) bound: Vec<Id>,
    /// Whether one of them runs.
    pub(crate) is_started: bool,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) running: usize,
    waiting_by_task: BTreeMap<String, usize>,
}

/// Which members are still to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// So many of all.
    Members { present: usize, minimum: usize },
    /// So many of a task.
    OfTask { task: String, present: usize, minimum: usize },
}

impl Standing {
    pub(crate) fn of(key: &GroupKey, group: &Group, facts: &Facts) -> Self {
        let mut standing = Self::default();
        let mut waiting: Vec<(&Record, Id)> = Vec::new();
        let counts_failed = matches!(key, GroupKey::Gang { .. });
        for id in &group.members {
            let Some(record) = facts.record(*id).filter(|record| record.is_ours) else { continue };
            let task = record.pod.task.as_str();
            standing.running += usize::from(record.pod.phase == Phase::Running);
            match record.stand() {
                Stand::Waiting => {
                    waiting.push((record, *id));
                    count(&mut standing.waiting_by_task, task);
                }
                Stand::Bound => {
                    standing.count_ready(task);
                    standing.bound.push(*id);
                    standing.is_started |= record.pod.phase == Phase::Running;
                }
                Stand::Leaving => standing.leaving += 1,
                Stand::Succeeded => {
                    standing.succeeded += 1;
                    standing.count_ready(task);
                }
                Stand::Failed => {
                    standing.failed += 1;
                    if counts_failed {
                        standing.count_ready(task);
                    }
                }
                Stand::Gated | Stand::Void => {}
            }
        }
        waiting.sort_by_key(|(record, _)| order(record));
        standing.waiting = waiting.into_iter().map(|(_, id)| id).collect();
        standing.set_minimum(key, group, facts);
        standing
    }

    fn count_ready(&mut self, task: &str) {
        self.ready += 1;
        count(&mut self.ready_by_task, task);
    }

    fn set_minimum(&mut self, key: &GroupKey, group: &Group, facts: &Facts) {
        if let Some(object) = &group.object {
            self.minimum = object.min_member;
            let tasks = object.min_task_member.values().copied().fold(0, usize::saturating_add);
            if object.min_member >= tasks {
                self.tasks.clone_from(&object.min_task_member);
            }
            return;
        }
        // Members made later know better how many there are still to be.
        let sizes = group.members.iter().filter_map(|id| facts.record(*id)?.pod.gang_size);
        let is_gang = matches!(key, GroupKey::Gang { .. });
        self.minimum = if is_gang { sizes.min().unwrap_or(1) } else { 1 };
    }

    pub(crate) fn is_ready(&self) -> bool {
        let enough = |(task, least): (&String, &usize)| self.ready_of(task) >= *least;
        self.ready >= self.minimum && self.tasks.iter().all(enough)
    }

    /// Members that waited have got nodes.
    pub(crate) fn advance(&mut self, facts: &Facts, pods: &[Id]) {
        self.waiting.retain(|id| !pods.contains(id));
        for id in pods {
            let task = facts.record(*id).map_or("", |record| record.pod.task.as_str());
            self.count_ready(task);
            if let Some(count) = self.waiting_by_task.get_mut(task) {
                *count = count.saturating_sub(1);
            }
        }
    }

    fn ready_of(&self, task: &str) -> usize {
        self.ready_by_task.get(task).copied().unwrap_or(0)
    }

    /// Whether some have a node and more are needed.
    pub(crate) fn is_partial(&self) -> bool {
        !self.bound.is_empty() && !self.is_ready()
    }

    /// What is to be made before the group can run.
    pub(crate) fn missing(&self) -> Option<Missing> {
        for (task, minimum) in &self.tasks {
            let waiting = self.waiting_by_task.get(task).copied().unwrap_or(0);
            let present = self.ready_of(task) + waiting;
            if present < *minimum {
                return Some(Missing::OfTask { task: task.clone(), present, minimum: *minimum });
            }
        }
        let present = self.ready + self.waiting.len();
        (present < self.minimum).then_some(Missing::Members { present, minimum: self.minimum })
    }

    /// Of the members that wait, those that make the group ready, chosen in order among `pods`.
    pub(crate) fn enough(&self, facts: &Facts, pods: &[Id]) -> Option<Vec<Id>> {
        let mut short: BTreeMap<&str, usize> = self
            .tasks
            .iter()
            .map(|(task, least)| (task.as_str(), least.saturating_sub(self.ready_of(task))))
            .collect();
        let mut spare = Vec::new();
        let mut chosen = Vec::new();
        for id in pods {
            let task = facts.record(*id).map_or("", |record| record.pod.task.as_str());
            match short.get_mut(task) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    chosen.push(*id);
                }
                _ => spare.push(*id),
            }
        }
        let wanted = self.minimum.saturating_sub(self.ready);
        spare.truncate(wanted.saturating_sub(chosen.len()));
        chosen.extend(spare);
        let is_enough = chosen.len() >= wanted && short.values().all(|count| *count == 0);
        is_enough.then_some(chosen)
    }

    /// Members with a node that the group can do without, those it needs least first.
    pub(crate) fn above_minimum(&self, facts: &Facts) -> Vec<Id> {
        let mut spare = self.ready.saturating_sub(self.minimum);
        if spare == 0 {
            return Vec::new();
        }
        let mut by_task = self.ready_by_task.clone();
        let mut bound: Vec<(&Record, Id)> =
            self.bound.iter().filter_map(|id| Some((facts.record(*id)?, *id))).collect();
        bound.sort_by_key(|(record, _)| std::cmp::Reverse(order(record)));
        let mut above = Vec::new();
        for (record, id) in bound {
            let task = record.pod.task.as_str();
            let least = self.tasks.get(task).copied().unwrap_or(0);
            let Some(have) = by_task.get_mut(task).filter(|have| **have > least) else { continue };
            if spare == 0 {
                break;
            }
            spare -= 1;
            *have -= 1;
            above.push(id);
        }
        above
    }
}

/// One more of a task. Most groups have few tasks and many members.
fn count(counts: &mut BTreeMap<String, usize>, task: &str) {
    if let Some(count) = counts.get_mut(task) {
        *count += 1;
    } else {
        counts.insert(task.to_owned(), 1);
    }
}

/// The order of a group's members: priority, number in the task, age, name.
fn order(record: &Record) -> (i64, u64, i64, &str) {
    let pod = &record.pod;
    (-pod.task_priority, pod.index, pod.created, &pod.key.name)
}
