//! Things that are counted, on several nodes of one machine: shown, given, waited for, given back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::{Value, json};

use super::look::{condition, verdict};
use super::objects::{ended, phase, said};
use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage};

const GPU: &str = "nvidia.com/gpu";
const DONGLE: &str = "example.com/dongle";

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(3),
        cases!["devices":
            counted,
            per_node,
        ],
    )
}

fn options(nodes: &[&str], flags: &[&str]) -> AgentOptions {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    AgentOptions { nodes: owned(nodes), flags: owned(flags), ..AgentOptions::default() }
}

/// What a node says pods may ask for.
async fn allocatable(stage: &Stage, node: &str, resource: &str) -> Result<Option<String>> {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let status = nodes.get(node).await?.status.context("a node without a status")?;
    let amounts = status.allocatable.unwrap_or_default();
    Ok(amounts.get(resource).map(|amount| amount.0.clone()))
}

/// A spec's part that asks for some of a resource.
fn asks(resource: &str, count: u32) -> Value {
    json!({"containers": [{"resources": {"limits": {resource: count.to_string()}}}]})
}

async fn counted(stage: &Stage) -> Result<()> {
    let flags = ["--resource=nvidia.com/gpu=2", "--resource=example.com/dongle=1"];
    let agent = Agent::start(stage, options(&["spruce"], &flags)).await?;
    equal("GPUs", allocatable(stage, "spruce", GPU).await?.as_deref(), Some("2"))?;
    equal("dongles", allocatable(stage, "spruce", DONGLE).await?.as_deref(), Some("1"))?;
    let pods = Pods::open(stage, "counted").await?;
    let script = "until [ -e /tmp/go ]; do sleep 0.1; done; echo ${CUDA_VISIBLE_DEVICES-none}";
    pods.shell("one", script, asks(GPU, 1)).await?;
    pods.until_phase("one", "Running").await?;
    // Two are too many beside it: the scheduler waits, and a pod that passes it by is refused.
    pods.shell("two", "echo two", asks(GPU, 2)).await?;
    let unscheduled = |pod: &Pod| condition(pod, "PodScheduled") == "False/Unschedulable";
    pods.until("two", "waiting", unscheduled).await?;
    let mut bound = asks(GPU, 2);
    bound["nodeName"] = json!("spruce");
    pods.shell("bound", "true", bound).await?;
    let pod = ended(&pods, "bound").await?;
    equal("phase", phase(&pod), "Failed")?;
    equal("reason", verdict(&pod).0, "OutOfnvidia.com/gpu")?;
    contains("message", verdict(&pod).1, &["requested: 2", "used: 1", "capacity: 2"])?;
    // Another kind is counted by itself.
    pods.shell("dongle", "echo mine", asks(DONGLE, 1)).await?;
    equal("dongle", said(&pods, "dongle").await?.as_str(), "mine\n")?;
    let words = ["exec", "-n", &pods.namespace, "one", "--", "touch", "/tmp/go"];
    stage.kubectl.run(&words).await?.stdout_of_success()?;
    pods.until_phase("one", "Succeeded").await?;
    equal("two", said(&pods, "two").await?.as_str(), "two\n")?;
    let mut bound = asks(GPU, 2);
    bound["nodeName"] = json!("spruce");
    pods.shell("later", "echo later", bound).await?;
    equal("later", said(&pods, "later").await?.as_str(), "later\n")?;
    agent.stop().await
}

async fn per_node(stage: &Stage) -> Result<()> {
    let flags = [
        "--resource=pine:example.com/dongle=1",
        "--resource=fir:nvidia.com/gpu=4",
        "--node-cpu=700m",
        "--node-memory=300Mi",
    ];
    let agent = Agent::start(stage, options(&["pine", "fir"], &flags)).await?;
    for (node, resource, expected) in [
        ("pine", DONGLE, Some("1")),
        ("fir", DONGLE, None),
        ("fir", GPU, Some("4")),
        ("pine", GPU, None),
        ("pine", "cpu", Some("700m")),
        ("fir", "cpu", Some("700m")),
    ] {
        let shown = allocatable(stage, node, resource).await?;
        // None of them may also be written as a count of nothing.
        let shown = shown.filter(|amount| amount != "0");
        equal(&format!("{resource} of {node}"), shown.as_deref(), expected)?;
    }
    let pods = Pods::open(stage, "per-node").await?;
    let whereabouts = "echo $(hostname)";
    pods.shell("dongle", whereabouts, asks(DONGLE, 1)).await?;
    said(&pods, "dongle").await?;
    let node = pods.get("dongle").await?.spec.and_then(|spec| spec.node_name);
    equal("node", node.as_deref(), Some("pine"))?;
    let mut greedy = json!({"nodeName": "fir"});
    greedy["containers"] = json!([{"resources": {"requests": {"cpu": "800m"}}}]);
    pods.shell("greedy", "true", greedy).await?;
    let pod = ended(&pods, "greedy").await?;
    equal("reason", verdict(&pod).0, "OutOfcpu")?;
    agent.stop().await?;
    wrong_words(stage).await
}

/// What cannot be shared so is said before anything starts.
async fn wrong_words(stage: &Stage) -> Result<()> {
    for (flag, words) in [
        ("--resource=nvidia.com/gpu=some", "is no count"),
        ("--resource=gpu=1", "write DOMAIN/NAME"),
        ("--resource=cpu=1", "--node-cpu"),
        ("--resource=oak:example.com/dongle=1", "oak"),
        ("--node-cpu=none", "--node-cpu"),
    ] {
        let failed = Agent::start(stage, options(&["pine"], &[flag])).await;
        let text = failed.err().map(|error| format!("{error:#}"));
        let text = text.with_context(|| format!("{flag} was taken"))?;
        contains(flag, &text, &[words])?;
    }
    Ok(())
}
