//! How long decisions take. Run with `cargo test -p trainyard-sched --release -- --ignored measure
//! --nocapture`; prints, asserts no times.

#![allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::time::{Duration, Instant};

use serde_json::json;

use super::world::{World, group_delta, member, node_delta, node_value, pod_delta, queue_delta};
use crate::{Decision, Delta, PriorityClass, State};

const NODES: usize = 1_000;
const GANGS: usize = 500;
const SIZE: usize = 20;

fn cluster() -> World {
    let mut world = World::new();
    for (name, value) in [("low", 1), ("high", 100)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        let class: PriorityClass = serde_json::from_value(class).unwrap();
        world.state.apply(Delta::Class(class));
    }
    let has = json!({"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "10", "pods": "110"});
    for index in 0..NODES {
        world.state.apply(node_delta(node_value(&format!("node-{index:04}"), &has)));
    }
    for queue in ["a", "b", "c", "d"] {
        world.state.apply(queue_delta(queue, &json!({})));
    }
    world
}

fn gang(index: usize, prefix: &str, queue: &str, class: &str) -> Vec<Delta> {
    let name = format!("{prefix}-{index:03}");
    // Ten gangs a second.
    let created = 2_000 + i64::try_from(index).unwrap() / 10;
    let spec = json!({"minMember": SIZE, "queue": queue, "priorityClassName": class});
    let mut deltas = vec![group_delta(&name, created, &spec)];
    let cpu = format!("{}m", 1_000 + index % 10 * 100);
    let asks = json!({"cpu": cpu, "memory": "2Gi", "nvidia.com/gpu": "1"});
    for pod in 0..SIZE {
        deltas.push(pod_delta(&member(&format!("{name}-{pod}"), &name, created, &asks)));
    }
    deltas
}

/// Carries out what is decided, evictions at once.
fn carry_out(state: &mut State, decisions: &[Decision]) -> (usize, usize) {
    let (mut bound, mut evicted) = (0, 0);
    for decision in decisions {
        match decision {
            Decision::Bind { .. } => bound += 1,
            Decision::Evict { pod, .. } => {
                evicted += 1;
                state.apply(Delta::PodGone(pod.clone()));
            }
            _ => {}
        }
    }
    (bound, evicted)
}

fn slowest(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() * 99 / 100], times[times.len() - 1])
}

#[test]
#[ignore = "a measurement"]
fn measure_from_empty() {
    let deltas: Vec<Delta> = (0..GANGS).flat_map(|i| gang(i, "g", "a", "low")).collect();
    let mut state = cluster().state;
    let start = Instant::now();
    for delta in &deltas {
        state.apply(delta.clone());
    }
    let applied = start.elapsed();
    let (bound, _) = {
        let d = state.decide(2_000);
        carry_out(&mut state, &d)
    };
    println!(
        "from empty, at once: {bound} pods bound in {:?}, of that {applied:?} taking note",
        start.elapsed()
    );
    let mut state = cluster().state;
    let (mut times, start) = (Vec::new(), Instant::now());
    for index in 0..GANGS {
        for delta in gang(index, "g", "a", "low") {
            state.apply(delta);
        }
        let moment = Instant::now();
        let decisions = state.decide(2_000);
        times.push(moment.elapsed());
        carry_out(&mut state, &decisions);
    }
    let (p99, most) = slowest(times);
    println!(
        "from empty, gang by gang: {:?} in all, decisions p99 {p99:?}, most {most:?}",
        start.elapsed()
    );
}

#[test]
#[ignore = "a measurement"]
fn measure_on_a_full_cluster() {
    let mut state = cluster().state;
    for index in 0..GANGS {
        let queue = if index % 2 == 0 { "a" } else { "b" };
        for delta in gang(index, "g", queue, "low") {
            state.apply(delta);
        }
    }
    let decisions = state.decide(2_000);
    let (bound, _) = carry_out(&mut state, &decisions);
    assert_eq!(bound, GANGS * SIZE);
    let (mut times, mut bound, mut evicted) = (Vec::new(), 0, 0);
    let arrivals: Vec<Vec<Delta>> = (0..GANGS)
        .map(|index| {
            let queue = ["a", "b", "c", "d"][index % 4];
            gang(index, "h", queue, if index % 3 == 0 { "high" } else { "low" })
        })
        .collect();
    let start = Instant::now();
    for (index, arrival) in arrivals.into_iter().enumerate() {
        for delta in arrival {
            state.apply(delta);
        }
        let moment = Instant::now();
        let decisions = state.decide(2_001 + i64::try_from(index).unwrap() / 10);
        times.push(moment.elapsed());
        let counts = carry_out(&mut state, &decisions);
        bound += counts.0;
        evicted += counts.1;
    }
    let (p99, most) = slowest(times);
    println!(
        "onto a full cluster, gang by gang: {:?} in all, {bound} bound, {evicted} evicted, \
         decisions p99 {p99:?}, most {most:?}",
        start.elapsed()
    );
}

#[test]
#[ignore = "a measurement"]
fn measure_everything_at_once_on_a_full_cluster() {
    let mut state = cluster().state;
    for index in 0..GANGS {
        let queue = if index % 2 == 0 { "a" } else { "b" };
        for delta in gang(index, "g", queue, "low") {
            state.apply(delta);
        }
    }
    let decisions = state.decide(2_001);
    carry_out(&mut state, &decisions);
    let arrivals: Vec<Delta> = (0..GANGS)
        .flat_map(|index| {
            let queue = ["a", "b", "c", "d"][index % 4];
            gang(index, "h", queue, if index % 3 == 0 { "high" } else { "low" })
        })
        .collect();
    let start = Instant::now();
    for delta in arrivals {
        state.apply(delta);
    }
    let (mut bound, mut evicted, mut rounds) = (0, 0, 0);
    loop {
        let decisions = state.decide(2_051);
        let counts = carry_out(&mut state, &decisions);
        bound += counts.0;
        evicted += counts.1;
        rounds += 1;
        if counts == (0, 0) || rounds == 10 {
            break;
        }
    }
    println!(
        "onto a full cluster, at once: {:?} in {rounds} rounds, {bound} bound, {evicted} evicted",
        start.elapsed()
    );
}
