//! Events, one kind seen through two groups: the core's form is stored, the other is a view of it.
//!
//! Owns the translation and the checks of both.

use serde_json::{Map, Value};
use trainyard_schema::FieldError;

use super::{
    json::{faults, text, unchanged},
    naming,
};
use crate::{
    kind::{Part, Rules},
    openapi::types,
};

/// The rules of events as the core has them.
pub(super) struct CoreEvents;

/// The rules of events as `events.k8s.io` has them.
pub(super) struct NewEvents;

/// What is called otherwise, there and here.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

const SELECTABLE: [&str; 11] = [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

impl Rules for CoreEvents {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        legacy(object, "reportingComponent")
    }

    fn name_faults(&self, _name: &str, _is_prefix: bool) -> Vec<String> {
        Vec::new()
    }

    fn validate_update(&self, new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        legacy(new, "reportingComponent")
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        SELECTABLE.contains(&field)
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        fields(object)
    }
}

impl Rules for NewEvents {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = legacy(object, "reportingController");
        errors.extend(series(object));
        if object["eventTime"].is_null() {
            errors.push(FieldError::required("eventTime", ""));
        }
        let kind = text(object, "type");
        if !matches!(kind, "Normal" | "Warning") {
            errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
        }
        let source = &object["source"];
        let set = [
            ("firstTimestamp", !object["firstTimestamp"].is_null()),
            ("lastTimestamp", !object["lastTimestamp"].is_null()),
            ("count", object["count"].as_i64().is_some_and(|count| count != 0)),
            ("source", !text(source, "component").is_empty() || !text(source, "host").is_empty()),
        ];
        let set = set.into_iter().filter(|(_, is_set)| *is_set);
        errors.extend(set.map(|(key, _)| FieldError::invalid(key, "", "needs to be unset")));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = legacy(new, "reportingController");
        if new["series"] != old["series"] {
            errors.extend(series(new));
        }
        let fixed = [
            ("involvedObject", "involvedObject"),
            ("reason", "reason"),
            ("message", "message"),
            ("source", "source"),
            ("firstTimestamp", "firstTimestamp"),
            ("lastTimestamp", "lastTimestamp"),
            ("count", "count"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingComponent", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ];
        errors.extend(
            fixed.into_iter().filter_map(|(key, told)| unchanged(&new[key], &old[key], told)),
        );
        errors
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        SELECTABLE.contains(&field)
            || field.starts_with("regarding.")
            || field == "reportingController"
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        fields(object)
    }

    fn to_stored(&self, object: Value) -> Value {
        let renamed = renamed(object, |name| {
            NAMES.iter().find(|(there, _)| *there == name).map(|(_, here)| *here)
        });
        canonical(renamed, "core.Event")
    }

    fn served(&self, object: &Value) -> Option<Value> {
        let mut renamed = renamed(object.clone(), |name| {
            NAMES.iter().find(|(_, here)| *here == name).map(|(there, _)| *there)
        });
        renamed["apiVersion"] = "events.k8s.io/v1".into();
        Some(canonical(renamed, "events.Event"))
    }
}

fn canonical(mut object: Value, name: &str) -> Value {
    // The values have been read once already: nothing can be wrong with them.
    let _ = types::read_type(name, &mut object);
    object
}

fn renamed(object: Value, other: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(members) = object else { return object };
    let renamed: Map<String, Value> = members
        .into_iter()
        .map(|(key, value)| (other(&key).map_or(key, str::to_owned), value))
        .collect();
    Value::Object(renamed)
}

fn fields(event: &Value) -> Vec<(Box<str>, Box<str>)> {
    let mut source = text(&event["source"], "component");
    if source.is_empty() {
        source = text(event, "reportingComponent");
    }
    let value = |field: &str| match field.strip_prefix("involvedObject.") {
        Some(key) => text(&event["involvedObject"], key),
        None if field == "source" => source,
        None => text(event, field),
    };
    SELECTABLE.iter().map(|field| ((*field).into(), value(field).into())).collect()
}

fn series(event: &Value) -> Vec<FieldError> {
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if series["count"].as_i64().unwrap_or(0) < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if series["lastObservedTime"].is_null() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
    errors
}

fn legacy(event: &Value, controller: &str) -> Vec<FieldError> {
    let namespace = text(&event["metadata"], "namespace");
    let about = text(&event["involvedObject"], "namespace");
    let mut errors = Vec::new();
    let is_new = !event["eventTime"].is_null();
    let agrees = match (is_new, about.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == about,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !agrees {
        let words = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", about, words));
    }
    if is_new {
        errors.extend(required_parts(event, controller));
    }
    errors.extend(faults(naming::subdomain(namespace), namespace, "namespace"));
    errors
}

fn required_parts(event: &Value, controller: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(event, "reportingComponent");
    if name.is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    errors.extend(faults(naming::qualified(name), name, controller));
    for (key, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        let value = text(event, key);
        if value.is_empty() {
            errors.push(FieldError::required(key, ""));
        }
        errors.extend(bounded(value, most, key));
    }
    errors.extend(bounded(text(event, "message"), 1024, "message"));
    errors
}

fn bounded(value: &str, most: usize, path: &str) -> Option<FieldError> {
    let words = format!("can have at most {most} characters");
    (value.len() > most).then(|| FieldError::invalid(path, "", words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_the_same_in_both_groups() {
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "t"},
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c",
            "reportingInstance": "i", "action": "Do", "reason": "R", "note": "hello", "type": "Normal",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "t"},
        });
        let stored = NewEvents.to_stored(event);
        assert_eq!(
            (text(&stored, "message"), text(&stored, "reportingComponent")),
            ("hello", "a.b/c")
        );
        assert_eq!(stored["firstTimestamp"], Value::Null);
        assert!(NewEvents.validate_create(&stored).is_empty());
        let back = NewEvents.served(&stored).unwrap();
        assert_eq!(back["note"], "hello");
        assert_eq!(back["deprecatedSource"], json!({}));
        assert!(back.get("message").is_none() && back.get("deprecatedCount").is_none());
        assert_eq!(back["apiVersion"], "events.k8s.io/v1");
    }

    #[test]
    fn an_event_belongs_to_the_namespace_of_its_object() {
        let event = json!({
            "metadata": {"namespace": "t"}, "involvedObject": {"namespace": "u"}, "eventTime": null,
        });
        let told: Vec<String> =
            CoreEvents.validate_create(&event).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["involvedObject.namespace: Invalid value: \"u\": does not match event.namespace"]
        );
    }

    #[test]
    fn the_source_is_selectable() {
        let event = json!({"reportingComponent": "c", "involvedObject": {"name": "p"}});
        let fields = CoreEvents.fields(&event);
        assert!(fields.contains(&("source".into(), "c".into())));
        assert!(fields.contains(&("involvedObject.name".into(), "p".into())));
    }
}
