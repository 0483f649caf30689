//! Answers without what differs from one run to the next: identities, revisions, times, names and
//! addresses that a server made up.
//!
//! Equal ones stay equal: the same identity gets the same number everywhere in a story, so that a
//! write that changes nothing is seen to change nothing. Must not know which server answered.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// Fields that only the real server keeps, for applies that the embedded one refuses.
const LEFT_OUT: &str = "managedFields";

/// What a story has seen so far.
pub(super) struct Plain {
    /// All that the story asks: what it names itself is compared.
    asked: &'static str,
    numbers: HashMap<(&'static str, String), usize>,
    generated: HashMap<String, String>,
    revisions: HashMap<String, Vec<String>>,
}

type Pattern = LazyLock<Option<Regex>>;

static IDENTITY: Pattern = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok()
});
static NUMBER: Pattern = LazyLock::new(|| Regex::new("[0-9]+").ok());
static ACCESS: Pattern = LazyLock::new(|| Regex::new("kube-api-access-[a-z0-9]{5}").ok());
static HASH: Pattern = LazyLock::new(|| Regex::new("hash=[0-9A-F]+").ok());
/// What a patch made of an object, told when it is refused: fields in any order, with those that are
/// left out elsewhere.
static PATCHED: Pattern = LazyLock::new(|| Regex::new(r#"Invalid value: "\{(\\.|[^"\\])*"#).ok());
static AGE: Pattern = LazyLock::new(|| Regex::new("^([0-9]+[smhd])+$").ok());

fn replaced(text: &str, pattern: &Pattern, with: impl FnMut(&Captures<'_>) -> String) -> String {
    match pattern.as_ref() {
        Some(regex) => regex.replace_all(text, with).into_owned(),
        None => text.to_owned(),
    }
}

impl Plain {
    pub(super) fn new(asked: &'static str) -> Self {
        Self {
            asked,
            numbers: HashMap::new(),
            generated: HashMap::new(),
            revisions: HashMap::new(),
        }
    }

    /// The number of a value among those of its kind, by when it was first seen.
    fn number(&mut self, kind: &'static str, value: &str) -> String {
        let count = self.numbers.keys().filter(|(other, _)| *other == kind).count();
        let number = self.numbers.entry((kind, value.to_owned())).or_insert(count);
        format!("<{kind} {number}>")
    }

    /// The number of a revision among those of its object, by when it was first seen.
    fn revision(&mut self, uid: &str, revision: &str) -> String {
        let seen = self.revisions.entry(uid.to_owned()).or_default();
        let known = seen.iter().position(|other| other == revision);
        let number = known.unwrap_or_else(|| {
            seen.push(revision.to_owned());
            seen.len() - 1
        });
        format!("<revision {number}>")
    }

    /// Cleans an answer.
    pub(super) fn clean(&mut self, value: &mut Value) {
        self.learn_names(value);
        self.walk(value, "");
    }

    /// Names that a server made up are told by what they were made of.
    fn learn_names(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str);
                if let (Some(name), Some(prefix)) = (text("name"), text("generateName"))
                    && name.len() == prefix.len() + 5
                    && !self.generated.contains_key(name)
                {
                    let plain = format!("{prefix}<generated {}>", self.generated.len());
                    self.generated.insert(name.to_owned(), plain);
                }
                members.values().for_each(|member| self.learn_names(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn_names(item)),
            _ => {}
        }
    }

    fn walk(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(members) => self.object(members),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, key)),
            Value::String(text) => *text = self.text(text, key),
            Value::Number(number) if key == "nodePort" => {
                let number = number.to_string();
                if !self.asked.contains(&number) {
                    *value = self.number("port", &number).into();
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, members: &mut Map<String, Value>) {
        members.remove(LEFT_OUT);
        let uid = members.get("uid").and_then(Value::as_str).map(str::to_owned);
        for (key, member) in members.iter_mut() {
            match (key.as_str(), member) {
                ("resourceVersion", Value::String(text)) if !text.is_empty() => {
                    *text = match &uid {
                        Some(uid) => self.revision(uid, text),
                        None => "<revision>".to_owned(),
                    };
                }
                (key, member) => self.walk(member, key),
            }
        }
    }

    fn text(&mut self, text: &str, key: &str) -> String {
        match key {
            "continue" if !text.is_empty() => return "<continue>".to_owned(),
            "token" if text.len() > 100 => return "<token>".to_owned(),
            "clusterIP" | "clusterIPs"
                if text.starts_with("10.96.") && !self.asked.contains(text) =>
            {
                return self.number("address", text);
            }
            "cells" if AGE.as_ref().is_some_and(|age| age.is_match(text)) => {
                return "<age>".to_owned();
            }
            _ => {}
        }
        if let Some(time) = time(text) {
            return time.to_owned();
        }
        let mut text = replaced(text, &PATCHED, |_| "Invalid value: \"<patched>".to_owned());
        text = replaced(&text, &IDENTITY, |found| self.number("uid", &found[0]));
        text = replaced(&text, &ACCESS, |_| "kube-api-access-<x>".to_owned());
        text = replaced(&text, &HASH, |_| "hash=<hash>".to_owned());
        let lower = text.to_ascii_lowercase();
        if lower.contains("resource version") || lower.contains("the resourceversion in") {
            text = replaced(&text, &NUMBER, |_| "<n>".to_owned());
        }
        for (name, plain) in &self.generated {
            text = text.replace(name, plain);
        }
        text
    }
}

/// A time that is about now, by its precision.
fn time(text: &str) -> Option<&'static str> {
    const DAY: i64 = 86_400;
    let at: Timestamp = text.parse().ok()?;
    let from_now = at.as_second().saturating_sub(Timestamp::now().as_second());
    let is_fine = text.contains('.');
    (from_now.abs() < DAY).then_some(if is_fine { "<fine time>" } else { "<time>" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cleaned(plain: &mut Plain, mut value: Value) -> Value {
        plain.clean(&mut value);
        value
    }

    #[test]
    fn patterns_are_patterns() {
        for pattern in [&IDENTITY, &NUMBER, &ACCESS, &HASH, &AGE, &PATCHED] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn what_a_server_made_up_is_told_by_its_order() {
        let mut plain = Plain::new("10.96.1.1");
        let uid = "0e4d360e-3523-4933-84f0-17b7942c4089";
        let now = format!("{:.0}", Timestamp::now());
        let metadata = json!({
            "uid": uid, "resourceVersion": "7", "creationTimestamp": now, "managedFields": [1],
            "generateName": "a-", "name": "a-x7k2p",
        });
        let told =
            cleaned(&mut plain, json!({"metadata": metadata, "spec": {"clusterIP": "10.96.1.1"}}));
        assert_eq!(
            told,
            json!({
                "metadata": {
                    "uid": "<uid 0>", "resourceVersion": "<revision 0>", "creationTimestamp": "<time>",
                    "generateName": "a-", "name": "a-<generated 0>",
                },
                "spec": {"clusterIP": "10.96.1.1"},
            })
        );
        let again = json!({
            "message": format!("{uid} of a-x7k2p"), "metadata": {"resourceVersion": "9"},
            "old": "2020-01-01T00:00:00Z", "spec": {"clusterIP": "10.96.3.4", "ports": [{"nodePort": 30001}]},
        });
        assert_eq!(
            cleaned(&mut plain, again),
            json!({
                "message": "<uid 0> of a-<generated 0>", "metadata": {"resourceVersion": "<revision>"},
                "old": "2020-01-01T00:00:00Z",
                "spec": {"clusterIP": "<address 0>", "ports": [{"nodePort": "<port 0>"}]},
            })
        );
    }

    #[test]
    fn ages_and_revisions_in_words() {
        let mut plain = Plain::new("");
        let value = json!({
            "cells": ["a", "3s", "1/1"], "message": "too old resource version: 1 (57)", "n": "57 things",
            "patch": "patch: Invalid value: \"{\\\"a\\\":1}\": wrong",
        });
        assert_eq!(
            cleaned(&mut plain, value),
            json!({
                "cells": ["a", "<age>", "1/1"], "message": "too old resource version: <n> (<n>)",
                "n": "57 things", "patch": "patch: Invalid value: \"<patched>\": wrong",
            })
        );
    }
}
