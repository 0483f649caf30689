//! Dependencies are named once, in the workspace's manifest, and none there is left over. Pure.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::tidy::Finding;

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Looks at the workspace's manifest and at those of its crates, each with its path.
pub(crate) fn examine(workspace: &str, crates: &[(String, String)]) -> Result<Vec<Finding>> {
    let workspace: Table = workspace.parse().context("cannot read the workspace's manifest")?;
    let named = workspace.get("workspace").and_then(|table| table.get("dependencies"));
    let mut idle: BTreeSet<&str> = keys(named).collect();
    let mut findings = Vec::new();
    for (path, text) in crates {
        let manifest: Table = text.parse().with_context(|| format!("cannot read {path}"))?;
        for (key, value) in dependencies(&manifest) {
            idle.remove(key);
            if value.get("workspace") != Some(&Value::Boolean(true)) {
                findings.push(Finding::Error(format!(
                    "{path}: {key} is described here; describe it in the workspace's manifest"
                )));
            }
        }
    }
    findings.extend(idle.into_iter().map(|key| {
        Finding::Error(format!("Cargo.toml: no crate uses {key} of [workspace.dependencies]"))
    }));
    Ok(findings)
}

fn keys(table: Option<&Value>) -> impl Iterator<Item = &str> {
    table.and_then(Value::as_table).into_iter().flat_map(Table::keys).map(String::as_str)
}

/// Those of every kind and platform.
fn dependencies(manifest: &Table) -> impl Iterator<Item = (&str, &Value)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(targets)
        .flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind)?.as_table()))
        .flat_map(|table| table.iter().map(|(key, value)| (key.as_str(), value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.dependencies]\na = '1'\nb = { version = '2' }\n";

    fn of(manifest: &str) -> Vec<Finding> {
        let crates = [("x/Cargo.toml".to_owned(), manifest.to_owned())];
        examine(WORKSPACE, &crates).unwrap()
    }

    #[test]
    fn every_kind_and_platform_counts() {
        let manifest = "[dependencies]\na.workspace = true\n[target.'cfg(unix)'.dev-dependencies]\n\
            b = { workspace = true, features = ['x'] }\n";
        assert_eq!(of(manifest), []);
    }

    #[test]
    fn a_version_is_named_once() {
        let findings = of("[build-dependencies]\na = '1'\n[dependencies]\nb.workspace = true\n");
        assert!(
            matches!(&findings[..], [Finding::Error(text)] if text.contains("x/Cargo.toml: a"))
        );
    }

    #[test]
    fn nothing_is_left_over() {
        let findings = of("[dependencies]\nb.workspace = true\n");
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("uses a of")));
    }
}
