//! How many checks passed and failed: the common currency of all test tiers. Knows no tier.

/// Checks that passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many of those that passed did so only when they were tried again.
    pub unsteady: usize,
}

impl Counts {
    /// One check.
    #[must_use]
    pub fn one(passed: bool) -> Self {
        Self { passed: usize::from(passed), failed: usize::from(!passed), unsteady: 0 }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.unsteady += other.unsteady;
    }
}
