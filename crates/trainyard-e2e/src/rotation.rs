//! The number by which what is too much for every run has its turn: another one for each commit.

use std::process::Command;

/// The number to take, instead of the commit's.
const VARIABLE: &str = "TRAINYARD_ROTATION";

/// Returns the number of the commit that is checked out, or the one that the environment names.
pub(crate) fn number() -> usize {
    let said = std::env::var(VARIABLE).ok().filter(|word| !word.is_empty());
    read(&said.unwrap_or_else(commit))
}

/// The name of the commit; empty where there is none.
fn commit() -> String {
    let asked = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Reads a number, or the beginning of a commit's name as one.
fn read(word: &str) -> usize {
    let word = word.trim();
    let number = word.parse().ok().filter(|_| word.len() < 8);
    let of_commit = || word.get(..8).and_then(|start| usize::from_str_radix(start, 16).ok());
    number.or_else(of_commit).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn numbers_and_commits_are_read() {
        assert_eq!(["0", "3", "6", ""].map(read), [0, 3, 6, 0]);
        assert_eq!(read("ce12b0a831dfbdb4358710de53399d064ebabdd5\n"), 0xce12_b0a8);
    }
}
