//! The cells of services, endpoints and network policies.
//!
//! Must not know other kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Shown;
use super::read::{labels, list, number, or_none, selector, text, text_or};

/// How many addresses or ports are shown before `+ 4 more...`.
const SHOWN: usize = 3;

pub(super) fn service(shown: &Shown<'_>) -> Vec<Value> {
    let service = shown.object;
    let ports = list(service, "/spec/ports").iter().map(|port| {
        let (number_of, protocol) = (number(port, "/port"), text(port, "/protocol"));
        match number(port, "/nodePort") {
            node_port @ 1.. => format!("{number_of}:{node_port}/{protocol}"),
            _ => format!("{number_of}/{protocol}"),
        }
    });
    vec![
        json!(shown.name()),
        json!(text(service, "/spec/type")),
        json!(text_or(service, "/spec/clusterIPs/0", "<none>")),
        json!(external(service)),
        json!(or_none(ports.collect::<Vec<_>>().join(","))),
        json!(shown.age()),
        json!(labels(service, "/spec/selector")),
    ]
}

/// Where a service can be reached from outside.
fn external(service: &Value) -> String {
    let given: Vec<&str> =
        list(service, "/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => or_none(given.join(",")),
        "LoadBalancer" => {
            let balanced: BTreeSet<&str> = list(service, "/status/loadBalancer/ingress")
                .iter()
                .map(|ingress| text_or(ingress, "/ip", text(ingress, "/hostname")))
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = balanced.into_iter().chain(given).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The first few of many, and how many more there are.
fn with_more(all: &[String]) -> String {
    let shown = all.get(..SHOWN.min(all.len())).unwrap_or_default().join(",");
    match all.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

pub(super) fn endpoints(shown: &Shown<'_>) -> Vec<Value> {
    let subsets = list(shown.object, "/subsets");
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = list(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses.clone().map(ToOwned::to_owned));
        }
        for port in ports {
            let port = number(port, "/port");
            all.extend(addresses.clone().map(|ip| {
                if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
            }));
        }
    }
    let text = if subsets.is_empty() { "<none>".to_owned() } else { with_more(&all) };
    vec![json!(shown.name()), json!(text), json!(shown.age())]
}

pub(super) fn endpoint_slice(shown: &Shown<'_>) -> Vec<Value> {
    let slice = shown.object;
    let ports: Vec<String> = list(slice, "/ports")
        .iter()
        .map(|port| match (port.get("port").and_then(Value::as_i64), port.get("name")) {
            (Some(number), _) => number.to_string(),
            (None, Some(Value::String(name))) => name.clone(),
            _ => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(slice, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .map(|address| address.as_str().unwrap_or_default().to_owned())
        .collect();
    let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
    vec![
        json!(shown.name()),
        json!(text(slice, "/addressType")),
        json!(or_unset(with_more(&ports))),
        json!(or_unset(with_more(&addresses))),
        json!(shown.age()),
    ]
}

pub(super) fn policy(shown: &Shown<'_>) -> Vec<Value> {
    // A selector that is left out selects every pod.
    let pods = selector(shown.object, "/spec/podSelector");
    vec![json!(shown.name()), json!(pods), json!(shown.age())]
}
