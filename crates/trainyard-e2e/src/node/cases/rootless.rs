//! An agent that an ordinary user runs leaves as little behind as root's, and says what it cannot do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::json;

use super::killed;
use super::objects::says;
use crate::check::{contains, equal};
use crate::harness::{Case, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who};

const LONGEST: Duration = Duration::from_mins(3);

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    let all = vec![
        Case::new("rootless/says_so", says_so),
        Case::new("rootless/agent_killed", async |stage: &Stage| {
            killed::agent(stage, user()).await
        }),
        Case::new("rootless/holder_killed", async |stage: &Stage| {
            killed::holder(stage, user()).await
        }),
        Case::new("rootless/stopped", async |stage: &Stage| killed::stopped(stage, user()).await),
    ];
    within(LONGEST, all)
}

/// Without root, whoever runs the tests is the ordinary user.
pub(super) fn ordinary() -> Who {
    if rustix::process::geteuid().is_root() { Who::User } else { Who::Me }
}

fn user() -> AgentOptions {
    AgentOptions { who: ordinary(), ..AgentOptions::default() }
}

/// The node says that it is rootless and which limits it cannot enforce; a pod with limits is told, once,
/// and runs; one without is not.
async fn says_so(stage: &Stage) -> Result<()> {
    let agent = Agent::start(stage, user()).await?;
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let node = nodes.get(&agent.nodes[0]).await?;
    let labels = node.metadata.labels.unwrap_or_default();
    equal("label", labels.get("trainyard.dev/rootless").map(String::as_str), Some("true"))?;
    contains("log", &agent.log_text(), &["rootless=true", "sandbox=\"namespaces\""])?;
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let enforced = conditions.iter().find(|condition| condition.type_ == "LimitsEnforced");
    let enforced = enforced.context("no condition about limits")?;
    let pods = Pods::open(stage, "limits").await?;
    let here = |name: &str| json!({"nodeSelector": {"kubernetes.io/hostname": name}});
    says(&pods, "free", "true", here(&agent.nodes[0])).await?;
    let mut limited = here(&agent.nodes[0]);
    limited["containers"] = json!([{"resources": {"limits": {"memory": "64Mi", "cpu": "500m"}}}]);
    says(&pods, "limited", "true", limited).await?;
    if enforced.status == "False" {
        let message = enforced.message.as_deref().unwrap_or_default();
        contains("condition", message, &["cgroup"])
            .or_else(|_| contains("condition", message, &["hierarch"]))?;
        pods.until_event("limited", "LimitsNotEnforced").await?;
    }
    let told = |events: Vec<String>| {
        events.iter().filter(|event| event.starts_with("LimitsNotEnforced")).count()
    };
    let expected = usize::from(enforced.status == "False");
    equal("told", told(pods.events("limited").await?), expected)?;
    equal("not told", told(pods.events("free").await?), 0)?;
    ensure!(!agent.log_text().contains("ERROR"), "{}", agent.log_text());
    agent.stop().await
}
