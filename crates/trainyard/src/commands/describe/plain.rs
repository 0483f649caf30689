//! Any other object: what every object has, and the rest as it is written.

use serde_json::{Value, json};

use super::sheet::Sheet;
use crate::present::text;
use crate::yaml;

pub(super) fn describe(sheet: &mut Sheet, object: &Value) {
    sheet.metadata(object);
    sheet.field("API Version", text(object, &["apiVersion"]));
    sheet.field("Kind", text(object, &["kind"]));
    let created = sheet.when(&object["metadata"]["creationTimestamp"]);
    sheet.field("Created", &created);
    let deleting = sheet.when(&object["metadata"]["deletionTimestamp"]);
    sheet.maybe(0, "Deleting", &deleting);
    let finalizers: Vec<&str> = crate::present::items(object, &["metadata", "finalizers"])
        .filter_map(Value::as_str)
        .collect();
    sheet.maybe(0, "Finalizers", &finalizers.join("\n"));
    sheet.owners(object);
    let secret = text(object, &["kind"]) == "Secret";
    for (name, value) in object.as_object().into_iter().flatten() {
        if ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let value = shown(name, value, secret);
        if value.is_null() {
            continue;
        }
        if value.is_object() || value.is_array() {
            sheet.heading(&capital(name));
            sheet.block(2, &yaml::to_string([&value]));
        } else {
            sheet.field(&capital(name), &crate::present::template::shown(&value));
        }
    }
    sheet.conditions(object);
}

/// What is shown of a member: secrets only how long they are, conditions in their own table.
fn shown(name: &str, value: &Value, secret: bool) -> Value {
    if secret && (name == "data" || name == "stringData") {
        let lengths = value.as_object().into_iter().flatten().map(|(key, value)| {
            let encoded = value.as_str().unwrap_or_default();
            let padding = encoded.bytes().rev().take_while(|byte| *byte == b'=').count();
            let bytes = (encoded.len() / 4 * 3).saturating_sub(padding);
            (key.clone(), json!(format!("{bytes} bytes")))
        });
        return Value::Object(lengths.collect());
    }
    let mut value = value.clone();
    if name == "status"
        && let Some(status) = value.as_object_mut()
    {
        status.remove("conditions");
    }
    let empty = value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty);
    if empty { Value::Null } else { value }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(object: &Value) -> String {
        let mut sheet = Sheet::new("2026-01-01T00:00:05Z".parse().unwrap());
        describe(&mut sheet, object);
        sheet.text()
    }

    #[test]
    fn members_are_shown_as_they_are_written() {
        let text = described(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "spec": {"ports": [{"port": 80}]}, "status": {"conditions": [], "loadBalancer": {}},
            "immutable": true,
        }));
        assert!(text.contains("Spec:\n  ports:\n  - port: 80\n"), "{text}");
        assert!(text.contains("Immutable:    true\n"), "{text}");
        assert!(text.contains("Status:\n  loadBalancer: {}\n"), "{text}");
    }

    #[test]
    fn secrets_stay_secret() {
        let text = described(&json!({
            "kind": "Secret", "metadata": {"name": "a"}, "data": {"token": "c2VjcmV0MQ=="},
        }));
        assert!(text.contains("Data:\n  token: 7 bytes\n"), "{text}");
        assert!(!text.contains("c2Vj"), "{text}");
    }
}
