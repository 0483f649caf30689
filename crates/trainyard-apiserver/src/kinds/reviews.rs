//! Reviews: objects that are only asked. Whoever got in may do everything, and the answers say so.

use serde_json::{Value, json};

use super::json::clear;
use crate::{
    failure::Failure,
    kind::{Caller, Rules},
};

/// May somebody do something? Yes.
pub(super) struct Access;

impl Rules for Access {
    fn answer(&self, mut object: Value, _caller: &Caller) -> Result<Value, Failure> {
        object["status"] = json!({"allowed": true});
        Ok(told(object))
    }
}

/// What may I do? Everything.
pub(super) struct AllRules;

impl Rules for AllRules {
    fn answer(&self, mut object: Value, _caller: &Caller) -> Result<Value, Failure> {
        object["status"] = json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        });
        object["spec"] = json!({});
        Ok(told(object))
    }
}

/// Who am I?
pub(super) struct Myself;

impl Rules for Myself {
    fn answer(&self, mut object: Value, caller: &Caller) -> Result<Value, Failure> {
        object["status"] = json!({"userInfo": user(caller)});
        Ok(told(object))
    }
}

/// Whose token is this? Those who know answer before it comes here.
pub(super) struct Tokens;

impl Rules for Tokens {
    fn answer(&self, mut object: Value, _caller: &Caller) -> Result<Value, Failure> {
        object["status"] = json!({"user": {}, "error": "invalid bearer token"});
        Ok(told(object))
    }
}

/// A caller as reviews tell it.
pub(crate) fn user(caller: &Caller) -> Value {
    let mut user = json!({"username": caller.name});
    if !caller.uid.is_empty() {
        user["uid"] = json!(caller.uid);
    }
    if !caller.groups.is_empty() {
        user["groups"] = json!(caller.groups);
    }
    if !caller.extra.is_empty() {
        let extra: serde_json::Map<String, Value> =
            caller.extra.iter().map(|(key, values)| (key.clone(), json!(values))).collect();
        user["extra"] = Value::Object(extra);
    }
    user
}

/// Reviews have no place of their own.
fn told(mut review: Value) -> Value {
    for key in ["name", "uid", "resourceVersion"] {
        clear(&mut review["metadata"], key);
    }
    review
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_allowed() {
        let asked = json!({"metadata": {}, "spec": {"resourceAttributes": {"verb": "get"}}});
        let answered = Access.answer(asked, &Caller::default()).unwrap();
        assert_eq!(answered["status"], json!({"allowed": true}));
        assert_eq!(answered["spec"]["resourceAttributes"]["verb"], "get");
    }

    #[test]
    fn callers_are_told_who_they_are() {
        let caller = Caller {
            name: "system:admin".to_owned(),
            uid: "u".to_owned(),
            groups: vec!["system:masters".to_owned()],
            extra: vec![("a".to_owned(), vec!["b".to_owned()])],
        };
        let answered = Myself.answer(json!({"metadata": {}}), &caller).unwrap();
        let expected = json!({
            "username": "system:admin", "uid": "u", "groups": ["system:masters"], "extra": {"a": ["b"]},
        });
        assert_eq!(answered["status"]["userInfo"], expected);
    }
}
