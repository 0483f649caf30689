//! How long the next pod waits after pods have failed. Pure.

use std::time::Duration;

use jiff::Timestamp;

use super::view::Pod;
use crate::controllers::clock::between;

/// After the first failure; twice as long after each further one.
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(10);

/// The failures since the last success, as far as they were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Timestamp>,
}

impl Backoff {
    /// What it is once these pods have ended too.
    pub(super) fn after(&self, succeeded: &[&Pod], failed: &[&Pod]) -> Self {
        let ended = |pods: &[&Pod]| {
            let mut times: Vec<Timestamp> = pods.iter().filter_map(|pod| pod.finished()).collect();
            times.sort_unstable();
            times
        };
        let failed = ended(failed);
        let Some(success) = ended(succeeded).last().copied() else {
            let more = u32::try_from(failed.len()).unwrap_or(u32::MAX);
            return Self {
                failures: self.failures.saturating_add(more),
                last: failed.last().copied().or(self.last),
            };
        };
        let since: Vec<Timestamp> = failed.into_iter().filter(|time| *time > success).collect();
        Self {
            failures: u32::try_from(since.len()).unwrap_or(u32::MAX),
            last: since.last().copied(),
        }
    }

    /// How long it still is until pods may be made; `None` when they may be.
    pub(super) fn left(&self, now: Timestamp) -> Option<Duration> {
        let last = self.last.filter(|_| self.failures > 0)?;
        let factor = 2_u32.saturating_pow(self.failures.saturating_sub(1).min(16));
        let pause = FIRST.saturating_mul(factor).min(LONGEST);
        let left = pause.saturating_sub(between(last, now));
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(ended: &str) -> Pod {
        let time = format!("2026-01-01T12:{ended}Z");
        let state = json!({"terminated": {"finishedAt": time}});
        serde_json::from_value(json!({"status": {"containerStatuses": [{"state": state}]}}))
            .unwrap()
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-01-01T12:{time}Z").parse().unwrap()
    }

    #[test]
    fn each_failure_doubles_the_pause() {
        let none = Backoff::default();
        assert_eq!(none.left(at("00:00")), None);
        let one = none.after(&[], &[&pod("00:00")]);
        assert_eq!(one.left(at("00:04")), Some(Duration::from_secs(6)));
        assert_eq!(one.left(at("00:10")), None);
        let three = one.after(&[], &[&pod("00:20"), &pod("00:12")]);
        assert_eq!(three.left(at("00:20")), Some(Duration::from_secs(40)));
        let many = Backoff { failures: 90, last: Some(at("00:00")) };
        assert_eq!(many.left(at("00:00")), Some(LONGEST));
    }

    #[test]
    fn a_success_ends_it() {
        let failed = Backoff::default().after(&[], &[&pod("00:00"), &pod("00:01")]);
        let over = failed.after(&[&pod("00:05")], &[&pod("00:03")]);
        assert_eq!(over, Backoff::default());
        let anew = failed.after(&[&pod("00:05")], &[&pod("00:07"), &pod("00:02")]);
        assert_eq!(anew, Backoff { failures: 1, last: Some(at("00:07")) });
    }
}
