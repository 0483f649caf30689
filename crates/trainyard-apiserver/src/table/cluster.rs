//! The cells of nodes, namespaces and the small kinds around them.
//!
//! Must not know other kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Shown;
use super::read::{amount, condition, count, list, map, number, text, text_or, yes};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) fn node(shown: &Shown<'_>) -> Vec<Value> {
    let node = shown.object;
    let mut status = match condition(node, "Ready") {
        None => "Unknown".to_owned(),
        Some(ready) if text(ready, "/status") == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if yes(node, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let mut all = list(node, "/status/addresses").iter();
        let found = all.find(|address| text(address, "/type") == kind);
        found.map_or("<none>", |address| text(address, "/address"))
    };
    let info = |field: &str| text_or(node, &format!("/status/nodeInfo/{field}"), "<unknown>");
    let mut kernel = info("kernelVersion").to_owned();
    let architecture = text(node, "/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        json!(shown.name()),
        json!(status),
        json!(roles(node)),
        json!(shown.age()),
        json!(text(node, "/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(info("osImage")),
        json!(kernel),
        json!(info("containerRuntimeVersion")),
    ]
}

fn roles(node: &Value) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in map(node, "/metadata/labels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        match key.strip_prefix(ROLE_PREFIX) {
            Some("") => {}
            Some(role) => {
                roles.insert(role);
            }
            None if key == ROLE_LABEL && !value.is_empty() => {
                roles.insert(value);
            }
            None => {}
        }
    }
    super::read::or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

pub(super) fn namespace(shown: &Shown<'_>) -> Vec<Value> {
    let phase = text(shown.object, "/status/phase");
    vec![json!(shown.name()), json!(phase), json!(shown.age())]
}

pub(super) fn config_map(shown: &Shown<'_>) -> Vec<Value> {
    let entries = count(shown.object, "/data") + count(shown.object, "/binaryData");
    vec![json!(shown.name()), json!(entries), json!(shown.age())]
}

pub(super) fn secret(shown: &Shown<'_>) -> Vec<Value> {
    let kind = text(shown.object, "/type");
    vec![json!(shown.name()), json!(kind), json!(count(shown.object, "/data")), json!(shown.age())]
}

pub(super) fn service_account(shown: &Shown<'_>) -> Vec<Value> {
    vec![json!(shown.name()), json!(shown.age())]
}

pub(super) fn resource_quota(shown: &Shown<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in map(shown.object, "/status/hard").into_iter().flatten() {
        let used = map(shown.object, "/status/used").and_then(|used| used.get(resource));
        let shown = format!("{resource}: {}/{}", amount(used), amount(Some(hard)));
        if resource.starts_with("limits.") {
            limits.push(shown);
        } else {
            requests.push(shown);
        }
    }
    vec![
        json!(shown.name()),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        json!(shown.age()),
    ]
}

pub(super) fn priority_class(shown: &Shown<'_>) -> Vec<Value> {
    let class = shown.object;
    vec![
        json!(shown.name()),
        json!(number(class, "/value")),
        json!(yes(class, "/globalDefault")),
        json!(shown.age()),
        json!(text(class, "/preemptionPolicy")),
    ]
}

pub(super) fn runtime_class(shown: &Shown<'_>) -> Vec<Value> {
    vec![json!(shown.name()), json!(text(shown.object, "/handler")), json!(shown.age())]
}

pub(super) fn lease(shown: &Shown<'_>) -> Vec<Value> {
    let holder = text(shown.object, "/spec/holderIdentity");
    vec![json!(shown.name()), json!(holder), json!(shown.age())]
}

pub(super) fn binding(shown: &Shown<'_>) -> Vec<Value> {
    let binding = shown.object;
    let role = format!("{}/{}", text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
    let subjects = |kind: &str| {
        let named = list(binding, "/subjects")
            .iter()
            .filter(|subject| text(subject, "/kind") == kind)
            .map(|subject| match (kind, text(subject, "/name")) {
                ("ServiceAccount", name) => format!("{}/{name}", text(subject, "/namespace")),
                (_, name) => name.to_owned(),
            });
        named.collect::<Vec<_>>().join(", ")
    };
    vec![
        json!(shown.name()),
        json!(role),
        json!(shown.age()),
        json!(subjects("User")),
        json!(subjects("Group")),
        json!(subjects("ServiceAccount")),
    ]
}
