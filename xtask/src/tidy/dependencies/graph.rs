//! The dependencies as Cargo resolves them: what is said about each crate, from `cargo metadata`, and which
//! crates are really compiled and for whom, from `cargo tree`. The answer of `cargo metadata` alone also has
//! optional dependencies that no feature turns on. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// The answer of `cargo metadata`, as far as it is looked at.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) workspace_root: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Whence it comes; nothing for a folder.
    pub(crate) source: Option<String>,
    /// Registries it may be published in; any when absent.
    pub(crate) publish: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) manifest_path: PathBuf,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
    #[serde(default)]
    pub(crate) metadata: Value,
}

/// What a manifest says of a dependency.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) rename: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) req: String,
    pub(crate) source: Option<String>,
    pub(crate) registry: Option<String>,
    pub(crate) path: Option<String>,
}

impl Dependency {
    /// The name in the manifest.
    pub(crate) fn key(&self) -> &str {
        self.rename.as_deref().unwrap_or(&self.name)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Metadata {
    pub(crate) fn parse(answer: &[u8]) -> Result<Self> {
        serde_json::from_slice(answer).context("cannot read the answer of `cargo metadata`")
    }

    pub(crate) fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_member(package))
    }

    /// What is said of the crates that are compiled.
    pub(crate) fn compiled<'a>(&'a self, tree: &Tree) -> Vec<&'a Package> {
        let there = |package: &&Package| tree.0.contains_key(&Crate::of(package));
        self.packages.iter().filter(there).collect()
    }
}

/// A crate in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Crate {
    fn of(package: &Package) -> Self {
        Self { name: package.name.clone(), version: package.version.clone() }
    }

    /// Reads `{p}` of `cargo tree`: `name v1.2.3`, then remarks.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let name = words.next()?.to_owned();
        let version = words.next()?.strip_prefix('v')?.to_owned();
        Some(Self { name, version })
    }
}

impl fmt::Display for Crate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
    }
}

/// Each crate that is compiled, with those that use it directly.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<Crate, BTreeSet<Crate>>);

impl Tree {
    /// The words that make `cargo tree` print what [`Self::parse`] reads.
    pub(crate) const FORMAT: [&str; 4] = ["--prefix", "depth", "--format", " {p}"];

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut dependents = BTreeMap::<Crate, BTreeSet<Crate>>::new();
        let mut above: Vec<Crate> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let read = || {
                let (depth, name) = line.split_once(' ')?;
                Some((depth.parse::<usize>().ok()?, Crate::parse(name)?))
            };
            let (depth, found) =
                read().with_context(|| format!("cannot read `{line}` of `cargo tree`"))?;
            above.truncate(depth);
            dependents.entry(found.clone()).or_default().extend(above.last().cloned());
            above.push(found);
        }
        Ok(Self(dependents))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const REGISTRY: &str = "registry+https://registry.example/index";

    /// A crate of the registry.
    pub(crate) fn package(name: &str, version: &str) -> Package {
        let fields = serde_json::json!({
            "id": format!("{REGISTRY}#{name}@{version}"), "name": name, "version": version,
            "license": "MIT", "source": REGISTRY,
        });
        serde_json::from_value(fields).unwrap()
    }

    /// A crate of the workspace.
    pub(crate) fn member(name: &str) -> Package {
        Package { source: None, publish: Some(Vec::new()), ..package(name, "0.1.0") }
    }

    /// A line of a manifest.
    pub(crate) fn dependency(name: &str) -> Dependency {
        let fields = serde_json::json!({"name": name, "req": "^1", "source": REGISTRY});
        serde_json::from_value(fields).unwrap()
    }

    /// A workspace of these crates, and the others.
    pub(crate) fn metadata(members: Vec<Package>, others: Vec<Package>) -> Metadata {
        let workspace_members = members.iter().map(|package| package.id.clone()).collect();
        let packages = members.into_iter().chain(others).collect();
        Metadata { packages, workspace_members, workspace_root: "/w".into() }
    }

    #[test]
    fn a_tree_tells_who_uses_whom() {
        let text = "0 a v0.1.0 (/w/a)\n1 b v1.0.0\n2 c v2.0.0 (proc-macro)\n1 c v2.0.0 (*)\n\n0 d v0.1.0\n";
        let of = |name: &str, version: &str| Crate {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let (a, b, c, d) = (of("a", "0.1.0"), of("b", "1.0.0"), of("c", "2.0.0"), of("d", "0.1.0"));
        let expected = BTreeMap::from([
            (a.clone(), BTreeSet::new()),
            (b.clone(), BTreeSet::from([a.clone()])),
            (c, BTreeSet::from([a, b])),
            (d, BTreeSet::new()),
        ]);
        assert_eq!(Tree::parse(text).unwrap().0, expected);
        assert!(Tree::parse("nothing").is_err());
    }

    #[test]
    fn only_what_is_compiled_counts() {
        let metadata =
            metadata(vec![member("a")], vec![package("b", "1.0.0"), package("b", "2.0.0")]);
        let tree = Tree::parse("0 a v0.1.0\n1 b v2.0.0\n").unwrap();
        let compiled: Vec<_> =
            metadata.compiled(&tree).into_iter().map(|p| Crate::of(p).to_string()).collect();
        assert_eq!(compiled, ["a 0.1.0", "b 2.0.0"]);
    }
}
