//! Where crates come from: the workspace or Cargo's own registry. Names no registry: the one that Cargo means
//! when a manifest names none. Pure.

use super::graph::{Metadata, Package};
use super::rules::Sources;
use crate::tidy::Finding;

pub(crate) fn examine(metadata: &Metadata, rules: &Sources) -> Vec<Finding> {
    // Manifests that name no registry mean this one.
    let dependencies = metadata.members().flat_map(|package| &package.dependencies);
    let default = dependencies
        .filter(|dependency| dependency.registry.is_none())
        .filter_map(|dependency| dependency.source.as_deref())
        .find(|source| !source.starts_with("git+"));
    metadata.packages.iter().filter_map(|package| of(metadata, package, default, rules)).collect()
}

fn of(
    metadata: &Metadata,
    package: &Package,
    default: Option<&str>,
    rules: &Sources,
) -> Option<Finding> {
    let name = &package.name;
    let Some(source) = package.source.as_deref() else {
        let message = format!("{name} comes from a folder outside of the workspace");
        return (!metadata.is_member(package)).then_some(Finding::Error(message));
    };
    if let Some(repository) = source.strip_prefix("git+") {
        let known = rules
            .allow_git
            .iter()
            .any(|allowed| repository.strip_prefix(allowed.as_str()).is_some_and(ends_repository));
        let message = format!("{name} comes from the Git repository {repository}");
        return if known { None } else { rules.unknown_git.finding(message) };
    }
    if default == Some(source) {
        return None;
    }
    rules.unknown_registry.finding(format!("{name} comes from another registry, {source}"))
}

/// Is this the end of a repository's address, or a revision of it?
fn ends_repository(rest: &str) -> bool {
    let rest = rest.strip_prefix(".git").unwrap_or(rest);
    rest.is_empty() || rest.starts_with(['?', '#'])
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{dependency, member, metadata, package};
    use super::super::rules::tests::strict;
    use super::*;

    fn of(source: Option<&str>, allow_git: &[&str]) -> usize {
        let own = Package { dependencies: vec![dependency("a")], ..member("own") };
        let other = package("a", "1.0.0");
        let other = Package { source: source.map(str::to_owned), ..other };
        let mut rules = strict().sources;
        rules.allow_git = allow_git.iter().map(|url| (*url).to_owned()).collect();
        examine(&metadata(vec![own], vec![package("b", "1.0.0"), other]), &rules).len()
    }

    #[test]
    fn the_registry_is_cargo_s_own() {
        assert_eq!(of(package("a", "1.0.0").source.as_deref(), &[]), 0);
        assert_eq!(of(Some("registry+https://elsewhere.example/index"), &[]), 1);
        assert_eq!(of(None, &[]), 1);
    }

    #[test]
    fn repositories_are_named_one_by_one() {
        let repository = "git+https://code.example/a.git?rev=1#2";
        assert_eq!(of(Some(repository), &[]), 1);
        assert_eq!(of(Some(repository), &["https://code.example/a"]), 0);
        assert_eq!(of(Some(repository), &["https://code.example/"]), 1);
    }
}
