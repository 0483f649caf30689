//! The same cases on agents that have less to give: run by an ordinary user, or without a network of the
//! pods' own.

use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::objects::{hindered, says};
use super::{Alone, Case, env, network, reach, security, volumes};
use crate::check::{contains, equal};
use crate::node::{AT_ONCE, Agent, AgentOptions, LONGEST, Pods, Stage, Who};
use crate::suite::report::bounded;

/// An ordinary user has one group to give.
const NEEDS_ROOT: [&str; 1] = ["security/groups"];

pub(super) fn all() -> Vec<Alone> {
    vec![
        Alone {
            name: "levels/user",
            longest: Duration::from_mins(6),
            play: |s| Box::pin(as_user(s)),
        },
        Alone {
            name: "levels/loopback",
            longest: Duration::from_mins(6),
            play: |s| Box::pin(on_loopback(s)),
        },
    ]
}

fn cases() -> Vec<Case> {
    [env::all(), volumes::all(), network::all(), reach::all(), security::all()].concat()
}

async fn as_user(stage: &Stage) -> Result<()> {
    let options = AgentOptions { who: Who::User, ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    play(stage, &agent, &cases(), &NEEDS_ROOT).await?;
    groups(stage).await?;
    agent.stop().await
}

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

async fn on_loopback(stage: &Stage) -> Result<()> {
    let flags = vec!["--network=loopback".to_owned()];
    let options = AgentOptions { flags, ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    play(stage, &agent, &cases(), &NEEDS_BRIDGE).await?;
    agent.stop().await
}

/// Plays cases on an agent, but those named; all failures are told together.
pub(super) async fn play(stage: &Stage, agent: &Agent, cases: &[Case], not: &[&str]) -> Result<()> {
    let failures = Mutex::new(Vec::new());
    let one = async |case: &Case| {
        if let Err(error) = bounded(LONGEST, (case.play)(stage, agent)).await
            && let Ok(mut failures) = failures.lock()
        {
            failures.push(format!("{}: {error:#}", case.name));
        }
    };
    let cases = cases.iter().filter(|case| !not.contains(&case.name));
    futures::stream::iter(cases).for_each_concurrent(AT_ONCE, one).await;
    agent.check()?;
    let failures = failures.into_inner().unwrap_or_default();
    if failures.is_empty() {
        return Ok(());
    }
    bail!("{} cases failed:\n{}", failures.len(), failures.join("\n"))
}

/// What takes more than one group is refused in words; what is only about who may read a volume is not
/// needed, since all ids inside are the same user's outside.
async fn groups(stage: &Stage) -> Result<()> {
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
