//! Random histories: what was learnt step by step decides like what is learnt at once, and nothing
//! that must not be ever is.

mod rules;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::{
    group_delta, key, member, name, node_delta, node_value, pod_delta, queue_delta, time,
};
use crate::{Amounts, Cause, Config, Decision, Delta, Doing, State};

/// So many steps altogether.
const STEPS: usize = 100_000;
/// A history starts anew after so many.
const LENGTH: usize = 500;

/// Numbers without order, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.roll(from.len())) }
    }
}

/// What the API server has, and what is being done.
struct History {
    dice: Dice,
    state: State,
    config: Config,
    nodes: BTreeMap<String, Value>,
    queues: BTreeMap<String, Value>,
    groups: BTreeMap<String, (i64, Value)>,
    pods: BTreeMap<String, Value>,
    doing: Vec<(String, String, Doing)>,
    now: i64,
}

impl History {
    fn new(seed: u64) -> Self {
        let config = Config {
            schedulers: ["volcano".to_owned()].into(),
            reserve_after: 5,
            overdue_after: 20,
            ..Config::default()
        };
        let mut history = Self {
            dice: Dice(seed * 2 + 1),
            state: State::with(config.clone()),
            config,
            nodes: BTreeMap::new(),
            queues: BTreeMap::new(),
            groups: BTreeMap::new(),
            pods: BTreeMap::new(),
            doing: Vec::new(),
            now: 1_000,
        };
        for node in ["a", "b", "c"] {
            history.node(node);
        }
        history
    }

    fn node(&mut self, name: &str) {
        let cpu = (2 + self.dice.roll(4)).to_string();
        let mut value = node_value(name, &json!({"cpu": cpu, "nvidia.com/gpu": "2", "pods": "6"}));
        value["spec"] = json!({"unschedulable": self.dice.roll(8) == 0});
        self.state.apply(node_delta(value.clone()));
        self.nodes.insert(name.to_owned(), value);
    }

    fn pod(&mut self, value: Value) {
        self.state.apply(pod_delta(&value));
        let name = value["metadata"]["name"].as_str().unwrap().to_owned();
        self.pods.insert(name, value);
    }

    fn change(&mut self, pod: &str, change: impl FnOnce(&mut Value)) {
        if let Some(mut value) = self.pods.get(pod).cloned() {
            change(&mut value);
            self.pod(value);
        }
    }

    fn gone(&mut self, pod: &str) {
        self.pods.remove(pod);
        self.doing.retain(|(other, _, _)| other != pod);
        self.state.apply(Delta::PodGone(name(pod)));
    }

    fn new_group(&mut self) {
        let name = format!("g{}", self.dice.roll(6));
        if self.groups.contains_key(&name) {
            return;
        }
        let size = 1 + self.dice.roll(3);
        let least = 1 + self.dice.roll(size);
        let queue = ["default", "q", "r"][self.dice.roll(3)];
        let spec = json!({"minMember": least, "queue": queue});
        self.state.apply(group_delta(&name, self.now, &spec));
        self.groups.insert(name.clone(), (self.now, spec));
        let asks = match self.dice.roll(4) {
            0 => json!({"cpu": "2"}),
            1 => json!({"cpu": "1", "nvidia.com/gpu": "1"}),
            2 => json!({}),
            _ => json!({"cpu": "1"}),
        };
        let priority = self.dice.roll(3);
        for index in 0..size {
            let mut pod = member(&format!("{name}-{index}"), &name, self.now, &asks);
            pod["spec"]["priority"] = json!(priority);
            self.pod(pod);
        }
    }

    fn some_pod(&mut self) -> Option<String> {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        self.dice.pick(&names).cloned()
    }

    fn some_group(&mut self) -> Option<String> {
        let names: Vec<String> = self.groups.keys().cloned().collect();
        self.dice.pick(&names).cloned()
    }

    /// One thing happens.
    fn step(&mut self) {
        match self.dice.roll(17) {
            0..=3 => self.new_group(),
            4..=6 => self.carry_out(),
            7 => {
                if let Some(pod) = self.some_pod().filter(|pod| self.is_bound(pod)) {
                    self.change(&pod, |value| value["status"] = json!({"phase": "Running"}));
                }
            }
            8..=9 => {
                if let Some(pod) = self.some_pod().filter(|pod| self.is_bound(pod)) {
                    self.change(&pod, |value| value["status"] = json!({"phase": "Succeeded"}));
                }
            }
            10 => self.disturb(),
            11 => {
                if let Some(group) = self.some_group() {
                    self.drop_group(&group);
                }
            }
            12 => self.rule(),
            13 => {
                if let Some(group) = self.some_group() {
                    self.scale(&group);
                }
            }
            _ => self.decide(),
        }
        self.now += i64::from(self.dice.roll(3) == 0);
    }

    fn is_bound(&self, pod: &str) -> bool {
        self.pods.get(pod).is_some_and(|value| value["spec"]["nodeName"].is_string())
    }

    fn drop_group(&mut self, group: &str) {
        let own: Vec<String> = self.pods.keys().filter(|pod| pod[..2] == *group).cloned().collect();
        for pod in own {
            self.gone(&pod);
        }
        self.groups.remove(group);
        self.state.apply(Delta::GroupGone("n".into(), group.into()));
    }

    /// A group gets or loses a member, and another minimum.
    fn scale(&mut self, group: &str) {
        let own: Vec<String> = self.pods.keys().filter(|pod| pod[..2] == *group).cloned().collect();
        let Some(model) = own.last().cloned() else { return };
        let mut size = own.len();
        if self.dice.roll(2) == 0 && size > 1 {
            self.gone(&model);
            size -= 1;
        } else if size < 4 {
            let name = (0..4).map(|index| format!("{group}-{index}"));
            let Some(name) = name.into_iter().find(|name| !own.contains(name)) else { return };
            let asks = self.pods[&model]["spec"]["containers"][0]["resources"]["requests"].clone();
            let mut pod = member(&name, group, self.now, &asks);
            pod["spec"]["priority"] = self.pods[&model]["spec"]["priority"].clone();
            self.pod(pod);
            size += 1;
        }
        let least = 1 + self.dice.roll(size);
        let Some((created, spec)) = self.groups.get_mut(group) else { return };
        spec["minMember"] = json!(least);
        let changed = group_delta(group, *created, spec);
        self.state.apply(changed);
    }

    /// Nodes come, change and go; pods vanish and come again.
    fn disturb(&mut self) {
        if self.dice.roll(2) == 0 {
            let node = ["a", "b", "c", "d"][self.dice.roll(4)];
            if self.nodes.remove(node).is_some() {
                self.state.apply(Delta::NodeGone(node.into()));
            } else {
                self.node(node);
            }
        } else if let Some(pod) = self.some_pod() {
            self.again(&pod);
        }
    }

    /// A pod is replaced by its successor.
    fn again(&mut self, pod: &str) {
        let Some(mut value) = self.pods.get(pod).cloned() else { return };
        self.gone(pod);
        value["metadata"]["uid"] = json!(format!("{pod}-{}-{}", self.now, self.dice.roll(1000)));
        value["metadata"]["creationTimestamp"] = json!(time(self.now));
        value["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        value["spec"].as_object_mut().unwrap().remove("nodeName");
        value["status"] = json!({});
        self.pod(value);
    }

    fn rule(&mut self) {
        let queue = ["q", "r"][self.dice.roll(2)].to_owned();
        if self.dice.roll(6) == 0 {
            self.queues.remove(&queue);
            self.state.apply(Delta::QueueGone(queue));
            return;
        }
        let mut spec =
            json!({"weight": 1 + self.dice.roll(3), "reclaimable": self.dice.roll(4) > 0});
        if self.dice.roll(2) == 0 {
            spec["capability"] = json!({"cpu": (1 + self.dice.roll(6)).to_string()});
        }
        if self.dice.roll(4) == 0 {
            spec["guarantee"] = json!({"resource": {"cpu": "1"}});
        }
        self.state.apply(queue_delta(&queue, &spec));
        self.queues.insert(queue, spec);
    }

    /// Something that was decided is done, or fails.
    fn carry_out(&mut self) {
        if self.doing.is_empty() {
            return;
        }
        let at = self.dice.roll(self.doing.len());
        let (pod, uid, doing) = self.doing.remove(at);
        let is_same = self.pods.get(&pod).is_some_and(|value| value["metadata"]["uid"] == *uid);
        if !is_same {
            return;
        }
        if self.dice.roll(5) == 0 && !matches!(doing, Doing::Promising(_)) {
            self.state.apply(Delta::Failed(name(&pod), uid, doing));
            return;
        }
        match doing {
            Doing::Binding(node) => {
                self.change(&pod, |value| value["spec"]["nodeName"] = json!(node));
            }
            Doing::Promising(node) => {
                self.change(&pod, |value| value["status"]["nominatedNodeName"] = json!(node));
            }
            Doing::Evicting if self.dice.roll(2) == 0 => {
                let now = time(self.now);
                self.change(&pod, |value| value["metadata"]["deletionTimestamp"] = json!(now));
                self.doing.push((pod, uid, Doing::Evicting));
            }
            Doing::Evicting | Doing::Telling => self.again(&pod),
        }
    }

    /// The same facts, learnt at once and in another order.
    fn rebuilt(&mut self) -> State {
        let mut state = State::with(self.config.clone());
        let mut deltas: Vec<Delta> = Vec::new();
        deltas.extend(self.nodes.values().map(|value| node_delta(value.clone())));
        deltas.extend(self.queues.iter().map(|(name, spec)| queue_delta(name, spec)));
        deltas.extend(self.groups.iter().map(|(name, (at, spec))| group_delta(name, *at, spec)));
        deltas.extend(self.pods.values().map(pod_delta));
        for at in (1..deltas.len()).rev() {
            deltas.swap(at, self.dice.roll(at + 1));
        }
        for delta in deltas {
            state.apply(delta);
        }
        for (pod, uid, doing) in &self.doing {
            state.apply(Delta::Doing(name(pod), uid.clone(), doing.clone()));
        }
        state
    }

    fn decide(&mut self) {
        let mut rebuilt = self.rebuilt();
        if self.dice.roll(8) == 0 {
            for group in self.groups.keys() {
                let one = self.state.explain(&key(group), self.now);
                assert_eq!(one, rebuilt.explain(&key(group), self.now), "explanations differ");
            }
        }
        let before = self.uses(true);
        self.reclaims_leave_shares();
        let decisions = self.state.decide(self.now);
        let acts = |decisions: &[Decision]| -> Vec<Decision> {
            let acts = decisions.iter().filter(|decision| {
                !matches!(decision, Decision::Wait { .. } | Decision::Report(_))
            });
            acts.cloned().collect()
        };
        assert_eq!(acts(&decisions), acts(&rebuilt.decide(self.now)), "decisions differ");
        for decision in &decisions {
            self.note(decision);
        }
        self.nothing_is_overcommitted(&decisions);
        self.limits_hold(&decisions, &before);
        self.no_gang_is_partial();
        // What is decided settles: looking again and again soon finds nothing more to do.
        let mut again = self.state.clone();
        let looks = (0..8).take_while(|_| !acts(&again.decide(self.now)).is_empty()).count();
        assert!(looks < 8, "decisions do not settle");
    }

    fn note(&mut self, decision: &Decision) {
        let (pod, uid, doing) = match decision {
            Decision::Bind { pod, uid, node } => (pod, uid, Doing::Binding(node.clone())),
            Decision::Promise { pod, uid, node } => (pod, uid, Doing::Promising(node.clone())),
            Decision::Evict { pod, uid, cause } => {
                if let Cause::Preempted(by) = cause {
                    assert_ne!(by.name(), &pod.name[..2], "nobody preempts its own");
                }
                (pod, uid, Doing::Evicting)
            }
            Decision::Wait { .. }
            | Decision::Report(_)
            | Decision::BindClaim(_)
            | Decision::ReleaseClaim(_) => return,
        };
        self.doing.retain(|(other, _, was)| {
            *other != pod.name || matches!((was, &doing), (Doing::Binding(_), Doing::Evicting))
        });
        self.doing.push((pod.name.clone(), uid.clone(), doing));
    }

    /// The node of a pod, bound or being bound.
    fn at<'h>(&'h self, pod: &str, value: &'h Value) -> Option<&'h str> {
        let doing = self.doing.iter().find_map(|(other, uid, doing)| match doing {
            Doing::Binding(node) if other == pod && value["metadata"]["uid"] == *uid => {
                Some(node.as_str())
            }
            _ => None,
        });
        let is_over = value["status"]["phase"] == "Succeeded";
        value["spec"]["nodeName"].as_str().or(doing).filter(|_| !is_over)
    }

    fn is_leaving(&self, pod: &str, value: &Value) -> bool {
        let evicted = self.doing.iter().any(|(other, uid, doing)| {
            other == pod && value["metadata"]["uid"] == *uid && *doing == Doing::Evicting
        });
        evicted || !value["metadata"]["deletionTimestamp"].is_null()
    }

    fn asks(value: &Value) -> Amounts {
        let pod: crate::Pod = serde_json::from_value(value.clone()).unwrap();
        pod.asks
    }

    fn queue_of(&self, pod: &str) -> &str {
        self.groups.get(&pod[..2]).map_or("default", |(_, spec)| spec["queue"].as_str().unwrap())
    }

    /// What each queue uses.
    fn uses(&self, with_leaving: bool) -> BTreeMap<String, Amounts> {
        let mut uses: BTreeMap<String, Amounts> = BTreeMap::new();
        for (pod, value) in &self.pods {
            if self.at(pod, value).is_some() && (with_leaving || !self.is_leaving(pod, value)) {
                uses.entry(self.queue_of(pod).to_owned()).or_default().add(&Self::asks(value));
            }
        }
        uses
    }
}

#[test]
fn a_hundred_thousand_steps_keep_every_rule_and_equal_a_fresh_start() {
    for seed in 0..STEPS / LENGTH {
        let mut history = History::new(u64::try_from(seed).unwrap() + 7);
        for _ in 0..LENGTH {
            history.step();
        }
    }
}
