//! The time, from one place.
//!
//! A yard reads the machine's clock; a test whose runtime is paused derives it from the runtime's,
//! so that hours pass in milliseconds. Must not know who asks.

use jiff::{Timestamp, ToSpan as _, Unit};

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

impl Clock {
    /// The runtime's clock, beginning at the present.
    #[must_use]
    pub fn of_runtime() -> Self {
        Self::Runtime { start: Timestamp::now(), since: tokio::time::Instant::now() }
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
    }
}
