//! What the tiers gave: counts and minutes, the closing lines, and whether all is well. Pure.

use std::fmt;
use std::time::Duration;

use super::tiers::Tier;
use crate::counts::Counts;

/// How a tier ended.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It ran.
    Ran(Counts),
    /// It could not run on this machine, for this reason.
    Skipped(String),
}

impl Verdict {
    /// A tier that broke off, with this error.
    pub(crate) fn failure(error: String) -> Self {
        Self::Ran(Counts { remarks: vec![error], ..Counts::one(false) })
    }
}

/// All tiers of one run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(Tier, Verdict, Duration)>,
    took: Duration,
}

impl Report {
    pub(crate) fn add(&mut self, tier: Tier, verdict: Verdict, took: Duration) {
        self.rows.push((tier, verdict, took));
    }

    /// All have ended, after this time: less than the sum of theirs when some ran beside others.
    pub(crate) fn end(&mut self, took: Duration) {
        self.rows.sort_by_key(|(tier, ..)| *tier);
        self.took = took;
    }

    /// Nothing failed, something ran, and in CI nothing was skipped.
    pub(crate) fn good(&self, ci: bool) -> bool {
        let (counts, skipped) = self.sum();
        counts.failed == 0 && counts.passed > 0 && !(ci && skipped > 0)
    }

    fn remarks(&self) -> impl Iterator<Item = (Tier, &str)> {
        self.rows.iter().flat_map(|(tier, verdict, _)| {
            let remarks = match verdict {
                Verdict::Ran(counts) => &counts.remarks[..],
                Verdict::Skipped(_) => &[],
            };
            remarks.iter().map(|remark| (*tier, remark.as_str()))
        })
    }

    fn sum(&self) -> (Counts, usize) {
        let mut counts = Counts::default();
        let mut skipped = 0;
        for (_, verdict, _) in &self.rows {
            match verdict {
                Verdict::Ran(ran) => counts += ran.clone(),
                Verdict::Skipped(_) => skipped += 1,
            }
        }
        (counts, skipped)
    }
}

/// As much of a remark as helps to find it.
fn shortened(remark: &str) -> String {
    const ENOUGH: usize = 600;
    let one_line = remark.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or_default()),
        None => one_line,
    }
}

fn minutes(duration: Duration) -> f64 {
    duration.as_secs_f64() / 60.0
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (tier, verdict, took) in &self.rows {
            write!(formatter, "{:<12} {:>6.2} min  ", tier.name(), minutes(*took))?;
            match verdict {
                Verdict::Ran(Counts { passed, failed, unsteady: 0, .. }) => {
                    writeln!(formatter, "{passed} passed, {failed} failed")?;
                }
                Verdict::Ran(Counts { passed, failed, unsteady, .. }) => {
                    let again = format!("{unsteady} of them AT A SECOND TRY");
                    writeln!(formatter, "{passed} passed ({again}), {failed} failed")?;
                }
                Verdict::Skipped(reason) => writeln!(formatter, "SKIPPED: {reason}")?,
            }
        }
        for (tier, remark) in self.remarks() {
            writeln!(formatter, "{tier}: {}", shortened(remark))?;
        }
        let (counts, skipped) = self.sum();
        let total = minutes(self.took);
        write!(
            formatter,
            "total: {} passed ({} at a second try), {} failed, {skipped} tiers skipped, {total:.2} min",
            counts.passed, counts.unsteady, counts.failed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdicts: Vec<Verdict>) -> Report {
        let mut report = Report::default();
        for verdict in verdicts {
            report.add(Tier::Unit, verdict, Duration::from_secs(30));
        }
        report.end(Duration::from_secs(45));
        report
    }

    fn ran(passed: usize, failed: usize) -> Verdict {
        Verdict::Ran(Counts { passed, failed, ..Counts::default() })
    }

    #[test]
    fn one_failure_or_nothing_at_all_is_bad() {
        assert!(report(vec![ran(1, 0)]).good(true));
        assert!(!report(vec![ran(9, 1)]).good(false));
        assert!(!report(vec![ran(0, 0)]).good(false));
        assert!(!report(vec![]).good(false));
    }

    #[test]
    fn a_skip_is_bad_in_ci_only() {
        let verdicts = || vec![ran(1, 0), Verdict::Skipped("no Go".to_owned())];
        assert!(report(verdicts()).good(false));
        assert!(!report(verdicts()).good(true));
    }

    #[test]
    fn it_ends_with_one_line_of_counts() {
        let text = report(vec![ran(3, 1), Verdict::Skipped("no Go".to_owned())]).to_string();
        assert_eq!(
            text.lines().last().unwrap(),
            "total: 3 passed (0 at a second try), 1 failed, 1 tiers skipped, 0.75 min"
        );
        assert!(text.contains("SKIPPED: no Go"), "{text}");
    }

    #[test]
    fn what_failed_is_said_again_at_the_end() {
        let remarks = vec![format!("FAILED  a/b (3 ms): no\n  {}", "x".repeat(700))];
        let failed = Verdict::Ran(Counts { failed: 1, remarks, ..Counts::default() });
        let text = report(vec![failed, ran(3, 0)]).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[2].starts_with("unit: FAILED a/b (3 ms): no xxx"), "{text}");
        assert!(lines[2].ends_with("x…") && lines[2].chars().count() < 620, "{text}");
    }

    #[test]
    fn rows_are_in_the_order_of_the_tiers_whatever_ended_first() {
        let mut report = Report::default();
        for tier in [Tier::Yard, Tier::Fmt, Tier::Unit] {
            report.add(tier, ran(1, 0), Duration::ZERO);
        }
        report.end(Duration::ZERO);
        let text = report.to_string();
        let names: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(names, ["fmt", "unit", "yard", "total:"]);
    }
}
