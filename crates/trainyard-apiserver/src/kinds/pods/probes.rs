//! Probes and hooks of containers: checks.

use serde_json::Value;
use trainyard_schema::FieldError;

use crate::kinds::{
    json::{items, number, text},
    naming,
};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// Checks all probes and hooks of a container.
pub(super) fn validate(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["postStart", "preStop"] {
        if let Some(hook) = container["lifecycle"].get(key) {
            errors.extend(handler(hook, &format!("{path}.lifecycle.{key}")));
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(found) = container.get(key) else { continue };
        let path = format!("{path}.{key}");
        errors.extend(probe(found, &path));
        if key == "readinessProbe" {
            if let Some(grace) = found.get("terminationGracePeriodSeconds") {
                let words = "must not be set for readinessProbes";
                let path = format!("{path}.terminationGracePeriodSeconds");
                errors.push(FieldError::invalid(path, grace.clone(), words));
            }
        } else if number(found, "successThreshold") != 1 {
            let count = number(found, "successThreshold");
            let path = format!("{path}.successThreshold");
            errors.push(FieldError::invalid(path, count, "must be 1"));
        }
    }
    errors
}

fn probe(probe: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = handler(probe, path);
    for key in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        let seconds = number(probe, key);
        if seconds < 0 {
            let words = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("{path}.{key}"), seconds, words));
        }
    }
    if let Some(grace) = probe["terminationGracePeriodSeconds"].as_i64().filter(|grace| *grace <= 0)
    {
        let path = format!("{path}.terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(path, grace, "must be greater than 0"));
    }
    errors
}

fn handler(holder: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut found = false;
    for key in HANDLERS {
        let Some(action) = holder.get(key).filter(|action| !action.is_null()) else { continue };
        let path = format!("{path}.{key}");
        if found {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match key {
            "exec" if items(action, "command").is_empty() => {
                errors.push(FieldError::required(format!("{path}.command"), ""));
            }
            "httpGet" => errors.extend(http_get(action, &path)),
            "tcpSocket" | "grpc" => errors.extend(port(&action["port"], &format!("{path}.port"))),
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    errors
}

fn http_get(action: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = port(&action["port"], &format!("{path}.port"));
    let scheme = text(action, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.push(FieldError::not_supported(
            format!("{path}.scheme"),
            scheme,
            &["HTTP", "HTTPS"],
        ));
    }
    for header in items(action, "httpHeaders") {
        let name = text(header, "name");
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let words = naming::pattern_words(
                "a valid HTTP header must consist of alphanumeric characters or '-'",
                "[-A-Za-z0-9]+",
                &["X-Header-Name"],
            );
            errors.push(FieldError::invalid(format!("{path}.httpHeaders"), name, words));
        }
    }
    errors
}

/// A port by number or name.
pub(crate) fn port(port: &Value, path: &str) -> Vec<FieldError> {
    let faults = match port {
        Value::String(name) => naming::port_name(name),
        other => naming::port(other.as_i64().unwrap_or_default()),
    };
    faults.into_iter().map(|fault| FieldError::invalid(path, port.clone(), fault)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_probe_has_one_handler() {
        let container = json!({
            "livenessProbe": {"successThreshold": 2},
            "readinessProbe": {"exec": {}, "httpGet": {"port": 0, "scheme": "HTTP"}},
            "startupProbe": {"successThreshold": 1, "httpGet": {"port": "WEB", "scheme": "FTP"}},
        });
        let told: Vec<String> = validate(&container, "c").iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "c.livenessProbe: Required value: must specify a handler type",
                "c.livenessProbe.successThreshold: Invalid value: 2: must be 1",
                "c.readinessProbe.exec.command: Required value",
                "c.readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
                "c.startupProbe.httpGet.port: Invalid value: \"WEB\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "c.startupProbe.httpGet.port: Invalid value: \"WEB\": must contain at least one letter (a-z)",
                "c.startupProbe.httpGet.scheme: Unsupported value: \"FTP\": supported values: \"HTTP\", \"HTTPS\"",
            ]
        );
    }
}
