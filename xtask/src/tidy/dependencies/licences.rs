//! Licences: every crate that is compiled may be used under what `deny.toml` allows, and every line there is
//! needed. Pure.

use anyhow::{Context, Result};

use super::graph::{Metadata, Package, Tree};
use super::rules::Licences;
use super::spdx::Expression;
use crate::tidy::Finding;

pub(crate) fn examine(metadata: &Metadata, tree: &Tree, rules: &Licences) -> Vec<Finding> {
    let allowed = |licence: &str| rules.allow.iter().any(|allow| allow == licence);
    let mut findings = Vec::new();
    let mut expressions = Vec::new();
    for package in metadata.compiled(tree) {
        if rules.private.ignore && package.publish.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        match expression(package) {
            Ok(expression) => {
                if !expression.holds(&allowed) {
                    let licence = package.license.as_deref().unwrap_or_default();
                    let name = &package.name;
                    findings.push(Finding::Error(format!(
                        "{name}: its licence `{licence}` is not among those that deny.toml allows"
                    )));
                }
                expressions.push(expression);
            }
            Err(error) => findings.push(Finding::Error(format!("{}: {error}", package.name))),
        }
    }
    for unneeded in &rules.allow {
        let others = |licence: &str| licence != unneeded && allowed(licence);
        // What does not hold with it either is named above.
        let needed = expressions.iter().any(|e| e.holds(&allowed) && !e.holds(&others));
        if !needed {
            findings.extend(rules.unused_allowed_license.finding(format!(
                "deny.toml allows the licence `{unneeded}`, which no crate needs; take it out"
            )));
        }
    }
    findings
}

fn expression(package: &Package) -> Result<Expression> {
    Expression::parse(package.license.as_deref().context("it names no licence")?)
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{member, metadata, package};
    use super::super::rules::tests::strict;
    use super::*;

    /// What is said of crates with these licences, beside a crate of the workspace without one.
    fn of(licences: &[Option<&str>]) -> Vec<Finding> {
        let (mut lines, mut others) = ("0 own v0.1.0\n".to_owned(), Vec::new());
        for (number, licence) in licences.iter().enumerate() {
            let name = format!("c{number}");
            lines.extend(["1 ", &name, " v1.0.0\n"]);
            let license = licence.map(str::to_owned);
            others.push(Package { license, ..package(&name, "1.0.0") });
        }
        let own = Package { license: None, ..member("own") };
        let tree = Tree::parse(&lines).unwrap();
        examine(&metadata(vec![own], others), &tree, &strict().licenses)
    }

    #[test]
    fn what_is_allowed_is_enough() {
        let licences = [Some("MIT"), Some("Apache-2.0"), Some("GPL-2.0-only OR MIT")];
        assert_eq!(of(&licences), []);
    }

    #[test]
    fn other_licences_are_named() {
        let findings = of(&[Some("MIT"), Some("Apache-2.0"), Some("GPL-3.0-only")]);
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("GPL-3.0-only")));
        let findings = of(&[Some("MIT"), Some("Apache-2.0"), None, Some("MIT AND")]);
        assert!(matches!(&findings[..], [Finding::Error(_), Finding::Error(_)]));
    }

    #[test]
    fn a_licence_that_nothing_needs_is_not_allowed_in_vain() {
        let findings = of(&[Some("MIT"), Some("MIT OR Apache-2.0")]);
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("`Apache-2.0`")));
    }
}
