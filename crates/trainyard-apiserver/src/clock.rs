//! The time, from one place.
//!
//! A yard reads the machine's clock; a test whose runtime is paused derives it from the runtime's,
//! so that hours pass in milliseconds. Must not know who asks.

use std::sync::LazyLock;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp, ToSpan as _, Unit};

/// Where the time comes from.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clock.
    Wall,
    /// The runtime's clock, from a moment on.
    Runtime {
        /// What the time was at `since`.
        start: Timestamp,
        /// The runtime's time then.
        since: tokio::time::Instant,
    },
}

/// The time of day at one moment of the machine's other clock, from which all times of runtimes are told.
static ANCHOR: LazyLock<(Timestamp, Instant)> =
    LazyLock::new(|| (Timestamp::now(), Instant::now()));

impl Clock {
    /// The runtime's clock. One that is started late in a runtime which is paused shows the same time as those
    /// before it, not the time of day, which may be ahead of it or behind.
    #[must_use]
    pub fn of_runtime() -> Self {
        let ((today, anchor), since) = (*ANCHOR, tokio::time::Instant::now());
        let now = since.into_std();
        let span = |later: Instant, earlier| {
            SignedDuration::try_from(later.saturating_duration_since(earlier)).unwrap_or_default()
        };
        let start = today.saturating_add(span(now, anchor) - span(anchor, now));
        Self::Runtime { start: start.unwrap_or(today), since }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Wall => Timestamp::now(),
            Self::Runtime { start, since } => {
                let passed = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
                start.checked_add(passed.milliseconds()).unwrap_or(*start)
            }
        }
    }

    /// The time as objects have it: whole seconds.
    pub(crate) fn text(&self) -> String {
        seconds(self.now())
    }
}

/// A time as objects have it: whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    let whole = time.round(Unit::Second).unwrap_or(time);
    // Rounding goes to the nearest; a time in the future would make ages negative.
    let whole = if whole > time { whole.checked_sub(1.second()).unwrap_or(time) } else { whole };
    whole.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_cut_off() {
        let time: Timestamp = "2026-11-16T05:40:00.9Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-11-16T05:40:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn paused_time_passes_as_told() {
        let clock = Clock::of_runtime();
        let before = clock.now();
        tokio::time::advance(std::time::Duration::from_hours(2)).await;
        assert_eq!(clock.now().duration_since(before).as_hours(), 2);
        // A busy machine is no reason to be late.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let late = Clock::of_runtime().now().duration_since(clock.now());
        assert!(late.abs() <= SignedDuration::from_millis(1), "{late}");
    }
}
