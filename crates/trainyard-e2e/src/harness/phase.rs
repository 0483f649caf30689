//! A phase: cases that are run beside each other, and how many at a time.

use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Completion, Trial};

use super::second::Second;
use super::slow::Slow;
use super::{Case, Ground};

/// Cases over one fixture.
pub(crate) struct Phase<F> {
    pub(super) ground: Arc<dyn Ground<F>>,
    pub(super) cases: Vec<Case<F>>,
    pub(super) width: Width,
    pub(super) tries: Tries,
}

/// How many cases run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// As many as there are processors, unless the command line says.
    Processors,
    /// So many, unless the command line says.
    Usually(usize),
    /// One, whatever the command line says.
    One,
}

impl Width {
    /// How many threads the test harness is to have, if that is to be said.
    pub(super) fn threads(self, asked: Option<usize>) -> Option<usize> {
        match self {
            Self::Processors => asked,
            Self::Usually(count) => asked.or(Some(count)),
            Self::One => Some(1),
        }
    }
}

/// How often a case may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tries {
    Once,
    Twice,
}

impl Tries {
    /// How often this case may be.
    fn of<F>(self, case: &Case<F>) -> Self {
        if case.once { Self::Once } else { self }
    }

    fn play(self, second: &Second, name: &str, play: impl Fn() -> Result<()>) -> Result<()> {
        match self {
            Self::Once => play(),
            Self::Twice => second.play(name, play),
        }
    }
}

impl<F: 'static> Phase<F> {
    /// Cases on what is there for them, each tried a second time when it fails.
    pub(crate) fn new(ground: &Arc<impl Ground<F>>, cases: Vec<Case<F>>) -> Self {
        let ground: Arc<dyn Ground<F>> = Arc::clone(ground) as Arc<dyn Ground<F>>;
        Self { ground, cases, width: Width::Processors, tries: Tries::Twice }
    }

    /// So many at a time.
    pub(crate) fn at_once(self, count: usize) -> Self {
        Self { width: Width::Usually(count), ..self }
    }

    /// One after the other: they share something of the whole machine.
    pub(crate) fn one_by_one(self) -> Self {
        Self { width: Width::One, ..self }
    }

    /// Without a second try.
    pub(crate) fn tried_once(self) -> Self {
        Self { tries: Tries::Once, ..self }
    }

    /// What the test harness runs.
    pub(super) fn trials(self, second: &Arc<Second>, slow: &Arc<Slow>) -> Vec<Trial> {
        let Self { ground, cases, tries, .. } = self;
        let trial = |case: Case<F>| {
            let (ground, second) = (Arc::clone(&ground), Arc::clone(second));
            let slow = Arc::clone(slow);
            Trial::test(case.name.clone(), move || {
                let play = || slow.play(&case.name, || ground.play(&case));
                tries
                    .of(&case)
                    .play(&second, &case.name, play)
                    .map_err(|error| format!("{error:#}").into())
            })
        };
        cases.into_iter().map(trial).collect()
    }

    /// The same for verdicts on what was run before: without it, or, if need be, without all of it, there
    /// is none.
    pub(super) fn verdicts(self, obstacle: Option<&'static str>) -> Vec<Trial> {
        let Self { ground, cases, .. } = self;
        let trial = |case: Case<F>| {
            let ground = Arc::clone(&ground);
            Trial::ignorable_test(case.name.clone(), move || {
                if let Some(reason) = obstacle {
                    return Ok(Completion::ignored_with(reason));
                }
                if !ground.is_started() {
                    return Ok(Completion::ignored_with("nothing was started"));
                }
                let played = ground.play(&case).map(|()| Completion::Completed);
                played.map_err(|error| format!("{error:#}").into())
            })
        };
        cases.into_iter().map(trial).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::harness::tried_once;

    #[test]
    fn what_does_not_depend_on_time_has_one_try() {
        for (tries, count) in [(Tries::Once, 1), (Tries::Twice, 2)] {
            let played = Cell::new(0);
            let failed = tries.play(&Second::default(), "a/b", || {
                played.set(played.get() + 1);
                anyhow::bail!("wrong")
            });
            assert!(failed.is_err());
            assert_eq!(played.get(), count);
        }
    }

    #[test]
    fn a_case_may_have_one_try_among_others_that_have_two() {
        let cases = || vec![Case::new("a", async |(): ()| Ok(()))];
        let once = tried_once(cases()).remove(0);
        let plain = cases().remove(0);
        assert_eq!([&once, &plain].map(|case| Tries::Twice.of(case)), [Tries::Once, Tries::Twice]);
        assert_eq!([&once, &plain].map(|case| Tries::Once.of(case)), [Tries::Once, Tries::Once]);
        assert!(
            once.within(std::time::Duration::MAX).below("b").once,
            "whatever else is said of it"
        );
    }

    #[test]
    fn the_command_line_says_how_many_run_at_a_time_but_for_those_that_must_be_alone() {
        let widths = [Width::Processors, Width::Usually(6), Width::One];
        assert_eq!(widths.map(|width| width.threads(None)), [None, Some(6), Some(1)]);
        assert_eq!(widths.map(|width| width.threads(Some(3))), [Some(3), Some(3), Some(1)]);
    }
}
