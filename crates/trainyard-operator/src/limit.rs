//! A limit on requests per second, for clusters that ask for one.
//!
//! Requests that matter go first: low-priority ones take a turn only when nobody else waits. Must
//! not know what is requested.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// Lets through so many requests a second, and some at once after a pause.
#[derive(Debug)]
pub(crate) struct Limit {
    interval: Duration,
    burst: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the next request would be due if all went out evenly.
    next: Instant,
    waiting: usize,
}

impl Limit {
    /// A limit; none when `qps` is no positive number.
    pub(crate) fn new(qps: Option<f64>, burst: u32) -> Option<Self> {
        let qps = qps.filter(|qps| qps.is_finite() && *qps > 0.0)?;
        let interval = Duration::try_from_secs_f64(1.0 / qps).ok()?;
        let state = State { next: Instant::now(), waiting: 0 };
        let burst = interval.saturating_mul(burst.saturating_sub(1));
        Some(Self { interval, burst, state: Mutex::new(state) })
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self) {
        let at = self.reserve();
        if at > Instant::now() {
            let _waiting = Waiting::new(self);
            sleep_until(at).await;
        }
    }

    /// Waits for a turn that nobody else wants.
    pub(crate) async fn spare_turn(&self) {
        while let Err(later) = self.try_reserve() {
            sleep_until(later).await;
        }
    }

    fn reserve(&self) -> Instant {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let next = state.next.max(now);
        state.next = next + self.interval;
        next.checked_sub(self.burst).unwrap_or(now)
    }

    fn try_reserve(&self) -> Result<(), Instant> {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let next = state.next.max(now);
        if state.waiting > 0 || next > now + self.burst {
            return Err(next + self.interval);
        }
        state.next = next + self.interval;
        Ok(())
    }
}

/// Somebody waits; also when the wait is given up.
struct Waiting<'a>(&'a Limit);

impl<'a> Waiting<'a> {
    fn new(limit: &'a Limit) -> Self {
        limit.state.lock().unwrap_or_else(PoisonError::into_inner).waiting += 1;
        Self(limit)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_out_at_once_and_the_rest_evenly() {
        let limit = Limit::new(Some(10.0), 3).unwrap();
        let begin = Instant::now();
        let mut at = Vec::new();
        for _ in 0..6 {
            limit.turn().await;
            at.push(begin.elapsed().as_millis());
        }
        assert_eq!(at, [0, 0, 0, 100, 200, 300]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_low_priority_request_waits_for_all_others() {
        let limit = Limit::new(Some(10.0), 1).unwrap();
        let begin = Instant::now();
        limit.turn().await;
        let urgent = async {
            for _ in 0..5 {
                limit.turn().await;
            }
            begin.elapsed()
        };
        let spare = async {
            limit.spare_turn().await;
            begin.elapsed()
        };
        let (urgent, spare) = tokio::join!(urgent, spare);
        assert_eq!(urgent.as_millis(), 500);
        assert!(spare > urgent);
    }

    #[test]
    fn no_number_means_no_limit() {
        assert!(Limit::new(None, 5).is_none());
        assert!(Limit::new(Some(0.0), 5).is_none());
        assert!(Limit::new(Some(f64::NAN), 5).is_none());
        assert!(Limit::new(Some(-1.0), 5).is_none());
    }
}
