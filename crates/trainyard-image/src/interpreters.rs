//! The Pythons on this machine: on `PATH`, of pyenv, of uv, of the system. Each is asked once what it is,
//! and the answer kept for as long as its file does not change. Knows nothing of packages.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::{Invocation, Place};
use crate::variables;
use crate::version::Python;

/// Answers with one line of JSON on any Python since 2.7. `executable` is the one outside any
/// environment, since an environment of an environment would go with it.
const WHAT_ARE_YOU: &str = r#"
import json, os, platform, sys
def has(*names):
    try:
        for name in names: __import__(name)
        return True
    except Exception:
        return False
base = getattr(sys, "base_prefix", sys.prefix)
plain = os.path.join(base, "bin", "python%d.%d" % sys.version_info[:2])
try:
    import sysconfig
    threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
except Exception:
    threaded = False
print(json.dumps({
    "executable": plain if os.path.exists(plain) else sys.executable,
    "version": dict(zip(("major", "minor", "patch"), sys.version_info[:3])),
    "base_prefix": base,
    "venv": has("venv", "ensurepip"),
    "pip": has("pip"),
    "usual": platform.python_implementation() == "CPython" and sys.maxsize > 2**32 and not threaded,
}))
"#;

/// A Python that environments can be made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interpreter {
    pub(crate) executable: PathBuf,
    pub(crate) version: Python,
    pub(crate) base_prefix: PathBuf,
    /// It can make environments by itself.
    pub(crate) venv: bool,
    /// It has pip.
    pub(crate) pip: bool,
    /// `CPython` with 64 bits and the lock that wheels expect.
    usual: bool,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Remembered {
    changed: i64,
    size: u64,
    answer: Option<Interpreter>,
}

/// All usable Pythons, the newest first.
pub(crate) async fn find(memory: &Path) -> Vec<Interpreter> {
    let mut known: BTreeMap<PathBuf, Remembered> = tokio::fs::read(memory)
        .await
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let before = known.clone();
    let mut asked = tokio::task::JoinSet::new();
    let mut seen = Vec::new();
    for path in candidates() {
        let Ok(data) = std::fs::metadata(&path) else { continue };
        if !data.is_file() || data.mode() & 0o111 == 0 {
            continue;
        }
        let (changed, size) = (data.mtime(), data.size());
        seen.push(path.clone());
        let fresh = known.get(&path).is_some_and(|r| r.changed == changed && r.size == size);
        if !fresh {
            asked.spawn(async move {
                let answer = ask(&path).await;
                (path, Remembered { changed, size, answer })
            });
        }
    }
    while let Some(Ok((path, remembered))) = asked.join_next().await {
        known.insert(path, remembered);
    }
    known.retain(|path, _| seen.contains(path));
    if known != before {
        remember(memory, &known).await;
    }
    in_order(known.into_values().filter_map(|remembered| remembered.answer))
}

/// Each Python once, the newest first; of equals the one that can do more.
fn in_order(answers: impl Iterator<Item = Interpreter>) -> Vec<Interpreter> {
    let mut distinct = BTreeMap::new();
    for answer in answers.filter(|answer| answer.usual && answer.executable.exists()) {
        match distinct.entry(answer.executable.clone()) {
            Entry::Vacant(place) => {
                place.insert(answer);
            }
            Entry::Occupied(_) => {}
        }
    }
    let mut found: Vec<_> = distinct.into_values().collect();
    found.sort_by(|a, b| {
        let rank = |i: &Interpreter| (i.version, i.venv, i.pip);
        rank(b).cmp(&rank(a)).then_with(|| a.executable.cmp(&b.executable))
    });
    found
}

async fn remember(memory: &Path, known: &BTreeMap<PathBuf, Remembered>) {
    let Ok(text) = serde_json::to_vec(known) else { return };
    let fresh = memory.with_extension(format!("{}.new", std::process::id()));
    // Only a memory: without it the Pythons are asked again.
    if tokio::fs::write(&fresh, text).await.is_ok()
        && let Err(error) = tokio::fs::rename(&fresh, memory).await
    {
        tracing::debug!(%error, "the list of Pythons was not kept");
    }
}

async fn ask(path: &Path) -> Option<Interpreter> {
    let run = Invocation::new(path, Duration::from_secs(20));
    let run = run.args(["-c", WHAT_ARE_YOU]).envs(&variables::plain(Path::new("/nonexistent")));
    let outcome = run.run(Place::Machine, &mut |_| ()).await.ok()?;
    serde_json::from_str(outcome.out.last()?).ok()
}

/// Every file that may be a Python.
fn candidates() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("HOME");
    let mut found = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    for dir in std::env::split_paths(&path).chain(usual) {
        // What pyenv puts there are scripts that choose by the working directory.
        if dir.is_absolute() && !dir.ends_with("shims") {
            found.extend(entries(&dir).into_iter().filter(|file| is_python_name(file)));
        }
    }
    let pyenv = variable("PYENV_ROOT").or_else(|| Some(home.as_ref()?.join(".pyenv")));
    let data = variable("XDG_DATA_HOME").or_else(|| Some(home.as_ref()?.join(".local/share")));
    let uv = variable("UV_PYTHON_INSTALL_DIR").or_else(|| Some(data?.join("uv/python")));
    for root in [pyenv.map(|root| root.join("versions")), uv].into_iter().flatten() {
        for version in entries(&root) {
            found.extend(
                entries(&version.join("bin")).into_iter().filter(|file| is_python_name(file)),
            );
        }
    }
    found.sort();
    found.dedup();
    found
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// `python3` and `python3.11`, not `python3-config`.
fn is_python_name(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(rest) = name.strip_prefix("python3") else { return false };
    rest.is_empty()
        || rest.strip_prefix('.').is_some_and(|minor| {
            !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit())
        })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn interpreter(minor: u32, patch: u32) -> Interpreter {
        Interpreter {
            executable: PathBuf::from("/bin/sh"),
            version: Python { major: 3, minor, patch },
            base_prefix: PathBuf::from("/usr"),
            venv: true,
            pip: true,
            usual: true,
        }
    }

    #[test]
    fn only_names_of_pythons_are_asked() {
        for (name, is) in [
            ("python3", true),
            ("python3.11", true),
            ("python", false),
            ("python2.7", false),
            ("python3-config", false),
            ("python3.11-config", false),
            ("python3.", false),
            ("python3.13t", false),
        ] {
            assert_eq!(is_python_name(&Path::new("/usr/bin").join(name)), is, "{name}");
        }
    }

    #[test]
    fn unusual_and_vanished_pythons_are_left_out() {
        let mut odd = interpreter(13, 0);
        odd.usual = false;
        let mut gone = interpreter(12, 0);
        gone.executable = PathBuf::from("/nowhere/python3.12");
        let mut other = interpreter(9, 1);
        other.executable = PathBuf::from("/bin/ls");
        let found = in_order([odd, gone, other.clone(), interpreter(11, 7)].into_iter());
        assert_eq!(found, [interpreter(11, 7), other]);
    }

    #[tokio::test]
    async fn the_pythons_of_this_machine_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let memory = dir.path().join("interpreters.json");
        let found = find(&memory).await;
        if found.is_empty() {
            return;
        }
        assert!(memory.exists());
        assert_eq!(find(&memory).await, found);
        std::fs::write(&memory, "not json").unwrap();
        assert_eq!(find(&memory).await, found);
    }
}
