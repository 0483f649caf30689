//! Crates that are kept out, but for those who may use them, and dependencies on any version. Pure.

use super::graph::{Metadata, Tree};
use super::rules::{Banned, Bans};
use crate::tidy::Finding;

pub(crate) fn examine(metadata: &Metadata, tree: &Tree, rules: &Bans) -> Vec<Finding> {
    let mut findings: Vec<_> =
        rules.deny.iter().flat_map(|banned| of_banned(tree, banned)).collect();
    findings.extend(wildcards(metadata, tree, rules));
    findings
}

fn of_banned(tree: &Tree, banned: &Banned) -> Vec<Finding> {
    let Banned { spec, wrappers, reason } = banned;
    let mut findings = Vec::new();
    if reason.is_empty() {
        findings
            .push(Finding::Error(format!("deny.toml keeps {spec} out; say why, as its `reason`")));
    }
    let mut idle: Vec<_> = wrappers.iter().collect();
    for (found, dependents) in &tree.0 {
        if !spec.matches(&found.name, &found.version) {
            continue;
        }
        idle.retain(|wrapper| !dependents.iter().any(|user| user.name == **wrapper));
        for user in dependents.iter().filter(|user| !wrappers.contains(&user.name)) {
            let message = format!("{user} must not depend on {found}: {reason}");
            findings.push(Finding::Error(message));
        }
    }
    findings.extend(idle.into_iter().map(|wrapper| {
        Finding::Error(format!(
            "deny.toml lets {wrapper} use {spec}, which it does not; take it out of the wrappers"
        ))
    }));
    findings
}

fn wildcards(metadata: &Metadata, tree: &Tree, rules: &Bans) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.compiled(tree) {
        // What is never published may name its neighbours by their folders alone.
        let private = package.publish.as_ref().is_some_and(Vec::is_empty);
        let by_path = rules.allow_wildcard_paths && private;
        for dependency in &package.dependencies {
            if dependency.req == "*" && !(by_path && dependency.path.is_some()) {
                let (name, key) = (&package.name, dependency.key());
                let message = format!("{name} takes any version of {key}; name one");
                findings.extend(rules.wildcards.finding(message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{dependency, member, metadata, package};
    use super::super::graph::{Dependency, Package};
    use super::super::rules::Spec;
    use super::super::rules::tests::strict;
    use super::*;

    fn of(tree: &str, wrappers: &[&str], reason: &str) -> Vec<Finding> {
        let spec = Spec::try_from("chrono".to_owned()).unwrap();
        let wrappers = wrappers.iter().map(|name| (*name).to_owned()).collect();
        let banned = Banned { spec, wrappers, reason: reason.to_owned() };
        of_banned(&Tree::parse(tree).unwrap(), &banned)
    }

    #[test]
    fn only_wrappers_use_what_is_kept_out() {
        let tree = "0 own v0.1.0\n1 cel v0.1.0\n2 chrono v0.4.0\n1 jiff v1.0.0\n";
        assert_eq!(of(tree, &["cel"], "time is jiff's"), []);
        let findings = of(tree, &[], "time is jiff's");
        let expected = "cel 0.1.0 must not depend on chrono 0.4.0: time is jiff's";
        assert_eq!(findings, [Finding::Error(expected.to_owned())]);
        assert_eq!(of("0 own v0.1.0\n", &[], "time is jiff's"), []);
    }

    #[test]
    fn lines_have_a_reason_and_no_idle_wrapper() {
        let tree = "0 own v0.1.0\n1 cel v0.1.0\n2 chrono v0.4.0\n";
        assert_eq!(of(tree, &["cel"], "").len(), 1);
        let findings = of(tree, &["cel", "kube"], "time is jiff's");
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("lets kube use")));
    }

    #[test]
    fn any_version_is_none() {
        let of = |package: Package| {
            let lines = format!("0 {} v{}\n", package.name, package.version);
            let metadata = metadata(vec![], vec![package]);
            wildcards(&metadata, &Tree::parse(&lines).unwrap(), &strict().bans).len()
        };
        let any = Dependency { req: "*".to_owned(), ..dependency("b") };
        let folder = Dependency { path: Some("/w/b".to_owned()), source: None, ..any.clone() };
        let with = |package: Package, dependency: &Dependency| Package {
            dependencies: vec![dependency.clone()],
            ..package
        };
        assert_eq!(of(with(member("a"), &dependency("b"))), 0);
        assert_eq!(of(with(member("a"), &any)), 1);
        assert_eq!(of(with(member("a"), &folder)), 0);
        assert_eq!(of(with(package("a", "1.0.0"), &folder)), 1);
    }
}
