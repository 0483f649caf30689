//! `tidy`: house rules that neither compiler nor linter knows. Reads the tree and prints what it
//! finds; the rules are in the files beside it.

mod arrows;
mod default_run;
mod dependencies;
mod lints;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo::{answer, cargo, program, workspace};
use crate::counts::Counts;
use crate::output::Output;

const LINTS: &str = "clippy.toml";

/// Something the house rules have to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Worth knowing.
    Warning(String),
    /// Must be mended.
    Error(String),
}

/// Checks the whole tree. Each file and each crate is one check.
pub(crate) async fn run(output: &mut Output) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut record = |findings: Vec<Finding>| {
        counts += Counts::one(!findings.iter().any(|f| matches!(f, Finding::Error(_))));
        for finding in findings {
            match finding {
                Finding::Warning(message) => output.line(&format!("warning: {message}")),
                Finding::Error(message) => output.line(&format!("error: {message}")),
            }
        }
    };
    let root = workspace();
    let lints = std::fs::read_to_string(root.join(LINTS)).context("cannot read clippy.toml")?;
    let files = files(&root).await?;
    for path in &files {
        // Files that are not text, or that were deleted and not yet committed, have no lines.
        if let Ok(content) = std::fs::read_to_string(root.join(path)) {
            record(text::examine(path, &content));
            if path.ends_with(LINTS) {
                record(lints::examine(&lints, path, &content));
            }
        }
    }
    let metadata = metadata().await?;
    record(default_run::examine(&metadata)?);
    for dependencies in arrows::parse(&metadata)? {
        record(arrows::examine(&dependencies));
    }
    for findings in dependencies::examine(&root, &files).await? {
        record(findings);
    }
    output.line(
        "tidy: known faults of dependencies were not looked up; that takes a database (deny.toml)",
    );
    output.line(&format!("tidy: {} checks passed, {} failed", counts.passed, counts.failed));
    Ok(counts)
}

async fn metadata() -> Result<Vec<u8>> {
    let words = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    answer(&mut cargo(&words)).await
}

/// The project's files, relative to its root: what Git tracks or would; in a tree without Git,
/// all that is there.
async fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = program("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut paths = match git.output().await {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        _ => walk(root)?,
    };
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder);
        let entries = entries.with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && entry.file_name() != "target" && entry.file_name() != ".git" {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(path) = entry.path().strip_prefix(root)
            {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}
