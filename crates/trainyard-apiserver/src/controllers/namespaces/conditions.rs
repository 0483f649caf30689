//! What the status of a namespace that goes away says about its contents. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controllers::clock::seconds;

/// What was found while emptying a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Why not all kinds are known.
    pub(super) discovery: Option<String>,
    /// Deletions that failed.
    pub(super) failures: Vec<String>,
    /// How many objects are left, by `plural.group`.
    pub(super) left: BTreeMap<String, usize>,
    /// How many of them have which finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
}

impl Found {
    /// Whether nothing is left, as far as can be told.
    pub(super) fn is_empty(&self) -> bool {
        self.discovery.is_none() && self.failures.is_empty() && self.left.is_empty()
    }

    /// The conditions: type, whether it holds, reason, message.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let each = |counts: &BTreeMap<String, usize>, word: &str| {
            let mut parts: Vec<String> = counts
                .iter()
                .map(|(name, count)| format!("{name} {word}{count} resource instances"))
                .collect();
            parts.sort();
            parts.join(", ")
        };
        let mut failures = self.failures.clone();
        failures.sort();
        let tell = |kind, bad: Option<(&'static str, String)>, reason, message: &str| match bad {
            Some((reason, message)) => (kind, true, reason, message),
            None => (kind, false, reason, message.to_owned()),
        };
        let discovery = self.discovery.clone().map(|message| ("DiscoveryFailed", message));
        let content = (!failures.is_empty()).then(|| {
            let (count, all) = (failures.len(), failures.join(", "));
            let message = format!("Failed to delete all resource types, {count} remaining: {all}");
            ("ContentDeletionFailed", message)
        });
        let remaining = (!self.left.is_empty()).then(|| {
            let all = each(&self.left, "has ");
            ("SomeResourcesRemain", format!("Some resources are remaining: {all}"))
        });
        let finalizers = (!self.finalizers.is_empty()).then(|| {
            let all = each(&self.finalizers, "in ");
            let message = format!("Some content in the namespace has finalizers remaining: {all}");
            ("SomeFinalizersRemain", message)
        });
        [
            tell(
                "NamespaceDeletionDiscoveryFailure",
                discovery,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            tell(
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            tell(
                "NamespaceDeletionContentFailure",
                content,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            tell(
                "NamespaceContentRemaining",
                remaining,
                "ContentRemoved",
                "All content successfully removed",
            ),
            tell(
                "NamespaceFinalizersRemaining",
                finalizers,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ]
    }

    /// The new list of conditions; `None` when the old one says the same.
    pub(super) fn written_over(&self, old: &[Value], now: Timestamp) -> Option<Vec<Value>> {
        let mut list = old.to_vec();
        let mut changed = false;
        for (kind, holds, reason, message) in self.conditions() {
            let status = if holds { "True" } else { "False" };
            let mut new = json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": seconds(now),
            });
            let Some(there) = list.iter_mut().find(|there| there["type"] == kind) else {
                list.push(new);
                changed = true;
                continue;
            };
            if there["status"] == status {
                new["lastTransitionTime"] = there["lastTransitionTime"].clone();
            }
            if *there != new {
                *there = new;
                changed = true;
            }
        }
        changed.then_some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_left_is_said_in_the_words_of_kubernetes() {
        let found = Found {
            left: [("pods.".to_owned(), 2), ("tfjobs.kubeflow.org".to_owned(), 1)].into(),
            finalizers: [("example.com/hold".to_owned(), 1)].into(),
            ..Found::default()
        };
        assert!(!found.is_empty());
        let list = found.written_over(&[], at("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(list.len(), 5);
        assert_eq!(list[0]["message"], "All resources successfully discovered");
        assert_eq!(
            list[3]["message"],
            "Some resources are remaining: pods. has 2 resource instances, tfjobs.kubeflow.org has \
             1 resource instances"
        );
        assert_eq!(
            list[4]["message"],
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 \
             resource instances"
        );
        assert_eq!(list[4]["status"], "True");
    }

    #[test]
    fn the_same_is_not_written_twice_and_a_turn_has_its_time() {
        let first = at("2026-01-01T00:00:00Z");
        let later = at("2026-01-01T00:01:00Z");
        let found = Found { left: [("pods.".to_owned(), 2)].into(), ..Found::default() };
        let list = found.written_over(&[], first).unwrap();
        assert_eq!(found.written_over(&list, later), None);
        let fewer = Found { left: [("pods.".to_owned(), 1)].into(), ..Found::default() };
        let list = fewer.written_over(&list, later).unwrap();
        assert_eq!(list[3]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        let list = Found::default().written_over(&list, later).unwrap();
        assert_eq!(list[3]["status"], "False");
        assert_eq!(list[3]["lastTransitionTime"], "2026-01-01T00:01:00Z");
    }
}
