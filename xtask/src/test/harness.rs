//! What a test program says on standard output, by line: counts, failures, second tries, why nothing ran.
//! Reads what Rust's own harness writes and what `libtest-mimic` does. Pure.

use super::report::Verdict;
use crate::counts::Counts;

/// The start of a line about a test that failed and is tried again.
const AGAIN: &str = "AGAIN";
/// The start of the line of a program that failed for another reason than a single test.
const FAILED: &str = "FAILED: ";
/// The start of the line of a program that cannot run here.
const SKIPPED: &str = "SKIPPED: ";
const SECOND_TRY: &str = " passed at a second try";

/// What one or several test programs have said so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    counts: Counts,
    skipped: Option<String>,
    failed: Option<String>,
    /// The failed test whose account is being read.
    section: Option<String>,
}

impl Said {
    /// Takes in one line.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(counts) = test_result(line) {
            self.section = None;
            self.counts += counts;
        } else if line == "failures:" {
            self.section = None;
        } else if let Some(name) = section(line) {
            self.section = Some(name.to_owned());
            self.counts.remarks.push(format!("FAILED {name}:"));
        } else if self.section.is_some() {
            if let Some(remark) = self.counts.remarks.last_mut() {
                remark.extend(["\n", line]);
            }
        } else if line.starts_with(AGAIN) {
            self.counts.remarks.push(line.to_owned());
        } else if let Some(number) = line.strip_suffix(SECOND_TRY) {
            self.counts.unsteady += number.trim().parse::<usize>().unwrap_or_default();
        } else if let Some(reason) = line.strip_prefix(FAILED) {
            self.failed = Some(reason.to_owned());
        } else if let Some(reason) = line.strip_prefix(SKIPPED) {
            self.skipped = Some(reason.to_owned());
        }
    }

    /// The sum, given whether the program ended well.
    pub(crate) fn verdict(self, succeeded: bool) -> Verdict {
        let mut counts = self.counts;
        if let Some(reason) = self.skipped
            && counts.passed == 0
            && counts.failed == 0
        {
            return Verdict::Skipped(reason);
        }
        if !succeeded && counts.failed == 0 {
            counts.failed = 1;
            let unknown = "it did not compile, or it ended before it had told its result";
            counts.remarks.push(self.failed.unwrap_or_else(|| unknown.to_owned()));
        }
        Verdict::Ran(counts)
    }
}

/// The test of a line such as `---- volcano/suspend ----` or `---- a::b stdout ----`.
fn section(line: &str) -> Option<&str> {
    let name = line.strip_prefix("---- ")?.strip_suffix(" ----")?;
    Some(name.strip_suffix(" stdout").unwrap_or(name))
}

/// The counts of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn test_result(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number_before = |word: &str| {
        let part = numbers.split(';').find_map(|part| part.trim().strip_suffix(word))?;
        part.trim().parse().ok()
    };
    let passed = number_before("passed")?;
    Some(Counts { passed, failed: number_before("failed")?, ..Counts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, succeeded: bool) -> Verdict {
        let mut said = Said::default();
        text.lines().for_each(|line| said.line(line));
        said.verdict(succeeded)
    }

    fn counts(text: &str, succeeded: bool) -> Counts {
        match verdict(text, succeeded) {
            Verdict::Ran(counts) => counts,
            Verdict::Skipped(reason) => panic!("skipped: {reason}"),
        }
    }

    #[test]
    fn result_lines_of_the_test_harness_are_counted() {
        let line = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; 0 filtered \
                    out; finished in 0.03s";
        let counts = Counts { passed: 12, failed: 2, ..Counts::default() };
        assert_eq!(test_result(line), Some(counts));
        assert_eq!(test_result("test result::parses ... ok"), None);
        assert_eq!(test_result("running 3 tests"), None);
    }

    #[test]
    fn the_account_of_a_failure_is_a_remark() {
        let own = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\nno: 1 != 2\nhere\n\n\n\
                   failures:\n    a::b\n\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n";
        let counted = counts(own, false);
        assert_eq!((counted.passed, counted.failed), (3, 1));
        assert_eq!(counted.remarks.len(), 1);
        assert!(counted.remarks[0].starts_with("FAILED a::b:\nno: 1 != 2\nhere"), "{counted:?}");
        let mimic =
            "failures:\n\n---- one/x ----\nfirst\n\n---- two/y ----\nsecond\n\n\nfailures:\n";
        assert_eq!(counts(mimic, true).remarks.len(), 2);
    }

    #[test]
    fn second_tries_are_remarks_and_are_counted() {
        let text = "AGAIN  one/x (3 ms): late\ntest one/x ... ok\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored\n1 passed at a second try\n";
        let counted = counts(text, true);
        assert_eq!((counted.passed, counted.failed, counted.unsteady), (1, 0, 1));
        assert_eq!(counted.remarks, ["AGAIN  one/x (3 ms): late"]);
    }

    #[test]
    fn a_program_that_cannot_run_says_why() {
        let text = "SKIPPED: there is no Go\n";
        assert!(matches!(verdict(text, true), Verdict::Skipped(why) if why == "there is no Go"));
    }

    #[test]
    fn a_program_that_fails_as_a_whole_says_why() {
        let text = "test result: ok. 9 passed; 0 failed; 0 ignored\n\
                    FAILED: more than 3 cases passed only at a second try\n";
        let counted = counts(text, false);
        assert_eq!((counted.passed, counted.failed), (9, 1));
        assert_eq!(counted.remarks, ["more than 3 cases passed only at a second try"]);
    }

    #[test]
    fn a_program_that_ends_without_a_result_has_failed() {
        let counted = counts("running 3 tests\n", false);
        assert_eq!((counted.failed, counted.remarks.len()), (1, 1));
        assert_eq!(counts("test result: ok. 1 passed; 0 failed; 0 ignored\n", true).failed, 0);
    }
}
