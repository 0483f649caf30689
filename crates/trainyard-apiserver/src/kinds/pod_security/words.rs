//! Words that all checks share: who is at fault, and lists of names in quotes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::json::{items, text};

/// What a check looks at: a pod's or a template's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

impl<'a> Subject<'a> {
    /// All containers: those that come first, the ordinary ones, those added while it runs.
    pub(super) fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |key| items(self.spec, key))
    }

    /// The names of the containers of which something holds.
    pub(super) fn named(self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        let found = self.containers().filter(|container| holds(container));
        found.map(|container| text(container, "name")).collect()
    }

    /// Whether its users are not the machine's.
    pub(super) fn has_own_users(self) -> bool {
        self.spec["hostUsers"].as_bool() == Some(false)
    }

    /// Whether it is for Windows, where some fields may not be set at all.
    pub(super) fn is_for_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }
}

/// Why a check refuses: a few words, and the values that are at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

impl Violation {
    pub(super) fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }

    /// Reason and detail.
    pub(super) fn whole(&self) -> String {
        if self.detail.is_empty() {
            return self.reason.to_owned();
        }
        format!("{} ({})", self.reason, self.detail)
    }
}

/// The word for one or for several.
pub(super) const fn counted(
    one: &'static str,
    several: &'static str,
    count: usize,
) -> &'static str {
    if count == 1 { one } else { several }
}

/// `"a", "b"`. What is inside is not escaped, as in Kubernetes' own words.
pub(super) fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> =
        items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", counted("container", "containers", names.len()), quoted(names))
}

/// Who sets something that may not be: the pod itself, containers, or both. `None`: nobody.
pub(super) fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let pod = pod.then(|| "pod".to_owned());
    let names = (!names.is_empty()).then(|| containers(names));
    let both: Vec<String> = pod.into_iter().chain(names).collect();
    (!both.is_empty()).then(|| both.join(" and "))
}

/// Where a field of a security context is set to something that is not allowed: who does so, and the
/// values. The pod's own context counts, too.
pub(super) fn wrongly_set<'a>(
    subject: Subject<'a>,
    field: impl Fn(&'a Value) -> Option<&'a str>,
    allows: impl Fn(&str) -> bool,
) -> (bool, Vec<&'a str>, BTreeSet<&'a str>) {
    let wrong =
        |holder: &'a Value| field(&holder["securityContext"]).filter(|value| !allows(value));
    let mut values = BTreeSet::new();
    let pod = wrong(subject.spec);
    values.extend(pod);
    let mut names = Vec::new();
    for container in subject.containers() {
        if let Some(value) = wrong(container) {
            names.push(text(container, "name"));
            values.insert(value);
        }
    }
    (pod.is_some(), names, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sets_something_is_told_in_one_breath() {
        assert_eq!(setters(false, &[]), None);
        assert_eq!(setters(true, &[]).unwrap(), "pod");
        assert_eq!(setters(false, &["a"]).unwrap(), "container \"a\"");
        assert_eq!(setters(true, &["a", "b"]).unwrap(), "pod and containers \"a\", \"b\"");
    }
}
