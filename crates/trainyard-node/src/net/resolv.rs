//! A pod's `resolv.conf`: the host's read, the pod's written, as a kubelet forms it from `dnsPolicy` and
//! `dnsConfig`. Pure; must not know how names are answered.
//!
//! The host's name servers cannot be reached from the pods' network, so the gateway's stands in for them
//! wherever a kubelet would name them; it passes on what it does not know.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr},
};

use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::{Pod, PodDNSConfig};

use super::CLUSTER_DOMAIN;

/// What resolvers take.
const NAMESERVERS: usize = 3;
const SEARCHES: usize = 32;
const SEARCH_LINE: usize = 2048;
const SEARCH_DOMAIN: usize = 253;

/// What a `resolv.conf` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostResolver {
    /// Addresses of name servers, as written.
    pub(crate) nameservers: Vec<String>,
    /// Domains to try.
    pub(crate) searches: Vec<String>,
    /// Options, as `name` or `name:value`.
    pub(crate) options: Vec<String>,
}

impl HostResolver {
    /// Reads a file's text; what is no known line is passed over.
    pub(crate) fn parse(text: &str) -> Self {
        let mut host = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => host.nameservers.extend(words.next().map(str::to_owned)),
                // The last such line counts.
                Some("search") => {
                    let domains = words.map(|word| word.strip_suffix('.').unwrap_or(word));
                    host.searches =
                        domains.filter(|word| !word.is_empty()).map(str::to_owned).collect();
                }
                Some("options") => {
                    for option in words {
                        set_option(&mut host.options, option.to_owned());
                    }
                }
                _ => {}
            }
        }
        host
    }
}

/// What pods' resolvers are made from.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    /// The name server's address.
    pub(crate) gateway: Ipv4Addr,
    /// What the host uses.
    pub(crate) host: HostResolver,
    /// The pods' network, where it has no way out for datagrams; none where it has.
    pub(crate) confined: Option<Ipv4Net>,
}

/// A pod's file, and what could not be honoured, as warnings of reason `DNSConfigForming`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvConf {
    /// The file's text.
    pub(crate) text: String,
    /// Warnings for the pod's events.
    pub(crate) warnings: Vec<String>,
}

impl Resolver {
    /// The file for a pod.
    pub(crate) fn resolv_conf(&self, pod: &Pod) -> ResolvConf {
        let mut form = self.base(pod);
        if let Some(config) = pod.spec.as_ref().and_then(|spec| spec.dns_config.as_ref()) {
            add(&mut form, config);
        }
        let mut warnings = Vec::new();
        fit_nameservers(&mut form.nameservers, &mut warnings);
        fit_searches(&mut form.searches, &mut warnings);
        self.warn_of_unreachable(&form.nameservers, &mut warnings);
        ResolvConf { text: text(&form), warnings }
    }

    fn base(&self, pod: &Pod) -> HostResolver {
        let spec = pod.spec.as_ref();
        let on_host = spec.and_then(|spec| spec.host_network).unwrap_or(false);
        let policy = spec.and_then(|spec| spec.dns_policy.as_deref()).unwrap_or("ClusterFirst");
        let nameservers = vec![self.gateway.to_string()];
        match policy {
            "None" => HostResolver::default(),
            "Default" => HostResolver { nameservers, ..self.host.clone() },
            "ClusterFirst" if on_host => HostResolver { nameservers, ..self.host.clone() },
            // A policy that the API server would have refused counts as the default one.
            _ => {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
                let mut searches = vec![
                    format!("{namespace}.svc.{CLUSTER_DOMAIN}"),
                    format!("svc.{CLUSTER_DOMAIN}"),
                    CLUSTER_DOMAIN.to_owned(),
                ];
                extend(&mut searches, &self.host.searches);
                HostResolver { nameservers, searches, options: vec!["ndots:5".to_owned()] }
            }
        }
    }

    fn warn_of_unreachable(&self, nameservers: &[String], warnings: &mut Vec<String>) {
        let Some(network) = self.confined else { return };
        for nameserver in nameservers {
            let inside = match nameserver.parse() {
                Ok(IpAddr::V4(address)) => network.contains(&address) || address.is_loopback(),
                Ok(IpAddr::V6(address)) => address.is_loopback(),
                Err(_) => false,
            };
            if !inside {
                warnings.push(format!(
                    "nameserver {nameserver} cannot be reached: datagrams have no way out of this node's \
                     pods; use {}",
                    self.gateway
                ));
            }
        }
    }
}

/// What the pod asks for beside its policy.
fn add(form: &mut HostResolver, config: &PodDNSConfig) {
    extend(&mut form.nameservers, config.nameservers.as_deref().unwrap_or_default());
    extend(&mut form.searches, config.searches.as_deref().unwrap_or_default());
    for option in config.options.iter().flatten() {
        let name = option.name.clone().unwrap_or_default();
        let option = match option.value.as_deref() {
            None | Some("") => name,
            Some(value) => format!("{name}:{value}"),
        };
        set_option(&mut form.options, option);
    }
}

fn extend(list: &mut Vec<String>, more: &[String]) {
    for entry in more {
        if !list.contains(entry) {
            list.push(entry.clone());
        }
    }
}

/// A later option takes the place of an earlier one of its name.
fn set_option(options: &mut Vec<String>, option: String) {
    let name = |option: &str| option.split(':').next().unwrap_or_default().to_owned();
    match options.iter_mut().find(|known| name(known) == name(&option)) {
        Some(known) => *known = option,
        None => options.push(option),
    }
}

fn fit_nameservers(nameservers: &mut Vec<String>, warnings: &mut Vec<String>) {
    if nameservers.len() > NAMESERVERS {
        nameservers.truncate(NAMESERVERS);
        warnings.push(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, \
             the applied nameserver line is: {}",
            nameservers.join(" ")
        ));
    }
}

fn fit_searches(searches: &mut Vec<String>, warnings: &mut Vec<String>) {
    let given = searches.len();
    searches.truncate(SEARCHES);
    // Some resolvers abort on a longer one.
    searches.retain(|domain| domain.len() <= SEARCH_DOMAIN);
    while searches.join(" ").len() > SEARCH_LINE {
        searches.pop();
    }
    if searches.len() < given {
        warnings.push(format!(
            "Search Line limits were exceeded, some search paths have been omitted, \
             the applied search line is: {}",
            searches.join(" ")
        ));
    }
}

/// The file in the order that container runtimes write it.
fn text(form: &HostResolver) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if !form.searches.is_empty() {
        let _ = writeln!(text, "search {}", form.searches.join(" "));
    }
    for nameserver in &form.nameservers {
        let _ = writeln!(text, "nameserver {nameserver}");
    }
    if !form.options.is_empty() {
        let _ = writeln!(text, "options {}", form.options.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOST: &str = "# made by hand\n; so is this\nnameserver 192.168.1.1\nsearch old.example\n\
                        search lab.example. corp.example .\noptions edns0 ndots:1\noptions ndots:2\nsortlist x\n";

    fn resolver() -> Resolver {
        let confined = Some("10.77.0.0/16".parse().unwrap());
        Resolver { gateway: Ipv4Addr::new(10, 77, 0, 1), host: HostResolver::parse(HOST), confined }
    }

    fn of(spec: Value) -> ResolvConf {
        let Value::Object(spec) = spec else { panic!("{spec}") };
        let mut pod =
            json!({"metadata": {"name": "p", "namespace": "team"}, "spec": {"containers": []}});
        pod["spec"].as_object_mut().unwrap().extend(spec);
        resolver().resolv_conf(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn the_hosts_file_is_read_as_resolvers_do() {
        let host = HostResolver::parse(HOST);
        assert_eq!(host.nameservers, ["192.168.1.1"]);
        assert_eq!(host.searches, ["lab.example", "corp.example"]);
        assert_eq!(host.options, ["edns0", "ndots:2"]);
        assert_eq!(HostResolver::parse("nameserver\n\u{0}\nsearch"), HostResolver::default());
    }

    #[test]
    fn each_policy_has_its_file() {
        let cluster = "search team.svc.cluster.local svc.cluster.local cluster.local lab.example corp.example\n\
                       nameserver 10.77.0.1\noptions ndots:5\n";
        let host = "search lab.example corp.example\nnameserver 10.77.0.1\noptions edns0 ndots:2\n";
        for (spec, expected) in [
            (json!({}), cluster),
            (json!({"dnsPolicy": "ClusterFirst"}), cluster),
            (json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}), host),
            (json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}), cluster),
            (json!({"dnsPolicy": "Default"}), host),
            (json!({"dnsPolicy": "None"}), ""),
            (json!({"dnsPolicy": "Unheard"}), cluster),
        ] {
            let file = of(spec.clone());
            assert_eq!(file.text, expected, "{spec}");
            assert_eq!(file.warnings, [""; 0], "{spec}");
        }
    }

    #[test]
    fn the_pods_own_settings_are_added() {
        let config = json!({"nameservers": ["10.77.0.1", "10.77.0.9"], "searches": ["svc.cluster.local", "my.example"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}, {"name": "x", "value": ""}]});
        let file = of(json!({"dnsConfig": config}));
        assert_eq!(
            file.text,
            "search team.svc.cluster.local svc.cluster.local cluster.local lab.example corp.example my.example\n\
             nameserver 10.77.0.1\nnameserver 10.77.0.9\noptions ndots:2 edns0 x\n"
        );
        let file = of(json!({"dnsPolicy": "None", "dnsConfig": config}));
        assert_eq!(
            file.text,
            "search svc.cluster.local my.example\nnameserver 10.77.0.1\nnameserver 10.77.0.9\n\
             options ndots:2 edns0 x\n"
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_told() {
        let file = of(json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["9.9.9.9"]}}));
        assert_eq!(file.text, "nameserver 9.9.9.9\n");
        assert_eq!(file.warnings.len(), 1);
        assert!(file.warnings[0].starts_with("nameserver 9.9.9.9 cannot be reached"), "{file:?}");

        let nameservers = ["10.77.0.2", "10.77.0.3", "10.77.0.4"];
        let file = of(json!({"dnsConfig": {"nameservers": nameservers}}));
        assert!(file.text.contains("nameserver 10.77.0.3\noptions"), "{file:?}");
        assert_eq!(
            file.warnings,
            ["Nameserver limits were exceeded, some nameservers have been omitted, \
              the applied nameserver line is: 10.77.0.1 10.77.0.2 10.77.0.3"]
        );

        let many: Vec<String> = (0..40).map(|number| format!("d{number}.example")).collect();
        let file = of(json!({"dnsPolicy": "None", "dnsConfig": {"searches": many}}));
        assert_eq!(file.text.split_whitespace().count(), 1 + SEARCHES);
        assert!(file.warnings[0].ends_with("d30.example d31.example"), "{file:?}");

        let long = ["a".repeat(254), "b".repeat(253)];
        let file = of(json!({"dnsPolicy": "None", "dnsConfig": {"searches": long}}));
        assert_eq!(file.text, format!("search {}\n", "b".repeat(253)));
        assert_eq!(file.warnings.len(), 1);

        let wide: Vec<String> =
            (0..9).map(|number| format!("{}{number}", "c".repeat(250))).collect();
        let file = of(json!({"dnsPolicy": "None", "dnsConfig": {"searches": wide}}));
        assert_eq!(file.text.split_whitespace().count(), 1 + 8);
    }
}
