//! Config maps and secrets: their keys and what may change.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

use super::{
    json::{clear, faults, fill, members, object_mut, text, unchanged},
    metadata, naming,
};
use crate::kind::{Part, Rules};

/// The rules of config maps.
pub(super) struct ConfigMaps;

/// The rules of secrets.
pub(super) struct Secrets;

/// What all values together may take.
const LARGEST: usize = 1 << 20;

impl Rules for ConfigMaps {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        for key in ["data", "binaryData"] {
            for (name, _) in members(object, key) {
                let path = format!("{key}[{name}]");
                errors.extend(faults(naming::config_key(name), name, &path));
                if key == "data" && object["binaryData"].get(name).is_some() {
                    let words = "duplicate of key present in binaryData";
                    errors.push(FieldError::invalid(path, name.as_str(), words));
                }
            }
        }
        if size(object, "data", false) + size(object, "binaryData", true) > LARGEST {
            errors.push(FieldError::too_long("[]", LARGEST));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = fixed(new, old, &["data", "binaryData"]);
        errors.extend(metadata::validate_new(&new["metadata"], true, self));
        errors.extend(self.validate_create(new));
        errors
    }
}

impl Rules for Secrets {
    fn default(&self, object: &mut Value) {
        fill(object, "type", "Opaque");
        let texts: Vec<(String, Value)> = members(object, "stringData")
            .map(|(key, text)| {
                (key.clone(), json!(STANDARD.encode(text.as_str().unwrap_or_default())))
            })
            .collect();
        clear(object, "stringData");
        if !texts.is_empty()
            && let Some(data) = object_mut(object, "data")
        {
            data.extend(texts);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        for (name, _) in members(object, "data") {
            errors.extend(faults(naming::config_key(name), name, &format!("data[{name}]")));
        }
        if size(object, "data", true) > LARGEST {
            errors.push(FieldError::too_long("data", LARGEST));
        }
        errors.extend(by_type(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = Vec::from_iter(unchanged(&new["type"], &old["type"], "type"));
        errors.extend(fixed(new, old, &["data"]));
        errors.extend(metadata::validate_new(&new["metadata"], true, self));
        errors.extend(self.validate_create(new));
        errors
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        field == "type"
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        vec![("type".into(), text(object, "type").into())]
    }
}

fn size(object: &Value, key: &str, packed: bool) -> usize {
    let length = |text: &str| {
        if packed { text.trim_end_matches('=').len() * 3 / 4 } else { text.len() }
    };
    members(object, key).map(|(_, value)| value.as_str().map_or(0, length)).sum()
}

/// What was declared fixed stays.
fn fixed(new: &Value, old: &Value, keys: &[&str]) -> Vec<FieldError> {
    if old["immutable"].as_bool() != Some(true) {
        return Vec::new();
    }
    let words = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if new["immutable"].as_bool() != Some(true) {
        errors.push(FieldError::forbidden("immutable", words));
    }
    let changed = keys.iter().filter(|key| new[**key] != old[**key]);
    errors.extend(changed.map(|key| FieldError::forbidden(*key, words)));
    errors
}

fn by_type(secret: &Value) -> Vec<FieldError> {
    let has = |key: &str| secret["data"].get(key).is_some();
    let needed = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let all = |keys: &[&str]| keys.iter().filter(|key| !has(key)).map(|key| needed(key)).collect();
    match text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if text(&secret["metadata"]["annotations"], key).is_empty() {
                return vec![FieldError::required(format!("metadata.annotations[{key}]"), "")];
            }
            Vec::new()
        }
        "kubernetes.io/dockercfg" => registry(secret, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => registry(secret, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            all(&["username", "password"])
        }
        "kubernetes.io/ssh-auth" if text(&secret["data"], "ssh-privatekey").is_empty() => {
            vec![needed("ssh-privatekey")]
        }
        "kubernetes.io/tls" => all(&["tls.crt", "tls.key"]),
        _ => Vec::new(),
    }
}

/// Credentials of a registry are JSON.
fn registry(secret: &Value, key: &str) -> Vec<FieldError> {
    let path = format!("data[{key}]");
    let Some(packed) = secret["data"].get(key).and_then(Value::as_str) else {
        return vec![FieldError::required(path, "")];
    };
    let bytes = STANDARD.decode(packed).unwrap_or_default();
    let why = match golang::json_fault(&bytes) {
        Some(fault) => fault.to_string(),
        None => match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Object(_) | Value::Null) => return Vec::new(),
            other => format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                other.as_ref().map_or("value", told)
            ),
        },
    };
    vec![FieldError::invalid(path, "<secret contents redacted>", why)]
}

fn told(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn texts_become_data() {
        let mut made = json!({"data": {"a": "aGk="}, "stringData": {"a": "no", "b": "hey"}});
        Secrets.default(&mut made);
        assert_eq!(made, json!({"type": "Opaque", "data": {"a": "bm8=", "b": "aGV5"}}));
    }

    #[test]
    fn some_types_need_some_keys() {
        let made = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}});
        assert_eq!(told(&Secrets.validate_create(&made)), ["data[tls.key]: Required value"]);
        let made = json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "aGk="}});
        assert_eq!(
            told(&Secrets.validate_create(&made)),
            [
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'h' looking for beginning of value"
            ]
        );
    }

    #[test]
    fn what_is_fixed_stays() {
        let old = json!({"metadata": {"name": "c", "namespace": "n"}, "immutable": true, "data": {"a": "1"}});
        let new = json!({"metadata": {"name": "c", "namespace": "n"}, "data": {"a": "2"}});
        assert_eq!(
            told(&ConfigMaps.validate_update(&new, &old, Part::Main)),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ]
        );
    }

    #[test]
    fn keys_stand_once() {
        let made = json!({"data": {"z": "1"}, "binaryData": {"z": ""}});
        assert_eq!(
            told(&ConfigMaps.validate_create(&made)),
            ["data[z]: Invalid value: \"z\": duplicate of key present in binaryData"]
        );
    }
}
