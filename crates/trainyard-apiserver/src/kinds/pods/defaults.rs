//! What is filled in where a pod says nothing, for pods and for templates of pods.
//!
//! Owns the defaults of the core's first version. Must not look at other objects.

use serde_json::{Value, json};
use trainyard_schema::quantity::{self, Quantity};

use crate::kinds::json::{clear, fill, items, items_mut, keep, number, text};

/// The lists of containers.
pub(crate) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The defaults of a pod.
pub(crate) fn pod(pod: &mut Value) {
    let spec = &mut pod["spec"];
    for key in ["containers", "initContainers"] {
        items_mut(spec, key).iter_mut().for_each(requests_from_limits);
    }
    fill(spec, "enableServiceLinks", true);
    if spec["hostNetwork"].as_bool() == Some(true) {
        for key in ["containers", "initContainers"] {
            items_mut(spec, key).iter_mut().for_each(host_ports);
        }
    }
    pod_spec(spec);
    addresses(&mut pod["status"]);
}

/// The defaults that a template of pods has as well.
pub(crate) fn pod_spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    // Two names of one thing.
    let account = [text(spec, "serviceAccountName"), text(spec, "serviceAccount")]
        .into_iter()
        .find(|name| !name.is_empty())
        .map(str::to_owned);
    match account {
        Some(account) => {
            spec["serviceAccount"] = json!(account);
            spec["serviceAccountName"] = json!(account);
        }
        None => clear(spec, "serviceAccount"),
    }
    for volume in items_mut(spec, "volumes") {
        super::volumes::default(volume);
    }
    for key in CONTAINERS {
        items_mut(spec, key).iter_mut().for_each(container);
    }
    round_up(&mut spec["overhead"]);
    if spec["overhead"].is_null() {
        clear(spec, "overhead");
    }
    requirements(spec);
}

fn container(container: &mut Value) {
    let policy = if tag(text(container, "image")) == "latest" { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    for port in items_mut(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        if let Some(source) = variable.get_mut("valueFrom") {
            field_reference(source);
            if let Some(file) = source.get_mut("fileKeyRef") {
                fill(file, "optional", false);
            }
        }
    }
    requirements(container);
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = container.get_mut(key) {
            probe(found);
        }
    }
    for key in ["postStart", "preStop"] {
        if let Some(hook) = container.get_mut("lifecycle").and_then(|hooks| hooks.get_mut(key)) {
            http_get(hook);
        }
    }
}

fn probe(probe: &mut Value) {
    for (key, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        fill(probe, key, value);
    }
    http_get(probe);
    if let Some(grpc) = probe.get_mut("grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
}

/// A reference to a field says of which version.
pub(super) fn field_reference(source: &mut Value) {
    if let Some(field) = source.get_mut("fieldRef") {
        fill(field, "apiVersion", "v1");
    }
}

/// What is limited is requested, unless less is.
fn requests_from_limits(container: &mut Value) {
    let Some(limits) = container["resources"].get("limits").and_then(Value::as_object).cloned()
    else {
        return;
    };
    let resources = &mut container["resources"];
    for (name, limit) in limits {
        fill(resources, "requests", json!({}));
        fill(&mut resources["requests"], &name, limit);
    }
}

/// On the host's network the ports of containers are the host's.
fn host_ports(container: &mut Value) {
    for port in items_mut(container, "ports") {
        let number = number(port, "containerPort");
        fill(port, "hostPort", number);
    }
}

/// Amounts are kept to a thousandth.
pub(crate) fn round_up(list: &mut Value) {
    for amount in list.as_object_mut().into_iter().flatten().map(|(_, amount)| amount) {
        let Some(read) = amount.as_str().and_then(|text| quantity::parse(text).ok()) else {
            continue;
        };
        let rounded = Quantity::from_millis(read.millis());
        if rounded > read {
            *amount = json!(rounded.to_string());
        }
    }
}

fn requirements(holder: &mut Value) {
    if let Some(resources) = holder.get_mut("resources") {
        for key in ["limits", "requests"] {
            if let Some(list) = resources.get_mut(key) {
                round_up(list);
            }
        }
    }
}

/// The first of the addresses also stands alone.
fn addresses(status: &mut Value) {
    if !status.is_object() {
        return;
    }
    let alone = text(status, "podIP").to_owned();
    let first = items(status, "podIPs").first().map(|one| text(one, "ip").to_owned());
    match first {
        Some(first) if alone.is_empty() => status["podIP"] = json!(first),
        Some(first) if first == alone => {}
        _ if !alone.is_empty() => status["podIPs"] = json!([{"ip": alone}]),
        _ => {}
    }
}

/// The tag of an image's name; `latest` when it has none, empty when it is named by digest or the
/// name cannot be read.
fn tag(image: &str) -> &str {
    let (name, digest) = image.split_once('@').map_or((image, ""), |(name, digest)| (name, digest));
    let last = name.rsplit('/').next().unwrap_or_default();
    let (path, tag) = last.split_once(':').unwrap_or((last, ""));
    let is_plain = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
    };
    if !is_plain(path) {
        return "";
    }
    if tag.is_empty() && digest.is_empty() { "latest" } else { tag }
}

/// What admission decided at creation stays when an update leaves it out.
pub(super) fn keep_admitted(new: &mut Value, old: &Value) {
    for key in ["priority", "preemptionPolicy"] {
        if new.get(key).is_none() {
            keep(new, old, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_pod_gets_what_the_real_server_gives_it() {
        let mut made = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{
                "name": "c", "image": "busybox", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            }], "volumes": [{"name": "v"}]},
            "status": {},
        });
        pod(&mut made);
        let expected = json!({
            "containers": [{
                "name": "c", "image": "busybox", "imagePullPolicy": "Always",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"},
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {},
            "terminationGracePeriodSeconds": 30, "volumes": [{"name": "v", "emptyDir": {}}],
        });
        assert_eq!(made["spec"], expected);
    }

    #[test]
    fn tags_decide_when_images_are_pulled() {
        for (image, expected) in [
            ("busybox", "latest"),
            ("busybox:latest", "latest"),
            ("host:5000/a/b", "latest"),
            ("host:5000/a/b:1.2", "1.2"),
            ("a@sha256:0", ""),
            ("A", ""),
            ("", ""),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }

    #[test]
    fn addresses_stand_alone_and_in_the_list() {
        let mut status = json!({"podIPs": [{"ip": "10.0.0.1"}]});
        addresses(&mut status);
        assert_eq!(status["podIP"], "10.0.0.1");
        let mut status = json!({"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.1"}]});
        addresses(&mut status);
        assert_eq!(status["podIPs"], json!([{"ip": "10.0.0.2"}]));
    }

    #[test]
    fn on_the_host_network_ports_are_the_hosts() {
        let mut made = json!({"spec": {"hostNetwork": true, "containers": [
            {"name": "c", "image": "a:1", "ports": [{"containerPort": 80}]},
        ]}});
        pod(&mut made);
        assert_eq!(made["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
    }

    #[test]
    fn finer_amounts_are_rounded_up() {
        let mut list = json!({"cpu": "100u", "memory": "1Gi"});
        round_up(&mut list);
        assert_eq!(list, json!({"cpu": "1m", "memory": "1Gi"}));
    }
}
