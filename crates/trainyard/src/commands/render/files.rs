//! Files in and out: bounded reading, writing all or nothing.

use std::{
    error::Error,
    fs::{self, File, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use trainyard_render::{crew::Crew, rendering::output_name};

use super::Flags;
use crate::{failure::Failure, output};

/// Templates and lists of hosts are small.
const READ_BYTES_MAX: u64 = 16 << 20;

/// Reads a text; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let failed = |problem: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read {}: {problem}", name(path)))
    };
    let mut bytes = Vec::new();
    let limit = READ_BYTES_MAX + 1;
    let outcome = if path.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    outcome.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Err(failed(&format!("more than {} MB", READ_BYTES_MAX >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        failed(&format!("not UTF-8 text (byte {})", error.utf8_error().valid_up_to()))
    })
}

/// A file whose content is refused.
pub(super) fn wrong(path: &Path, error: &dyn Error) -> Failure {
    Failure::usage(format!("{}: {error}", name(path)))
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// Where the text goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Output {
    Stdout,
    File(PathBuf),
}

impl Output {
    /// Beside the template unless told otherwise; nowhere when the objects are created instead.
    pub(super) fn of(flags: &Flags) -> Result<Option<Self>, Failure> {
        let stdin = flags.template.as_os_str() == "-";
        let path = match &flags.output {
            Some(path) if path.as_os_str() == "-" => return Ok(Some(Self::Stdout)),
            Some(path) => path.clone(),
            None if flags.apply => return Ok(None),
            None if stdin => return Ok(Some(Self::Stdout)),
            None => {
                let template = flags.template.to_str().ok_or_else(|| {
                    Failure::usage("the template's path is not UTF-8 text").hint("give -o FILE")
                })?;
                PathBuf::from(output_name(template))
            }
        };
        let real = |path: &Path| fs::canonicalize(path).ok();
        if real(&path).is_some_and(|path| real(&flags.template) == Some(path)) {
            return Err(Failure::usage(format!(
                "{} is the template itself; it is not overwritten",
                path.display()
            )));
        }
        Ok(Some(Self::File(path)))
    }

    /// Writes all of the text, or leaves everything as it was.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Stdout => output::print_data(text),
            Self::File(path) => replace(path, text).map_err(|error| {
                Failure::usage(format!("cannot write {}: {error}", path.display()))
            }),
        }
    }

    /// Says what was written, unless that is the output itself.
    pub(super) fn announce(&self, crew: &Crew) {
        let Self::File(path) = self else { return };
        let count = |number: usize, one: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            number if one == "worker" => Some(format!("{number} workers")),
            number => Some(format!("{number} {one}")),
        };
        let parts = [
            count(crew.ps.len(), "ps"),
            count(usize::from(crew.chief.is_some()), "chief"),
            count(crew.workers.len(), "worker"),
            count(usize::from(crew.evaluator.is_some()), "evaluator"),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        output::say(&format!("{}: {}\n", path.display(), parts.join(", ")));
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        // A pipe or a device has no place beside it.
        return File::options().write(true).open(path)?.write_all(text.as_bytes());
    }
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The file that a link points to is replaced, not the link.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".simpletfjob-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.persist(&real).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.yaml");
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o700, 0o600);
        assert!(replace(folder.path(), "three").is_err());
        assert!(replace(&folder.path().join("none/out.yaml"), "four").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
