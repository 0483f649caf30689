//! The variables by which containers learn of services: `NAME_SERVICE_HOST` and those that once came from
//! container links. Pure; which containers get them is the environment's matter.

use super::table::{Service, Table};

/// The API server's service: every pod learns of it, whatever its namespace.
const API_NAMESPACE: &str = "default";
const API_SERVICE: &str = "kubernetes";

pub(super) fn of(table: &Table, namespace: &str, links: bool) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let own: Vec<(&str, &Service)> =
        if links { table.services_of(namespace).collect() } else { Vec::new() };
    // A service of that name in the pod's own namespace takes its place there.
    if !own.iter().any(|(name, service)| *name == API_SERVICE && !service.addresses.is_empty())
        && let Some(service) = table.service(API_NAMESPACE, API_SERVICE)
    {
        describe(API_SERVICE, service, &mut variables);
    }
    for (name, service) in own {
        describe(name, service, &mut variables);
    }
    variables
}

fn describe(name: &str, service: &Service, variables: &mut Vec<(String, String)>) {
    let (Some(address), Some(first)) = (service.addresses.first(), service.ports.first()) else {
        return;
    };
    let prefix = in_capitals(name);
    let mut set = |name: String, value: String| variables.push((name, value));
    set(format!("{prefix}_SERVICE_HOST"), address.to_string());
    set(format!("{prefix}_SERVICE_PORT"), first.number.to_string());
    for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
        set(format!("{prefix}_SERVICE_PORT_{}", in_capitals(&port.name)), port.number.to_string());
    }
    for (index, port) in service.ports.iter().enumerate() {
        let number = port.number;
        let protocol = port.protocol.to_ascii_lowercase();
        let url = format!("{protocol}://{address}:{number}");
        if index == 0 {
            set(format!("{prefix}_PORT"), url.clone());
        }
        let port_prefix = format!("{prefix}_PORT_{number}_{}", port.protocol.to_ascii_uppercase());
        set(port_prefix.clone(), url);
        set(format!("{port_prefix}_PROTO"), protocol);
        set(format!("{port_prefix}_PORT"), number.to_string());
        set(format!("{port_prefix}_ADDR"), address.to_string());
    }
}

fn in_capitals(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::net::names::tests::yard;

    fn text(variables: &[(String, String)]) -> Vec<String> {
        variables.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn every_pod_learns_of_the_api_server() {
        let expected = [
            "KUBERNETES_SERVICE_HOST=10.96.0.1",
            "KUBERNETES_SERVICE_PORT=443",
            "KUBERNETES_SERVICE_PORT_HTTPS=443",
            "KUBERNETES_PORT=tcp://10.96.0.1:443",
            "KUBERNETES_PORT_443_TCP=tcp://10.96.0.1:443",
            "KUBERNETES_PORT_443_TCP_PROTO=tcp",
            "KUBERNETES_PORT_443_TCP_PORT=443",
            "KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1",
        ];
        for (namespace, links) in
            [("team", true), ("team", false), ("default", false), ("default", true)]
        {
            assert_eq!(
                text(&yard().service_variables(namespace, links)),
                expected,
                "{namespace} {links}"
            );
        }
    }

    #[test]
    fn links_bring_the_services_of_the_namespace() {
        let mut table = Table::default();
        let service = json!({"metadata": {"name": "my-db", "namespace": "team"}, "spec": {
            "clusterIP": "10.96.0.7",
            "ports": [{"port": 53, "protocol": "UDP"}, {"name": "ad-min", "port": 80}]}});
        table.put_service(&serde_json::from_value(service).unwrap());
        let portless = json!({"metadata": {"name": "p", "namespace": "team"}, "spec": {"clusterIP": "10.96.0.8"}});
        table.put_service(&serde_json::from_value(portless).unwrap());
        assert_eq!(
            text(&of(&table, "team", true)),
            [
                "MY_DB_SERVICE_HOST=10.96.0.7",
                "MY_DB_SERVICE_PORT=53",
                "MY_DB_SERVICE_PORT_AD_MIN=80",
                "MY_DB_PORT=udp://10.96.0.7:53",
                "MY_DB_PORT_53_UDP=udp://10.96.0.7:53",
                "MY_DB_PORT_53_UDP_PROTO=udp",
                "MY_DB_PORT_53_UDP_PORT=53",
                "MY_DB_PORT_53_UDP_ADDR=10.96.0.7",
                "MY_DB_PORT_80_TCP=tcp://10.96.0.7:80",
                "MY_DB_PORT_80_TCP_PROTO=tcp",
                "MY_DB_PORT_80_TCP_PORT=80",
                "MY_DB_PORT_80_TCP_ADDR=10.96.0.7",
            ]
        );
        assert_eq!(of(&table, "team", false), []);
        assert_eq!(of(&table, "tea", true), []);
    }
}
