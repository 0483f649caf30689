//! Addresses and ports for services.
//!
//! Owns the ranges. What is taken is read from the services that are there.

use std::{collections::HashSet, net::Ipv4Addr};

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{has_address, has_node_ports, is_headless};
use crate::{
    failure::{About, Failure},
    kind::World,
    kinds::json::{fill, items, items_mut, number, text},
    names,
};

/// `10.96.0.0/16`.
const NETWORK: [u8; 2] = [10, 96];
/// Addresses below this one are for those who ask for one by number.
const FIRST_DYNAMIC: u16 = 256;
const LAST: u16 = u16::MAX - 1;
const FIRST_PORT: i64 = 30_000;
const LAST_PORT: i64 = 32_767;

/// Gives a service the address and the ports that it lacks, and refuses those that others have.
pub(super) fn allocate(service: &mut Value, world: &dyn World) -> Result<(), Failure> {
    // Most services are headless and take nothing: they need not know the others.
    let others: Vec<Value> = if takes_something(&service["spec"]) {
        let all = world.list("services", None).into_iter();
        all.filter(|other| !is_same(other, service)).collect()
    } else {
        Vec::new()
    };
    let name = text(&service["metadata"], "name").to_owned();
    let refuse = |error: FieldError| Failure::invalid(About::new("", "Service", &name), &[error]);
    let spec = &mut service["spec"];
    if has_address(spec) {
        families(spec);
        if !is_headless(spec) {
            address(spec, &others).map_err(&refuse)?;
        }
    }
    ports(spec, &others).map_err(refuse)
}

/// Whether it needs an address or a port that no other service has.
fn takes_something(spec: &Value) -> bool {
    let asks = |port: &Value| number(port, "nodePort") != 0;
    has_address(spec) && !is_headless(spec)
        || has_node_ports(spec)
        || items(spec, "ports").iter().any(asks)
}

fn is_same(one: &Value, other: &Value) -> bool {
    ["namespace", "name"]
        .into_iter()
        .all(|key| text(&one["metadata"], key) == text(&other["metadata"], key))
}

fn families(spec: &mut Value) {
    let anywhere =
        is_headless(spec) && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    if anywhere && spec.get("ipFamilyPolicy").is_none() {
        fill(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        fill(spec, "ipFamilyPolicy", "RequireDualStack");
    }
    fill(spec, "ipFamilies", json!(["IPv4"]));
    fill(spec, "ipFamilyPolicy", "SingleStack");
}

fn address(spec: &mut Value, others: &[Value]) -> Result<(), FieldError> {
    let taken: HashSet<&str> =
        others.iter().map(|other| text(&other["spec"], "clusterIP")).collect();
    let asked = text(spec, "clusterIP").to_owned();
    if asked.is_empty() {
        let found = free_address(&taken).ok_or_else(|| {
            let words = "failed to allocate a serviceIP: range is full";
            FieldError {
                fault: trainyard_schema::Fault::Internal,
                path: "spec.clusterIPs".to_owned(),
                value: None,
                detail: words.to_owned(),
            }
        })?;
        spec["clusterIP"] = json!(found);
        spec["clusterIPs"] = json!([found]);
        return Ok(());
    }
    let refuse = |why: &str| {
        let words = format!("failed to allocate IP {asked}: {why}");
        Err(FieldError::invalid("spec.clusterIPs", json!([asked]), words))
    };
    if !asked.parse::<Ipv4Addr>().is_ok_and(|address| address.octets().starts_with(&NETWORK)) {
        return refuse("the provided network does not match the current range");
    }
    if taken.contains(asked.as_str()) {
        return refuse("provided IP is already allocated");
    }
    Ok(())
}

fn told(low: u16) -> String {
    let [high, low] = low.to_be_bytes();
    Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low).to_string()
}

fn free_address(taken: &HashSet<&str>) -> Option<String> {
    let span = LAST - FIRST_DYNAMIC;
    let start = random() % span;
    (0..span)
        .map(|step| told(FIRST_DYNAMIC + (start + step) % span))
        .chain((1..FIRST_DYNAMIC).map(told))
        .find(|address| !taken.contains(address.as_str()))
}

/// Some number; the same twice is allowed.
fn random() -> u16 {
    u16::from_str_radix(names::uid().get(..4).unwrap_or_default(), 16).unwrap_or_default() / 2
}

fn ports(spec: &mut Value, others: &[Value]) -> Result<(), FieldError> {
    let port_of = |port: &Value| (text(port, "protocol").to_owned(), number(port, "nodePort"));
    let mut taken: HashSet<(String, i64)> =
        others.iter().flat_map(|other| items(&other["spec"], "ports")).map(port_of).collect();
    for (at, port) in items(spec, "ports").iter().enumerate() {
        let (protocol, asked) = port_of(port);
        if asked == 0 {
            continue;
        }
        let path = format!("spec.ports[{at}].nodePort");
        if !(FIRST_PORT..=LAST_PORT).contains(&asked) {
            let words = format!(
                "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
            );
            return Err(FieldError::invalid(path, asked, words));
        }
        if !taken.insert((protocol, asked)) {
            return Err(FieldError::invalid(path, asked, "provided port is already allocated"));
        }
    }
    if !has_node_ports(spec) {
        return Ok(());
    }
    for port in items_mut(spec, "ports").iter_mut().filter(|port| number(port, "nodePort") == 0) {
        let span = LAST_PORT - FIRST_PORT;
        let start = i64::from(random());
        let protocol = text(port, "protocol").to_owned();
        let found = (0..span)
            .map(|step| FIRST_PORT + (start + step) % span)
            .find(|number| !taken.contains(&(protocol.clone(), *number)));
        if let Some(found) = found {
            taken.insert((protocol, found));
            port["nodePort"] = json!(found);
        }
    }
    Ok(())
}
