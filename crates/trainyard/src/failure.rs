//! How a command fails: an exit code, what went wrong, and what to do about it.

use std::{error::Error, fmt, io};

/// Exit code: the command was not understood. The same as clap's.
pub(crate) const USAGE: u8 = 2;
/// Exit code: a manifest is invalid.
pub(crate) const INVALID: u8 = 3;
/// Exit code: what is asked for cannot be had on this machine.
pub(crate) const UNSCHEDULABLE: u8 = 4;
/// Exit code: something took longer than it may.
pub(crate) const DEADLINE: u8 = 5;
/// Exit code: a signal ended the command before its work was done.
pub(crate) const INTERRUPTED: u8 = 130;
/// Exit code: whoever read the output of a run has left, as a shell counts the signal of a closed pipe.
pub(crate) const CLOSED_PIPE: u8 = 141;
/// Exit code: anything else.
pub(crate) const OTHER: u8 = 1;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    /// One entry per problem, each a lowercase fragment.
    problems: Vec<String>,
    hint: Option<String>,
    closed_pipe: bool,
}

impl Failure {
    /// The command line asks for something that cannot be.
    pub(crate) fn usage(problem: impl fmt::Display) -> Self {
        Self::new(USAGE, vec![problem.to_string()])
    }

    /// Manifests are invalid.
    pub(crate) fn invalid(problems: Vec<String>) -> Self {
        Self::new(INVALID, problems)
    }

    /// What is asked for does not fit on this machine.
    pub(crate) fn unschedulable(problems: Vec<String>) -> Self {
        Self::new(UNSCHEDULABLE, problems)
    }

    /// Everything there is to say has been said; only the exit code is left.
    pub(crate) const fn told(code: u8) -> Self {
        Self::new(code, Vec::new())
    }

    /// The problems in one line, for a sentence that has them as its reason.
    pub(crate) fn words(&self) -> String {
        self.problems.join("; ")
    }

    /// Whether there is nothing more to say.
    pub(crate) const fn is_told(&self) -> bool {
        self.problems.is_empty()
    }

    /// Anything else, with its causes.
    pub(crate) fn other(doing: impl fmt::Display, error: &(dyn Error + 'static)) -> Self {
        let mut text = format!("{doing}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            // Some libraries repeat the cause in their own message.
            let part = error.to_string();
            if !text.contains(&part) {
                text += ": ";
                text += &part;
            }
            cause = error.source();
        }
        Self::new(OTHER, vec![text])
    }

    /// Something was not done in time.
    pub(crate) fn deadline(problem: impl fmt::Display) -> Self {
        Self::new(DEADLINE, vec![problem.to_string()])
    }

    /// Anything else that says all there is to say.
    pub(crate) fn plain(problem: impl fmt::Display) -> Self {
        Self::new(OTHER, vec![problem.to_string()])
    }

    /// Several failures as one: every problem is told, the first decides the exit code.
    pub(crate) fn all(failures: Vec<Self>) -> Result<(), Self> {
        let mut failures = failures.into_iter();
        let Some(first) = failures.next() else { return Ok(()) };
        Err(failures.fold(first, Self::and))
    }

    /// Both failures as one: every problem is told, the first decides the exit code.
    #[must_use]
    pub(crate) fn and(mut self, next: Self) -> Self {
        self.problems.extend(next.problems);
        self.hint = self.hint.or(next.hint);
        self
    }

    /// Says where the problems are.
    #[must_use]
    pub(crate) fn at(mut self, place: &str) -> Self {
        for problem in &mut self.problems {
            *problem = format!("{place}: {problem}");
        }
        self
    }

    /// A second signal came before the work under way was finished.
    pub(crate) fn interrupted(signal: &str) -> Self {
        Self::new(OTHER, vec![format!("ended at once by a second signal ({signal})")])
    }

    /// Standard output could not be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { closed_pipe, ..Self::other("writing to standard output", error) }
    }

    const fn new(code: u8, problems: Vec<String>) -> Self {
        Self { code, problems, hint: None, closed_pipe: false }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same where nothing better is known.
    #[must_use]
    pub(crate) fn or_hint(mut self, hint: impl FnOnce() -> Option<String>) -> Self {
        self.hint = self.hint.or_else(hint);
        self
    }

    pub(crate) const fn exit_code(&self) -> u8 {
        self.code
    }

    /// Whether the reader of our output has left, as `head` does: no failure worth a word.
    pub(crate) const fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let end = if at + 1 < self.problems.len() { "\n" } else { "" };
            write!(f, "error: {problem}{end}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_its_line_and_the_hint_comes_last() {
        let failure = Failure::invalid(vec!["one".into(), "two".into()]).hint("look there");
        assert_eq!(failure.to_string(), "error: one\nerror: two\nhint: look there");
        assert_eq!(failure.exit_code(), 3);
    }

    #[test]
    fn a_reader_that_leaves_is_told_apart() {
        assert!(Failure::output(&io::ErrorKind::BrokenPipe.into()).is_closed_pipe());
        assert!(!Failure::output(&io::ErrorKind::StorageFull.into()).is_closed_pipe());
    }
}
