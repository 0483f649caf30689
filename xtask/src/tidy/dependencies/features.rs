//! One set of features for what is shipped, whichever way it is built: else the tests test another program,
//! and Cargo compiles the same crates again for each way. Pure; Cargo is asked by the module above.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::graph::Crate;
use crate::tidy::Finding;

/// A choice of packages, as `cargo` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// How people say it.
    pub(crate) command: &'static str,
    /// The words of `cargo tree` for it.
    pub(crate) words: &'static [&'static str],
    /// Do tests come with it?
    tests: bool,
}

/// What is shipped: by `cargo install --path crates/trainyard`, in the image, and what the tests run.
pub(crate) const SHIPPED: Selection = Selection {
    command: "cargo build --package trainyard",
    words: &["--package", "trainyard", "--edges", "normal,build"],
    tests: false,
};

/// The other ways.
pub(crate) const OTHERS: [Selection; 3] = [
    Selection { command: "cargo build", words: &["--edges", "normal,build"], tests: false },
    Selection {
        command: "cargo build --workspace",
        words: &["--workspace", "--edges", "normal,build"],
        tests: false,
    },
    Selection {
        command: "cargo test --workspace",
        words: &["--workspace", "--edges", "normal,build,dev"],
        tests: true,
    },
];

/// The file that builds the image.
pub(crate) const RECIPE: &str = "deploy/Dockerfile";

/// Whether the image is built of what is shipped, by the profile for it.
pub(crate) fn examine_recipe(text: &str) -> Vec<Finding> {
    let joined = text.replace("\\\n", " ");
    let builds: Vec<Vec<&str>> = joined
        .split("&&")
        .map(|command| command.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.starts_with(&["cargo", "build"]))
        .collect();
    let wanted: [&[&str]; 3] = [&["--package", "trainyard"], &["--profile", "dist"], &["--locked"]];
    let has = |build: &[&str], words: &[&str]| build.windows(words.len()).any(|some| some == words);
    let is_shipped = |build: &Vec<&str>| {
        let chooses = build.iter().any(|word| word.contains("features"));
        wanted.iter().all(|words| has(build, words)) && !chooses
    };
    if !builds.is_empty() && builds.iter().all(is_shipped) {
        return Vec::new();
    }
    let message = format!(
        "{RECIPE} must build by `{} --profile dist --locked`, with the features it has there",
        SHIPPED.command
    );
    vec![Finding::Error(message)]
}

/// A feature that only tests have.
struct Allowed {
    name: &'static str,
    feature: &'static str,
    reason: &'static str,
}

/// All that tests may have more. What else they need is named in the workspace's manifest, for all.
const OF_TESTS: [Allowed; 1] = [Allowed {
    name: "tokio",
    feature: "test-util",
    reason: "paused time, in which hours of a job's life pass in milliseconds",
}];

/// Each crate with its sets of features: one, or two when build scripts use it too.
pub(crate) type Features = BTreeMap<Crate, BTreeSet<BTreeSet<String>>>;

/// The words that make `cargo tree` print what [`parse`] reads.
pub(crate) const FORMAT: [&str; 4] = ["--prefix", "none", "--format", "{p}\t{f}"];

pub(crate) fn parse(text: &str) -> Result<Features> {
    let mut features = Features::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let read = || {
            let (name, list) = line.split_once('\t')?;
            let list = list.strip_suffix("(*)").unwrap_or(list).trim();
            let list = list.split(',').filter(|feature| !feature.is_empty());
            Some((Crate::parse(name)?, list.map(str::to_owned).collect()))
        };
        let (found, set) =
            read().with_context(|| format!("cannot read `{line}` of `cargo tree`"))?;
        features.entry(found).or_default().insert(set);
    }
    Ok(features)
}

/// Crates that are shipped and that another way of building would give other features.
pub(crate) fn examine(shipped: &Features, selection: Selection, other: &Features) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (found, sets) in shipped {
        let Some(others) = other.get(found) else {
            findings.push(Finding::Error(format!(
                "{found} is part of `{}`, not of `{}`",
                SHIPPED.command, selection.command
            )));
            continue;
        };
        for set in sets {
            let with = if selection.tests { with_allowed(found, set) } else { set.clone() };
            if !others.contains(&with) {
                findings.push(Finding::Error(difference(found, &with, others, selection)));
            }
        }
    }
    if selection.tests {
        findings.extend(OF_TESTS.iter().filter_map(|allowed| idle(allowed, shipped)));
    }
    findings
}

/// The features that tests may give a crate that has these.
fn with_allowed(found: &Crate, set: &BTreeSet<String>) -> BTreeSet<String> {
    let allowed = OF_TESTS.iter().filter(|allowed| allowed.name == found.name);
    set.iter().cloned().chain(allowed.map(|allowed| allowed.feature.to_owned())).collect()
}

/// What is shipped must not have what only tests may have.
fn idle(allowed: &Allowed, shipped: &Features) -> Option<Finding> {
    let Allowed { name, feature, reason } = allowed;
    let (_, sets) = shipped.iter().find(|(found, _)| found.name == *name)?;
    let there = sets.iter().any(|set| set.contains(*feature));
    let message = format!("{name}/{feature} must not be shipped; only tests have it, for {reason}");
    there.then_some(Finding::Error(message))
}

fn difference(
    found: &Crate,
    set: &BTreeSet<String>,
    others: &BTreeSet<BTreeSet<String>>,
    selection: Selection,
) -> String {
    // Of several sets, the one that is most alike is meant.
    let distance = |other: &&BTreeSet<String>| set.symmetric_difference(other).count();
    let other = others.iter().min_by_key(distance).cloned().unwrap_or_default();
    let list =
        |set: BTreeSet<&String>| set.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let (more, less) =
        (list(other.difference(set).collect()), list(set.difference(&other).collect()));
    let mut message = format!("{found} has other features in `{}`:", selection.command);
    for (word, features) in [("with", more), ("without", less)] {
        if !features.is_empty() {
            message.extend([" ", word, " ", &features]);
        }
    }
    message.push_str("; name them in [workspace.dependencies], for every way of building");
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_built_of_what_is_shipped() {
        let recipe =
            |words: &str| format!("RUN a \\\n    && cargo build {words} \\\n    && cp b c\n");
        let good = recipe("--profile dist --locked --package trainyard --target \"$target\"");
        assert_eq!(examine_recipe(&good), []);
        for bad in [
            "--release --locked --package trainyard",
            "--profile dist --package trainyard",
            "--profile dist --locked --package trainyard --features x",
            "--profile dist --locked --workspace",
        ] {
            assert_eq!(examine_recipe(&recipe(bad)).len(), 1, "{bad}");
        }
        assert_eq!(examine_recipe("FROM scratch\n").len(), 1);
    }

    const BUILD: Selection = OTHERS[1];
    const TEST: Selection = OTHERS[2];

    fn of(selection: Selection, shipped: &str, other: &str) -> Vec<Finding> {
        examine(&parse(shipped).unwrap(), selection, &parse(other).unwrap())
    }

    #[test]
    fn lines_of_cargo_are_read() {
        let features =
            parse("a v1.0.0 (proc-macro)\tx,y (*)\na v1.0.0\t\n\nb v2.0.0\t (*)\n").unwrap();
        let sets: Vec<_> =
            features.iter().map(|(found, sets)| (found.to_string(), sets.len())).collect();
        assert_eq!(sets, [("a 1.0.0".to_owned(), 2), ("b 2.0.0".to_owned(), 1)]);
        assert!(parse("nothing").is_err());
    }

    #[test]
    fn the_same_features_are_fine_beside_other_crates() {
        let shipped = "a v1.0.0\tx,y\n";
        assert_eq!(of(BUILD, shipped, "a v1.0.0\ty,x\nb v1.0.0\tz\n"), []);
        assert_eq!(of(BUILD, shipped, "a v1.0.0\tx,y\na v1.0.0\tz\n"), []);
    }

    #[test]
    fn a_difference_is_named() {
        let findings = of(BUILD, "a v1.0.0\tx,y\n", "a v1.0.0\ty,z\n");
        assert!(matches!(&findings[..], [Finding::Error(text)]
            if text.contains("a 1.0.0") && text.contains("with z without x")));
        assert_eq!(of(BUILD, "a v1.0.0\tx\n", "b v1.0.0\tx\n").len(), 1);
    }

    #[test]
    fn only_tests_can_pause_time() {
        let (plain, paused) = ("tokio v1.0.0\trt\n", "tokio v1.0.0\trt,test-util\n");
        assert_eq!(of(TEST, plain, paused), []);
        assert_eq!(of(BUILD, plain, plain), []);
        assert_eq!(of(BUILD, plain, paused).len(), 1);
        assert_eq!(of(TEST, paused, paused).len(), 1);
        // An exception that is not needed any more is one too many.
        assert_eq!(of(TEST, plain, plain).len(), 1);
    }
}
