//! Which of a story's writes are played with faults: all of them, or a part that rotates with the commit,
//! so that all have their turn.

use std::process::Command;

/// One write in so many has its turn.
const PARTS: usize = 4;
/// Says whose turn it is, instead of the commit.
const VARIABLE: &str = "TRAINYARD_ROTATION";

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
        let said = std::env::var(VARIABLE).ok().filter(|word| !word.is_empty());
        let word = said.unwrap_or_else(|| {
            let asked = Command::new("git")
                .args(["rev-parse", "HEAD"])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .output();
            asked
                .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
                .unwrap_or_default()
        });
        Self::Turn(turn(&word))
    }

    /// Whether the n-th write belongs to it.
    pub(super) fn has(self, at: usize) -> bool {
        match self {
            Self::Every => true,
            Self::Turn(turn) => at % PARTS == turn,
        }
    }
}

/// Whose turn it is by a number, or by a commit's name.
fn turn(word: &str) -> usize {
    let word = word.trim();
    let number = word.parse().ok().filter(|_| word.len() < 8);
    let of_commit = || word.get(..8).and_then(|start| usize::from_str_radix(start, 16).ok());
    number.or_else(of_commit).unwrap_or_default() % PARTS
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

    #[test]
    fn the_turn_is_told_by_a_number_or_a_commit() {
        assert_eq!(["0", "3", "6", ""].map(turn), [0, 3, 2, 0]);
        assert_eq!(turn("ce12b0a831dfbdb4358710de53399d064ebabdd5\n"), 0xce12_b0a8 % PARTS);
    }
}
