//! Second tries. Cases with real programs in real time can stumble over a machine that others use as
//! well. They get one more, and both are told; more than a few of those in a tier are a fault all the same.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;

/// More cases than this that need a second try, and the tier has failed.
const MOST: usize = 3;

/// What second tries there were.
#[derive(Debug, Default)]
pub(super) struct Second {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    lines: Vec<String>,
    passed: usize,
}

impl Second {
    /// Tries once, and once more if that fails.
    pub(super) fn play(&self, name: &str, play: impl Fn() -> Result<()>) -> Result<()> {
        let Err(first) = play() else { return Ok(()) };
        // One line, whatever the error is made of.
        let words = format!("{first:#}");
        let words: Vec<&str> = words.split_whitespace().collect();
        self.with(|told| told.lines.push(format!("AGAIN {name}: {}", words.join(" "))));
        play()?;
        self.with(|told| told.passed += 1);
        Ok(())
    }

    /// The lines since the last time.
    pub(super) fn take_lines(&self) -> Vec<String> {
        self.with(|told| std::mem::take(&mut told.lines))
    }

    /// How many cases passed only then.
    pub(super) fn passed(&self) -> usize {
        self.with(|told| told.passed)
    }

    /// Why the tier has failed although every case has passed, if so.
    pub(super) fn complaint(&self) -> Option<String> {
        let is_excessive = self.passed() > MOST;
        is_excessive.then(|| format!("more than {MOST} cases passed only at a second try"))
    }

    fn with<T>(&self, action: impl FnOnce(&mut Told) -> T) -> T {
        action(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::{Context as _, anyhow};

    use super::*;

    fn stumble(second: &Second, failures: usize) -> (usize, bool) {
        let tries = Cell::new(0);
        let play = || {
            tries.set(tries.get() + 1);
            if tries.get() <= failures { Err(anyhow!("too\n  slow")).context("it") } else { Ok(()) }
        };
        let passed = second.play("a/b", play).is_ok();
        (tries.get(), passed)
    }

    #[test]
    fn a_second_try_is_told_in_one_line_and_there_is_no_third() {
        let second = Second::default();
        assert_eq!(stumble(&second, 0), (1, true));
        assert!(second.take_lines().is_empty());
        assert_eq!(stumble(&second, 1), (2, true));
        assert_eq!(second.take_lines(), ["AGAIN a/b: it: too slow"]);
        assert_eq!(second.passed(), 1);
        assert_eq!(stumble(&second, 2), (2, false));
        assert_eq!((second.take_lines().len(), second.passed()), (1, 1));
    }

    #[test]
    fn many_second_tries_are_a_failure() {
        let second = Second::default();
        for _ in 0..MOST {
            assert_eq!(stumble(&second, 1), (2, true));
            assert_eq!(second.complaint(), None);
        }
        assert_eq!(stumble(&second, 2), (2, false));
        assert_eq!(second.complaint(), None);
        assert_eq!(stumble(&second, 1), (2, true));
        assert!(second.complaint().is_some_and(|words| words.contains("more than 3")));
    }
}
