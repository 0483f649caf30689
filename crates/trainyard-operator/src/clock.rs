//! The operator's one clock.
//!
//! Wall time is read once; from then on it advances with tokio's clock, so that a paused runtime
//! drives every deadline. Nothing else in this crate may read the time of day.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Time of day on tokio's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Timestamp,
    start: Instant,
}

impl Clock {
    /// A clock that shows the present time.
    pub(crate) fn start() -> Self {
        Self { base: Timestamp::now(), start: Instant::now() }
    }

    /// The time of day.
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.start.elapsed()).unwrap_or_default();
        self.base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// When this clock will show that time of day; the start for times before it.
    pub(crate) fn instant(&self, time: Timestamp) -> Instant {
        let ahead = time.duration_since(self.base);
        let Ok(ahead) = std::time::Duration::try_from(ahead) else { return self.start };
        self.start.checked_add(ahead).unwrap_or_else(|| self.start + FAR)
    }
}

/// Far enough ahead to mean never, near enough for timer arithmetic.
pub(crate) const FAR: std::time::Duration = std::time::Duration::from_hours(24 * 365);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_follows_a_paused_runtime() {
        let clock = Clock::start();
        let begin = clock.now();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now().duration_since(begin), SignedDuration::from_hours(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_never_fires_early() {
        let clock = Clock::start();
        for nanos in [1, 999_999, 1_000_000, 1_500_001] {
            let due = clock.now().checked_add(SignedDuration::from_nanos(nanos)).unwrap();
            tokio::time::sleep_until(clock.instant(due)).await;
            assert!(clock.now() >= due, "{nanos}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn times_out_of_reach_do_not_overflow() {
        let clock = Clock::start();
        assert!(clock.instant(Timestamp::MAX) > Instant::now());
        assert!(clock.instant(Timestamp::MIN) <= Instant::now());
    }
}
