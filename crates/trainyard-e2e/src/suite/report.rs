//! One line per scenario as it ends, and the count at the end.
//!
//! Scenarios with real programs in real time can stumble over a machine that others use as well. They get
//! a second try, and both are told; more than a few of those in a run are a fault of ours all the same.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::Instant;

use crate::counts::Counts;

/// More scenarios than this that need a second try, and the run has failed.
const STUMBLES: usize = 3;

/// What has been told so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    counts: Mutex<Counts>,
    tries: Tries,
}

/// How often a scenario may be tried.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Tries {
    #[default]
    Once,
    Twice,
}

impl Report {
    /// For scenarios that depend on how fast the machine is.
    pub(crate) fn in_real_time() -> Self {
        Self { tries: Tries::Twice, ..Self::default() }
    }

    /// Plays a scenario, for so long at most, and tells how it ended; whether it passed. It is given the
    /// number of the try.
    pub(crate) async fn play(
        &self,
        name: &str,
        longest: Duration,
        scenario: impl AsyncFn(usize) -> Result<()>,
    ) -> bool {
        let started = Instant::now();
        let mut result = bounded(longest, scenario(0)).await;
        if let (Err(error), Tries::Twice) = (&result, self.tries) {
            self.remark(format!(
                "AGAIN   {name} ({} ms): {error:#}",
                started.elapsed().as_millis()
            ));
            result = bounded(longest, scenario(1)).await;
            let unsteady = usize::from(result.is_ok());
            self.add(Counts { unsteady, ..Counts::default() });
        }
        self.tell(name, &result, started.elapsed());
        result.is_ok()
    }

    /// Tells how a scenario ended.
    pub(crate) fn tell(&self, name: &str, result: &Result<()>, took: Duration) {
        match result {
            Ok(()) => say(&format!("ok      {name} ({} ms)", took.as_millis())),
            Err(error) => {
                self.remark(format!("FAILED  {name} ({} ms): {error:#}", took.as_millis()));
            }
        }
        self.add(Counts::one(result.is_ok()));
    }

    /// Says a line now, and once more at the end of all tiers.
    fn remark(&self, line: String) {
        say(&line);
        self.add(Counts { remarks: vec![line], ..Counts::default() });
    }

    /// Takes over what was told elsewhere.
    pub(crate) fn add(&self, counts: Counts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) += counts;
    }

    /// The last line.
    pub(crate) fn finish(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if counts.unsteady > STUMBLES {
            let line = format!("FAILED  {} scenarios needed a second try", counts.unsteady);
            say(&line);
            counts.failed += 1;
            counts.remarks.push(line);
        }
        say(&format!(
            "{} scenarios passed ({} of them at a second try), {} failed",
            counts.passed, counts.unsteady, counts.failed
        ));
        counts
    }
}

/// Gives up after so long.
pub(crate) async fn bounded<T>(
    longest: Duration,
    play: impl Future<Output = Result<T>>,
) -> Result<T> {
    let played = tokio::time::timeout(longest, play).await;
    played.unwrap_or_else(|_| Err(anyhow!("took longer than {longest:?}")))
}

/// Writes a line for the developer.
#[cfg(not(test))]
pub(crate) fn say(line: &str) {
    use std::io::Write as _;
    // A closed terminal is no reason to stop.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Only what is printed by the macro is kept back by the test harness; a made-up failure in the midst of a
/// long output would be taken for one.
#[cfg(test)]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Plays a scenario that fails so many times.
    async fn stumble(report: &Report, failures: usize) -> usize {
        let tries = AtomicUsize::new(0);
        let scenario = async |_: usize| {
            let before = tries.fetch_add(1, Ordering::Relaxed);
            if before < failures { Err(anyhow!("too slow")) } else { Ok(()) }
        };
        report.play("it", Duration::from_secs(1), scenario).await;
        tries.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_second_try_is_told_apart() {
        let report = Report::in_real_time();
        assert_eq!([stumble(&report, 0).await, stumble(&report, 1).await], [1, 2]);
        let told = report.finish();
        assert_eq!((told.passed, told.failed, told.unsteady), (2, 0, 1));
        let [remark] = &told.remarks[..] else { panic!("{told:?}") };
        assert!(remark.starts_with("AGAIN   it (") && remark.ends_with(": too slow"), "{remark}");
        assert_eq!(stumble(&report, 9).await, 2, "there is no third");
        let told = report.finish();
        assert_eq!((told.passed, told.failed, told.unsteady, told.remarks.len()), (2, 1, 1, 3));
    }

    #[tokio::test]
    async fn many_second_tries_are_a_failure() {
        let report = Report::in_real_time();
        for _ in 0..=STUMBLES {
            stumble(&report, 1).await;
        }
        assert_eq!(report.finish().failed, 1);
    }

    #[tokio::test]
    async fn what_does_not_depend_on_time_has_one() {
        let report = Report::default();
        assert_eq!(stumble(&report, 1).await, 1);
        let told = report.finish();
        assert_eq!((told.passed, told.failed, told.unsteady, told.remarks.len()), (0, 1, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_takes_for_ever() {
        let report = Report::default();
        let never = async |_: usize| std::future::pending().await;
        assert!(!report.play("it", Duration::from_mins(2), never).await);
    }
}
