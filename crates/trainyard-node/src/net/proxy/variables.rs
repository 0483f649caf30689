//! The variables that tell programs of the proxy, and of what is reached without it.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::net::CLUSTER_DOMAIN;

/// The proxy's port.
pub(crate) const PORT: u16 = 3128;

/// What a container's environment says of the proxy on `gateway`. `direct` are further names that are
/// reached without it, such as nodes and a pod's subdomain (a leading dot: all names below).
///
/// gRPC is told not to use it at all: it reads the same variables, and replicas that call each other by
/// `hostname.subdomain`, which no entry of `NO_PROXY` describes, would be sent through the proxy.
pub(crate) fn proxy_variables(
    gateway: Ipv4Addr,
    cluster: &[Ipv4Net],
    direct: &[String],
) -> Vec<(String, String)> {
    let url = format!("http://{gateway}:{PORT}");
    let mut without = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    without.extend([".svc".to_owned(), format!(".{CLUSTER_DOMAIN}"), gateway.to_string()]);
    without.extend(cluster.iter().map(ToString::to_string));
    without.extend(direct.iter().cloned());
    let without = without.join(",");
    let mut variables = Vec::new();
    // Programs disagree about the case; both are set as they are by convention.
    for (name, value) in [("HTTP_PROXY", &url), ("HTTPS_PROXY", &url), ("NO_PROXY", &without)] {
        variables.push((name.to_owned(), value.clone()));
        variables.push((name.to_lowercase(), value.clone()));
    }
    variables.push(("grpc_proxy".to_owned(), String::new()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cases_are_set() {
        let cluster = ["10.77.0.0/16".parse().unwrap(), "10.96.0.0/12".parse().unwrap()];
        let direct = ["node-a".to_owned(), ".mnist".to_owned()];
        let variables = proxy_variables(Ipv4Addr::new(10, 77, 0, 1), &cluster, &direct);
        let value = |name: &str| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
            assert_eq!(value(name), Some("http://10.77.0.1:3128"), "{name}");
        }
        for name in ["NO_PROXY", "no_proxy"] {
            assert_eq!(
                value(name),
                Some(
                    "localhost,127.0.0.1,::1,.svc,.cluster.local,10.77.0.1,10.77.0.0/16,10.96.0.0/12,node-a,.mnist"
                ),
                "{name}"
            );
        }
        assert_eq!(value("grpc_proxy"), Some(""));
        assert_eq!(variables.len(), 7);
    }
}
