//! What holds after every decision of a random history.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::History;
use crate::cycle::Cycle;
use crate::tests::world::key;
use crate::{Amounts, Cause, Constraint, Decision};

impl History {
    /// No node is given more than it has.
    pub(super) fn nothing_is_overcommitted(&self, decisions: &[Decision]) {
        // A node may have become smaller than what is on it; nothing more of that is given.
        let given: Vec<(&String, Amounts)> = decisions
            .iter()
            .filter_map(|decision| match decision {
                Decision::Bind { pod, node, .. } => Some((node, Self::asks(&self.pods[&pod.name]))),
                _ => None,
            })
            .collect();
        for (node, asked) in given {
            let mut used = Amounts::default();
            for (pod, value) in &self.pods {
                if self.at(pod, value) == Some(node) {
                    used.add(&Self::asks(value));
                }
            }
            let has: crate::Node = serde_json::from_value(self.nodes[node].clone()).unwrap();
            for (resource, _) in asked.iter() {
                let amount = used.get(resource);
                assert!(amount <= has.has.get(resource), "{resource} of {node}: {amount}");
            }
        }
    }

    /// A queue's use is the sum of its pods', and never grows beyond its capability.
    pub(super) fn limits_hold(&self, decisions: &[Decision], before: &BTreeMap<String, Amounts>) {
        let uses = self.uses(false);
        for queue in ["default", "q", "r"] {
            let nothing = Amounts::default();
            assert_eq!(self.state.allocated(queue), *uses.get(queue).unwrap_or(&nothing));
        }
        let bound = |decision: &Decision| matches!(decision, Decision::Bind { .. });
        if !decisions.iter().any(bound) {
            return;
        }
        for (queue, spec) in &self.queues {
            let Some(limit) = spec["capability"]["cpu"].as_str() else { continue };
            let limit = limit.parse::<i64>().unwrap() * 1000;
            let cpu = |uses: &BTreeMap<String, Amounts>| {
                uses.get(queue).map_or(0, |use_| use_.get("cpu"))
            };
            let after = cpu(&self.uses(true));
            assert!(after <= limit || after <= cpu(before), "{queue} uses {after} of {limit}");
        }
    }

    /// Nothing is taken back from a queue that would then have less than its share.
    pub(super) fn reclaims_leave_shares(&mut self) {
        let mut board = self.state.board.clone();
        let mut cycle = Cycle::new(&self.state.facts, &mut board, self.now);
        let used: Vec<_> = cycle.lines.iter().map(|line| line.used.clone()).collect();
        cycle.settle();
        // What a queue's own priorities have cost it is not the others' doing.
        let mut after: Vec<_> = cycle.lines.iter().map(|line| line.used.clone()).collect();
        let mut touched = BTreeSet::new();
        for (id, cause) in &cycle.evicted {
            let record = self.state.facts.record(*id).unwrap();
            let queue = self.queue_of(&record.pod.key.name);
            let line = cycle.lines.iter().position(|line| line.name == queue).unwrap();
            match cause {
                Cause::Reclaimed(_) => {
                    touched.insert(line);
                }
                Cause::Preempted(_) => after[line].add(&record.shape.ask, 1),
                Cause::Incomplete => {}
            }
        }
        for line in touched {
            let share = &cycle.lines[line].share;
            let keeps = (0..self.state.facts.resources.len()).any(|resource| {
                used[line].get(resource) > 0
                    && after[line].get(resource) >= share.deserved(resource)
                    && !self.state.facts.resources.is_pods(resource)
            });
            assert!(keeps, "queue {} was taken below its share", cycle.lines[line].name);
        }
    }

    /// A gang has all of its minimum or nothing, unless it ran before or something is on its way.
    pub(super) fn no_gang_is_partial(&mut self) {
        for (group, (_, spec)) in self.groups.clone() {
            let least = usize::try_from(spec["minMember"].as_u64().unwrap()).unwrap();
            let own: Vec<(&String, &Value)> =
                self.pods.iter().filter(|(pod, _)| pod[..2] == *group).collect();
            let ended =
                own.iter().filter(|(_, value)| value["status"]["phase"] == "Succeeded").count();
            let runs = own.iter().any(|(_, value)| value["status"]["phase"] == "Running");
            let stays = own
                .iter()
                .filter(|(pod, value)| {
                    self.at(pod, value).is_some() && !self.is_leaving(pod, value)
                })
                .count();
            if stays == 0 || stays + ended >= least || runs {
                continue;
            }
            let explained = self.state.explain(&key(&group), self.now).unwrap();
            let is_hopeful =
                matches!(explained.constraint, Constraint::Releasing | Constraint::Members);
            // What it was hoping for may just have been promised to another: then it goes back
            // with the next decision.
            let next = self.state.clone().decide(self.now);
            let is_undone = next.iter().any(|decision| match decision {
                Decision::Evict { pod, .. } | Decision::Bind { pod, .. } => pod.name[..2] == *group,
                _ => false,
            });
            assert!(is_hopeful || is_undone, "{group} has {stays} of {least}: {explained:?}");
        }
    }
}
