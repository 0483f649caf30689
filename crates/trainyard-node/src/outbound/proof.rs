//! Remembers that a program has carried pods' packets here, so that it need not prove itself at every start:
//! the same program, in the same state folder, since the machine was started.
//!
//! Owns one small file. Must not know what the program does.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const FILE: &str = "outbound";
/// Another one at every start of the machine, or of the container that is one for us.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What is remembered of one program, and where.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    file: PathBuf,
    text: String,
}

impl Proof {
    pub(super) fn of(state: &Path, program: &Path) -> Self {
        let boot = fs::read_to_string(BOOT).unwrap_or_default();
        let which = fs::metadata(program)
            .map(|it| format!("{:x}-{:x} {} {}", it.dev(), it.ino(), it.size(), it.mtime()))
            .unwrap_or_default();
        let text = format!("{} {which} {}\n", program.display(), boot.trim());
        Self { file: state.join(FILE), text }
    }

    /// Whether it has worked before.
    pub(super) fn holds(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|noted| noted == self.text)
    }

    /// It works.
    pub(super) fn keep(&self) {
        if let Err(error) = fs::write(&self.file, &self.text) {
            tracing::debug!(%error, "the way out will be tried again at the next start");
        }
    }

    /// It does not any more.
    pub(super) fn forget(&self) {
        // What is not there need not be forgotten.
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_for_the_same_program_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "x").unwrap();
        fs::write(&other, "x").unwrap();
        let proof = Proof::of(folder.path(), &one);
        assert!(!proof.holds());
        proof.keep();
        assert!(proof.holds() && Proof::of(folder.path(), &one).holds());
        assert!(!Proof::of(folder.path(), &other).holds());
        fs::write(&one, "another version").unwrap();
        assert!(!Proof::of(folder.path(), &one).holds());
        proof.forget();
        assert!(!proof.holds());
    }
}
