//! Where two answers differ.
//!
//! Must not know what is allowed.

use std::fmt;

use serde_json::Value;

use super::story::Parts;

/// A place where they differ; what is absent is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// A JSON pointer into the answer.
    pub(super) at: String,
    pub(super) real: Option<Value>,
    pub(super) ours: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |value: &Option<Value>| {
            value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string)
        };
        let (real, ours) = (told(&self.real), told(&self.ours));
        write!(f, "{}\n        real: {real}\n        ours: {ours}", self.at)
    }
}

/// By which members elements of lists are known.
const NAMES: [&str; 7] =
    ["name", "resource", "subresource", "version", "groupVersion", "clientCIDR", "kind"];

/// All places where two answers differ.
pub(super) fn differences(real: &Value, ours: &Value, parts: Parts) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(real, ours, parts, "", &mut found);
    found
}

fn walk(real: &Value, ours: &Value, parts: Parts, at: &str, found: &mut Vec<Difference>) {
    match (real, ours) {
        (Value::Object(theirs), Value::Object(own)) => {
            for (key, value) in theirs {
                let at = format!("{at}/{}", escaped(key));
                match own.get(key) {
                    Some(other) => walk(value, other, parts, &at, found),
                    None if parts == Parts::Members => {}
                    None => found.push(Difference { at, real: Some(value.clone()), ours: None }),
                }
            }
            for (key, value) in own.iter().filter(|(key, _)| !theirs.contains_key(*key)) {
                let at = format!("{at}/{}", escaped(key));
                found.push(Difference { at, real: None, ours: Some(value.clone()) });
            }
        }
        (Value::Array(theirs), Value::Array(own)) if parts != Parts::All && are_named(theirs) => {
            for value in own {
                let at = format!("{at}/{}", name(value).unwrap_or_default());
                match theirs.iter().find(|other| name(other) == name(value)) {
                    Some(other) => walk(other, value, parts, &at, found),
                    None => found.push(Difference { at, real: None, ours: Some(value.clone()) }),
                }
            }
        }
        (Value::Array(theirs), Value::Array(own)) => {
            for index in 0..theirs.len().max(own.len()) {
                let at = format!("{at}/{index}");
                match (theirs.get(index), own.get(index)) {
                    (Some(one), Some(other)) => walk(one, other, parts, &at, found),
                    (one, other) => {
                        found.push(Difference { at, real: one.cloned(), ours: other.cloned() });
                    }
                }
            }
        }
        (one, other) if one == other => {}
        (one, other) => found.push(Difference {
            at: at.to_owned(),
            real: Some(one.clone()),
            ours: Some(other.clone()),
        }),
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn are_named(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|value| name(value).is_some())
}

fn name(value: &Value) -> Option<&str> {
    let own = NAMES.iter().find_map(|key| value[*key].as_str());
    own.or_else(|| value["metadata"]["name"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_found_where_they_are() {
        let real = json!({"a": [1, {"b/c": 2}], "d": 3});
        let ours = json!({"a": [1, {"b/c": 4}, 5], "e": 6});
        let told: Vec<String> =
            differences(&real, &ours, Parts::All).into_iter().map(|one| one.at).collect();
        assert_eq!(told, ["/a/1/b~1c", "/a/2", "/d", "/e"]);
        assert!(differences(&real, &real, Parts::All).is_empty());
    }

    #[test]
    fn of_some_answers_only_a_part_counts() {
        let real = json!({"list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "more": 1});
        let ours = json!({"list": [{"name": "y", "v": 2}]});
        assert_eq!(differences(&real, &ours, Parts::Members), []);
        assert_eq!(differences(&real, &ours, Parts::Items).len(), 1);
        let wrong = json!({"list": [{"name": "y", "v": 3}, {"name": "z"}]});
        assert_eq!(differences(&real, &wrong, Parts::Members).len(), 2);
    }
}
