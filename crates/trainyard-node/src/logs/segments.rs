//! The files of one log: `0.log` is being written, `0.log.1`, `0.log.2` … were rotated away, the higher
//! the younger. A rotated file keeps its number, so readers can find the one that follows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Which files of a log there are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// Numbers of rotated files, oldest first.
    pub(super) rotated: Vec<u64>,
}

impl Segments {
    /// Looks at the folder. A folder that is not there holds none.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut rotated = Vec::new();
        let entries = match fs::read_dir(folder(path)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { rotated }),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry?.file_name();
            let Some((base, number)) = name.to_str().and_then(|name| name.rsplit_once('.')) else {
                continue;
            };
            if path.file_name().is_some_and(|file| file == base)
                && let Ok(number) = number.parse()
            {
                rotated.push(number);
            }
        }
        rotated.sort_unstable();
        Ok(Self { rotated })
    }

    /// The number that the file being written will get.
    pub(super) fn current(&self) -> u64 {
        self.rotated.last().map_or(1, |last| last.saturating_add(1))
    }

    /// The oldest file's number.
    pub(super) fn oldest(&self) -> u64 {
        self.rotated.first().copied().unwrap_or_else(|| self.current())
    }
}

/// Where a rotated file is.
pub(super) fn rotated(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The folder that all files of a log are in.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_logs_files_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        assert_eq!(Segments::of(&path).unwrap().current(), 1);
        for name in ["0.log", "0.log.2", "0.log.10", "0.log.x", "10.log.7", "0.log.3.gz", "1.log"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let segments = Segments::of(&path).unwrap();
        assert_eq!(segments.rotated, [2, 10]);
        assert_eq!((segments.oldest(), segments.current()), (2, 11));
        assert_eq!(rotated(&path, 10), folder.path().join("0.log.10"));
    }

    #[test]
    fn a_missing_folder_holds_none() {
        let folder = tempfile::tempdir().unwrap();
        let segments = Segments::of(&folder.path().join("gone/0.log")).unwrap();
        assert_eq!((segments.oldest(), segments.current()), (1, 1));
    }
}
