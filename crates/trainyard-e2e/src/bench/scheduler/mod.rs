//! The scheduler under load: its decisions in memory, without an API server.

mod memory;

use anyhow::Result;
use serde_json::Value;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerBench {
    /// How many nodes.
    pub nodes: usize,
    /// How many gangs of twenty pods.
    pub gangs: usize,
}

/// Runs the benchmark; the result is one JSON object.
pub fn scheduler(options: SchedulerBench) -> Result<Value> {
    memory::measure(options)
}
