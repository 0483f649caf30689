//! Endpoints and slices of them: which addresses stand behind a service.

use std::net::IpAddr;

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{
    count_generation,
    json::{among, faults, fill, items, items_mut, number, text, unchanged},
    naming,
    pods::spec::address,
};
use crate::kind::{Part, Rules};

/// The rules of endpoints.
pub(super) struct Endpoints;

/// The rules of slices.
pub(super) struct Slices;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const MOST: usize = 1000;
const MOST_ADDRESSES: usize = 100;

impl Rules for Endpoints {
    fn default(&self, object: &mut Value) {
        for subset in items_mut(object, "subsets") {
            for port in items_mut(subset, "ports") {
                fill(port, "protocol", "TCP");
            }
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (at, subset) in items(object, "subsets").iter().enumerate() {
            errors.extend(validate_subset(subset, &format!("subsets[{at}]")));
        }
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value, _part: Part) -> Vec<FieldError> {
        self.validate_create(new)
    }
}

fn validate_subset(subset: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let lists = ["addresses", "notReadyAddresses"];
    if lists.iter().all(|key| items(subset, key).is_empty()) {
        let words = "must specify `addresses` or `notReadyAddresses`";
        errors.push(FieldError::required(path, words));
    }
    for key in lists {
        for (at, entry) in items(subset, key).iter().enumerate() {
            let path = format!("{path}.{key}[{at}]");
            errors.extend(address(&entry["ip"], &format!("{path}.ip")));
            errors.extend(special(text(entry, "ip"), &format!("{path}.ip")));
            let name = text(entry, "hostname");
            if !name.is_empty() {
                errors.extend(faults(naming::label(name), name, &format!("{path}.hostname")));
            }
        }
    }
    let ports = items(subset, "ports");
    for (at, port) in ports.iter().enumerate() {
        let path = format!("{path}.ports[{at}]");
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if !name.is_empty() {
            errors.extend(faults(naming::label(name), name, &format!("{path}.name")));
        }
        let number = number(port, "port");
        let wrong = naming::port(number).into_iter();
        errors
            .extend(wrong.map(|fault| FieldError::invalid(format!("{path}.port"), number, fault)));
        errors.extend(among(&port["protocol"], &PROTOCOLS, &format!("{path}.protocol")));
    }
    errors
}

/// Addresses that stand for something else than a pod elsewhere.
fn special(value: &str, path: &str) -> Vec<FieldError> {
    let Ok(address) = value.parse::<IpAddr>() else {
        return vec![FieldError::invalid(path, value, "must be a valid IP address")];
    };
    let (link_local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    let found = [
        (address.is_unspecified(), format!("may not be unspecified ({value})")),
        (
            address.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        ),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (
            multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];
    let found = found.into_iter().filter(|(is, _)| *is);
    found.map(|(_, words)| FieldError::invalid(path, value, words)).collect()
}

impl Rules for Slices {
    fn default(&self, object: &mut Value) {
        for port in items_mut(object, "ports") {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        object["metadata"]["generation"] = json!(1);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let kind = text(object, "addressType");
        if kind.is_empty() {
            errors.push(FieldError::required("addressType", ""));
        } else {
            errors.extend(among(&object["addressType"], &TYPES, "addressType"));
        }
        errors.extend(slice_ports(object));
        let endpoints = items(object, "endpoints");
        if endpoints.len() > MOST {
            errors.push(FieldError::too_many("endpoints", endpoints.len(), MOST));
            return errors;
        }
        for (at, endpoint) in endpoints.iter().enumerate() {
            errors.extend(validate_endpoint(endpoint, kind, &format!("endpoints[{at}]")));
        }
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _part: Part) {
        let keys = ["endpoints", "ports", "addressType"];
        let labels = |slice: &Value| slice["metadata"]["labels"].clone();
        if keys.iter().any(|key| new[*key] != old[*key]) || labels(new) != labels(old) {
            count_generation(new, old);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _part: Part) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(unchanged(&new["addressType"], &old["addressType"], "addressType"));
        errors
    }
}

fn slice_ports(slice: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (at, port) in items(slice, "ports").iter().enumerate() {
        let path = format!("ports[{at}]");
        let name = text(port, "name");
        if !name.is_empty() {
            errors.extend(faults(naming::label(name), name, &format!("{path}.name")));
        }
        if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        names.push(name);
        errors.extend(among(&port["protocol"], &PROTOCOLS, &format!("{path}.protocol")));
    }
    errors
}

fn validate_endpoint(endpoint: &Value, kind: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let addresses = items(endpoint, "addresses");
    let all = format!("{path}.addresses");
    if addresses.is_empty() {
        errors.push(FieldError::required(&all, "must contain at least 1 address"));
    } else if addresses.len() > MOST_ADDRESSES {
        errors.push(FieldError::too_many(&all, addresses.len(), MOST_ADDRESSES));
    }
    for (at, value) in addresses.iter().enumerate() {
        let path = format!("{all}[{at}]");
        let text = value.as_str().unwrap_or_default();
        if !matches!(kind, "IPv4" | "IPv6") {
            continue;
        }
        if let Some(error) = address(value, &path) {
            errors.push(error);
            continue;
        }
        if text.contains(':') != (kind == "IPv6") {
            errors.push(FieldError::invalid(&all, text, format!("must be an {kind} address")));
        }
        errors.extend(special(text, &path));
    }
    let node = text(endpoint, "nodeName");
    if !node.is_empty() {
        errors.extend(faults(naming::subdomain(node), node, &format!("{path}.nodeName")));
    }
    let name = text(endpoint, "hostname");
    if !name.is_empty() {
        errors.extend(faults(naming::label(name), name, &format!("{path}.hostname")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn endpoints_are_elsewhere() {
        let mut made = json!({"subsets": [
            {"addresses": [{"ip": "127.0.0.1"}, {"ip": "x"}], "ports": [{"port": 80}, {"port": 0}]}, {},
        ]});
        Endpoints.default(&mut made);
        assert_eq!(
            told(&Endpoints.validate_create(&made)),
            [
                "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
                "subsets[0].addresses[1].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                "subsets[0].addresses[1].ip: Invalid value: \"x\": must be a valid IP address",
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[1].name: Required value",
                "subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`",
            ]
        );
    }

    #[test]
    fn slices_are_of_one_type() {
        let mut made =
            json!({"addressType": "X", "endpoints": [{"addresses": []}], "ports": [{"port": 1}]});
        Slices.default(&mut made);
        assert_eq!(made["ports"], json!([{"name": "", "port": 1, "protocol": "TCP"}]));
        assert_eq!(
            told(&Slices.validate_create(&made)),
            [
                "addressType: Unsupported value: \"X\": supported values: \"FQDN\", \"IPv4\", \"IPv6\"",
                "endpoints[0].addresses: Required value: must contain at least 1 address",
            ]
        );
    }
}
