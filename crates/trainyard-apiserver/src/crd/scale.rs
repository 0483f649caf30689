//! The scale of a custom resource: a number of replicas wherever its definition says.
//!
//! Owns the way from an object to its scale and back. Must not know verbs.

use serde_json::{Map, Value, json};
use trainyard_schema::{Fault, FieldError, golang};

use crate::kind::Scale;

/// The parts of `.spec.replicas`.
fn steps(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

/// What stands at a path; an error in the words of the real server when a step leads through
/// something that has no fields.
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let steps = steps(path);
    let mut value = object;
    for (at, step) in steps.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(*step) {
                Some(field) => value = field,
                None => return Ok(None),
            },
            other => {
                let passed = steps.get(..=at).unwrap_or_default().join(".");
                return Err(unlike(&format!(".{passed}"), other, "map[string]interface{}"));
            }
        }
    }
    Ok(Some(value))
}

fn unlike(path: &str, value: &Value, wanted: &str) -> String {
    let (shown, kind) = (golang::print(value), golang::type_name(value));
    format!("{path} accessor error: {shown} is of the type {kind}, expected {wanted}")
}

/// A whole number at a path.
fn number(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match nested(object, path)? {
        None => Ok(None),
        Some(value) => {
            let plain = format!(".{}", steps(path).join("."));
            value.as_i64().map(Some).ok_or_else(|| unlike(&plain, value, "int64"))
        }
    }
}

fn text<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, String> {
    match nested(object, path)? {
        None => Ok(None),
        Some(value) => {
            let plain = format!(".{}", steps(path).join("."));
            value.as_str().map(Some).ok_or_else(|| unlike(&plain, value, "string"))
        }
    }
}

fn internal(detail: String) -> FieldError {
    FieldError { fault: Fault::Internal, path: String::new(), value: None, detail }
}

/// The scale of an object. Fails when the object does not say how many replicas it wants.
pub(crate) fn read(paths: &Scale, object: &Value) -> Result<Value, FieldError> {
    if number(object, &paths.spec_replicas).map_err(internal)?.is_none() {
        let path = golang::quote(&paths.spec_replicas);
        return Err(internal(format!("the spec replicas field {path} does not exist")));
    }
    current(paths, object)
}

/// The same for a change, which may give the number where there is none.
pub(crate) fn current(paths: &Scale, object: &Value) -> Result<Value, FieldError> {
    let wanted = number(object, &paths.spec_replicas).map_err(internal)?;
    let there = number(object, &paths.status_replicas).map_err(internal)?;
    let selector = match &paths.selector {
        Some(path) => text(object, path).map_err(internal)?,
        None => None,
    };
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(key) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": there.unwrap_or(0)},
    });
    // None wanted is told by saying nothing.
    if let Some(wanted) = wanted.filter(|wanted| *wanted != 0) {
        scale["spec"]["replicas"] = wanted.into();
    }
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    Ok(scale)
}

/// Sets the number of replicas.
pub(crate) fn write(paths: &Scale, object: &mut Value, replicas: i64) -> Result<(), FieldError> {
    let steps = steps(&paths.spec_replicas);
    let mut place = object;
    for (at, step) in steps.iter().enumerate() {
        if place.is_null() {
            *place = json!({});
        }
        let Some(fields) = place.as_object_mut() else {
            let passed = steps.get(..at).unwrap_or_default().join(".");
            return Err(internal(format!(
                "value cannot be set because .{passed} is not a map[string]interface{{}}"
            )));
        };
        place = fields.entry(*step).or_insert(Value::Null);
    }
    *place = replicas.into();
    Ok(())
}

/// What is wrong with the numbers of an object.
pub(super) fn faults(paths: &Scale, object: &Value, with_spec: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if with_spec {
        errors.extend(number_fault(object, &paths.spec_replicas));
    }
    errors.extend(number_fault(object, &paths.status_replicas));
    if let Some(path) = &paths.selector
        && let Err(wrong) = text(object, path)
    {
        errors.push(FieldError::invalid(path.as_str(), "", wrong));
    }
    errors
}

fn number_fault(object: &Value, path: &str) -> Option<FieldError> {
    let most = i64::from(i32::MAX);
    match number(object, path) {
        Err(wrong) => Some(FieldError::invalid(path, 0, wrong)),
        Ok(Some(number)) if number < 0 => {
            Some(FieldError::invalid(path, number, "should be a non-negative integer"))
        }
        Ok(Some(number)) if number > most => {
            let words = format!("should be less than or equal to {most}");
            Some(FieldError::invalid(path, number, words))
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Scale {
        Scale {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            selector: Some(".status.sel".to_owned()),
        }
    }

    #[test]
    fn a_scale_is_read_and_written() {
        let mut object = json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "3", "labels": {"a": "b"}},
            "spec": {"replicas": 2}, "status": {"replicas": 1, "sel": "a=b"},
        });
        let scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "3"},
            "spec": {"replicas": 2}, "status": {"replicas": 1, "selector": "a=b"},
        });
        assert_eq!(read(&paths(), &object), Ok(scale));
        write(&paths(), &mut object, 5).unwrap();
        assert_eq!(object["spec"]["replicas"], 5);
        let mut bare = json!({"metadata": {"name": "a"}});
        let missing = read(&paths(), &bare).unwrap_err();
        assert_eq!(missing.detail, "the spec replicas field \".spec.replicas\" does not exist");
        assert_eq!(current(&paths(), &bare).unwrap()["spec"], json!({}));
        write(&paths(), &mut bare, 1).unwrap();
        assert_eq!(bare["spec"]["replicas"], 1);
        assert!(write(&paths(), &mut json!({"spec": 7}), 1).is_err());
    }

    #[test]
    fn wrong_numbers_are_told_in_the_words_of_the_real_server() {
        let told = |object: Value| {
            let errors = faults(&paths(), &object, true);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            told(json!({"spec": {"replicas": "x"}})),
            [
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64"
            ]
        );
        assert_eq!(
            told(json!({"spec": {"replicas": -1}, "status": {"replicas": 3_000_000_000_i64}})),
            [
                ".spec.replicas: Invalid value: -1: should be a non-negative integer",
                ".status.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647",
            ]
        );
        assert_eq!(told(json!({})), Vec::<String>::new());
    }
}
