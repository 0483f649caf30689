//! The names of a definition: what they may look like, and whether they are still free.
//!
//! Owns the conditions that say so.

use std::collections::HashSet;

use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

use super::parts::{list, text};
use crate::kinds::naming;

/// What is wrong with names.
pub(super) fn check(names: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut label = |field: String, name: &str, words: &str, checked: &str| {
        let faults = naming::service(checked);
        if !name.is_empty() && !faults.is_empty() {
            let words = format!("{words}{}", faults.join(","));
            errors.push(FieldError::invalid(field, name, words));
        }
    };
    for field in ["plural", "singular"] {
        let name = text(&names[field]);
        label(format!("{path}.{field}"), name, "", name);
    }
    for field in ["kind", "listKind"] {
        let name = text(&names[field]);
        let words = "may have mixed case, but should otherwise match: ";
        label(format!("{path}.{field}"), name, words, &name.to_lowercase());
    }
    let mut short = listed(names, path, "shortNames");
    let (kind, list_kind) = (text(&names["kind"]), text(&names["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let words = "kind and listKind may not be the same";
        short.push(FieldError::invalid(format!("{path}.listKind"), list_kind, words));
    }
    errors.extend(short);
    errors.extend(listed(names, path, "categories"));
    errors
}

fn listed(names: &Value, path: &str, field: &str) -> Vec<FieldError> {
    let names = list(&names[field]).iter().map(text).enumerate();
    names
        .filter_map(|(index, name)| {
            let faults = naming::service(name);
            let path = format!("{path}.{field}[{index}]");
            (!faults.is_empty()).then(|| FieldError::invalid(path, name, faults.join(",")))
        })
        .collect()
}

/// Whether a definition's kind is served.
pub(crate) fn is_established(definition: &Value) -> bool {
    list(&definition["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// A condition's type, status, reason and message.
type Condition = (&'static str, &'static str, &'static str, String);

/// Writes down which names are accepted and whether the kind is served, which it is at once when no
/// name is taken. `others` are the other definitions.
pub(crate) fn established(definition: &mut Value, others: &[Value], now: &str) {
    if !definition.is_object() {
        return;
    }
    super::remember_stored_version(definition, true);
    let (accepted, conflict) = accepted(definition, others);
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    definition["status"]["acceptedNames"] = accepted;
    let free = conflict.is_none();
    let naming: Condition = match conflict {
        None => ("NamesAccepted", "True", "NoConflicts", "no conflicts found".to_owned()),
        Some((reason, message)) => ("NamesAccepted", "False", reason, message),
    };
    set_condition(definition, naming, now);
    let was = is_established(definition);
    if was {
        return;
    }
    let serving: Condition = if free {
        (
            "Established",
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted".to_owned(),
        )
    } else {
        ("Established", "False", "NotAccepted", "not all names are accepted".to_owned())
    };
    set_condition(definition, serving, now);
}

/// The names that are not taken, and the last conflict with its reason.
fn accepted(definition: &Value, others: &[Value]) -> (Value, Option<(&'static str, String)>) {
    let group = text(&definition["spec"]["group"]);
    let own = &definition["metadata"]["name"];
    let others = others.iter().filter(|other| {
        other["metadata"]["name"] != *own && text(&other["spec"]["group"]) == group
    });
    let (mut resources, mut kinds) = (HashSet::new(), HashSet::new());
    for other in others {
        let names = &other["status"]["acceptedNames"];
        resources.extend([text(&names["plural"]), text(&names["singular"])]);
        resources.extend(list(&names["shortNames"]).iter().map(text));
        kinds.extend([text(&names["kind"]), text(&names["listKind"])]);
    }
    let wanted = &definition["spec"]["names"];
    let before = &definition["status"]["acceptedNames"];
    let mut accepted = if before.is_object() { before.clone() } else { json!({}) };
    let mut conflict = None;
    let in_use = |name: &str| format!("{} is already in use", golang::quote(name));
    for (field, taken, reason) in [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ] {
        let names: Vec<&str> = match &wanted[field] {
            Value::String(name) => vec![name],
            names => list(names).iter().map(text).collect(),
        };
        let ours: Vec<&str> = match &before[field] {
            Value::String(name) => vec![name],
            names => list(names).iter().map(text).collect(),
        };
        let lost: Vec<String> = names
            .iter()
            .filter(|name| !ours.contains(name) && taken.contains(**name))
            .map(|name| in_use(name))
            .collect();
        match lost.as_slice() {
            [] => keep(&mut accepted, field, &wanted[field]),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    keep(&mut accepted, "categories", &wanted["categories"]);
    (accepted, conflict)
}

fn keep(names: &mut Value, field: &str, value: &Value) {
    let Some(names) = names.as_object_mut() else { return };
    if value.is_null() {
        names.remove(field);
    } else {
        names.insert(field.to_owned(), value.clone());
    }
}

fn set_condition(definition: &mut Value, condition: Condition, now: &str) {
    let (kind, status, reason, message) = condition;
    let status_object = &mut definition["status"];
    if !status_object["conditions"].is_array() {
        status_object["conditions"] = json!([]);
    }
    let Some(conditions) = status_object["conditions"].as_array_mut() else { return };
    let known = conditions.iter_mut().find(|known| known["type"] == kind);
    match known {
        Some(known) if known.is_object() => {
            if known["status"] != status || known["lastTransitionTime"].is_null() {
                known["lastTransitionTime"] = now.into();
            }
            known["status"] = status.into();
            known["reason"] = reason.into();
            known["message"] = message.into();
        }
        _ => conditions.push(json!({
            "type": kind, "status": status, "lastTransitionTime": now,
            "reason": reason, "message": message,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, names: &Value) -> Value {
        json!({
            "metadata": {"name": format!("{name}.example.com")},
            "spec": {"group": "example.com", "names": names, "versions": [{"name": "v1", "storage": true}]},
        })
    }

    #[test]
    fn free_names_are_accepted_at_once() {
        let names = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"});
        let mut one = definition("gadgets", &names);
        established(&mut one, &[], "now");
        assert!(is_established(&one));
        assert_eq!(
            one["status"],
            json!({
                "acceptedNames": names, "storedVersions": ["v1"],
                "conditions": [
                    {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "now", "reason": "NoConflicts", "message": "no conflicts found"},
                    {"type": "Established", "status": "True", "lastTransitionTime": "now", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
                ],
            })
        );
        let before = one.clone();
        established(&mut one, std::slice::from_ref(&before), "later");
        assert_eq!(one, before);
    }

    #[test]
    fn a_name_that_is_taken_is_not_accepted() {
        let mut first = definition(
            "gadgets",
            &json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList", "shortNames": ["gd"]}),
        );
        established(&mut first, &[], "now");
        let mut second = definition(
            "others",
            &json!({"plural": "others", "singular": "gadget", "kind": "Other", "listKind": "OtherList"}),
        );
        established(&mut second, &[first.clone()], "now");
        assert!(!is_established(&second));
        let told = &second["status"]["conditions"][0];
        assert_eq!(
            (text(&told["status"]), text(&told["reason"]), text(&told["message"])),
            ("False", "SingularConflict", "\"gadget\" is already in use")
        );
        assert_eq!(
            second["status"]["acceptedNames"],
            json!({"plural": "others", "kind": "Other", "listKind": "OtherList"})
        );
        second["spec"]["names"]["singular"] = json!("other");
        established(&mut second, &[first], "later");
        assert!(is_established(&second));
        assert_eq!(second["status"]["conditions"][1]["lastTransitionTime"], "later");
    }
}
