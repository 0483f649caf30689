//! Images of one program of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::{Archive, Settings};
use super::{folder, in_background};

/// As `deploy/Dockerfile` says.
const USER: &str = "65532:65532";
/// Where programs in an image look for others.
pub(super) const SEARCH_PATH: &str =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) async fn archive(binary: &Path, name: &str) -> Result<PathBuf> {
    let (binary, name) = (binary.to_owned(), name.to_owned());
    in_background(move || {
        let file = binary.file_name().and_then(|file| file.to_str());
        let file = file.with_context(|| format!("{} names no program", binary.display()))?;
        let path = folder()?.join(format!("{}.tar", name.replace(['/', ':'], "_")));
        let mut archive = Archive::create(&path)?;
        archive.file(file, &binary)?;
        add_libraries(&mut archive, &binary)?;
        let settings = Settings {
            entrypoint: vec![format!("/{file}")],
            environment: vec![SEARCH_PATH.to_owned()],
            user: USER.to_owned(),
            ..Settings::default()
        };
        archive.finish(&name, &settings)?;
        Ok(path)
    })
    .await
}

/// Puts the dynamic libraries of a program, and what loads them, where the program looks for them.
pub(super) fn add_libraries(archive: &mut Archive, program: &Path) -> Result<()> {
    let output = Command::new("ldd").arg(program).output().context("cannot run `ldd`")?;
    let said = String::from_utf8_lossy(&output.stdout);
    // It fails for programs that are static.
    let libraries = if output.status.success() { libraries(&said) } else { BTreeMap::new() };
    for (name, path) in libraries {
        let source = Path::new(path);
        ensure!(source.is_absolute(), "{} needs {name}, which is not there", program.display());
        archive.file(path.trim_start_matches('/'), source)?;
    }
    Ok(())
}

/// The libraries in the answer of `ldd`, with their paths.
fn libraries(said: &str) -> BTreeMap<&str, &str> {
    let library = |line| -> Option<(_, _)> {
        let line = str::trim(line);
        let (name, path) = line.split_once(" => ").unwrap_or((line, line));
        let path = path.split(" (").next()?;
        // The kernel's own is nowhere on disk; the loader is named by its path alone.
        (line.contains(" => ") || path.starts_with('/')).then_some((name, path))
    };
    said.lines().filter_map(library).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_on_disk() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2e)\n\
            \tlibx.so => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f2f)\n";
        let found: Vec<_> = libraries(said).into_values().collect();
        assert_eq!(
            found,
            ["/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6", "not found"]
        );
        assert_eq!(libraries("\tstatically linked\n"), BTreeMap::new());
    }
}
