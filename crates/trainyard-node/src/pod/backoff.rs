//! How long to wait before a container is started again, or an image tried again. Pure.

use std::time::Duration;

/// Waits that double from ten seconds to five minutes, the first of none at all, and are forgotten by
/// a run that lasted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    /// The wait after the second failure.
    pub(crate) first: Duration,
    /// The longest wait.
    pub(crate) longest: Duration,
    /// A run this long clears the past.
    pub(crate) forgive: Duration,
    next: Option<Duration>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::between(Duration::from_secs(10), Duration::from_mins(5))
    }
}

impl Backoff {
    /// Waits between these two.
    pub(crate) const fn between(first: Duration, longest: Duration) -> Self {
        Self { first, longest, forgive: Duration::from_mins(10), next: None }
    }

    /// The wait after a run that lasted this long.
    pub(crate) fn after(&mut self, ran: Duration) -> Duration {
        if ran >= self.forgive {
            self.next = None;
        }
        let wait = self.next.unwrap_or_default();
        self.next = Some(match self.next {
            None => self.first,
            Some(wait) => wait.saturating_mul(2).min(self.longest),
        });
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_a_long_run_forgives() {
        let mut backoff = Backoff::default();
        let short = Duration::from_secs(1);
        let waits: Vec<u64> = (0..8).map(|_| backoff.after(short).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.after(Duration::from_mins(10)).as_secs(), 0);
        assert_eq!(backoff.after(short).as_secs(), 10);
    }
}
