//! Containers that are run again: by which policy, when, and what is told of the run before. Init
//! containers.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Shared;
use super::look::{Gate, container, ended, ended_before, runs, waiting, waits};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage, exit_code};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["restart":
        on_failure_backs_off,
        always,
        never,
        fresh_root,
        deleted_in_back_off,
        init_in_order,
        init_fails,
        init_again,
    ]
}

/// Fails twice, then succeeds: the first restart comes at once, the second after ten seconds.
async fn on_failure_backs_off(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "crash").await?, Gate::new()?);
    let script = "date +%s.%N >> /gate/runs; n=$(wc -l < /gate/runs); echo run $n; \
                  [ $n -ge 3 ] || exit $n";
    let mut more = gate.spec();
    more["restartPolicy"] = json!("OnFailure");
    pods.shell("crash", script, more).await?;
    let looping = |pod: &_| waits(pod, "main", "CrashLoopBackOff");
    let pod = pods.until("crash", "in a crash loop", looping).await?;
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let message = waiting(&pod, "main").and_then(|waiting| waiting.message.clone());
    let expected = format!(
        "back-off 10s restarting failed container=main pod=crash_{}({uid})",
        pods.namespace
    );
    ensure!(message.as_deref() == Some(expected.as_str()), "{message:?}");
    ensure!(container(&pod, "main")?.restart_count == 1, "{:?}", pod.status);
    ensure!(ended_before(&pod, "main")?.exit_code == 2, "{:?}", pod.status);
    let status = pod.status.clone().unwrap_or_default();
    ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
    // While it waits, the last run's log is at hand under both names.
    ensure!(pods.logs(&["crash"]).await? == "run 2\n");
    ensure!(pods.logs(&["crash", "--previous"]).await? == "run 2\n");
    pods.until_event("crash", "BackOff: Back-off restarting failed container main").await?;
    let pod = pods.until_phase("crash", "Succeeded").await?;
    ensure!(container(&pod, "main")?.restart_count == 2, "{:?}", pod.status);
    let before = ended_before(&pod, "main")?;
    ensure!(before.exit_code == 2 && before.reason.as_deref() == Some("Error"), "{before:?}");
    ensure!(before.container_id != ended(&pod, "main")?.container_id, "{:?}", pod.status);
    ensure!(pods.logs(&["crash"]).await? == "run 3\n");
    ensure!(pods.logs(&["crash", "--previous"]).await? == "run 2\n");
    let times: Vec<f64> = gate.read("runs").lines().map_while(|line| line.parse().ok()).collect();
    ensure!(times.len() == 3, "{times:?}");
    ensure!(times[1] - times[0] < 5.0, "the first restart waited: {times:?}");
    ensure!((9.5..20.0).contains(&(times[2] - times[1])), "the second did not wait: {times:?}");
    Ok(())
}

async fn always(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "always").await?, Gate::new()?);
    let script = "[ -e /gate/once ] && exec sleep 600; touch /gate/once";
    let mut more = gate.spec();
    more["restartPolicy"] = json!("Always");
    pods.shell("again", script, more).await?;
    let second = |pod: &_| runs(pod, "main") && ended_before(pod, "main").is_ok();
    let pod = pods.until("again", "running again", second).await?;
    let status = container(&pod, "main")?;
    ensure!(status.restart_count == 1 && status.ready, "{status:?}");
    let before = ended_before(&pod, "main")?;
    ensure!(before.exit_code == 0 && before.reason.as_deref() == Some("Completed"), "{before:?}");
    let running = status.state.as_ref().and_then(|state| state.running.clone());
    let since = running.and_then(|running| running.started_at).context("no start")?.0;
    let finished = before.finished_at.as_ref().context("no end")?.0;
    ensure!(since >= finished && since <= Timestamp::now(), "{since} {finished}");
    Ok(())
}

async fn never(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "never").await?, Gate::new()?);
    pods.shell("once", "echo x >> /gate/runs; exit 1", gate.spec()).await?;
    pods.until_phase("once", "Failed").await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pod = pods.get("once").await?;
    ensure!(gate.read("runs") == "x\n" && container(&pod, "main")?.restart_count == 0);
    Ok(())
}

/// What a run wrote beside its volumes is gone; what it wrote to a volume is not.
async fn fresh_root(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "fresh").await?;
    let script = "ls /tmp/mine /keep/mine 2>/dev/null; touch /tmp/mine; \
                  [ -e /keep/mine ] || { touch /keep/mine; exit 1; }";
    let more = json!({
        "restartPolicy": "OnFailure",
        "volumes": [{"name": "keep", "emptyDir": {}}],
        "containers": [{"volumeMounts": [{"name": "keep", "mountPath": "/keep"}]}],
    });
    pods.shell("fresh", script, more).await?;
    pods.until_phase("fresh", "Succeeded").await?;
    let log = pods.logs(&["fresh"]).await?;
    ensure!(log == "/keep/mine\n", "{log:?}");
    Ok(())
}

async fn deleted_in_back_off(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "off").await?;
    pods.shell("crash", "exit 1", json!({"restartPolicy": "Always"})).await?;
    pods.until("crash", "in a crash loop", |pod| waits(pod, "main", "CrashLoopBackOff")).await?;
    let asked = std::time::Instant::now();
    pods.delete("crash", None).await?;
    pods.until_gone("crash").await?;
    ensure!(asked.elapsed() < Duration::from_secs(5), "it took {:?}", asked.elapsed());
    Ok(())
}

fn step(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "test", "command": ["sh", "-c", script],
        "volumeMounts": [Gate::mount()]})
}

async fn init_in_order(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "order").await?, Gate::new()?);
    let slow = "sleep 0.3; echo a >> /gate/order";
    let spec = json!({"restartPolicy": "Never", "volumes": [gate.volume()],
        "initContainers": [step("a", slow), step("b", "echo b >> /gate/order")],
        "containers": [step("main", "echo main >> /gate/order")]});
    pods.create("steps", spec).await?;
    let pod = pods.until_phase("steps", "Succeeded").await?;
    ensure!(gate.read("order") == "a\nb\nmain\n", "{:?}", gate.read("order"));
    for name in ["a", "b"] {
        ensure!(ended(&pod, name)?.reason.as_deref() == Some("Completed"), "{:?}", pod.status);
        ensure!(container(&pod, name)?.ready, "{:?}", pod.status);
    }
    pods.until_event("steps", "Started: ").await?;
    Ok(())
}

async fn init_fails(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "initfail").await?, Gate::new()?);
    let spec = json!({"restartPolicy": "Never", "volumes": [gate.volume()],
        "initContainers": [step("first", "exit 4"), step("next", "touch /gate/next")],
        "containers": [step("main", "touch /gate/main")]});
    pods.create("stuck", spec).await?;
    let pod = pods.until_phase("stuck", "Failed").await?;
    ensure!(exit_code(&pod, "first") == Some(4), "{:?}", pod.status);
    ensure!(waits(&pod, "main", "PodInitializing"), "{:?}", pod.status);
    ensure!(waits(&pod, "next", "PodInitializing"), "{:?}", pod.status);
    tokio::time::sleep(Duration::from_millis(500)).await;
    ensure!(!gate.has("next") && !gate.has("main"), "something ran after the failure");
    Ok(())
}

async fn init_again(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "initagain").await?, Gate::new()?);
    let script = "echo x >> /gate/tries; [ $(wc -l < /gate/tries) -ge 2 ]";
    let spec = json!({"restartPolicy": "OnFailure", "volumes": [gate.volume()],
        "initContainers": [step("tries", script)], "containers": [step("main", "true")]});
    pods.create("twice", spec).await?;
    let pod = pods.until_phase("twice", "Succeeded").await?;
    let status = container(&pod, "tries")?;
    ensure!(status.restart_count == 1 && exit_code(&pod, "tries") == Some(0), "{status:?}");
    ensure!(ended_before(&pod, "tries")?.exit_code == 1, "{status:?}");
    ensure!(container(&pod, "main")?.restart_count == 0, "{:?}", pod.status);
    Ok(())
}
