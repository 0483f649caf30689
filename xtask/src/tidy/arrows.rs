//! Who may depend on whom. Arrows point down only; the table below is the architecture. Pure.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;

/// Each crate of the workspace with the crates of the workspace that it may use.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("trainyard-schema", &[]),
    ("trainyard-api", &["trainyard-schema"]),
    ("trainyard-apiserver", &["trainyard-schema"]),
    ("trainyard-core", &["trainyard-api", "trainyard-schema"]),
    ("trainyard-sched", &["trainyard-schema"]),
    ("trainyard-operator", &["trainyard-api", "trainyard-core", "trainyard-sched"]),
    ("trainyard-holder", &[]),
    ("trainyard-image", &[]),
    ("trainyard-render", &[]),
    ("trainyard-node", &["trainyard-api", "trainyard-holder", "trainyard-image"]),
    (
        "trainyard",
        &[
            "trainyard-apiserver",
            "trainyard-api",
            "trainyard-core",
            "trainyard-operator",
            "trainyard-holder",
            "trainyard-image",
            "trainyard-node",
            "trainyard-render",
            "trainyard-sched",
            "trainyard-schema",
        ],
    ),
    (
        "trainyard-e2e",
        &[
            "trainyard-api",
            "trainyard-apiserver",
            "trainyard-core",
            "trainyard-operator",
            "trainyard-sched",
            "trainyard-testbed",
        ],
    ),
    ("trainyard-testbed", &[]),
    ("xtask", &["trainyard-testbed"]),
];

/// Crates that decide and never act: what would let them act is kept out.
const PURE: [&str; 5] =
    ["trainyard-schema", "trainyard-sched", "trainyard-api", "trainyard-core", "trainyard-render"];
const ACTING: [&str; 8] =
    ["tokio", "kube", "kube-client", "kube-runtime", "futures", "hyper", "reqwest", "rand"];

/// What the developer's commands link: they start before anything large is compiled.
const LIGHT: [&str; 2] = ["trainyard-testbed", "xtask"];
const HEAVY: [&str; 4] = ["kube", "k8s-openapi", "hyper", "axum"];

/// A crate of the workspace and what its manifest names, of every kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependencies {
    name: String,
    /// Crates of the workspace.
    own: Vec<String>,
    /// All others.
    foreign: Vec<String>,
}

/// Reads the answer of `cargo metadata --no-deps`.
pub(crate) fn parse(metadata: &[u8]) -> Result<Vec<Dependencies>> {
    let metadata: Value =
        serde_json::from_slice(metadata).context("`cargo metadata` is not JSON")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` has no packages")?;
    packages.iter().map(parse_package).collect()
}

fn parse_package(package: &Value) -> Result<Dependencies> {
    let name = package["name"].as_str().context("a package without a name")?.to_owned();
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let target = dependency["name"].as_str().context("a dependency without a name")?.to_owned();
        // Only crates of the workspace are named by a path.
        let side = if dependency["path"].is_string() { &mut own } else { &mut foreign };
        side.push(target);
    }
    Ok(Dependencies { name, own, foreign })
}

pub(crate) fn examine(dependencies: &Dependencies) -> Vec<Finding> {
    let name = &dependencies.name;
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
        return vec![Finding::Error(format!(
            "{name}: a new crate; say in xtask's table of arrows what it may use"
        ))];
    };
    let forbidden = dependencies.own.iter().filter(|target| !allowed.contains(&target.as_str()));
    let mut findings: Vec<_> = forbidden
        .map(|target| {
            Finding::Error(format!("{name} must not depend on {target}: arrows point down only"))
        })
        .collect();
    if PURE.contains(&name.as_str()) {
        let acting = dependencies.foreign.iter().filter(|target| ACTING.contains(&target.as_str()));
        findings.extend(acting.map(|target| {
            Finding::Error(format!("{name} must not depend on {target}: it decides and never acts"))
        }));
    }
    if LIGHT.contains(&name.as_str()) {
        let heavy = dependencies.foreign.iter().filter(|target| HEAVY.contains(&target.as_str()));
        findings.extend(heavy.map(|target| {
            Finding::Error(format!("{name} must not depend on {target}: it compiles in seconds"))
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, own: &[&str], foreign: &[&str]) -> usize {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        examine(&Dependencies { name: name.to_owned(), own: list(own), foreign: list(foreign) })
            .len()
    }

    #[test]
    fn arrows_point_down_only() {
        assert_eq!(check("trainyard-core", &["trainyard-api"], &["serde"]), 0);
        assert_eq!(check("trainyard-api", &["trainyard-core"], &[]), 1);
        assert_eq!(check("trainyard-operator", &["trainyard-e2e", "trainyard"], &[]), 2);
        assert_eq!(check("trainyard-new", &[], &[]), 1);
    }

    #[test]
    fn pure_crates_have_nothing_to_act_with() {
        assert_eq!(check("trainyard-core", &[], &["tokio", "kube", "jiff"]), 2);
        assert_eq!(check("trainyard-operator", &[], &["tokio", "kube"]), 0);
    }

    #[test]
    fn the_developer_s_commands_stay_light() {
        assert_eq!(check("xtask", &["trainyard-testbed"], &["tokio", "clap"]), 0);
        assert_eq!(check("xtask", &["trainyard-e2e"], &[]), 1);
        assert_eq!(check("trainyard-testbed", &[], &["kube", "k8s-openapi", "rustls"]), 2);
    }

    #[test]
    fn metadata_is_split_by_path() {
        let metadata = br#"{"packages": [{"name": "a", "dependencies": [
            {"name": "b", "path": "somewhere", "kind": "dev"}, {"name": "serde", "kind": null}]}]}"#;
        let expected = Dependencies {
            name: "a".to_owned(),
            own: vec!["b".to_owned()],
            foreign: vec!["serde".to_owned()],
        };
        assert_eq!(parse(metadata).unwrap(), [expected]);
        assert!(parse(b"{}").is_err());
    }
}
