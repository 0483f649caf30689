//! Rules on dependencies: licences, bans, sources, one version and one set of features of each, none unused.
//! Asks Cargo and reads the files; the rules are in the files beside it and in `deny.toml`. Known faults of
//! crates are not among them: they need a database.

mod bans;
mod duplicates;
mod features;
mod graph;
mod licences;
mod manifests;
mod rules;
mod sources;
mod spdx;
mod unused;

use std::path::Path;

use anyhow::{Context, Result};

use self::features::{Features, Selection};
use self::graph::{Metadata, Package, Tree};
use self::rules::Rules;
use self::unused::{Role, Sources};
use super::Finding;
use crate::cargo::{answer, cargo};

/// Looks at all dependencies; `files` are the workspace's. Each list is what one check found.
pub(crate) async fn examine(root: &Path, files: &[String]) -> Result<Vec<Vec<Finding>>> {
    let rules = rules::parse(&read(root, rules::FILE)?)?;
    let metadata = metadata(&rules).await?;
    let tree = tree(&rules).await?;
    let mut found = vec![
        licences::examine(&metadata, &tree, &rules.licenses),
        bans::examine(&metadata, &tree, &rules.bans),
        duplicates::examine(&tree, &rules.bans),
        sources::examine(&metadata, &rules.sources),
        features::examine_recipe(&read(root, features::RECIPE)?),
    ];
    let mut manifests = Vec::new();
    for package in metadata.members() {
        let path = package.manifest_path.strip_prefix(&metadata.workspace_root);
        let path = path.context("a crate outside of the workspace")?.to_string_lossy().into_owned();
        let manifest = read(root, &path)?;
        let files = sources_of(root, package, &path, files);
        found.push(unused::examine(package, &Sources { manifest: &manifest, files: &files }));
        manifests.push((path, manifest));
    }
    found.push(manifests::examine(&read(root, "Cargo.toml")?, &manifests)?);
    // As people build here, and on all platforms together.
    for targets in [&[], rules.graph.targets.as_slice()] {
        let shipped = features_of(features::SHIPPED, targets).await?;
        for other in features::OTHERS {
            let features = features_of(other, targets).await?;
            let findings = features::examine(&shipped, other, &features);
            // What is the matter everywhere is said once.
            if findings.is_empty() || !found.contains(&findings) {
                found.push(findings);
            }
        }
    }
    Ok(found)
}

fn read(root: &Path, path: &str) -> Result<String> {
    std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// What Cargo knows of the crates. Fetches those of other platforms that are not there yet.
async fn metadata(rules: &Rules) -> Result<Metadata> {
    let mut command = cargo(&["metadata", "--locked", "--format-version", "1"]);
    command.args(rules.graph.all_features.then_some("--all-features"));
    command.args(rules.graph.targets.iter().flat_map(|target| ["--filter-platform", target]));
    Metadata::parse(&answer(&mut command).await?)
}

/// What is compiled on any of the platforms, tests included.
async fn tree(rules: &Rules) -> Result<Tree> {
    let mut command = cargo(&["tree", "--locked", "--workspace", "--edges", "normal,build,dev"]);
    command.args(rules.graph.all_features.then_some("--all-features"));
    command
        .args(rules.graph.targets.iter().flat_map(|target| ["--target", target]))
        .args(Tree::FORMAT);
    Tree::parse(&String::from_utf8_lossy(&answer(&mut command).await?))
}

/// The crates of this choice and their features.
async fn features_of(selection: Selection, targets: &[String]) -> Result<Features> {
    let mut command = cargo(&["tree", "--locked"]);
    command.args(selection.words).args(features::FORMAT);
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    features::parse(&String::from_utf8_lossy(&answer(&mut command).await?))
}

/// The source files of a crate, which is where its manifest is.
fn sources_of(
    root: &Path,
    package: &Package,
    manifest: &str,
    files: &[String],
) -> Vec<(Role, String)> {
    let folder = manifest.strip_suffix("Cargo.toml").unwrap_or(manifest);
    let scripts: Vec<_> = package
        .targets
        .iter()
        .filter(|target| target.kind.iter().any(|k| k == "custom-build"))
        .collect();
    let mut found = Vec::new();
    for path in files.iter().filter(|path| Path::new(path).extension().is_some_and(|e| e == "rs")) {
        let Some(inside) = path.strip_prefix(folder) else { continue };
        let role = if scripts.iter().any(|script| script.src_path.ends_with(path)) {
            Role::Build
        } else if inside.starts_with("src/") {
            Role::Product
        } else {
            Role::Tests
        };
        // What was deleted and is not yet committed has no text.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            found.push((role, text));
        }
    }
    found
}
