//! The time of day where the server is: one in paused time is ahead of the clock on the wall.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

/// Tells the time that the server tells, to the second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    /// By an object that the server has just made.
    pub(crate) fn by(made: &Value) -> Self {
        let start = made["metadata"]["creationTimestamp"].as_str();
        let start = start.and_then(|start| start.parse().ok()).unwrap_or_else(Timestamp::now);
        Self { start, since: Instant::now() }
    }

    /// Now, in the precision of the API.
    pub(super) fn now(&self) -> String {
        let passed = SignedDuration::from_secs(self.since.elapsed().as_secs().cast_signed());
        self.start.saturating_add(passed).unwrap_or(self.start).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_passes_as_it_does_for_the_server() {
        let made = json!({"metadata": {"creationTimestamp": "2026-01-01T23:00:00Z"}});
        let clock = Clock::by(&made);
        tokio::time::sleep(Duration::from_millis(7_200_900)).await;
        assert_eq!(clock.now(), "2026-01-02T01:00:00Z");
    }
}
