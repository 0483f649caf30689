//! The two programs that make environments, `uv` and `pip`: where they are, how they are called, what
//! their failures mean. Knows nothing of images.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{Invocation, Outcome};
use crate::error::ImageError;
use crate::interpreters::Interpreter;

const MAKING: Duration = Duration::from_mins(5);
const RESOLVING: Duration = Duration::from_mins(10);
const INSTALLING: Duration = Duration::from_hours(1);

/// What makes environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The `uv` program at this path.
    Uv(PathBuf),
    /// Python's own `venv` and `pip`.
    Pip,
}

/// Which packages may be built from their sources; all others are taken as wheels only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sources {
    /// None.
    None,
    /// These, which have no wheels.
    Named(&'static [&'static str]),
    /// Any.
    All,
}

impl Sources {
    /// As both programs are told.
    fn flags(self) -> Vec<&'static str> {
        let mut flags = match self {
            Self::All => Vec::new(),
            Self::None | Self::Named(_) => vec!["--only-binary", ":all:"],
        };
        if let Self::Named(names) = self {
            flags.extend(names.iter().flat_map(|name| ["--no-binary", name]));
        }
        flags
    }
}

/// Kinds of failures that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The disk is full.
    DiskFull,
    /// The index was not reached.
    Network,
    /// The index has no such release for this Python.
    NoRelease,
    /// Anything else.
    Other,
}

/// Finds `uv`: on `PATH`, in the tools folder beside the cache, where its installers put it.
pub(crate) fn find_uv(cache: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let beside = cache.parent().map(|parent| parent.join("tools"));
    std::env::split_paths(&path)
        .chain(beside.iter().map(|tools| tools.join("bin")))
        .chain(beside.clone())
        .chain([cache.join("tools")])
        .chain(home.iter().flat_map(|home| [home.join(".local/bin"), home.join(".cargo/bin")]))
        .map(|dir| dir.join("uv"))
        .find(|file| {
            file.is_absolute()
                && std::fs::metadata(file)
                    .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        })
}

impl Tool {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Uv(_) => "uv",
            Self::Pip => "pip",
        }
    }

    /// Whether it can make an environment from this Python.
    pub(crate) fn can_use(&self, python: &Interpreter) -> bool {
        match self {
            // Its compiling needs what Python 3.7 brought.
            Self::Uv(_) => python.version.minor >= 7,
            Self::Pip => python.venv,
        }
    }

    /// Makes an empty environment with pip in it.
    pub(crate) fn make(&self, python: &Interpreter, dir: &Path, offline: bool) -> Vec<Invocation> {
        match self {
            Self::Uv(uv) => {
                let run = Invocation::new(uv, MAKING).args(["venv", "--seed", "--no-project"]);
                let run = run.args(offline.then_some("--offline"));
                vec![run.args([
                    "--python".as_ref(),
                    python.executable.as_os_str(),
                    dir.as_os_str(),
                ])]
            }
            Self::Pip => {
                let run = Invocation::new(&python.executable, MAKING);
                let mut runs = vec![run.args([
                    "-I".as_ref(),
                    "-m".as_ref(),
                    "venv".as_ref(),
                    dir.as_os_str(),
                ])];
                // Those that old Pythons bring do not know today's wheels.
                if python.version.minor <= 8 {
                    let run = pip(dir, MAKING).args(["install", "--upgrade"]);
                    let run = run.args(Sources::None.flags());
                    runs.push(run.args(["pip", "setuptools<81", "wheel"]));
                }
                runs
            }
        }
    }

    /// Finds out whether packages can be had, without fetching what is large: uv settles everything from
    /// the index' metadata, `all`; pip, which would fetch what it looks at, only the `extra` packages.
    pub(crate) fn resolve(
        &self,
        dir: &Path,
        (all, extra): (&Path, &Path),
        limits: &Path,
        (offline, sources): (bool, Sources),
    ) -> Invocation {
        match self {
            Self::Uv(uv) => Invocation::new(uv, RESOLVING)
                .args(["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python"])
                .args([dir.join("bin/python")])
                .args(offline.then_some("--offline"))
                .args(sources.flags())
                .args([all.as_os_str(), "-c".as_ref(), limits.as_os_str()]),
            Self::Pip => pip(dir, RESOLVING)
                .args(["install", "--dry-run", "--no-deps"])
                .args(sources.flags())
                .args(["-r".as_ref(), extra.as_os_str(), "-c".as_ref(), limits.as_os_str()]),
        }
    }

    /// Installs what the files say. `pip` compiles it by itself; `uv` if it is told to, by programs of
    /// the environment, which run what is in it.
    pub(crate) fn install(
        &self,
        dir: &Path,
        (lines, limits): (&Path, &Path),
        (offline, sources): (bool, Sources),
        compiles: bool,
    ) -> Invocation {
        let run = match self {
            Self::Uv(uv) => Invocation::new(uv, INSTALLING)
                .args(["pip", "install", "--python"])
                .args([dir.join("bin/python")])
                .args(compiles.then_some("--compile-bytecode"))
                .args(offline.then_some("--offline")),
            Self::Pip => pip(dir, INSTALLING).args(["install"]),
        };
        run.args(sources.flags()).args([
            "-r".as_ref(),
            lines.as_os_str(),
            "-c".as_ref(),
            limits.as_os_str(),
        ])
    }
}

impl Tool {
    /// Compiles what was installed without running any of it, where the installation did not.
    pub(crate) fn compile(&self, dir: &Path) -> Option<Invocation> {
        let run = Invocation::new(dir.join("bin/python"), INSTALLING);
        let run = run.args(["-IS", "-m", "compileall", "-q"]).args([dir.join("lib")]);
        matches!(self, Self::Uv(_)).then_some(run)
    }
}

/// The pip of an environment; it compiles what it installs by itself.
fn pip(dir: &Path, limit: Duration) -> Invocation {
    Invocation::new(dir.join("bin/python"), limit)
        .args(["-I", "-u", "-m", "pip", "--no-input", "--disable-pip-version-check"])
        .env("PIP_PROGRESS_BAR", "off")
}

/// What clients say when the index cannot be reached.
const NETWORK: [&str; 14] = [
    "Temporary failure in name resolution",
    "Name or service not known",
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "Connection refused",
    "Connection reset",
    "Network is unreachable",
    "dns error",
    "error sending request",
    "Could not connect",
    "operation timed out",
    "SSLError",
    "invalid peer certificate",
];

/// What a failure means, by what was said. `package` is the one that everything is about.
pub(crate) fn classify(said: &str, package: &str) -> Failure {
    const FULL: [&str; 2] = ["No space left on device", "os error 28"];
    const OFFLINE: [&str; 2] = ["network connectivity is disabled", "--offline"];
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&FULL) {
        Failure::DiskFull
    } else if has(&NETWORK) || has(&OFFLINE) {
        Failure::Network
    } else if said.contains(&format!("No matching distribution found for {package}"))
        || (said.contains("No solution found")
            && said.contains(package)
            && ["there is no version of", "no wheels with a matching", "no wheels are available"]
                .iter()
                .any(|words| said.contains(words)))
    {
        Failure::NoRelease
    } else {
        Failure::Other
    }
}

/// The error for a step that failed.
pub(crate) fn failed(
    doing: &str,
    tool: &str,
    kind: Failure,
    outcome: &Outcome,
    folder: &Path,
) -> ImageError {
    let (doing, said) = (doing.to_owned(), outcome.last_words());
    match kind {
        Failure::DiskFull => ImageError::DiskFull { doing, folder: folder.to_owned() },
        Failure::Network => {
            // The cause is a warning; the error that follows from it speaks of something else.
            let cause =
                outcome.err.iter().find(|line| NETWORK.iter().any(|word| line.contains(word)));
            let said = cause.map_or(said, |line| line.trim().chars().take(400).collect());
            ImageError::NoNetwork { doing, tool: tool.to_owned(), said }
        }
        Failure::NoRelease | Failure::Other => {
            ImageError::Failed { doing: format!("{doing} with {tool}"), said }
        }
    }
}

/// The file and size that a line announces: `Downloading x.whl (273.8 MB)`, `Downloading x (261.1MiB)`.
pub(crate) fn download(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.trim().strip_prefix("Downloading ")?.split_once(" (")?;
    let size = rest.strip_suffix(')')?.trim();
    let split = size.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = size.split_at(split);
    let unit: u64 = match unit.trim() {
        "B" | "bytes" => 1,
        "kB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    // Tenths are all that is ever given; more digits say nothing about progress.
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let tenth: u64 = tenth.get(..1)?.parse().ok()?;
    let bytes = whole.checked_mul(unit)?.checked_add(unit * tenth / 10)?;
    Some((name.rsplit('/').next().unwrap_or(name), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart() {
        for (said, kind) in [
            (
                "ERROR: Could not install: [Errno 28] No space left on device: 'x'",
                Failure::DiskFull,
            ),
            ("error: failed to copy file\n  cause: (os error 28)", Failure::DiskFull),
            (
                "<pip…>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\nERROR: No matching distribution found for tensorflow-cpu==2.21.0",
                Failure::Network,
            ),
            (
                "error: Failed to fetch: `x`\n  cause: error sending request for url (x)",
                Failure::Network,
            ),
            ("ERROR: No matching distribution found for tensorflow-cpu==9.9.9", Failure::NoRelease),
            (
                "× No solution found when resolving dependencies:\n Because there is no version of tensorflow-cpu==9.9.9",
                Failure::NoRelease,
            ),
            ("ERROR: No matching distribution found for nonesuch", Failure::Other),
            ("No solution found: six==99 and tensorflow-cpu==2.21.0 disagree", Failure::Other),
        ] {
            assert_eq!(classify(said, "tensorflow-cpu"), kind, "{said}");
        }
    }

    #[test]
    fn only_wheels_are_taken_unless_sources_are_asked_for() {
        let words = |sources| {
            let lines = Path::new("lines");
            let run = Tool::Pip.install(Path::new("/e"), (lines, lines), (false, sources), true);
            format!("{run:?}")
        };
        assert!(words(Sources::None).contains(r#""--only-binary", ":all:""#));
        assert!(!words(Sources::All).contains("binary"));
        let named = words(Sources::Named(&["gast"]));
        assert!(named.contains(r#""--only-binary", ":all:", "--no-binary", "gast""#), "{named}");
    }

    #[test]
    fn an_index_that_is_not_reached_is_named_by_its_cause() {
        let err = ["WARNING: Retrying: Connection refused", "ERROR: No matching distribution"];
        let err = err.map(str::to_owned).to_vec();
        let outcome = Outcome { code: Some(1), out: Vec::new(), err };
        let kind = classify(&outcome.all(), "six");
        let error = failed("installing six", "pip", kind, &outcome, Path::new("/")).to_string();
        assert!(
            error.contains("was not reached") && error.contains("Connection refused"),
            "{error}"
        );
        assert!(!error.contains("No matching"), "{error}");
    }

    #[test]
    fn downloads_are_read_from_both() {
        assert_eq!(
            download("  Downloading tensorflow_cpu-2.21.0-cp311.whl (273.8 MB)"),
            Some(("tensorflow_cpu-2.21.0-cp311.whl", 273_800_000))
        );
        assert_eq!(download("Downloading keras (1.5MiB)"), Some(("keras", 1_572_864)));
        assert_eq!(
            download("Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)").unwrap().1,
            11_000
        );
        for line in
            ["Collecting six", "Downloading six", "Downloading x (many)", "Downloading x (3 XB)"]
        {
            assert_eq!(download(line), None, "{line}");
        }
    }

    #[test]
    fn uv_is_found_beside_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let tools = dir.path().join("tools/bin");
        std::fs::create_dir_all(&tools).unwrap();
        let uv = tools.join("uv");
        std::fs::write(&uv, "").unwrap();
        assert_ne!(find_uv(&dir.path().join("envs")), Some(uv.clone()), "it cannot be executed");
        std::fs::set_permissions(&uv, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(find_uv(&dir.path().join("envs")).is_some());
    }
}
