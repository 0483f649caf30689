//! Which PodGroups are let into their queue: only then are their pods made.
//!
//! Within the queue's limit, and as long as the cluster is not spoken for beyond a factor. What
//! waits at a lower priority does not count against a higher one.

use std::collections::BTreeMap;

use crate::cycle::Cycle;
use crate::facts::Group;
use crate::group::GroupPhase;
use crate::serve::sum;
use crate::vector::Vector;
use crate::{Amounts, GroupKey};

/// A group that is in its queue or asks to be.
struct Applicant<'f> {
    key: &'f GroupKey,
    queue: &'f str,
    line: Option<usize>,
    priority: i64,
    created: i64,
    is_in: bool,
    /// What of its minimum it does not have yet.
    rest: BTreeMap<&'f str, i64>,
}

impl<'f> Cycle<'f> {
    /// The groups that ask: let in, or why not.
    pub(crate) fn admit(&self) -> BTreeMap<&'f GroupKey, Option<String>> {
        let asks = |group: &Group| phase_of(group) == Some(GroupPhase::Pending);
        if !self.facts.groups.iter().any(|(_, _, group)| asks(group)) {
            return BTreeMap::new();
        }
        let mut applicants: Vec<Applicant<'f>> = Vec::new();
        for (key, _, group) in self.facts.groups.iter() {
            applicants.extend(self.applicant(key, group));
        }
        applicants.sort_by_key(|one| (!one.is_in, -one.priority, one.created, one.key));
        let used = self.used();
        let mut answers = BTreeMap::new();
        let mut inside: Vec<Applicant<'f>> = Vec::new();
        for one in applicants {
            if !one.is_in {
                let refusal = self.refusal(&one, &inside, &used);
                let is_refused = refusal.is_some();
                answers.insert(one.key, refusal);
                if is_refused {
                    continue;
                }
            }
            inside.push(one);
        }
        answers
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
            priority: self.facts.priority_of(group),
            created: object.created,
            is_in,
            rest: rest.filter(|(_, amount)| *amount > 0).collect(),
        })
    }

    /// What all nodes' pods have, ours or not.
    fn used(&self) -> Amounts {
        let mut used = Vector::default();
        for room in self.board.rooms.iter().filter(|room| room.node.is_some()) {
            used.plus(&room.has, 1);
            used.plus(room.free(crate::room::View::Soon), -1);
        }
        self.facts.resources.amounts(&used)
    }

    fn refusal(
        &self,
        one: &Applicant<'f>,
        inside: &[Applicant<'f>],
        used: &Amounts,
    ) -> Option<String> {
        let Some(line) = one.line.and_then(|line| self.lines.get(line)) else {
            return Some(format!("unable to find queue: {}", one.queue));
        };
        let Some(queue) = line.queue else {
            return Some(format!("unable to find queue: {}", line.name));
        };
        if !queue.is_open {
            return Some(format!(
                "can only submit PodGroup to queue with state `Open`, queue `{}` status is `{}`.",
                queue.name, queue.state
            ));
        }
        let resources = &self.facts.resources;
        let spoken = |name: &str, same_line: bool| -> i64 {
            let counted = inside.iter().filter(|other| {
                other.priority >= one.priority && (!same_line || other.line == one.line)
            });
            counted.filter_map(|other| other.rest.get(name)).sum()
        };
        let over = |limit: &dyn Fn(&str, i64) -> bool| -> Vec<&str> {
            let asked = one.rest.iter().filter(|(name, amount)| limit(name, **amount));
            asked.map(|(name, _)| *name).collect()
        };
        let beyond = over(&|name, amount| {
            let index = resources.known(name);
            let (limit, used) =
                index.map_or((0, 0), |index| (line.share.limit.get(index), line.used.get(index)));
            let limit = queue.capability.named(name).map_or(limit, |cap| cap.min(limit));
            used + spoken(name, true) + amount > limit
        });
        if !beyond.is_empty() {
            return Some(format!(
                "queue resource quota insufficient: insufficient {}",
                beyond.join(", ")
            ));
        }
        let beyond = over(&|name, amount| {
            let total = resources.known(name).map_or(0, |index| self.board.total.get(index));
            let most = i128::from(total) * i128::from(self.facts.config.overcommit) / 100;
            i128::from(used.get(name) + spoken(name, false) + amount) > most
        });
        (!beyond.is_empty())
            .then(|| format!("resource in cluster is overused: overused {}", beyond.join(", ")))
    }
}

/// How far a PodGroup has come, with what is not written yet.
fn phase_of(group: &Group) -> Option<GroupPhase> {
    let object = group.object.as_ref()?;
    let reported = group.reported.as_ref().map_or(object.phase, |report| report.phase);
    Some(reported.max(object.phase))
}
