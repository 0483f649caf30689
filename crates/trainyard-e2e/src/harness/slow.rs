//! The slowest cases of a tier, or with `TRAINYARD_TIMES=1` all of them, named at its end for whoever wants it
//! quicker.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Asks for all times.
const TIMES: &str = "TRAINYARD_TIMES";
/// So many are named.
const NAMED: usize = 8;
/// What takes less is not slow.
const LEAST: Duration = Duration::from_secs(5);

/// How long cases took.
#[derive(Debug, Default)]
pub(super) struct Slow {
    took: Mutex<Vec<(Duration, String)>>,
}

impl Slow {
    /// Plays a case and keeps how long it took.
    pub(super) fn play(&self, name: &str, play: impl FnOnce() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        let played = play();
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        took.push((started.elapsed(), name.to_owned()));
        played
    }

    /// One line with the slowest, if any is slow.
    pub(super) fn line(&self) -> Option<String> {
        let mut took = self.took();
        took.retain(|(took, _)| *took >= LEAST);
        let named: Vec<String> = took
            .iter()
            .take(NAMED)
            .map(|(took, name)| format!("{name} {:.0} s", took.as_secs_f64()))
            .collect();
        (!named.is_empty()).then(|| format!("slowest: {}", named.join(", ")))
    }

    /// A line for each, where that is asked for.
    pub(super) fn lines(&self) -> Vec<String> {
        if std::env::var_os(TIMES).is_none() {
            return Vec::new();
        }
        let line =
            |(took, name): (Duration, String)| format!("{:>6.1} s  {name}", took.as_secs_f64());
        self.took().into_iter().map(line).collect()
    }

    fn took(&self) -> Vec<(Duration, String)> {
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner).clone();
        took.sort_by(|one, other| other.cmp(one));
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_named_and_the_quick_are_not() {
        let slow = Slow::default();
        slow.play("quick", || Ok(())).unwrap();
        assert_eq!(slow.line(), None);
        let seconds = |count| Duration::from_secs(count);
        let more = [(seconds(7), "a".to_owned()), (seconds(61), "b".to_owned())];
        slow.took.lock().unwrap().extend(more);
        assert_eq!(slow.line().as_deref(), Some("slowest: b 61 s, a 7 s"));
    }
}
