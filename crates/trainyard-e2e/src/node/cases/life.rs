//! The life of pods: run, end, fail, be deleted.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::json;

use super::Shared;
use super::look::{
    Gate, condition, conditions, container, ended, mark, processes, runs, until, verdict, waits,
};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage, exit_code};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["life":
        runs_to_success,
        exit_code_is_kept,
        conditions_over_time,
        ended_by_a_signal,
        out_of_memory,
        last_words,
        events,
        containers_share,
        deleted_with_grace,
        term_is_ignored,
        deleted_by_force,
        deleted_early,
        nothing_is_left,
        deadline,
        disk_over_limit,
    ]
}

async fn runs_to_success(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "success").await?;
    pods.shell("hello", "echo hello from $(hostname)", json!({})).await?;
    let pod = pods.until_phase("hello", "Succeeded").await?;
    let run = ended(&pod, "main")?;
    ensure!(run.exit_code == 0 && run.reason.as_deref() == Some("Completed"), "{run:?}");
    ensure!(run.signal.is_none() && run.message.is_none(), "{run:?}");
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let times = [run.started_at.as_ref(), run.finished_at.as_ref()].map(|time| time.map(|t| t.0));
    ensure!(
        times[0].is_some() && times[0] >= created && times[0] <= times[1],
        "{created:?} {run:?}"
    );
    let status = container(&pod, "main")?;
    ensure!(status.restart_count == 0 && !status.ready, "{status:?}");
    ensure!(
        status.container_id.as_deref().is_some_and(|id| id.starts_with("trainyard://")),
        "{status:?}"
    );
    ensure!(status.container_id == run.container_id, "{status:?}");
    let log = pods.logs(&["hello"]).await?;
    ensure!(log == "hello from hello\n", "{log:?}");
    Ok(())
}

async fn exit_code_is_kept(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "code").await?;
    pods.shell("fails", "exit 7", json!({})).await?;
    let pod = pods.until_phase("fails", "Failed").await?;
    ensure!(exit_code(&pod, "main") == Some(7), "{:?}", pod.status);
    ensure!(ended(&pod, "main")?.reason.as_deref() == Some("Error"), "{:?}", pod.status);
    ensure!(condition(&pod, "Ready") == "False/PodFailed", "{:?}", pod.status);
    Ok(())
}

async fn conditions_over_time(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "conditions").await?, Gate::new()?);
    let wait = |name: &str| {
        let script = format!("until [ -e /gate/{name} ]; do sleep 0.05; done");
        json!({"name": name, "image": "test", "command": ["sh", "-c", script],
            "volumeMounts": [Gate::mount()]})
    };
    let spec = json!({"restartPolicy": "Never", "volumes": [gate.volume()],
        "initContainers": [wait("first")], "containers": [wait("second")]});
    pods.create("staged", spec).await?;
    let pod = pods.until("staged", "initialising", |pod| runs(pod, "first")).await?;
    let phase = |pod: &k8s_openapi::api::core::v1::Pod| pod.status.clone().and_then(|s| s.phase);
    ensure!(phase(&pod).as_deref() == Some("Pending"), "{:?}", pod.status);
    let [scheduled, initialized, containers, ready] = conditions(&pod);
    ensure!(
        scheduled == "True" && initialized == "False/ContainersNotInitialized",
        "{:?}",
        pod.status
    );
    ensure!([&containers, &ready] == ["False/ContainersNotReady"; 2], "{:?}", pod.status);
    ensure!(waits(&pod, "second", "PodInitializing"), "{:?}", pod.status);
    gate.open("first")?;
    let pod = pods.until_phase("staged", "Running").await?;
    ensure!(conditions(&pod) == ["True"; 4], "{:?}", pod.status);
    ensure!(
        container(&pod, "first")?.ready && container(&pod, "second")?.ready,
        "{:?}",
        pod.status
    );
    let status = pod.status.clone().unwrap_or_default();
    ensure!(status.start_time.is_some() && status.host_ip.is_some(), "{status:?}");
    ensure!(status.pod_ip.is_some() && status.pod_ip != status.host_ip, "{status:?}");
    gate.open("second")?;
    let pod = pods.until_phase("staged", "Succeeded").await?;
    let [_, initialized, containers, ready] = conditions(&pod);
    ensure!(initialized == "True/PodCompleted", "{:?}", pod.status);
    ensure!([&containers, &ready] == ["False/PodCompleted"; 2], "{:?}", pod.status);
    Ok(())
}

async fn ended_by_a_signal(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "signal").await?;
    for (name, signal, code) in [("segv", 11, 139), ("kill", 9, 137)] {
        // A kubelet makes one dollar of two.
        pods.shell(name, &format!("kill -{signal} $$$$; sleep 600"), json!({})).await?;
        let pod = pods.until_phase(name, "Failed").await?;
        let run = ended(&pod, "main")?;
        ensure!(run.exit_code == code && run.signal == Some(signal), "{run:?}");
        ensure!(run.reason.as_deref() == Some("Error"), "{run:?}");
    }
    Ok(())
}

async fn out_of_memory(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "memory").await?;
    let limits = json!({"containers": [{"resources": {"limits": {"memory": "48Mi"}}}]});
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let node = nodes.get(&agent.nodes[0]).await?;
    let all = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let enforced = all.iter().find(|condition| condition.type_ == "LimitsEnforced");
    ensure!(enforced.is_some(), "no condition tells whether limits are enforced: {all:?}");
    if enforced.is_some_and(|condition| condition.status == "False") {
        pods.shell("greedy", "true", limits).await?;
        pods.until_phase("greedy", "Succeeded").await?;
        pods.until_event("greedy", "LimitsNotEnforced").await?;
        return Ok(());
    }
    pods.shell("greedy", "exec tail /dev/zero", limits.clone()).await?;
    pods.shell("parent", "tail /dev/zero; echo it was $?; exit 3", limits).await?;
    let pod = pods.until_phase("greedy", "Failed").await?;
    let run = ended(&pod, "main")?;
    ensure!(run.exit_code == 137 && run.reason.as_deref() == Some("OOMKilled"), "{run:?}");
    let pod = pods.until_phase("parent", "Failed").await?;
    let run = ended(&pod, "main")?;
    ensure!(run.exit_code == 3 && run.reason.as_deref() == Some("OOMKilled"), "{run:?}");
    Ok(())
}

async fn last_words(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "words").await?;
    let fall_back = json!({"containers": [{"terminationMessagePolicy": "FallbackToLogsOnError"}]});
    let own = json!({"containers": [{"terminationMessagePath": "/tmp/words"}]});
    let volume = json!([{"name": "v", "mountPath": "/v"}]);
    let link = json!({
        "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [{"name": "first", "image": "test", "volumeMounts": volume,
            "command": ["ln", "-s", "/etc/passwd", "/v/words"]}],
        "containers": [{"terminationMessagePath": "/v/words", "volumeMounts": volume}],
    });
    let rows = [
        ("file", "printf done > /dev/termination-log", json!({}), "done"),
        ("path", "printf here > /tmp/words; exit 1", own, "here"),
        ("log", "echo one; sleep 0.3; echo two >&2; exit 1", fall_back.clone(), "one\ntwo\n"),
        ("both", "echo no; printf yes > /dev/termination-log; exit 1", fall_back.clone(), "yes"),
        ("fine", "echo nothing to say", fall_back, ""),
        ("without", "echo no; exit 1", json!({}), ""),
        ("long", "yes | tr -d '\\n' | head -c 9000 > /dev/termination-log", json!({}), "y*4096"),
        // Read whole, this one took a terabyte of the agent's memory, or none of it was told.
        (
            "long-and-empty",
            "yes | tr -d '\\n' | head -c 9000 > /dev/termination-log; \
             truncate -s 1T /dev/termination-log",
            json!({}),
            "y*4096",
        ),
        (
            "replaced",
            "cd /dev; (rm termination-log; ln -sf /etc/passwd termination-log; \
             mkfifo termination-log) 2>/dev/null; printf own > termination-log",
            json!({}),
            "own",
        ),
        ("link", "printf own > /v/words", link, "own"),
    ];
    for (name, script, more, _) in &rows {
        pods.shell(name, script, more.clone()).await?;
    }
    let mut wrong = Vec::new();
    for (name, _, _, expected) in &rows {
        let pod = pods.until(name, "ended", |pod| exit_code(pod, "main").is_some()).await?;
        let message = ended(&pod, "main")?.message.clone().unwrap_or_default();
        let expected =
            if *expected == "y*4096" { "y".repeat(4096) } else { (*expected).to_owned() };
        if message != expected {
            wrong.push(format!("{name}: {message:?}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join(", "));
    Ok(())
}

async fn events(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "events").await?;
    pods.shell("told", "sleep 600", json!({})).await?;
    let pod = pods.until_phase("told", "Running").await?;
    pods.until_event("told", "Pulled: Container image \"test\"").await?;
    pods.until_event("told", "Created: ").await?;
    pods.until_event("told", "Started: ").await?;
    pods.delete("told", Some(1)).await?;
    pods.until_event("told", "Killing: Stopping container main").await?;
    pods.until_gone("told").await?;
    let words = ["get", "events", "-n", &pods.namespace, "-o", "json"];
    let all = stage.kubectl.run(&words).await?.stdout_of_success()?;
    let all: serde_json::Value = serde_json::from_str(&all)?;
    let of = |reason: &str| {
        all["items"].as_array().and_then(|all| all.iter().find(|event| event["reason"] == reason))
    };
    let Some(started) = of("Started") else { anyhow::bail!("{all}") };
    ensure!(started["involvedObject"]["fieldPath"] == "spec.containers{main}", "{started}");
    ensure!(started["source"]["component"] == "kubelet", "{started}");
    let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
    ensure!(started["source"]["host"] == node, "{started}");
    Ok(())
}

async fn containers_share(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "share").await?;
    let server = "import socket\ns = socket.create_server(('127.0.0.1', 7070))\n\
                  open('/both/up', 'w').close()\nc, _ = s.accept()\nc.sendall(b'over localhost')";
    let client = "import os, socket, time\n\
                  while not os.path.exists('/both/up'): time.sleep(0.05)\n\
                  print(socket.create_connection(('localhost', 7070)).recv(99).decode())";
    let python = |name: &str, program: &str| {
        json!({"name": name, "image": "test", "command": ["/usr/bin/python3", "-c", program],
            "volumeMounts": [{"name": "both", "mountPath": "/both"}]})
    };
    let spec = json!({"restartPolicy": "Never", "volumes": [{"name": "both", "emptyDir": {}}],
        "containers": [python("server", server), python("client", client)]});
    pods.create("pair", spec).await?;
    let pod = pods.until("pair", "ended", |pod| exit_code(pod, "client").is_some()).await?;
    ensure!(exit_code(&pod, "client") == Some(0), "{:?}", pod.status);
    let log = pods.logs(&["pair", "-c", "client"]).await?;
    ensure!(log == "over localhost\n", "{log:?}");
    pods.until_phase("pair", "Succeeded").await?;
    Ok(())
}

async fn deleted_with_grace(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "grace").await?;
    let script = "trap 'echo got TERM; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let pod = pods.shell("sleeper", script, json!({})).await?;
    pods.until_phase("sleeper", "Running").await?;
    let log = async || Ok(pods.logs(&["sleeper"]).await? == "up\n");
    until("the program to be up", log).await?;
    let asked = Instant::now();
    pods.delete("sleeper", Some(60)).await?;
    pods.until_gone("sleeper").await?;
    ensure!(asked.elapsed() < Duration::from_secs(20), "it took {:?}", asked.elapsed());
    // Its log stays, and tells what the program saw.
    let uid = pod.metadata.uid.unwrap_or_default();
    let folder = agent.state.join("logs").join(&pods.namespace).join("sleeper/pod");
    let log = folder.join(format!("sleeper_{uid}/main/0.log"));
    let text = std::fs::read_to_string(&log)?;
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" stdout ")).collect();
    ensure!(lines.len() == 2 && lines[1].ends_with(" stdout F got TERM"), "{text}");
    ensure!(
        lines[0].split(' ').next().is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok()),
        "{text}"
    );
    Ok(())
}

async fn term_is_ignored(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "ignore").await?;
    let mark = mark(stage.number());
    // A child, and one that has left its parent and session.
    let script = format!("trap '' TERM; sleep {mark} & setsid -f sleep {mark}; sleep {mark}");
    pods.shell("deaf", &script, json!({})).await?;
    until("three processes", async || Ok(processes(&mark) == 3)).await?;
    let asked = Instant::now();
    pods.delete("deaf", Some(3)).await?;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    ensure!(processes(&mark) == 3, "it was not given its grace");
    pods.until_gone("deaf").await?;
    let took = asked.elapsed();
    ensure!(processes(&mark) == 0, "{} processes are left", processes(&mark));
    ensure!(took > Duration::from_millis(2500) && took < Duration::from_secs(15), "{took:?}");
    Ok(())
}

async fn deleted_by_force(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "force").await?;
    let mark = mark(stage.number());
    pods.shell("deaf", &format!("trap '' TERM; sleep {mark}"), json!({})).await?;
    until("its process", async || Ok(processes(&mark) == 1)).await?;
    let words = ["delete", "pod", "deaf", "-n", &pods.namespace, "--force", "--grace-period=0"];
    stage.kubectl.run(&words).await?.stdout_of_success()?;
    pods.until_gone("deaf").await?;
    let asked = Instant::now();
    until("the end of its process", async || Ok(processes(&mark) == 0)).await?;
    ensure!(asked.elapsed() < Duration::from_secs(10), "it took {:?}", asked.elapsed());
    Ok(())
}

/// Deleted before it runs, and while it cannot run.
async fn deleted_early(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "early").await?;
    for round in 0..4 {
        let name = format!("short-{round}");
        pods.shell(&name, "sleep 600", json!({})).await?;
        tokio::time::sleep(Duration::from_millis(round * 15)).await;
        pods.delete(&name, None).await?;
        pods.until_gone(&name).await?;
    }
    let volume = json!({
        "volumes": [{"name": "none", "configMap": {"name": "none"}}],
        "containers": [{"volumeMounts": [{"name": "none", "mountPath": "/none"}]}],
    });
    pods.shell("never", "true", volume).await?;
    pods.until_event("never", "FailedMount").await?;
    pods.delete("never", None).await?;
    pods.until_gone("never").await
}

async fn nothing_is_left(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "left").await?;
    let mark = mark(stage.number());
    let script = format!("setsid -f sleep {mark}; sleep {mark} & echo started; exit 0");
    pods.shell("parent", &script, json!({})).await?;
    pods.until_phase("parent", "Succeeded").await?;
    ensure!(processes(&mark) == 0, "{} processes are left", processes(&mark));
    ensure!(pods.logs(&["parent"]).await? == "started\n");
    Ok(())
}

async fn deadline(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "deadline").await?;
    let more = json!({"activeDeadlineSeconds": 2, "terminationGracePeriodSeconds": 1});
    pods.shell("late", "sleep 600", more).await?;
    pods.until_phase("late", "Running").await?;
    let pod = pods.until_phase("late", "Failed").await?;
    let expected = "Pod was active on the node longer than the specified deadline";
    ensure!(verdict(&pod) == ("DeadlineExceeded", expected), "{:?}", pod.status);
    ensure!(exit_code(&pod, "main").is_some_and(|code| code != 0), "{:?}", pod.status);
    pods.until_event("late", "DeadlineExceeded: ").await?;
    Ok(())
}

async fn disk_over_limit(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "disk").await?;
    let more = json!({
        "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "1Mi"}}],
        "containers": [{"volumeMounts": [{"name": "work", "mountPath": "/fill"}]}],
    });
    pods.shell("full", "head -c 3000000 /dev/zero > /fill/data; sleep 600", more).await?;
    let pod = pods.until_phase("full", "Failed").await?;
    let expected = "Usage of EmptyDir volume \"work\" exceeds the limit \"1Mi\". ";
    ensure!(verdict(&pod) == ("Evicted", expected), "{:?}", pod.status);
    pods.until_event("full", "Evicted: ").await?;
    Ok(())
}
