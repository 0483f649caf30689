//! The controllers' one clock: the time of day on tokio's clock, so that a paused runtime drives it.
//!
//! Nothing else among the controllers may read the time of day.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Time of day on tokio's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    base: Timestamp,
    start: Instant,
}

impl Clock {
    /// A clock that shows the present time.
    pub(super) fn start() -> Self {
        Self { base: crate::Clock::of_runtime().now(), start: Instant::now() }
    }

    /// The time of day.
    pub(super) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.start.elapsed()).unwrap_or_default();
        self.base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

/// A time as objects carry it: `2026-11-16T05:40:00Z`.
pub(super) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// How long it is from one time to another; nothing when the other lies before.
pub(super) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_follows_a_paused_runtime() {
        let clock = Clock::start();
        let begin = clock.now();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(between(begin, clock.now()), Duration::from_hours(1));
        assert_eq!(between(clock.now(), begin), Duration::ZERO);
    }

    #[test]
    fn fractions_are_left_out() {
        let time: Timestamp = "2026-11-16T05:40:00.75Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-11-16T05:40:00Z");
    }
}
