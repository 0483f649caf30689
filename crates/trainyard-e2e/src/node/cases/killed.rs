//! What becomes of running pods when their agent, or its holder, is killed or told to stop. Played at
//! every level of isolation, as root and as an ordinary user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::{Value, json};

use super::look::{condition, container, ended, ended_before, runs, until, verdict};
use super::machine::{Host, Process, Traces, descendants, files_below};
use super::objects::phase;
use crate::check::{contains, equal};
use crate::harness::{Case, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, exit_code};

const LONGEST: Duration = Duration::from_mins(3);
/// All of a killed agent is gone within this time.
const AT_ONCE: Duration = Duration::from_secs(5);

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    let all = vec![
        Case::new("killed/agent", async |stage: &Stage| agent(stage, root()).await),
        Case::new("killed/holder", async |stage: &Stage| holder(stage, root()).await),
        Case::new("killed/stopped", async |stage: &Stage| stopped(stage, root()).await),
        Case::new("killed/replica", replica),
    ];
    within(LONGEST, all)
}

fn root() -> AgentOptions {
    AgentOptions::default()
}

/// A spec's part that puts a pod on the agent's first node; others may be left from other cases.
fn here(options: &AgentOptions, policy: &str) -> Value {
    json!({
        "restartPolicy": policy,
        "nodeSelector": {"kubernetes.io/hostname": options.nodes[0]},
        "automountServiceAccountToken": false,
    })
}

/// Its children and daemons go too.
const BUSY: &str =
    "echo up; (setsid sleep 300 &); sleep 300 & trap '' TERM; while :; do sleep 1; done";

/// Two pods that run, one for each restart policy, and one that has ended.
async fn running(pods: &Pods<'_>, options: &AgentOptions) -> Result<()> {
    pods.shell("done", "echo done", here(options, "Never")).await?;
    pods.shell("never", BUSY, here(options, "Never")).await?;
    let again = "trap 'exit 143' TERM; echo up; while :; do sleep 0.1; done";
    pods.shell("again", again, here(options, "OnFailure")).await?;
    pods.until_phase("done", "Succeeded").await?;
    for name in ["never", "again"] {
        pods.until(name, "running", |pod| runs(pod, "main")).await?;
        // What a killed agent has not yet read of its pods' words is lost.
        until("its word", async || Ok(pods.logs(&[name]).await?.contains("up"))).await?;
    }
    Ok(())
}

/// A killed agent takes everything with it at once; the next one on its folder says what was lost.
pub(super) async fn agent(stage: &Stage, options: AgentOptions) -> Result<()> {
    let (host, mut traces) = (Host::look()?, Traces::default());
    let pods = Pods::open(stage, "killed").await?;
    let first = Agent::start(stage, options.clone()).await?;
    running(&pods, &options).await?;
    let done = pods.get("done").await?;
    traces.look(first.pid);
    ensure!(traces.counts().0 >= 6, "only {:?} of the agent were seen", traces.counts());
    let home = first.state.clone();
    first.kill().await?;
    traces.are_gone(AT_ONCE).await?;
    equal("files of pods", files_below(&home.join("pods")), Vec::<std::path::PathBuf>::new())?;
    host.is_as_before()?;
    let next = Agent::start(stage, AgentOptions { state: Some(home), ..options }).await?;
    lost(&pods).await?;
    // What had ended is left as it was, to the last time of a condition.
    equal("a pod that had ended", pods.get("done").await?.status, done.status)?;
    let log = pods.logs(&["never"]).await?;
    ensure!(log == "up\n", "{log:?}");
    let log = pods.logs(&["again", "--previous"]).await?;
    ensure!(log == "up\n", "{log:?}");
    traces.look(next.pid);
    for name in ["done", "never", "again"] {
        pods.delete(name, Some(1)).await?;
    }
    for name in ["done", "never", "again"] {
        pods.until_gone(name).await?;
    }
    next.stop().await?;
    traces.are_gone(AT_ONCE).await?;
    host.is_as_before()
}

/// Pods that ran are reported lost, and run again where their policy says so.
async fn lost(pods: &Pods<'_>) -> Result<()> {
    let pod = pods.until_phase("never", "Failed").await?;
    let run = ended(&pod, "main")?;
    ensure!(run.exit_code == 137, "{run:?}");
    ensure!(run.reason.as_deref() == Some("ContainerStatusUnknown"), "{run:?}");
    ensure!(condition(&pod, "DisruptionTarget").starts_with("True"), "{:?}", pod.status);
    pods.until_event("never", "ContainerLost").await?;
    let restarted = |pod: &Pod| {
        let count = container(pod, "main").map_or(0, |status| status.restart_count);
        count > 0 && runs(pod, "main")
    };
    let pod = pods.until("again", "running again", restarted).await?;
    ensure!(container(&pod, "main")?.restart_count == 1, "{:?}", pod.status);
    let run = ended_before(&pod, "main")?;
    ensure!(run.reason.as_deref() == Some("ContainerStatusUnknown"), "{run:?}");
    ensure!(condition(&pod, "DisruptionTarget").is_empty(), "{:?}", pod.status);
    Ok(())
}

/// The two processes of an agent's holder, which is its oldest child.
fn holders(agent: u32) -> Vec<Process> {
    let outer = descendants(agent).into_iter().next();
    let inner = outer.iter().flat_map(|outer| descendants(outer.pid)).next();
    outer.into_iter().chain(inner).collect()
}

/// A killed holder, whichever of its processes it was, takes the pods with it; the agent says so and
/// ends, and the next one reports them lost.
pub(super) async fn holder(stage: &Stage, options: AgentOptions) -> Result<()> {
    let (host, mut traces) = (Host::look()?, Traces::default());
    let pods = Pods::open(stage, "holder").await?;
    let mut home = None;
    for depth in [0, 1] {
        let options = AgentOptions { state: home.clone(), ..options.clone() };
        let agent = Agent::start(stage, options.clone()).await?;
        running(&pods, &options).await?;
        traces.look(agent.pid);
        let chain = holders(agent.pid);
        let victim = chain.get(depth).context("the agent has no holder")?;
        let victim = i32::try_from(victim.pid).ok().and_then(rustix::process::Pid::from_raw);
        let victim = victim.context("no process")?;
        rustix::process::kill_process(victim, rustix::process::Signal::KILL)?;
        until("the agent's end", async || Ok(agent.check().is_err())).await?;
        traces.are_gone(AT_ONCE).await.with_context(|| format!("depth {depth}"))?;
        host.is_as_before()?;
        let log = agent.log_text();
        contains("log", &log, &["the pods' holder ended, and every pod with it"])?;
        equal("running still", phase(&pods.get("never").await?), "Running")?;
        let folder = agent.state.clone();
        drop(agent);
        equal("files", files_below(&folder.join("pods")), Vec::<std::path::PathBuf>::new())?;
        home = Some(folder.clone());
        let options = AgentOptions { state: home.clone(), ..options };
        let next = Agent::start(stage, options).await?;
        lost(&pods).await?;
        for name in ["done", "never", "again"] {
            pods.delete(name, Some(1)).await?;
        }
        for name in ["done", "never", "again"] {
            pods.until_gone(name).await?;
        }
        next.stop().await?;
    }
    Ok(())
}

/// An agent that is told to stop ends its pods in order, says so, and takes its nodes out of service.
pub(super) async fn stopped(stage: &Stage, options: AgentOptions) -> Result<()> {
    let mut traces = Traces::default();
    let pods = Pods::open(stage, "stopped").await?;
    let agent = Agent::start(stage, options.clone()).await?;
    running(&pods, &options).await?;
    let script = "trap 'echo asked to end; exit 0' TERM; echo up; while :; do sleep 0.1; done";
    pods.shell("polite", script, here(&options, "Always")).await?;
    pods.until("polite", "running", |pod| runs(pod, "main")).await?;
    traces.look(agent.pid);
    let (home, nodes) = (agent.state.clone(), agent.nodes.clone());
    let began = Instant::now();
    let log = agent.log_path();
    agent.stop().await?;
    // It takes no longer than the one pod that must be killed, which has ten seconds.
    let log = std::fs::read_to_string(log)?;
    ensure!(began.elapsed() < Duration::from_secs(14), "it took {:?}:\n{log}", began.elapsed());
    traces.are_gone(Duration::from_secs(1)).await?;
    for (name, code) in [("never", 137), ("again", 143), ("polite", 0)] {
        let pod = pods.get(name).await?;
        equal("phase", phase(&pod), "Failed")?;
        equal("reason", verdict(&pod).0, "Terminated")?;
        equal("exit code", exit_code(&pod, "main"), Some(code))?;
        ensure!(condition(&pod, "DisruptionTarget").starts_with("True"), "{:?}", pod.status);
    }
    equal("done", phase(&pods.get("done").await?), "Succeeded")?;
    let api: Api<Node> = Api::all(stage.client.clone());
    for node in nodes {
        let node = api.get(&node).await?;
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let ready = ready.context("no word on whether it is ready")?;
        let said = (ready.status.as_str(), ready.reason.as_deref(), ready.message.as_deref());
        let stopped = ("False", Some("AgentStopped"), Some("the node agent has stopped"));
        equal("readiness", said, stopped)?;
    }
    // What has failed stays so under the next agent, whatever the restart policy.
    let before = pods.get("polite").await?.status;
    let next = Agent::start(stage, AgentOptions { state: Some(home), ..options }).await?;
    pods.until_phase("done", "Succeeded").await?;
    let log = pods.logs(&["polite"]).await?;
    contains("log", &log, &["up\n", "asked to end\n"])?;
    for name in ["never", "again", "done"] {
        pods.delete(name, None).await?;
        pods.until_gone(name).await?;
    }
    equal("polite", pods.get("polite").await?.status, before)?;
    let began = Instant::now();
    next.stop().await?;
    // Nothing runs: there is nothing to wait for.
    ensure!(began.elapsed() < Duration::from_secs(4), "it took {:?}", began.elapsed());
    Ok(())
}

/// A replica of a job that was lost is made anew by the operator: exit code 137 is retryable.
async fn replica(stage: &Stage) -> Result<()> {
    let options = root();
    let namespace = stage.namespace("replica").await?;
    let first = Agent::start(stage, options.clone()).await?;
    let mut spec = here(&options, "Never");
    spec["containers"] = json!([{
        "name": "tensorflow", "image": "test", "command": ["sh", "-c", "echo up; exec sleep 300"],
    }]);
    let worker = json!({"replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": spec}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "lost"},
        "spec": {"tfReplicaSpecs": {"Worker": worker}},
    });
    let words = ["apply", "-n", &namespace, "-f", "-"];
    stage.kubectl.run_with_input(&words, &job.to_string()).await?.stdout_of_success()?;
    let api: Api<Pod> = Api::namespaced(stage.client.clone(), &namespace);
    let running = async || {
        let pod = api.get_opt("lost-worker-0").await?;
        Ok::<_, anyhow::Error>(pod.filter(|pod| runs(pod, "tensorflow")))
    };
    until("the worker runs", async || Ok(running().await?.is_some())).await?;
    let uid = running().await?.and_then(|pod| pod.metadata.uid);
    let home = first.state.clone();
    first.kill().await?;
    let next = Agent::start(stage, AgentOptions { state: Some(home), ..options }).await?;
    until("another worker runs", async || {
        Ok(running().await?.is_some_and(|pod| pod.metadata.uid != uid))
    })
    .await?;
    let words = ["delete", "tfjob", "lost", "-n", &namespace, "--cascade=foreground"];
    stage.kubectl.run(&words).await?.stdout_of_success()?;
    next.stop().await
}
