//! The same cases on agents that have less to give: run by an ordinary user, or without a network of the
//! pods' own.

use anyhow::Result;
use serde_json::{Value, json};

use super::objects::{hindered, says};
use super::{Shared, contract, surroundings};
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who};

/// An agent, and the cases that it must pass.
pub(in crate::node) struct Level {
    /// What stands before the names of the cases.
    pub(in crate::node) name: &'static str,
    pub(in crate::node) options: AgentOptions,
    pub(in crate::node) cases: Vec<Case<Shared>>,
}

/// An ordinary user has one group to give.
const NEEDS_ROOT: [&str; 1] = ["security/groups"];

/// On the machine's own network services have no addresses that answer, nothing is kept from pods or
/// pods from others, and containers of one pod do not find each other on 127.0.0.1.
const NEEDS_BRIDGE: [&str; 10] = [
    "env/service_variables",
    "env/account",
    "network/services",
    "network/shared_ports",
    "network/host_is_unreachable",
    "network/pod_is_unreachable",
    "network/proxy",
    "network/host_network",
    "reach/port_forward",
    "security/unseen",
];

const LOOPBACK: &str = "--network=loopback";

/// All levels below the one that root has.
pub(in crate::node) fn all() -> Vec<Level> {
    // Without root, whoever runs the tests is the ordinary user.
    let ordinary = if rustix::process::geteuid().is_root() { Who::User } else { Who::Me };
    let as_user = [without(&NEEDS_ROOT, surroundings()), cases!["security": one_group]].concat();
    vec![
        Level { name: "levels/user", options: options(Who::User, &[]), cases: as_user },
        Level {
            name: "levels/loopback",
            options: options(Who::Me, &[LOOPBACK]),
            cases: without(&NEEDS_BRIDGE, surroundings()),
        },
        Level {
            name: "user/keeps_the_contract",
            options: AgentOptions { nodes: nodes(["cedar", "elm"]), ..options(ordinary, &[]) },
            cases: contract(),
        },
        Level {
            name: "user/without_a_bridge",
            options: AgentOptions {
                nodes: nodes(["hazel", "larch"]),
                ..options(ordinary, &[LOOPBACK])
            },
            cases: contract(),
        },
    ]
}

fn options(who: Who, flags: &[&str]) -> AgentOptions {
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    AgentOptions { who, flags, ..AgentOptions::default() }
}

fn nodes(names: [&str; 2]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn without(names: &[&str], cases: Vec<Case<Shared>>) -> Vec<Case<Shared>> {
    cases.into_iter().filter(|case| !names.contains(&case.name.as_str())).collect()
}

/// What takes more than one group is refused in words; what is only about who may read a volume is not
/// needed, since all ids inside are the same user's outside.
async fn one_group(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "one-group").await?;
    let of = |context: Value| {
        json!({
            "securityContext": context,
            "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        })
    };
    let more = of(json!({"runAsUser": 1234, "fsGroup": 3456}));
    let text = says(&pods, "volume", "id -u; echo x > /v/x; cat /v/x", more).await?;
    equal("volume", text.as_str(), "1234\nx\n")?;
    pods.until_event("volume", "fsGroup 3456 cannot be set on volumes without root").await?;
    pods.shell("more", "true", of(json!({"supplementalGroups": [4567]}))).await?;
    let words = hindered(&pods, "more", "main", "CreateContainerConfigError").await?;
    contains("more", &words, &["joining the groups [4567]", "without root"])
}
