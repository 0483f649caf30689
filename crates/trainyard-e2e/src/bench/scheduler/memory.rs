//! Decisions of the pure scheduler, timed: gangs onto an empty cluster, then as many again onto a
//! full one with queues, priorities and preemption. What is decided is carried out at once.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, from_value, json};
use trainyard_sched::{Config, Decision, Delta, State};

use super::{SIZE, SchedulerBench};
use crate::bench::sample::{Sample, round};

/// Seconds since 1970; any will do.
const BEGIN: i64 = 1_000_000;
const QUEUES: [&str; 4] = ["a", "b", "c", "d"];
/// Decisions after which everything that can have a place has one.
const ROUNDS: usize = 50;

/// What came of some decisions.
#[derive(Debug, Default)]
struct Counts {
    bound: usize,
    evicted: usize,
    decisions: usize,
}

pub(super) fn measure(options: SchedulerBench) -> Result<Value> {
    let SchedulerBench { nodes, gangs } = options;
    ensure!(nodes > 0 && gangs > 0, "--nodes and --gangs must be at least 1");
    let rss_before = resident_mb("VmRSS:")?;
    let all: Vec<Vec<Delta>> =
        (0..gangs).map(|index| gang(index, "first", "low")).collect::<Result<_>>()?;
    let begin = Instant::now();
    let mut state = cluster(nodes)?;
    let ready_s = begin.elapsed().as_secs_f64();

    let begin = Instant::now();
    for delta in all.iter().flatten() {
        state.apply(delta.clone());
    }
    let at_once = settle(&mut state, BEGIN)?;
    let at_once_s = begin.elapsed().as_secs_f64();

    let mut state = cluster(nodes)?;
    let (one_by_one, times, one_by_one_s) = arrive(&mut state, all, BEGIN)?;
    let more = (0..gangs)
        .map(|index| gang(index, "second", if index % 3 == 0 { "high" } else { "low" }))
        .collect::<Result<Vec<_>>>()?;
    let (onto_full, full_times, onto_full_s) = arrive(&mut state, more, BEGIN + 1)?;
    let rss = resident_mb("VmRSS:")?;
    Ok(json!({
        "bench": "scheduler",
        "part": "memory",
        "nodes": nodes,
        "gangs": gangs,
        "pods": gangs * SIZE,
        "nodes_known_s": round(ready_s),
        "from_empty": {
            "at_once_s": round(at_once_s),
            "at_once_bound": at_once.bound,
            "gang_by_gang_s": round(one_by_one_s),
            "bound": one_by_one.bound,
            "decision_ms": shown(&times),
        },
        "onto_full": {
            "gang_by_gang_s": round(onto_full_s),
            "bound": onto_full.bound,
            "evicted": onto_full.evicted,
            "decisions": onto_full.decisions,
            "decision_ms": shown(&full_times),
        },
        "rss_mb": round(rss - rss_before),
        "rss_mb_process_peak": round(resident_mb("VmHWM:")?),
    }))
}

fn shown(times: &Sample) -> Value {
    let at = |share| round(times.at(share));
    json!({"p50": at(0.5), "p99": at(0.99), "most": at(1.0)})
}

fn cluster(nodes: usize) -> Result<State> {
    let schedulers = ["volcano".to_owned()].into();
    let mut state = State::with(Config { schedulers, ..Config::default() });
    for (name, value) in [("low", 1), ("high", 100)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        state.apply(Delta::Class(from_value(class)?));
    }
    for name in QUEUES {
        let queue = json!({"metadata": {"name": name}});
        state.apply(Delta::Queue(Box::new(from_value(queue)?)));
    }
    let has = json!({"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "10", "pods": "110"});
    for index in 0..nodes {
        let name = format!("node-{index:05}");
        let labels = json!({"kubernetes.io/hostname": name});
        let node = json!({
            "metadata": {"name": name, "labels": labels}, "status": {"allocatable": has},
        });
        state.apply(Delta::Node(Box::new(from_value(node)?)));
    }
    Ok(state)
}

/// A PodGroup and its pods; ten sizes of pod, four queues.
fn gang(index: usize, wave: &str, class: &str) -> Result<Vec<Delta>> {
    let name = format!("{wave}-{index:04}");
    let created = BEGIN + i64::try_from(index)? / 10;
    let created = jiff::Timestamp::from_second(created)?.to_string();
    let queue = QUEUES.get(index % QUEUES.len()).copied().unwrap_or_default();
    let group = json!({
        "metadata": {"namespace": "n", "name": name, "uid": name, "creationTimestamp": created},
        "spec": {"minMember": SIZE, "queue": queue, "priorityClassName": class},
        "status": {"phase": "Inqueue"},
    });
    let mut deltas = vec![Delta::Group(Box::new(from_value(group)?))];
    let cpu = format!("{}m", 1_000 + index % 10 * 100);
    let asks = json!({"cpu": cpu, "memory": "2Gi", "nvidia.com/gpu": "1"});
    for member in 0..SIZE {
        let pod = format!("{name}-{member}");
        let pod = json!({
            "metadata": {"namespace": "n", "name": pod, "uid": pod, "creationTimestamp": created,
                "annotations": {"scheduling.k8s.io/group-name": name}},
            "spec": {"schedulerName": "volcano", "containers": [{"resources": {"requests": asks}}]},
        });
        deltas.push(Delta::Pod(Box::new(from_value(pod)?)));
    }
    Ok(deltas)
}

/// One gang after the other arrives, and each time everything is decided.
fn arrive(state: &mut State, gangs: Vec<Vec<Delta>>, begin: i64) -> Result<(Counts, Sample, f64)> {
    let (mut counts, mut times) = (Counts::default(), Sample::default());
    let start = Instant::now();
    for (index, gang) in gangs.into_iter().enumerate() {
        for delta in gang {
            state.apply(delta);
        }
        let moment = Instant::now();
        let decisions = state.decide(begin + i64::try_from(index)? / 10);
        times.add_ms(moment.elapsed());
        counts.carry_out(state, &decisions);
    }
    Ok((counts, times, start.elapsed().as_secs_f64()))
}

/// Decides until nothing more comes of it.
fn settle(state: &mut State, now: i64) -> Result<Counts> {
    let mut counts = Counts::default();
    for _ in 0..ROUNDS {
        let decisions = state.decide(now);
        if counts.carry_out(state, &decisions) == 0 {
            return Ok(counts);
        }
    }
    anyhow::bail!("{ROUNDS} decisions at one moment and still something to do")
}

impl Counts {
    /// Evicted pods are gone at once. How much was done.
    fn carry_out(&mut self, state: &mut State, decisions: &[Decision]) -> usize {
        let (bound, evicted) = (self.bound, self.evicted);
        for decision in decisions {
            match decision {
                Decision::Bind { .. } => self.bound += 1,
                Decision::Evict { pod, .. } => {
                    self.evicted += 1;
                    state.apply(Delta::PodGone(pod.clone()));
                }
                _ => {}
            }
        }
        self.decisions += 1;
        self.bound - bound + self.evicted - evicted
    }
}

fn resident_mb(key: &str) -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.with_context(|| format!("{key} is not told"))? / 1024.0)
}
