//! What a Node object is made from. Only data.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::version::Info;

use super::error::NodeError;
use super::identity::AgentIdentity;
use super::machine::Machine;
use super::pressure::Pressure;
use super::resources::Amounts;

/// Everything a Node object says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeFacts {
    pub(crate) name: String,
    /// Where the API server reaches the agent's HTTP API.
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Where its pods have it: their `hostIP`, and the address of those on its network.
    pub(crate) inside: Ipv4Addr,
    pub(crate) capacity: Amounts,
    pub(crate) allocatable: Amounts,
    pub(crate) machine: Arc<Machine>,
    /// The isolation in use, as a label's value: `namespaces`.
    pub(crate) sandbox: String,
    /// The network in use, as a label's value: `bridge`.
    pub(crate) network: String,
    pub(crate) rootless: bool,
    pub(crate) limits: Limits,
    /// Further labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// From [`declared_features`].
    pub(crate) declared_features: Vec<String>,
    pub(crate) pressure: Pressure,
    pub(crate) readiness: Readiness,
    pub(crate) agent: AgentIdentity,
}

/// Whether containers are held to their limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Limits {
    /// By what, in words: `cgroups v1`.
    Enforced(String),
    /// Why not, in words.
    NotEnforced(String),
}

/// Whether the node takes pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// A reason in one word, and a sentence.
    NotReady {
        reason: String,
        message: String,
    },
}

impl Readiness {
    /// What a node says after its agent has stopped by itself.
    pub(crate) fn stopped() -> Self {
        Self::NotReady {
            reason: "AgentStopped".to_owned(),
            message: "the node agent has stopped".to_owned(),
        }
    }
}

/// A name that is good for a Node, its host-name label and the pods' DNS.
pub(crate) fn check_name(name: &str) -> Result<(), NodeError> {
    let wrong = |problem| Err(NodeError::Name { name: name.to_owned(), problem });
    if name.is_empty() {
        return wrong("it is empty");
    }
    if name.len() > 63 {
        return wrong("it is too long");
    }
    if name.bytes().any(|byte| {
        !(byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
    }) {
        return wrong("it has a character that no name may have");
    }
    if name
        .split('.')
        .any(|label| label.is_empty() || label.starts_with('-') || label.ends_with('-'))
    {
        return wrong("a part of it is empty, or begins or ends with `-`");
    }
    Ok(())
}

/// What this agent can do beyond its version, for API servers that ask: since 1.36 they speak
/// websocket to nodes that say so, and SPDY, which is not spoken here, to all others.
pub(crate) fn declared_features(server: &Info) -> Vec<String> {
    let number = |text: &str| -> u32 {
        text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    };
    if (number(&server.major), number(&server.minor)) >= (1, 36) {
        vec!["ExtendWebSocketsToKubelet".to_owned()]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "node-1", "a.b-c.d", "127-0-0-1"] {
            check_name(good).unwrap();
        }
        let long = "a".repeat(64);
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a b", "ä", long.as_str()] {
            let error = check_name(bad).unwrap_err();
            assert!(error.to_string().contains("lower-case"), "{error}");
        }
    }

    #[test]
    fn features_are_told_to_servers_that_know_them() {
        for (major, minor, told) in [
            ("1", "33", false),
            ("1", "36", true),
            ("1", "36+", true),
            ("2", "0", true),
            ("", "", false),
        ] {
            let server =
                Info { major: major.to_owned(), minor: minor.to_owned(), ..Info::default() };
            assert_eq!(!declared_features(&server).is_empty(), told, "{major}.{minor}");
        }
    }
}
