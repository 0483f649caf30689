//! The environment of a container: checks.

use serde_json::Value;
use trainyard_schema::FieldError;

use crate::kinds::{
    json::{items, text},
    naming,
};

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Checks `env` and `envFrom`.
pub(super) fn validate(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, variable) in items(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{at}]");
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else {
            errors.extend(faults(naming::variable(name), name, &format!("{path}.name")));
        }
        if let Some(source) = variable.get("valueFrom") {
            errors.extend(value_from(variable, source, &format!("{path}.valueFrom")));
        }
    }
    let all = format!("{path}.envFrom");
    for (at, source) in items(container, "envFrom").iter().enumerate() {
        let path = format!("{all}[{at}]");
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.extend(faults(naming::variable(prefix), prefix, &format!("{path}.prefix")));
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            let Some(reference) = source.get(key) else { continue };
            count += 1;
            errors.extend(reference_name(reference, &format!("{path}.{key}")));
        }
        if count == 0 {
            let words = "must specify one of: `configMapRef` or `secretRef`";
            errors.push(FieldError::invalid(&all, "", words));
        } else if count > 1 {
            errors.push(FieldError::invalid(&all, "", MORE_THAN_ONE));
        }
    }
    errors
}

const MORE_THAN_ONE: &str = "may not have more than one field specified at a time";

fn faults(faults: Vec<String>, value: &str, path: &str) -> Vec<FieldError> {
    faults.into_iter().map(|fault| FieldError::invalid(path, value, fault)).collect()
}

/// `envFrom` wants a name; keys of single values may leave it out.
fn reference_name(reference: &Value, path: &str) -> Vec<FieldError> {
    let name = text(reference, "name");
    if name.is_empty() {
        return vec![FieldError::required(format!("{path}.name"), "")];
    }
    faults(naming::subdomain(name), name, &format!("{path}.name"))
}

/// How one source of a value is checked.
type Check = fn(&Value, &str) -> Vec<FieldError>;

fn value_from(variable: &Value, source: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut count = 0;
    let sources: [(&str, Check); 5] = [
        ("fieldRef", field),
        ("resourceFieldRef", amount),
        ("configMapKeyRef", key),
        ("secretKeyRef", key),
        ("fileKeyRef", |_, _| Vec::new()),
    ];
    for (name, check) in sources {
        if let Some(found) = source.get(name) {
            count += 1;
            errors.extend(check(found, &format!("{path}.{name}")));
        }
    }
    if count == 0 {
        let words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(path, "", words));
    } else if !text(variable, "value").is_empty() {
        let words = "may not be specified when `value` is not empty";
        errors.push(FieldError::invalid(path, "", words));
    } else if count > 1 {
        errors.push(FieldError::invalid(path, "", MORE_THAN_ONE));
    }
    errors
}

fn field(reference: &Value, path: &str) -> Vec<FieldError> {
    let field = text(reference, "fieldPath");
    let field_path = format!("{path}.fieldPath");
    if field.is_empty() {
        return vec![FieldError::required(field_path, "")];
    }
    let subscript = field.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscript {
        Some(("metadata.annotations", name)) => {
            faults(naming::qualified(&name.to_lowercase()), name, path)
        }
        Some(("metadata.labels", name)) => faults(naming::qualified(name), name, path),
        _ if FIELDS.contains(&field) => Vec::new(),
        _ if matches!(field, "metadata.labels" | "metadata.annotations") => {
            vec![FieldError::not_supported(field_path, field, &FIELDS)]
        }
        _ => {
            let words = format!("error converting fieldPath: field label not supported: {field}");
            vec![FieldError::invalid(field_path, field, words)]
        }
    }
}

fn amount(reference: &Value, path: &str) -> Vec<FieldError> {
    let resource = text(reference, "resource");
    let path = format!("{path}.resource");
    if resource.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let huge = ["limits.hugepages-", "requests.hugepages-"];
    if AMOUNTS.contains(&resource) || huge.iter().any(|prefix| resource.starts_with(prefix)) {
        return Vec::new();
    }
    vec![FieldError::not_supported(path, resource, &AMOUNTS)]
}

fn key(reference: &Value, path: &str) -> Vec<FieldError> {
    let name = text(reference, "name");
    let mut errors = faults(naming::subdomain(name), name, &format!("{path}.name"));
    let key = text(reference, "key");
    let path = format!("{path}.key");
    if key.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        errors.extend(faults(naming::config_key(key), key, &path));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_have_a_name_and_one_source() {
        let container = json!({"env": [
            {"name": ""},
            {"name": "a=b"},
            {"name": "C", "value": "x", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.hosts"}}},
            {"name": "D", "valueFrom": {}},
            {"name": "E", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['a']"}}},
        ], "envFrom": [{}]});
        let told: Vec<String> = validate(&container, "c").iter().map(ToString::to_string).collect();
        assert_eq!(told[0], "c.env[0].name: Required value");
        assert!(told[1].starts_with("c.env[1].name: Invalid value: \"a=b\": a valid environment"));
        assert_eq!(
            told[2],
            "c.env[2].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.hosts\": error converting fieldPath: field label not supported: spec.hosts"
        );
        assert_eq!(
            told[3],
            "c.env[2].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"
        );
        assert!(
            told[4].starts_with("c.env[3].valueFrom: Invalid value: \"\": must specify one of")
        );
        assert_eq!(
            told[5],
            "c.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"
        );
        assert_eq!(told.len(), 6);
    }
}
