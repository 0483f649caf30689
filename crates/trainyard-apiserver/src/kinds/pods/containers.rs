//! The containers of a pod: checks.
//!
//! Owns the rules of what stands inside a container. Must not look at other objects.

use std::collections::HashSet;

use serde_json::Value;
use trainyard_schema::FieldError;

use super::{env, probes, resources, volumes::descending};
use crate::kinds::{
    json::{items, number, text},
    naming,
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Checks all containers of a pod's specification. `volumes` are the names that mounts may use.
pub(super) fn validate(spec: &Value, volumes: &HashSet<String>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: HashSet<&str> = HashSet::new();
    let regular = items(spec, "containers");
    let all_path = format!("{path}.containers");
    if regular.is_empty() {
        errors.push(FieldError::required(&all_path, ""));
    }
    for (at, container) in regular.iter().enumerate() {
        let path = format!("{all_path}[{at}]");
        errors.extend(common(container, volumes, &path));
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        errors.extend(probes::validate(container, &path));
        errors.extend(restart_policy(container, &path));
    }
    errors.extend(host_ports(regular, &all_path));
    errors.extend(init(spec, names, volumes, path));
    errors
}

fn init<'a>(
    spec: &'a Value,
    mut names: HashSet<&'a str>,
    volumes: &HashSet<String>,
    path: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let all_path = format!("{path}.initContainers");
    for (at, container) in items(spec, "initContainers").iter().enumerate() {
        let path = format!("{all_path}[{at}]");
        errors.extend(common(container, volumes, &path));
        errors.extend(restart_policy(container, &path));
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        errors.extend(host_ports(std::slice::from_ref(container), &all_path));
        if text(container, "restartPolicy") == "Always" {
            errors.extend(probes::validate(container, &path));
            continue;
        }
        for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.get(key).is_some() {
                let words = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(format!("{path}.{key}"), words));
            }
        }
    }
    errors
}

fn restart_policy(container: &Value, path: &str) -> Option<FieldError> {
    let policy = container["restartPolicy"].as_str()?;
    let allowed = ["Always", "Never", "OnFailure"];
    (!allowed.contains(&policy))
        .then(|| FieldError::not_supported(format!("{path}.restartPolicy"), policy, &allowed))
}

fn common(container: &Value, volumes: &HashSet<String>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(container, "name");
    let name_path = format!("{path}.name");
    if name.is_empty() {
        errors.push(FieldError::required(name_path, ""));
    } else {
        let faults = naming::label(name).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&name_path, name, fault)));
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    errors.extend(one_of(container, "terminationMessagePolicy", &policies, path));
    errors.extend(ports(container, &format!("{path}.ports")));
    errors.extend(env::validate(container, path));
    errors.extend(mounts(container, volumes, &format!("{path}.volumeMounts")));
    let policies = ["Always", "IfNotPresent", "Never"];
    errors.extend(one_of(container, "imagePullPolicy", &policies, path));
    errors.extend(resources::validate(&container["resources"], &format!("{path}.resources")));
    errors.extend(security(&container["securityContext"], &format!("{path}.securityContext")));
    errors
}

/// A word that is needed and one of a few.
pub(super) fn one_of(
    object: &Value,
    key: &str,
    allowed: &[&str],
    path: &str,
) -> Option<FieldError> {
    let word = text(object, key);
    if word.is_empty() {
        return Some(FieldError::required(format!("{path}.{key}"), ""));
    }
    (!allowed.contains(&word))
        .then(|| FieldError::not_supported(format!("{path}.{key}"), word, allowed))
}

fn ports(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    for (at, port) in items(container, "ports").iter().enumerate() {
        let path = format!("{path}[{at}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let faults = naming::port_name(name);
            let wrong = !faults.is_empty();
            errors.extend(
                faults
                    .into_iter()
                    .map(|fault| FieldError::invalid(format!("{path}.name"), name, fault)),
            );
            if !wrong && !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        let inner = number(port, "containerPort");
        if inner == 0 {
            errors.push(FieldError::required(format!("{path}.containerPort"), ""));
        } else {
            errors.extend(port_number(inner, &format!("{path}.containerPort")));
        }
        let outer = number(port, "hostPort");
        if outer != 0 {
            errors.extend(port_number(outer, &format!("{path}.hostPort")));
        }
        errors.extend(one_of(port, "protocol", &PROTOCOLS, &path));
    }
    errors
}

fn port_number(number: i64, path: &str) -> impl Iterator<Item = FieldError> {
    naming::port(number).into_iter().map(move |fault| FieldError::invalid(path, number, fault))
}

/// One port of the host serves one container.
fn host_ports(containers: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut taken = HashSet::new();
    for (at, container) in containers.iter().enumerate() {
        for (port_at, port) in items(container, "ports").iter().enumerate() {
            let outer = number(port, "hostPort");
            let told = format!("{}/{}/{outer}", text(port, "protocol"), text(port, "hostIP"));
            if outer != 0 && !taken.insert(told.clone()) {
                let path = format!("{path}[{at}].ports[{port_at}].hostPort");
                errors.push(FieldError::duplicate(path, told));
            }
        }
    }
    errors
}

fn mounts(container: &Value, volumes: &HashSet<String>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut places = HashSet::new();
    for (at, mount) in items(container, "volumeMounts").iter().enumerate() {
        let own = format!("{path}[{at}]");
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{own}.name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(format!("{own}.name"), name));
        }
        if place.is_empty() {
            errors.push(FieldError::required(format!("{own}.mountPath"), ""));
        }
        if !places.insert(place) {
            errors.push(FieldError::invalid(format!("{own}.mountPath"), place, "must be unique"));
        }
        let (sub_path, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !sub_path.is_empty() {
            errors.extend(descending(sub_path, &format!("{path}.subPath")));
        }
        if !expression.is_empty() {
            if !sub_path.is_empty() {
                let words = "subPathExpr and subPath are mutually exclusive";
                errors.push(FieldError::invalid(format!("{own}.subPathExpr"), expression, words));
            }
            errors.extend(descending(expression, &format!("{path}.subPathExpr")));
        }
    }
    errors
}

fn security(context: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["runAsUser", "runAsGroup"] {
        errors.extend(identity(context, key, path));
    }
    let is = |key: &str, wanted: bool| context[key].as_bool() == Some(wanted);
    if is("allowPrivilegeEscalation", false) && is("privileged", true) {
        let words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(FieldError::invalid(path, context.clone(), words));
    }
    errors
}

/// A user or group by number.
pub(super) fn identity(context: &Value, key: &str, path: &str) -> Vec<FieldError> {
    let Some(number) = context[key].as_i64() else { return Vec::new() };
    naming::in_range(number, 0, i64::from(i32::MAX))
        .into_iter()
        .map(|fault| FieldError::invalid(format!("{path}.{key}"), number, fault))
        .collect()
}

/// What only pods are checked for, not their templates.
pub(super) fn validate_images(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["containers", "initContainers"] {
        for (at, container) in items(spec, key).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let words = "must not have leading or trailing whitespace";
                let path = format!("{path}.{key}[{at}].image");
                errors.push(FieldError::invalid(path, image, words));
            }
        }
    }
    errors
}
