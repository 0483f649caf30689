//! One version of each crate, or a line in `deny.toml` that says why there are two. Pure.

use std::collections::BTreeMap;

use super::graph::{Crate, Tree};
use super::rules::Bans;
use crate::tidy::Finding;

pub(crate) fn examine(tree: &Tree, rules: &Bans) -> Vec<Finding> {
    let mut versions = BTreeMap::<&str, Vec<&Crate>>::new();
    for found in tree.0.keys() {
        versions.entry(&found.name).or_default().push(found);
    }
    let skipped = |found: &Crate| {
        rules.skip.iter().any(|skip| skip.spec.matches(&found.name, &found.version))
    };
    let mut findings = Vec::new();
    if !rules.multiple_versions_include_dev {
        let key = "multiple-versions-include-dev";
        findings.push(Finding::Error(format!(
            "deny.toml: what tests need is compiled too; say `{key} = true`"
        )));
    }
    for (name, all) in &versions {
        if all.iter().filter(|found| !skipped(found)).count() > 1 {
            let all: Vec<_> = all.iter().map(|found| describe(tree, found)).collect();
            findings.extend(rules.multiple_versions.finding(format!(
                "{name} is there in {} versions: {}; choose one, or say in deny.toml's `skip` why not",
                all.len(),
                all.join(", ")
            )));
        }
    }
    for skip in &rules.skip {
        let spec = &skip.spec;
        if skip.reason.is_empty() {
            findings
                .push(Finding::Error(format!("deny.toml skips {spec}; say why, as its `reason`")));
        }
        let all = versions.get(spec.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let meant = all.iter().filter(|found| spec.matches(&found.name, &found.version)).count();
        // With nothing left beside it, the line is not what makes it the only one.
        if meant == 0 || all.len() == 1 {
            findings.push(Finding::Error(format!(
                "deny.toml skips {spec}, which is not there beside another version; take it out"
            )));
        } else if meant == all.len() {
            findings.push(Finding::Error(format!(
                "deny.toml skips {spec}, which means all of its versions; name those that are old"
            )));
        }
    }
    findings
}

/// A version and who uses it.
fn describe(tree: &Tree, found: &Crate) -> String {
    let users = tree.0.get(found).into_iter().flatten().map(|user| user.name.as_str());
    format!("{} (for {})", found.version, users.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::strict;
    use super::super::rules::{Skipped, Spec};
    use super::*;

    const TREE: &str = "0 own v0.1.0\n1 a v1.0.0\n2 c v1.2.0\n1 c v2.0.0\n";

    fn of(skip: &[(&str, &str)]) -> Vec<Finding> {
        let mut rules = strict().bans;
        rules.skip = skip
            .iter()
            .map(|(spec, reason)| Skipped {
                spec: Spec::try_from((*spec).to_owned()).unwrap(),
                reason: (*reason).to_owned(),
            })
            .collect();
        examine(&Tree::parse(TREE).unwrap(), &rules)
    }

    #[test]
    fn two_versions_are_named_with_their_users() {
        let findings = of(&[]);
        assert!(matches!(&findings[..], [Finding::Error(text)]
            if text.contains("1.2.0 (for a), 2.0.0 (for own)")));
    }

    #[test]
    fn a_line_with_a_reason_is_enough() {
        assert_eq!(of(&[("c@1", "a has not moved on")]), []);
        let findings = of(&[("c@1", "")]);
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("say why")));
    }

    #[test]
    fn a_line_that_means_nothing_is_taken_out() {
        for stale in ["c@3", "a@1", "gone"] {
            let findings = of(&[("c@1", "a has not moved on"), (stale, "once")]);
            assert!(
                matches!(&findings[..], [Finding::Error(text)] if text.contains("take it out")),
                "{stale}: {findings:?}"
            );
        }
        let findings = of(&[("c", "all of them")]);
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("all of its")));
    }
}
