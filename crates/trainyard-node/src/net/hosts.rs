//! What a pod is called on its own machine: host name, domain and `/etc/hosts`, as a kubelet makes them.
//! Pure; must not know how names are answered.

use std::{fmt::Write as _, net::Ipv4Addr};

use k8s_openapi::api::core::v1::{HostAlias, Pod, PodSpec};

use super::{CLUSTER_DOMAIN, NetError};

/// Longest host name that every system call takes.
const LABEL: usize = 63;
/// Longest name that the kernel keeps.
const KERNEL: usize = 64;

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
     and must start and end with an alphanumeric character, and be no longer than 63 characters";

/// A pod's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The short name.
    pub(crate) hostname: String,
    /// What follows it, for a pod with a subdomain.
    pub(crate) domain: Option<String>,
    /// What `uname` says inside.
    pub(crate) kernel_name: String,
}

impl Identity {
    /// The names of a pod. One on the node's network is called as the node is.
    pub(crate) fn of(pod: &Pod, node: &str) -> Result<Self, NetError> {
        let spec = pod.spec.as_ref();
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let asked = spec.and_then(|spec| spec.hostname.as_deref()).filter(|name| !name.is_empty());
        let subdomain =
            spec.and_then(|spec| spec.subdomain.as_deref()).filter(|name| !name.is_empty());
        check("Hostname", asked)?;
        check("Subdomain", subdomain)?;
        let hostname = cut(asked.unwrap_or(name));
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let domain =
            subdomain.map(|subdomain| format!("{subdomain}.{namespace}.svc.{CLUSTER_DOMAIN}"));
        let full = spec.and_then(|spec| spec.set_hostname_as_fqdn).unwrap_or(false);
        let kernel_name = match &domain {
            _ if on_host(spec) => cut(node),
            Some(domain) if full => {
                let name = format!("{hostname}.{domain}");
                if name.len() > KERNEL {
                    let length = name.len();
                    return Err(NetError::NameTooLong { name, limit: KERNEL, length });
                }
                name
            }
            _ => hostname.clone(),
        };
        Ok(Self { hostname, domain, kernel_name })
    }
}

fn on_host(spec: Option<&PodSpec>) -> bool {
    spec.and_then(|spec| spec.host_network).unwrap_or(false)
}

fn check(field: &'static str, value: Option<&str>) -> Result<(), NetError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |value: &str| {
        value.len() <= LABEL
            && value.bytes().all(|byte| plain(byte) || byte == b'-')
            && !value.starts_with('-')
            && !value.ends_with('-')
    };
    match value {
        Some(value) if !label(value) => {
            Err(NetError::NotALabel { field, value: value.to_owned(), rule: LABEL_RULE })
        }
        _ => Ok(()),
    }
}

/// A name of at most 63 characters that does not end in the middle of nothing.
fn cut(name: &str) -> String {
    match name.char_indices().find(|(index, letter)| index + letter.len_utf8() > LABEL) {
        Some((end, _)) => name[..end].trim_end_matches(['-', '.']).to_owned(),
        None => name.to_owned(),
    }
}

/// The text of a pod's `/etc/hosts`. `address` is the pod's, or its node's under `hostNetwork`.
pub(crate) fn hosts_file(pod: &Pod, address: Ipv4Addr, identity: &Identity) -> String {
    let spec = pod.spec.as_ref();
    let note = if on_host(spec) { " (host network)" } else { "" };
    let mut text = format!(
        "# Kubernetes-managed hosts file{note}.\n\
         127.0.0.1\tlocalhost\n\
         ::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\n\
         fe00::0\tip6-mcastprefix\n\
         fe00::1\tip6-allnodes\n\
         fe00::2\tip6-allrouters\n"
    );
    // Writing to a String cannot fail.
    let _ = match &identity.domain {
        // The hosts file of a virtual node, which its pods share, knows the node alone.
        _ if on_host(spec) => writeln!(text, "{address}\t{}", identity.kernel_name),
        Some(domain) => {
            writeln!(text, "{address}\t{0}.{domain}\t{0}", identity.hostname)
        }
        None => writeln!(text, "{address}\t{}", identity.hostname),
    };
    let aliases = spec.and_then(|spec| spec.host_aliases.as_deref()).unwrap_or_default();
    if !aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for HostAlias { ip, hostnames } in aliases {
        let _ = writeln!(text, "{ip}\t{}", hostnames.as_deref().unwrap_or_default().join("\t"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, spec: Value) -> Pod {
        let mut pod =
            json!({"metadata": {"name": name, "namespace": "team"}, "spec": {"containers": []}});
        let Value::Object(spec) = spec else { panic!("{spec}") };
        pod["spec"].as_object_mut().unwrap().extend(spec);
        serde_json::from_value(pod).unwrap()
    }

    fn identity(name: &str, spec: Value) -> Result<Identity, String> {
        Identity::of(&pod(name, spec), "node-a").map_err(|error| error.to_string())
    }

    const BASE: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

    fn file(spec: Value) -> String {
        let pod = pod("p", spec);
        hosts_file(&pod, Ipv4Addr::new(10, 77, 0, 5), &Identity::of(&pod, "node-a").unwrap())
    }

    #[test]
    fn files_are_as_a_kubelet_writes_them() {
        let managed = "# Kubernetes-managed hosts file.\n";
        assert_eq!(file(json!({})), format!("{managed}{BASE}10.77.0.5\tp\n"));
        assert_eq!(
            file(json!({"hostname": "h", "subdomain": "s"})),
            format!("{managed}{BASE}10.77.0.5\th.s.team.svc.cluster.local\th\n")
        );
        let aliases = json!([{"ip": "1.2.3.4", "hostnames": ["a", "b.c"]}, {"ip": "::2", "hostnames": ["d"]}]);
        let added = "\n# Entries added by HostAliases.\n1.2.3.4\ta\tb.c\n::2\td\n";
        assert_eq!(
            file(json!({"hostAliases": aliases})),
            format!("{managed}{BASE}10.77.0.5\tp\n{added}")
        );
        assert_eq!(
            file(json!({"hostAliases": aliases, "hostNetwork": true, "subdomain": "s"})),
            format!(
                "# Kubernetes-managed hosts file (host network).\n{BASE}10.77.0.5\tnode-a\n{added}"
            )
        );
    }

    #[test]
    fn a_pod_is_called_as_it_asks() {
        let named = |hostname: &str, domain: Option<&str>, kernel_name: &str| {
            let domain = domain.map(str::to_owned);
            Ok(Identity { hostname: hostname.into(), domain, kernel_name: kernel_name.into() })
        };
        let domain = Some("s.team.svc.cluster.local");
        assert_eq!(identity("p", json!({})), named("p", None, "p"));
        assert_eq!(identity("p", json!({"hostname": "h"})), named("h", None, "h"));
        assert_eq!(identity("p", json!({"hostname": "", "subdomain": ""})), named("p", None, "p"));
        assert_eq!(identity("p", json!({"subdomain": "s"})), named("p", domain, "p"));
        assert_eq!(
            identity("p", json!({"subdomain": "s", "setHostnameAsFQDN": true})),
            named("p", domain, "p.s.team.svc.cluster.local")
        );
        assert_eq!(identity("p", json!({"setHostnameAsFQDN": true})), named("p", None, "p"));
        assert_eq!(identity("p", json!({"hostNetwork": true})), named("p", None, "node-a"));
        let long = format!("{}-.{}", "a".repeat(61), "b".repeat(20));
        assert_eq!(identity(&long, json!({})), named(&"a".repeat(61), None, &"a".repeat(61)));
        assert!(identity(&"\u{e9}".repeat(40), json!({})).is_ok());
    }

    #[test]
    fn bad_names_are_refused() {
        for name in ["a.b", "-a", "a-", "A", "\u{e9}", &"a".repeat(64)] {
            let said = identity("p", json!({"hostname": name})).unwrap_err();
            assert!(
                said.starts_with(&format!("pod Hostname {name:?} is not a valid DNS label")),
                "{said}"
            );
            assert!(identity("p", json!({"subdomain": name})).is_err(), "{name}");
        }
        let spec = json!({"subdomain": "s".repeat(60), "setHostnameAsFQDN": true});
        let said = identity("p", spec).unwrap_err();
        assert!(said.ends_with("is too long (64 is the max, 85 characters requested)"), "{said}");
    }
}
