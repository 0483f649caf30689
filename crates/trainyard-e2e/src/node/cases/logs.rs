//! Logs, read with the real kubectl.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::Shared;
use super::look::{Gate, runs, waits};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["logs":
        parts_of_it,
        followed_to_the_end,
        follower_goes,
        of_each_container,
        of_no_run,
        odd_output,
        kept_after_deletion,
    ]
}

async fn parts_of_it(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "parts").await?;
    let script = "for i in 1 2 3 4 5; do echo line $i; done; echo wrong >&2";
    pods.shell("talker", script, json!({})).await?;
    pods.until_phase("talker", "Succeeded").await?;
    let all = pods.logs(&["talker"]).await?;
    let mut lines: Vec<&str> = all.lines().collect();
    lines.sort_unstable();
    let expected = ["line 1", "line 2", "line 3", "line 4", "line 5", "wrong"];
    ensure!(lines == expected, "{all:?}");
    let last: String = all.lines().skip(4).fold(String::new(), |all, line| all + line + "\n");
    let rows = [
        (vec!["--tail=2"], last.as_str()),
        (vec!["--tail=0"], ""),
        (vec!["--tail=99"], all.as_str()),
        (vec!["--limit-bytes=10"], &all[..10]),
        (vec!["--since=1h"], all.as_str()),
        (vec!["--since-time=2000-01-01T00:00:00Z"], all.as_str()),
        (vec!["-f"], all.as_str()),
    ];
    for (words, expected) in rows {
        let shown = pods.logs(&[&["talker"][..], &words].concat()).await?;
        ensure!(shown == expected, "{words:?} shows {shown:?}");
    }
    let stamped = pods.logs(&["talker", "--timestamps"]).await?;
    for (stamped, plain) in stamped.lines().zip(all.lines()) {
        let (time, text) = stamped.split_once(' ').context("no time")?;
        ensure!(time.parse::<jiff::Timestamp>().is_ok() && text == plain, "{stamped:?}");
    }
    ensure!(stamped.lines().count() == 6, "{stamped:?}");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let recent = pods.logs(&["talker", "--since=1s"]).await?;
    ensure!(recent.is_empty(), "{recent:?}");
    Ok(())
}

/// A follower sees each line as it comes and ends with the container.
async fn followed_to_the_end(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "follow").await?, Gate::new()?);
    let script = "echo one; until [ -e /gate/two ]; do sleep 0.05; done; echo two; \
                  until [ -e /gate/end ]; do sleep 0.05; done; echo three; exit 1";
    pods.shell("slow", script, gate.spec()).await?;
    pods.until_phase("slow", "Running").await?;
    let words = ["logs", "-f", "slow", "-n", &pods.namespace];
    let mut child = stage.kubectl.command(&words).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let next = async |lines: &mut tokio::io::Lines<BufReader<tokio::process::ChildStdout>>| {
        tokio::time::timeout(Duration::from_secs(30), lines.next_line())
            .await
            .context("nothing came")?
            .context("unreadable")
    };
    ensure!(next(&mut lines).await?.as_deref() == Some("one"));
    gate.open("two")?;
    ensure!(next(&mut lines).await?.as_deref() == Some("two"));
    gate.open("end")?;
    ensure!(next(&mut lines).await?.as_deref() == Some("three"));
    ensure!(next(&mut lines).await?.is_none(), "it goes on after the container's end");
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await??;
    ensure!(status.success(), "kubectl logs -f ended with {status}");
    Ok(())
}

/// A follower that goes away disturbs nobody.
async fn follower_goes(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "goes").await?, Gate::new()?);
    let script = "while [ ! -e /gate/end ]; do echo tick; sleep 0.02; done; echo last";
    pods.shell("ticker", script, gate.spec()).await?;
    pods.until_phase("ticker", "Running").await?;
    for _ in 0..3 {
        let words = ["logs", "-f", "ticker", "-n", &pods.namespace];
        let mut child = stage.kubectl.command(&words).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        ensure!(lines.next_line().await?.as_deref() == Some("tick"));
        child.kill().await?;
    }
    gate.open("end")?;
    pods.until_phase("ticker", "Succeeded").await?;
    ensure!(pods.logs(&["ticker", "--tail=1"]).await? == "last\n");
    Ok(())
}

async fn of_each_container(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "each").await?;
    let echo = |name: &str| json!({"name": name, "image": "test", "command": ["echo", format!("I am {name}")]});
    let spec = json!({"restartPolicy": "Never", "initContainers": [echo("before")],
        "containers": [echo("left"), echo("right")]});
    pods.create("three", spec).await?;
    pods.until_phase("three", "Succeeded").await?;
    for name in ["before", "left", "right"] {
        let log = pods.logs(&["three", "-c", name]).await?;
        ensure!(log == format!("I am {name}\n"), "{name}: {log:?}");
    }
    let all = pods.logs(&["three", "--all-containers", "--prefix"]).await?;
    ensure!(all.contains("[pod/three/right] I am right"), "{all:?}");
    let words = ["logs", "-n", &pods.namespace, "three", "-c", "none"];
    let error = stage.kubectl.run(&words).await?.stderr_of_failure()?;
    ensure!(error.contains("container none is not valid for pod three"), "{error}");
    Ok(())
}

async fn of_no_run(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "norun").await?;
    let spec = json!({"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "nothing-here", "command": ["true"]}]});
    pods.create("waits", spec).await?;
    pods.until("waits", "waiting", |pod| waits(pod, "main", "ErrImagePull")).await?;
    let logs = async |words: &[&str]| {
        let all = [&["logs", "-n", pods.namespace.as_str()][..], words].concat();
        stage.kubectl.run(&all).await?.stderr_of_failure()
    };
    let error = logs(&["waits"]).await?;
    let expected = "container \"main\" in pod \"waits\" is waiting to start";
    ensure!(error.contains(expected), "{error}");
    pods.shell("once", "exec sleep 600", json!({})).await?;
    pods.until("once", "running", |pod| runs(pod, "main")).await?;
    let error = logs(&["once", "--previous"]).await?;
    let expected = "previous terminated container \"main\" in pod \"once\" not found";
    ensure!(error.contains(expected), "{error}");
    Ok(())
}

/// Lines without an end, very long ones, and bytes that are no text.
async fn odd_output(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "odd").await?;
    let script = "head -c 40000 /dev/zero | tr '\\0' x; echo; printf '\\377\\n'; printf end";
    pods.shell("odd", script, json!({})).await?;
    pods.until_phase("odd", "Succeeded").await?;
    let words = ["logs", "-n", &pods.namespace, "odd"];
    let output = stage.kubectl.command(&words).output().await?;
    let mut expected = vec![b'x'; 40000];
    expected.extend(b"\n\xff\nend");
    let shown = &output.stdout;
    ensure!(*shown == expected, "{} bytes, {:?}", shown.len(), &shown[shown.len().min(39990)..]);
    Ok(())
}

async fn kept_after_deletion(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "kept").await?;
    let labels = json!({"training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "3"});
    let api: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::namespaced(stage.client.clone(), &pods.namespace);
    let pod = json!({"metadata": {"name": "mnist-worker-3", "labels": labels}, "spec": {
        "restartPolicy": "OnFailure",
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "tensorflow", "image": "test",
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "command": ["sh", "-c", "[ -e /v/x ] && echo good && exit; touch /v/x; echo bad; exit 1"]}],
    }});
    let pod = api.create(&kube::api::PostParams::default(), &serde_json::from_value(pod)?).await?;
    pods.until_phase("mnist-worker-3", "Succeeded").await?;
    pods.delete("mnist-worker-3", None).await?;
    pods.until_gone("mnist-worker-3").await?;
    let uid = pod.metadata.uid.unwrap_or_default();
    let folder = agent.state.join("logs").join(&pods.namespace).join("mnist/worker-3");
    let folder = folder.join(format!("mnist-worker-3_{uid}/tensorflow"));
    for (attempt, word) in [("0.log", "bad"), ("1.log", "good")] {
        let text = std::fs::read_to_string(folder.join(attempt))?;
        ensure!(text.ends_with(&format!(" stdout F {word}\n")), "{attempt}: {text:?}");
    }
    Ok(())
}
