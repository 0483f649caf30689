//! The message that a container leaves of its end, in a file that it may have made anything of.
//!
//! Must not know containers.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Longest termination message.
const MOST: u64 = 4096;

/// What stands at the beginning of the file, as far as it is told: the rest is not read, however much it
/// is. What cannot be read has told nothing.
pub(super) fn left(path: &Path) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // Read whole, such a file took as much of the agent's memory as its container liked; this one could
    // not be read at all, and its first words were not told.
    #[test]
    fn a_message_without_end_is_read_no_further_than_it_is_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("termination-log");
        assert_eq!(left(&path), "");
        fs::write(&path, "it failed\n").unwrap();
        assert_eq!(left(&path), "it failed\n");
        fs::File::options().append(true).open(&path).unwrap().set_len(1 << 42).unwrap();
        let message = left(&path);
        assert!(message.starts_with("it failed\n") && message.len() == 4096, "{}", message.len());
    }
}
