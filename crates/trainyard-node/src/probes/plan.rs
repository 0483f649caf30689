//! A probe as its manifest has it, with a kubelet's defaults. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Startup,
    Liveness,
    Readiness,
}

impl Kind {
    /// As events begin: `Liveness`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }
}

/// One probe of one container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    pub(crate) action: Action,
    pub(crate) initial_delay: Duration,
    pub(crate) period: Duration,
    pub(crate) timeout: Duration,
    pub(crate) success_threshold: u32,
    pub(crate) failure_threshold: u32,
    /// Time to end that the container gets when this probe fails, instead of the pod's.
    pub(crate) grace: Option<Duration>,
}

/// How it is made. Hosts are none where the pod itself is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Exec {
        command: Vec<String>,
    },
    Tcp {
        host: Option<String>,
        port: u16,
    },
    Http {
        host: Option<String>,
        port: u16,
        tls: bool,
        path: String,
        headers: Vec<(String, String)>,
    },
    /// It cannot be made; why, in words.
    Impossible(String),
}

impl Plan {
    /// All probes of a container.
    pub(crate) fn of(container: &Container) -> Vec<Self> {
        [
            (Kind::Startup, &container.startup_probe),
            (Kind::Liveness, &container.liveness_probe),
            (Kind::Readiness, &container.readiness_probe),
        ]
        .into_iter()
        .filter_map(|(kind, probe)| Some(Self::new(kind, probe.as_ref()?, container)))
        .collect()
    }

    fn new(kind: Kind, probe: &Probe, container: &Container) -> Self {
        let seconds = |given: Option<i32>, usual: u64| {
            let given = given.and_then(|given| u64::try_from(given).ok());
            Duration::from_secs(given.filter(|given| *given > 0).unwrap_or(usual))
        };
        let times = |given: Option<i32>, usual: u32| {
            let given = given.and_then(|given| u32::try_from(given).ok());
            given.filter(|given| *given > 0).unwrap_or(usual)
        };
        let grace = probe.termination_grace_period_seconds.filter(|_| kind != Kind::Readiness);
        Self {
            kind,
            action: action(probe, container),
            initial_delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            timeout: seconds(probe.timeout_seconds, 1),
            success_threshold: times(probe.success_threshold, 1),
            failure_threshold: times(probe.failure_threshold, 3),
            grace: grace.and_then(|given| u64::try_from(given).ok()).map(Duration::from_secs),
        }
    }
}

fn action(probe: &Probe, container: &Container) -> Action {
    let host = |given: &Option<String>| given.clone().filter(|host| !host.is_empty());
    if let Some(exec) = &probe.exec {
        return match exec.command.clone().unwrap_or_default() {
            command if command.is_empty() => {
                Action::Impossible("the probe has no command".to_owned())
            }
            command => Action::Exec { command: expanded(&command, container) },
        };
    }
    if let Some(get) = &probe.http_get {
        let scheme = get.scheme.as_deref().unwrap_or("HTTP");
        let tls = scheme.eq_ignore_ascii_case("https");
        if !tls && !scheme.is_empty() && !scheme.eq_ignore_ascii_case("http") {
            return Action::Impossible(format!("unsupported protocol scheme {scheme:?}"));
        }
        return match port(&get.port, container) {
            Ok(port) => Action::Http {
                host: host(&get.host),
                port,
                tls,
                path: get.path.clone().unwrap_or_default(),
                headers: get
                    .http_headers
                    .iter()
                    .flatten()
                    .map(|header| (header.name.clone(), header.value.clone()))
                    .collect(),
            },
            Err(problem) => Action::Impossible(problem),
        };
    }
    if let Some(socket) = &probe.tcp_socket {
        return match port(&socket.port, container) {
            Ok(port) => Action::Tcp { host: host(&socket.host), port },
            Err(problem) => Action::Impossible(problem),
        };
    }
    Action::Impossible(if probe.grpc.is_some() {
        "grpc probes are not supported on this node; use exec, httpGet or tcpSocket".to_owned()
    } else {
        format!("missing probe handler for {}", container.name)
    })
}

/// With the container's own variables put in; those that come from elsewhere are empty to a probe.
fn expanded(command: &[String], container: &Container) -> Vec<String> {
    let value = |name: &str| {
        let variable = container.env.iter().flatten().rfind(|one| one.name == name);
        variable.map_or_else(|| format!("$({name})"), |one| one.value.clone().unwrap_or_default())
    };
    command.iter().map(|word| crate::env::expand(word, value)).collect()
}

/// A port by number, by a name of the container's ports, or by a number written as text.
fn port(given: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match given {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => container
            .ports
            .iter()
            .flatten()
            .find(|port| port.name.as_ref() == Some(name))
            .map(|port| port.container_port)
            .or_else(|| name.parse().ok())
            .ok_or_else(|| format!("port {name} not found"))?,
    };
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| format!("invalid port number: {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(crate) fn plan(probe: &Value) -> Plan {
        let container = json!({
            "name": "c", "livenessProbe": probe,
            "ports": [{ "name": "web", "containerPort": 8080 }],
        });
        Plan::of(&serde_json::from_value(container).unwrap()).remove(0)
    }

    #[test]
    fn the_defaults() {
        let plan = plan(&json!({ "exec": { "command": ["true"] }, "periodSeconds": 0 }));
        assert_eq!(
            plan,
            Plan {
                kind: Kind::Liveness,
                action: Action::Exec { command: vec!["true".to_owned()] },
                initial_delay: Duration::ZERO,
                period: Duration::from_secs(10),
                timeout: Duration::from_secs(1),
                success_threshold: 1,
                failure_threshold: 3,
                grace: None,
            }
        );
    }

    #[test]
    fn what_is_given_counts_and_nonsense_does_not() {
        let plan = plan(&json!({
            "tcpSocket": { "port": 22, "host": "10.0.0.1" }, "initialDelaySeconds": 5,
            "periodSeconds": 2, "timeoutSeconds": -4, "successThreshold": 2,
            "failureThreshold": 1, "terminationGracePeriodSeconds": 7,
        }));
        assert_eq!(plan.action, Action::Tcp { host: Some("10.0.0.1".to_owned()), port: 22 });
        assert_eq!((plan.initial_delay.as_secs(), plan.period.as_secs()), (5, 2));
        assert_eq!(plan.timeout.as_secs(), 1);
        assert_eq!((plan.success_threshold, plan.failure_threshold), (2, 1));
        assert_eq!(plan.grace, Some(Duration::from_secs(7)));
    }

    #[test]
    fn commands_know_the_variables_that_are_written_out() {
        let container = json!({
            "name": "c",
            "env": [{ "name": "PORT", "value": "1" }, { "name": "PORT", "value": "80" },
                { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
            "livenessProbe": { "exec": { "command": ["nc", "$(PORT)", "$(POD)x", "$(NO)", "$$(PORT)"] } },
        });
        let plans = Plan::of(&serde_json::from_value(container).unwrap());
        let words = ["nc", "80", "x", "$(NO)", "$(PORT)"].map(str::to_owned).to_vec();
        assert_eq!(plans[0].action, Action::Exec { command: words });
    }

    #[test]
    fn ports_by_number_name_and_text() {
        for (port, found) in [
            (json!(80), Ok(80)),
            (json!("web"), Ok(8080)),
            (json!("81"), Ok(81)),
            (json!("db"), Err("port db not found")),
            (json!(0), Err("invalid port number: 0")),
            (json!(70000), Err("invalid port number: 70000")),
            (json!("-1"), Err("invalid port number: -1")),
        ] {
            let action = plan(&json!({ "tcpSocket": { "port": port } })).action;
            match found {
                Ok(number) => assert_eq!(action, Action::Tcp { host: None, port: number }),
                Err(problem) => assert_eq!(action, Action::Impossible(problem.to_owned())),
            }
        }
    }

    #[test]
    fn what_cannot_be_probed_says_why() {
        for (probe, says) in [
            (json!({ "grpc": { "port": 1 } }), "grpc probes are not supported"),
            (json!({}), "missing probe handler for c"),
            (json!({ "exec": {} }), "no command"),
            (json!({ "httpGet": { "port": 1, "scheme": "FTP" } }), "unsupported protocol scheme"),
        ] {
            let Action::Impossible(problem) = plan(&probe).action else { panic!("{probe}") };
            assert!(problem.contains(says), "{problem}");
        }
        let https = plan(&json!({ "httpGet": { "port": "web", "scheme": "HTTPS", "path": "/x" } }));
        assert!(matches!(https.action, Action::Http { tls: true, port: 8080, .. }));
    }

    #[test]
    fn a_container_has_up_to_three_and_readiness_no_grace() {
        let probe = json!({ "tcpSocket": { "port": 1 }, "terminationGracePeriodSeconds": 3 });
        let container = json!({
            "name": "c", "startupProbe": probe, "livenessProbe": probe, "readinessProbe": probe
        });
        let plans = Plan::of(&serde_json::from_value(container).unwrap());
        let kinds: Vec<_> = plans.iter().map(|plan| (plan.kind, plan.grace.is_some())).collect();
        assert_eq!(
            kinds,
            [(Kind::Startup, true), (Kind::Liveness, true), (Kind::Readiness, false)]
        );
    }
}
