//! Which of the waiting tiers may start beside those that run. Knows what a tier demands, not what it
//! does. Pure.

/// Cores that tiers are given. More of them make each tier quicker; what the tiers share stays shared.
const CORES: usize = 2;

/// What a tier takes of the machine while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Cores that it keeps busy: one when it mostly waits.
    pub(crate) cores: usize,
    /// Does it run pods as processes? They are many, and some cases look at all of the machine's.
    pub(crate) node: bool,
}

impl Demand {
    /// It keeps all cores busy by itself.
    pub(crate) const ALL: Self = Self { cores: CORES, node: false };
    /// It leaves a core to others.
    pub(crate) const ONE: Self = Self { cores: 1, node: false };
    /// The same, with pods as processes.
    pub(crate) const NODE: Self = Self { cores: 1, node: true };
    /// Pods of a whole cluster, which keeps all cores busy.
    pub(crate) const NODES: Self = Self { cores: CORES, node: true };

    fn fits(self, running: &[Self]) -> bool {
        let taken: usize = running.iter().map(|demand| demand.cores).sum();
        let node = running.iter().any(|demand| demand.node);
        taken + self.cores <= CORES && !(node && self.node)
    }
}

/// The place in the line of the first that is ready and fits beside what runs.
pub(crate) fn next(waiting: &[(Demand, bool)], running: &[Demand]) -> Option<usize> {
    waiting.iter().position(|(demand, ready)| *ready && demand.fits(running))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(demands: &[Demand]) -> Vec<(Demand, bool)> {
        demands.iter().map(|demand| (*demand, true)).collect()
    }

    #[test]
    fn the_first_of_the_line_starts_on_an_idle_machine() {
        assert_eq!(next(&ready(&[Demand::ALL, Demand::ONE]), &[]), Some(0));
        assert_eq!(next(&[], &[]), None);
    }

    #[test]
    fn one_that_waits_for_what_is_being_built_is_passed_over() {
        assert_eq!(next(&[(Demand::ALL, false), (Demand::ONE, true)], &[]), Some(1));
        assert_eq!(next(&[(Demand::ALL, false)], &[]), None);
    }

    #[test]
    fn two_share_the_cores_and_a_third_waits() {
        let line = ready(&[Demand::ALL, Demand::ONE, Demand::NODE]);
        assert_eq!(next(&line, &[Demand::ONE]), Some(1));
        assert_eq!(next(&line, &[Demand::ONE, Demand::ONE]), None);
        assert_eq!(next(&line, &[Demand::ALL]), None);
    }

    #[test]
    fn pods_as_processes_are_one_tier_s_at_a_time() {
        let line = ready(&[Demand::NODE, Demand::ONE]);
        assert_eq!(next(&line, &[Demand::NODE]), Some(1));
        assert_eq!(next(&line, &[Demand::ONE]), Some(0));
    }
}
