//! Dependencies that a manifest names and no source of its crate does, as cargo-machete finds them, and
//! shipped ones that only tests use. Looks for paths such as `name::`; a dependency that is needed without
//! being named is listed where cargo-machete looks for it. Pure.

use super::graph::{Dependency, Package};
use crate::tidy::Finding;

/// What a source file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The library and the programs, with the tests inside them.
    Product,
    /// Tests, examples and benchmarks beside them.
    Tests,
    /// The build script.
    Build,
}

/// A crate's own text.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    /// Its manifest.
    pub(crate) manifest: &'a str,
    /// Its source files.
    pub(crate) files: &'a [(Role, String)],
}

pub(crate) fn examine(package: &Package, sources: &Sources<'_>) -> Vec<Finding> {
    let name = &package.name;
    let listed = package.metadata["cargo-machete"]["ignored"].as_array();
    let mut ignored: Vec<_> = listed.into_iter().flatten().filter_map(|v| v.as_str()).collect();
    let mut findings = Vec::new();
    for key in &ignored {
        if !has_reason(sources.manifest, key) {
            findings.push(Finding::Error(format!(
                "{name}: say in a comment why the unused {key} is `ignored`"
            )));
        }
    }
    for dependency in &package.dependencies {
        let Some(complaint) = complaint(dependency, sources.files) else { continue };
        let key = dependency.key();
        if let Some(position) = ignored.iter().position(|ignored| *ignored == key) {
            ignored.remove(position);
        } else {
            findings.push(Finding::Error(format!("{name}: {complaint}")));
        }
    }
    findings.extend(ignored.into_iter().map(|key| {
        Finding::Error(format!("{name}: {key} is no unused dependency; take it out of `ignored`"))
    }));
    findings
}

fn complaint(dependency: &Dependency, files: &[(Role, String)]) -> Option<String> {
    let key = dependency.key();
    let name = key.replace('-', "_");
    let used_in = |roles: &[Role]| {
        files.iter().any(|(role, text)| roles.contains(role) && names(text, &name))
    };
    match dependency.kind.as_deref() {
        Some("build") => {
            (!used_in(&[Role::Build])).then(|| format!("its build script does not use {key}"))
        }
        Some("dev") => {
            (!used_in(&[Role::Tests, Role::Product])).then(|| format!("its tests do not use {key}"))
        }
        _ if used_in(&[Role::Product]) => None,
        _ if used_in(&[Role::Tests]) => {
            Some(format!("only its tests use {key}: make it a dev-dependency"))
        }
        _ => Some(format!("it does not use {key}")),
    }
}

/// Does code name this crate?
fn names(text: &str, name: &str) -> bool {
    text.lines().map(without_comment).any(|line| {
        line.match_indices(name).any(|(start, _)| {
            let (before, after) = (&line[..start], &line[start + name.len()..]);
            starts_path(before) && (after.starts_with("::") || (is_import(before) && ends(after)))
        })
    })
}

fn without_comment(line: &str) -> &str {
    // Behind a colon it is the middle of an address.
    let mut comments = line.match_indices("//").map(|(start, _)| start);
    comments.find(|start| !line[..*start].ends_with(':')).map_or(line, |start| &line[..start])
}

/// Can a path start here? Not in the middle of a word or of another path.
fn starts_path(before: &str) -> bool {
    if let Some(before) = before.strip_suffix("::") {
        // `::name` is a path from the root, `outer::name` is not.
        return !before.ends_with(|c: char| is_word(c) || c == '>');
    }
    !before.ends_with(|c: char| is_word(c) || c == '.')
}

fn is_import(before: &str) -> bool {
    let before = before.trim_end();
    before.ends_with("use") || before.ends_with("extern crate")
}

fn ends(after: &str) -> bool {
    !after.starts_with(is_word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Is there a comment at this name in the list, or above it?
fn has_reason(manifest: &str, key: &str) -> bool {
    let section = manifest.lines().skip_while(|line| !line.contains("cargo-machete"));
    let lines: Vec<_> = section.collect();
    let quoted = format!("\"{key}\"");
    let at = lines.iter().position(|line| line.contains(&quoted));
    at.is_some_and(|at| {
        lines[at].contains('#') || (at > 0 && lines[at - 1].trim_start().starts_with('#'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{dependency, member};
    use super::*;

    fn of(dependency: Dependency, files: &[(Role, &str)]) -> Vec<Finding> {
        let files: Vec<_> = files.iter().map(|(role, text)| (*role, (*text).to_owned())).collect();
        let package = Package { dependencies: vec![dependency], ..member("own") };
        examine(&package, &Sources { manifest: "", files: &files })
    }

    #[test]
    fn a_path_names_its_crate() {
        for line in [
            "use http_body::Frame;",
            "let a = http_body::Frame::new();",
            "fn a(b: &::http_body::Frame) {}",
            "use {http_body::Frame, other};",
            "#[http_body::main]",
            "pub use http_body as body;",
            "extern crate http_body;",
            "use http_body;",
            "see(\"https://a\", http_body::A)",
        ] {
            assert!(names(line, "http_body"), "{line}");
        }
        for line in [
            "let http_body = 1;",
            "use crate::http_body::Frame;",
            "use http_body_util::Full;",
            "my_http_body::a()",
            "self.http_body.clone()",
            "// http_body::Frame",
            "//! Knows http_body::Frame.",
            "use super::http_body;",
        ] {
            assert!(!names(line, "http_body"), "{line}");
        }
    }

    #[test]
    fn what_nothing_names_is_found() {
        let used = (Role::Product, "use serde_json::Value;\n");
        assert_eq!(of(dependency("serde-json"), &[used]), []);
        assert_eq!(of(dependency("serde"), &[used]).len(), 1);
        let renamed = Dependency { rename: Some("serde_json".into()), ..dependency("json") };
        assert_eq!(of(renamed, &[used]), []);
    }

    #[test]
    fn each_kind_has_its_place() {
        let kind = |kind: &str| Dependency { kind: Some(kind.into()), ..dependency("cc") };
        let text = "cc::Build::new();";
        assert_eq!(of(kind("build"), &[(Role::Build, text)]), []);
        assert_eq!(of(kind("build"), &[(Role::Product, text)]).len(), 1);
        assert_eq!(of(kind("dev"), &[(Role::Tests, text)]), []);
        assert_eq!(of(kind("dev"), &[(Role::Product, text)]), []);
        let findings = of(dependency("cc"), &[(Role::Tests, text)]);
        assert!(matches!(&findings[..], [Finding::Error(text)] if text.contains("only its tests")));
    }

    #[test]
    fn exceptions_have_a_reason_and_are_needed() {
        let of = |key: &str, manifest: &str| {
            let metadata = serde_json::json!({"cargo-machete": {"ignored": [key]}});
            let package =
                Package { dependencies: vec![dependency("a")], metadata, ..member("own") };
            examine(&package, &Sources { manifest, files: &[] }).len()
        };
        let section = "[package.metadata.cargo-machete]\n";
        assert_eq!(of("a", &format!("{section}# For a feature.\nignored = [\"a\"]\n")), 0);
        assert_eq!(of("a", &format!("{section}ignored = [\n    \"a\", # For a feature.\n]\n")), 0);
        assert_eq!(of("a", &format!("{section}ignored = [\"a\"]\n")), 1);
        assert_eq!(of("b", &format!("{section}# Once.\nignored = [\"b\"]\n")), 2);
    }
}
