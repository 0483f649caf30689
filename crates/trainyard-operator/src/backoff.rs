//! Pauses that double.
//!
//! Must not know what failed.

use std::time::Duration;

/// The pause after so many failures in a row: `first`, doubled each time, `longest` at most.
pub(crate) fn pause(first: Duration, longest: Duration, failures: u32) -> Duration {
    let doubled = failures.saturating_sub(1).min(31);
    first.saturating_mul(1 << doubled).min(longest)
}

/// Failures in a row of one thing, and the pause they ask for.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// Counts a failure and says how long to pause.
    pub(crate) fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        pause(self.first, self.longest, self.failures)
    }

    /// It works again; says whether it did not before.
    pub(crate) fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(70));
        let pauses: Vec<_> = (0..6).map(|_| backoff.failed().as_millis()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 70, 70]);
        assert!(backoff.succeeded());
        assert!(!backoff.succeeded());
        assert_eq!(backoff.failed().as_millis(), 5);
        assert_eq!(pause(Duration::from_secs(1), Duration::MAX, u32::MAX).as_secs(), 1 << 31);
    }
}
