//! The embedded server against kube-apiserver with etcd, asked over raw HTTPS in one run.
//!
//! Both keep what they write on disk before they answer, or neither does. Must not know how either
//! works inside.

mod fan_out;
mod load;
mod side;

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::round;
use side::Side;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct ApiServerBench {
    /// How long each rate of creations is measured.
    pub seconds: u64,
    /// How many pods are listed.
    pub pods: usize,
    /// How many watch.
    pub watchers: usize,
    /// How many events each of them gets.
    pub events: usize,
}

/// How long a server may come to rest before its memory is read.
const REST: Duration = Duration::from_secs(5);
/// Lists of which the middle one counts.
const LISTS: usize = 5;

/// Runs the benchmark; the result is one JSON object.
pub async fn apiserver(bench: ApiServerBench) -> Result<Value> {
    ensure!(bench.pods > 0 && bench.watchers > 0 && bench.events > 0, "nothing to measure");
    let mut told = Vec::new();
    for is_ours in [true, false] {
        let mut figures = durable(is_ours, &bench).await?;
        let side = Side::start(is_ours, false).await?;
        load::prepare(&side.door).await?;
        for writers in [1, 16] {
            let rate = load::creations(&side.door, writers, bench.seconds).await?;
            figures[format!("creates_per_s_memory_{writers}")] = json!(round(rate));
        }
        told.push(figures);
    }
    let [ours, theirs] = [told.first(), told.get(1)].map(|side| side.cloned().unwrap_or_default());
    let ratio = |key: &str, larger_is_better: bool| {
        let (a, b) = (ours[key].as_f64(), theirs[key].as_f64());
        let (a, b) = (a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN));
        json!(round(if larger_is_better { a / b } else { b / a }))
    };
    Ok(json!({
        "bench": "apiserver",
        "pods": bench.pods,
        "watchers": bench.watchers,
        "events": bench.events,
        "times_better": {
            "start": ratio("start_s", false),
            "idle_memory": ratio("rss_mb_idle", false),
            "creates_durable_1": ratio("creates_per_s_durable_1", true),
            "creates_durable_16": ratio("creates_per_s_durable_16", true),
            "creates_memory_1": ratio("creates_per_s_memory_1", true),
            "creates_memory_16": ratio("creates_per_s_memory_16", true),
            "list": ratio("list_s", false),
            "fan_out": ratio("events_per_s", true),
            "memory_with_pods": ratio("rss_mb_with_pods", false),
        },
        "trainyard": ours,
        "kube_apiserver_and_etcd": theirs,
    }))
}

/// Everything that is measured on a server that keeps what it is told.
async fn durable(is_ours: bool, bench: &ApiServerBench) -> Result<Value> {
    let mut side = Side::start(is_ours, true).await?;
    tokio::time::sleep(REST).await;
    let idle = side.memory()?;
    load::prepare(&side.door).await?;
    let mut rates = Vec::new();
    for writers in [1, 16] {
        rates.push(load::creations(&side.door, writers, bench.seconds).await?);
    }
    let fan_out = fan_out::measure(&side.door, bench.watchers, bench.events).await?;
    // A fresh server for the pods: neither is to carry what the measurements before left.
    let start = side.ready_after;
    drop(side);
    side = Side::start(is_ours, true).await?;
    load::prepare(&side.door).await?;
    load::fill(&side.door, bench.pods).await?;
    tokio::time::sleep(REST).await;
    let with_pods = side.memory()?;
    let (mut lists, mut bytes) = (Vec::new(), 0);
    for _ in 0..LISTS {
        let (took, length) = load::list(&side.door, bench.pods).await?;
        lists.push(took);
        bytes = length;
    }
    lists.sort();
    let middle = lists.get(LISTS / 2).copied().unwrap_or_default();
    Ok(json!({
        "start_s": thousandths(start),
        "rss_mb_idle": round(idle),
        "creates_per_s_durable_1": rates.first().copied().map(round),
        "creates_per_s_durable_16": rates.get(1).copied().map(round),
        "events_per_s": round(fan_out),
        "rss_mb_with_pods": round(with_pods),
        "rss_mb_after_lists": round(side.memory()?),
        "list_s": thousandths(middle),
        "list_mb": round(f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1_048_576.0),
    }))
}

fn thousandths(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 1e4
}
