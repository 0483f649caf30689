//! How many checks passed and failed: the common currency of all test tiers. Knows no tier.

/// Checks that passed and failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How many passed.
    pub(crate) passed: usize,
    /// How many failed.
    pub(crate) failed: usize,
    /// How many of those that passed did so only when they were tried again.
    pub(crate) unsteady: usize,
    /// What is to be read again at the end of a long run: what failed, and what did at first.
    pub(crate) remarks: Vec<String>,
}

impl Counts {
    /// One check.
    pub(crate) fn one(passed: bool) -> Self {
        Self { passed: usize::from(passed), failed: usize::from(!passed), ..Self::default() }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.unsteady += other.unsteady;
        self.remarks.extend(other.remarks);
    }
}
