//! Which of a story's writes are played with faults: all of them, or a part that rotates with the commit,
//! so that all have their turn.

use crate::rotation;

/// One write in so many has its turn.
const PARTS: usize = 4;

/// A share of all writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All.
    Every,
    /// Those whose turn it is.
    Turn(usize),
}

impl Share {
    /// A part, by the commit that is checked out.
    pub(crate) fn of_this_commit() -> Self {
        Self::Turn(rotation::number() % PARTS)
    }

    /// Whether the n-th write belongs to it.
    pub(super) fn has(self, at: usize) -> bool {
        match self {
            Self::Every => true,
            Self::Turn(turn) => at % PARTS == turn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_has_its_turn() {
        let turns: Vec<Vec<usize>> =
            (0..PARTS).map(|t| (1..=9).filter(|at| Share::Turn(t).has(*at)).collect()).collect();
        assert_eq!(turns.concat().len(), 9);
        assert!(turns.iter().all(|writes| !writes.is_empty()));
        assert!((1..=9).all(|at| Share::Every.has(at)));
    }
}
