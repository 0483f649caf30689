//! Every order of arrivals and ends in small clusters: no partial gang, no node over-committed, no
//! deadlock, no starvation, and nothing left waiting that would fit.

use std::collections::BTreeSet;

use serde_json::json;

use super::world::{group_delta, member, node_delta, node_value};
use crate::{Config, Decision, Delta, Phase, Pod, State};

const RESERVE: i64 = 2;
const OVERDUE: i64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Absent,
    Waiting(i64),
    Running,
    Ended,
}

/// A gang: how many pods of how many processors.
#[derive(Debug, Clone, Copy)]
struct Gang {
    size: usize,
    cpu: i64,
}

/// A cluster and what may happen in it.
struct Model {
    nodes: Vec<i64>,
    gangs: Vec<Gang>,
    pods: Vec<Vec<Pod>>,
    /// Whether ended gangs may come again, for ever.
    is_endless: bool,
}

#[derive(Clone)]
struct Moment {
    state: State,
    stages: Vec<Stage>,
    /// The node of each running gang's pods.
    places: Vec<Vec<usize>>,
    now: i64,
}

impl Model {
    fn new(nodes: &[i64], gangs: &[Gang], is_endless: bool) -> Self {
        let pods = gangs.iter().enumerate().map(|(index, gang)| {
            let asks = json!({"cpu": gang.cpu.to_string()});
            let name = format!("g{index}");
            let pod = |number| member(&format!("{name}-{number}"), &name, 0, &asks);
            (0..gang.size).map(|number| serde_json::from_value(pod(number)).unwrap()).collect()
        });
        Self { nodes: nodes.to_vec(), gangs: gangs.to_vec(), pods: pods.collect(), is_endless }
    }

    fn start(&self) -> Moment {
        let mut state = State::with(Config {
            schedulers: ["volcano".to_owned()].into(),
            reserve_after: RESERVE,
            overdue_after: OVERDUE,
            ..Config::default()
        });
        for (index, cpu) in self.nodes.iter().enumerate() {
            let has = json!({"cpu": cpu.to_string(), "pods": "9"});
            state.apply(node_delta(node_value(&index.to_string(), &has)));
        }
        let stages = self.gangs.iter().map(|_| Stage::Absent).collect();
        let places = self.gangs.iter().map(|_| Vec::new()).collect();
        Moment { state, stages, places, now: 1_000 }
    }

    /// What may happen next to a gang.
    fn happen(&self, moment: &Moment, gang: usize) -> Option<Moment> {
        let mut next = moment.clone();
        next.now += 1;
        match moment.stages[gang] {
            Stage::Absent => self.arrive(&mut next, gang),
            Stage::Ended if self.is_endless => self.arrive(&mut next, gang),
            Stage::Running => self.end(&mut next, gang),
            Stage::Waiting(_) | Stage::Ended => return None,
        }
        self.decide(&mut next);
        Some(next)
    }

    fn arrive(&self, moment: &mut Moment, gang: usize) {
        let least = json!({"minMember": self.gangs[gang].size});
        moment.state.apply(group_delta(&format!("g{gang}"), moment.now, &least));
        for pod in &self.pods[gang] {
            let mut pod = pod.clone();
            pod.created = moment.now;
            pod.uid = format!("{}-{}", pod.uid, moment.now);
            moment.state.apply(Delta::Pod(Box::new(pod)));
        }
        moment.stages[gang] = Stage::Waiting(moment.now);
    }

    fn end(&self, moment: &mut Moment, gang: usize) {
        for pod in &self.pods[gang] {
            let mut pod = pod.clone();
            pod.phase = Phase::Succeeded;
            moment.state.apply(Delta::Pod(Box::new(pod)));
        }
        moment.stages[gang] = Stage::Ended;
        moment.places[gang].clear();
    }

    fn decide(&self, moment: &mut Moment) {
        let waited: Vec<Stage> = moment.stages.clone();
        let mut places: Vec<Vec<usize>> = self.gangs.iter().map(|_| Vec::new()).collect();
        for decision in moment.state.decide(moment.now) {
            match decision {
                Decision::Bind { pod, node, .. } => {
                    let gang: usize = pod.name[1..2].parse().unwrap();
                    places[gang].push(node.parse().unwrap());
                }
                Decision::Evict { .. } | Decision::Promise { .. } => {
                    panic!("nobody has a reason to leave: {decision:?}")
                }
                Decision::Wait { .. }
                | Decision::Report(_)
                | Decision::BindClaim(_)
                | Decision::ReleaseClaim(_) => {}
            }
        }
        for (gang, places) in places.into_iter().enumerate().filter(|(_, at)| !at.is_empty()) {
            assert_eq!(places.len(), self.gangs[gang].size, "a partial gang");
            moment.stages[gang] = Stage::Running;
            moment.places[gang] = places;
        }
        let free = self.free(moment);
        assert!(free.iter().all(|left| *left >= 0), "over-committed: {:?}", moment.places);
        self.nobody_is_left_out(moment, &free);
        self.nobody_is_overtaken(moment, &waited);
    }

    fn free(&self, moment: &Moment) -> Vec<i64> {
        let mut free = self.nodes.clone();
        for (gang, places) in moment.places.iter().enumerate() {
            for node in places {
                free[*node] -= self.gangs[gang].cpu;
            }
        }
        free
    }

    fn fits(gang: Gang, free: &[i64]) -> bool {
        let count: i64 = free.iter().map(|left| left / gang.cpu).sum();
        count >= i64::try_from(gang.size).unwrap()
    }

    /// While nobody has waited long, whatever fits has been started.
    fn nobody_is_left_out(&self, moment: &Moment, free: &[i64]) {
        let age = |stage: &Stage| match stage {
            Stage::Waiting(since) => moment.now - since,
            _ => 0,
        };
        if moment.stages.iter().any(|stage| age(stage) >= RESERVE) {
            return;
        }
        for (gang, stage) in moment.stages.iter().enumerate() {
            let is_left_out =
                matches!(stage, Stage::Waiting(_)) && Self::fits(self.gangs[gang], free);
            assert!(!is_left_out, "gang {gang} would fit {free:?}");
        }
    }

    /// Nobody is started while an older one that could ever run is overdue.
    fn nobody_is_overtaken(&self, moment: &Moment, before: &[Stage]) {
        for (gang, stage) in moment.stages.iter().enumerate() {
            let Stage::Waiting(since) = stage else { continue };
            let could_run = Self::fits(self.gangs[gang], &self.nodes);
            if moment.now - since < OVERDUE || !could_run {
                continue;
            }
            for (other, was) in before.iter().enumerate() {
                let Stage::Waiting(other_since) = was else { continue };
                let is_started = moment.stages[other] == Stage::Running;
                assert!(!(is_started && other_since > since), "{other} overtook {gang}");
            }
        }
    }

    /// Once everybody who runs has ended, whoever could ever run does. Where every end is gone
    /// through anyway, the moments when nobody runs are enough.
    fn drains(&self, moment: &Moment) {
        let mut moment = moment.clone();
        let rounds = if self.is_endless { self.gangs.len() * 2 } else { 0 };
        for _ in 0..rounds {
            let running = moment.stages.iter().position(|stage| *stage == Stage::Running);
            let Some(gang) = running else { break };
            moment.now += 1;
            self.end(&mut moment, gang);
            self.decide(&mut moment);
        }
        if moment.stages.contains(&Stage::Running) {
            return;
        }
        for (gang, stage) in moment.stages.iter().enumerate() {
            let could_run = Self::fits(self.gangs[gang], &self.nodes);
            let is_stuck = matches!(stage, Stage::Waiting(_)) && could_run;
            assert!(!is_stuck, "gang {gang} never runs");
        }
    }

    /// What tells one moment from another.
    fn mark(moment: &Moment) -> Vec<(u8, i64, Vec<usize>)> {
        let marks = moment.stages.iter().zip(&moment.places).map(|(stage, places)| match stage {
            Stage::Absent => (0, 0, Vec::new()),
            Stage::Waiting(since) => (1, (moment.now - since).min(OVERDUE + 1), Vec::new()),
            Stage::Running => (2, 0, places.clone()),
            Stage::Ended => (3, 0, Vec::new()),
        });
        let mut marks: Vec<(u8, i64, Vec<usize>)> = marks.collect();
        // Who waits longer than whom goes on to matter when both are overdue.
        let mut waiting: Vec<(i64, usize)> = moment
            .stages
            .iter()
            .enumerate()
            .filter_map(|(gang, stage)| match stage {
                Stage::Waiting(since) => Some((*since, gang)),
                _ => None,
            })
            .collect();
        waiting.sort_unstable();
        marks.push((4, 0, waiting.into_iter().map(|(_, gang)| gang).collect()));
        marks
    }

    /// Goes through everything that can happen; how many moments there are.
    fn explore(&self) -> usize {
        let mut seen = BTreeSet::new();
        let mut open = vec![self.start()];
        while let Some(moment) = open.pop() {
            if !seen.insert(Self::mark(&moment)) {
                continue;
            }
            self.drains(&moment);
            open.extend((0..self.gangs.len()).filter_map(|gang| self.happen(&moment, gang)));
        }
        seen.len()
    }
}

/// All ways to take `count` of `kinds`, order aside.
fn choices<T: Copy>(kinds: &[T], count: usize) -> Vec<Vec<T>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        for mut rest in choices(&kinds[index..], count - 1) {
            rest.push(*kind);
            all.push(rest);
        }
    }
    all
}

fn kinds() -> Vec<Gang> {
    let sizes = [1, 2, 3].into_iter();
    sizes.flat_map(|size| [1, 2].map(|cpu| Gang { size, cpu })).collect()
}

/// All clusters of so many nodes, all choices of so many gangs, all orders.
fn every_order_of(gangs: usize, count: usize) -> usize {
    let clusters = choices(&[1, 2, 3], count).into_iter();
    let all = clusters.flat_map(|nodes| {
        choices(&kinds(), gangs).into_iter().map(move |gangs| (nodes.clone(), gangs))
    });
    all.map(|(nodes, gangs)| Model::new(&nodes, &gangs, false).explore()).sum()
}

/// Three gangs, or four where `TRAINYARD_LONG` says that there is much time; and how many moments that is at
/// the least.
#[allow(clippy::disallowed_methods, reason = "only tests ask, and no decision depends on it")]
fn effort() -> (usize, usize) {
    if std::env::var_os("TRAINYARD_LONG").is_some() { (4, 50_000) } else { (3, 5_000) }
}

#[test]
fn every_order_of_gangs_on_up_to_two_nodes() {
    let (gangs, least) = effort();
    let moments = every_order_of(gangs, 1) + every_order_of(gangs, 2);
    println!("{moments} moments");
    assert!(moments > least, "{moments}");
}

#[test]
fn every_order_of_gangs_on_three_nodes() {
    let (gangs, least) = effort();
    let moments = every_order_of(gangs, 3);
    println!("{moments} moments");
    assert!(moments > least, "{moments}");
}

#[test]
fn gangs_that_come_again_for_ever_starve_nobody() {
    let mut moments = 0;
    for nodes in [vec![2], vec![1, 1], vec![3], vec![2, 1]] {
        for gangs in choices(
            &[Gang { size: 1, cpu: 1 }, Gang { size: 2, cpu: 1 }, Gang { size: 3, cpu: 1 }],
            3,
        ) {
            moments += Model::new(&nodes, &gangs, true).explore();
        }
    }
    println!("{moments} moments");
    assert!(moments > 1_000, "{moments}");
}
