//! The operator's one clock.
//!
//! Time of day, as the machine has it; or, for a runtime whose time is paused, read once and then
//! advancing with the runtime, so that every deadline can be driven. Nothing else in this crate may
//! read the time of day.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::options::Time;

/// Time of day and when to wake for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Timestamp,
    start: Instant,
    time: Time,
}

/// A machine that was asleep wakes with its timers as far away as before, while the time of day has
/// gone on: nobody sleeps longer than this without looking at it.
const LONGEST_SLEEP: std::time::Duration = std::time::Duration::from_mins(1);

/// The time of day at one moment of the machine's other clock, from which all times of runtimes are told.
static ANCHOR: LazyLock<(Timestamp, std::time::Instant)> =
    LazyLock::new(|| (Timestamp::now(), std::time::Instant::now()));

/// The time of this runtime. A clock that is started late in a paused one shows the same time as those before
/// it, whichever thread runs it by then; not the time of day, which may be ahead of it or behind.
fn of_runtime(now: Instant) -> Timestamp {
    let ((base, anchor), now) = (*ANCHOR, now.into_std());
    let span = |later: std::time::Instant, earlier| {
        SignedDuration::try_from(later.saturating_duration_since(earlier)).unwrap_or_default()
    };
    base.saturating_add(span(now, anchor) - span(anchor, now)).unwrap_or(base)
}

impl Clock {
    /// A clock that shows the present time.
    pub(crate) fn start(time: Time) -> Self {
        let start = Instant::now();
        let base = match time {
            Time::OfDay => Timestamp::now(),
            Time::OfRuntime => of_runtime(start),
        };
        Self { base, start, time }
    }

    /// The time of day.
    pub(crate) fn now(&self) -> Timestamp {
        match self.time {
            Time::OfDay => Timestamp::now(),
            Time::OfRuntime => {
                let elapsed = SignedDuration::try_from(self.start.elapsed()).unwrap_or_default();
                self.base.checked_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// When to look again for that time of day: then, or a little before it if it is far away.
    pub(crate) fn instant(&self, time: Timestamp) -> Instant {
        match self.time {
            Time::OfDay => {
                let ahead = time.duration_since(Timestamp::now());
                let ahead = std::time::Duration::try_from(ahead).unwrap_or_default();
                Instant::now() + ahead.min(LONGEST_SLEEP)
            }
            Time::OfRuntime => {
                let ahead = time.duration_since(self.base);
                let Ok(ahead) = std::time::Duration::try_from(ahead) else { return self.start };
                self.start.checked_add(ahead).unwrap_or_else(|| self.start + FAR)
            }
        }
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
        let clock = Clock::start(Time::OfRuntime);
        let begin = clock.now();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now().duration_since(begin), SignedDuration::from_hours(1));
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_of_one_runtime_show_the_same_time() {
        let first = Clock::start(Time::OfRuntime);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(Clock::start(Time::OfRuntime).now(), first.now());
        // A busy machine is no reason to be late.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(Clock::start(Time::OfRuntime).now(), first.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_never_fires_early() {
        let clock = Clock::start(Time::OfRuntime);
        for nanos in [1, 999_999, 1_000_000, 1_500_001] {
            let due = clock.now().checked_add(SignedDuration::from_nanos(nanos)).unwrap();
            tokio::time::sleep_until(clock.instant(due)).await;
            assert!(clock.now() >= due, "{nanos}");
        }
    }

    #[tokio::test]
    async fn the_time_of_day_is_looked_at_again_and_again() {
        let clock = Clock::start(Time::OfDay);
        let now = clock.now();
        assert!(
            clock.instant(now.checked_add(SignedDuration::from_hours(9)).unwrap())
                <= Instant::now() + LONGEST_SLEEP
        );
        assert!(clock.instant(Timestamp::MIN) <= Instant::now());
        let soon = now.checked_add(SignedDuration::from_secs(20)).unwrap();
        assert!(clock.instant(soon) > Instant::now() + Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn times_out_of_reach_do_not_overflow() {
        let clock = Clock::start(Time::OfRuntime);
        assert!(clock.instant(Timestamp::MAX) > Instant::now());
        assert!(clock.instant(Timestamp::MIN) <= Instant::now());
    }
}
