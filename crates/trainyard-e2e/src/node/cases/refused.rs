//! Pods that cannot run: each says what is wrong and where, as a kubelet would, and the node goes on.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::Shared;
use super::look::{container, ended, verdict, waiting, waits};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage, exit_code};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["refused":
        missing_program,
        no_command,
        unknown_image,
        packages_of_a_pods_own,
        bad_reference,
        missing_volume,
        missing_path,
        too_much,
        port_clash,
        not_this_node,
        port_in_use_inside,
    ]
}

/// The node takes and runs another pod.
async fn goes_on(pods: &Pods<'_>) -> Result<()> {
    pods.shell("after", "true", json!({})).await?;
    pods.until_phase("after", "Succeeded").await?;
    Ok(())
}

fn message(pod: &Pod) -> String {
    waiting(pod, "main").and_then(|waiting| waiting.message.clone()).unwrap_or_default()
}

async fn missing_program(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "program").await?;
    for (name, program) in [("path", "/opt/no-such-program"), ("word", "no-such-program")] {
        let spec = json!({"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "test", "command": [program]}]});
        pods.create(name, spec).await?;
        let pod = pods.until_phase(name, "Failed").await?;
        let run = ended(&pod, "main")?;
        ensure!(run.reason.as_deref() == Some("StartError") && run.exit_code == 127, "{run:?}");
        let words = run.message.clone().unwrap_or_default();
        ensure!(words.contains(program), "{words:?}");
        pods.until_event(name, "Failed: Error: ").await?;
    }
    goes_on(&pods).await
}

async fn no_command(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "command").await?;
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "test"}]});
    pods.create("empty", spec).await?;
    let waits = |pod: &Pod| waits(pod, "main", "CreateContainerError");
    let pod = pods.until("empty", "refused", waits).await?;
    ensure!(message(&pod).contains("no command specified"), "{:?}", message(&pod));
    pods.until_event("empty", "Failed: Error: ").await?;
    pods.delete("empty", None).await?;
    pods.until_gone("empty").await?;
    goes_on(&pods).await
}

/// Before it was asked for, whoever might make a pod had packages built by the agent, as its own user.
async fn packages_of_a_pods_own(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "packages").await?;
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "asks", "annotations": {"trainyard.dev/requirements": "six"}},
        "spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "test", "command": ["true"]}]},
    }))?;
    let api: Api<Pod> = Api::namespaced(stage.client.clone(), &pods.namespace);
    api.create(&PostParams::default(), &pod).await?;
    let waits = |pod: &Pod| waits(pod, "main", "CreateContainerConfigError");
    let pod = pods.until("asks", "refused", waits).await?;
    ensure!(message(&pod).contains("--allow-requirements"), "{:?}", message(&pod));
    pods.until_event("asks", "Failed: Error: annotation trainyard.dev/requirements").await?;
    pods.delete("asks", None).await?;
    pods.until_gone("asks").await?;
    goes_on(&pods).await
}

async fn unknown_image(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "image").await?;
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "registry.example.com/team/trainer:v7", "command": ["true"]}]});
    pods.create("strange", spec).await?;
    let pod = pods.until("strange", "refused", |pod| waits(pod, "main", "ErrImagePull")).await?;
    let words = message(&pod);
    for remedy in
        ["registry.example.com/team/trainer:v7", "--image", "env:", "host", "trainyard.toml"]
    {
        ensure!(words.contains(remedy), "{remedy:?} is not in {words:?}");
    }
    let back = |pod: &Pod| waits(pod, "main", "ImagePullBackOff");
    let pod = pods.until("strange", "backing off", back).await?;
    ensure!(message(&pod).starts_with("Back-off pulling image"), "{:?}", message(&pod));
    let image = "\"registry.example.com/team/trainer:v7\"";
    pods.until_event("strange", &format!("Failed: Failed to pull image {image}: ")).await?;
    pods.until_event("strange", "Failed: Error: ErrImagePull").await?;
    pods.until_event("strange", &format!("BackOff: Back-off pulling image {image}")).await?;
    ensure!(container(&pod, "main")?.restart_count == 0, "{:?}", pod.status);
    goes_on(&pods).await
}

async fn config_map(pods: &Pods<'_>, name: &str) -> Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(pods.stage.client.clone(), &pods.namespace);
    let map = json!({"metadata": {"name": name}, "data": {"key": "value"}});
    api.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    Ok(())
}

/// It waits for what is missing, and runs when it is there.
async fn bad_reference(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "reference").await?;
    let env = |reference: Value| json!({"containers": [{"env": [{"name": "X", "valueFrom": reference}]}]});
    let map = env(json!({"configMapKeyRef": {"name": "later", "key": "key"}}));
    let secret = env(json!({"secretKeyRef": {"name": "none", "key": "key"}}));
    pods.shell("map", "echo $X", map).await?;
    pods.shell("secret", "echo $X", secret).await?;
    let refused = |pod: &Pod| waits(pod, "main", "CreateContainerConfigError");
    let pod = pods.until("secret", "refused", refused).await?;
    ensure!(message(&pod) == "secret \"none\" not found", "{:?}", message(&pod));
    pods.until_event("secret", "Failed: Error: secret \"none\" not found").await?;
    let pod = pods.until("map", "refused", refused).await?;
    ensure!(message(&pod) == "configmap \"later\" not found", "{:?}", message(&pod));
    config_map(&pods, "later").await?;
    pods.until_phase("map", "Succeeded").await?;
    ensure!(pods.logs(&["map"]).await? == "value\n");
    Ok(())
}

async fn missing_volume(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "volume").await?;
    let more = json!({
        "volumes": [{"name": "settings", "configMap": {"name": "later"}}],
        "containers": [{"volumeMounts": [{"name": "settings", "mountPath": "/settings"}]}],
    });
    pods.shell("reader", "cat /settings/key", more).await?;
    let words = "FailedMount: MountVolume.SetUp failed for volume \"settings\" : ";
    let event = pods.until_event("reader", words).await?;
    ensure!(event.contains("configmap \"later\" not found"), "{event}");
    let pod = pods.get("reader").await?;
    ensure!(waits(&pod, "main", "ContainerCreating"), "{:?}", pod.status);
    config_map(&pods, "later").await?;
    pods.until_phase("reader", "Succeeded").await?;
    ensure!(pods.logs(&["reader"]).await? == "value");
    Ok(())
}

async fn missing_path(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "path").await?;
    let volume =
        json!({"name": "data", "hostPath": {"path": "/no/such/folder", "type": "Directory"}});
    let more = json!({"volumes": [volume],
        "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/data"}]}]});
    pods.shell("reader", "true", more).await?;
    let event = pods.until_event("reader", "FailedMount: ").await?;
    ensure!(event.contains("/no/such/folder") && event.contains("directory"), "{event}");
    pods.delete("reader", None).await?;
    pods.until_gone("reader").await?;
    goes_on(&pods).await
}

/// Pods that name their node are not asked by the scheduler: the node itself refuses them.
async fn too_much(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "much").await?;
    for (resource, amount) in [("cpu", "900"), ("memory", "900Ti")] {
        let more = json!({"nodeName": agent.nodes[0],
            "containers": [{"resources": {"requests": {resource: amount}}}]});
        pods.shell(resource, "true", more).await?;
        let pod = pods.until_phase(resource, "Failed").await?;
        let (reason, message) = verdict(&pod);
        ensure!(reason == format!("OutOf{resource}"), "{:?}", pod.status);
        let words = format!("Node didn't have enough resource: {resource}, requested: ");
        ensure!(message.contains(&words), "{message:?}");
        ensure!(exit_code(&pod, "main").is_none(), "it ran: {:?}", pod.status);
        pods.until_event(resource, &words).await?;
        // A refused pod can be deleted like any other.
        pods.delete(resource, None).await?;
        pods.until_gone(resource).await?;
    }
    goes_on(&pods).await
}

async fn port_clash(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "ports").await?;
    let more = json!({"nodeName": agent.nodes[1], "hostNetwork": true,
        "containers": [{"ports": [{"containerPort": 4711, "hostPort": 4711}]}]});
    pods.shell("first", "exec sleep 600", more.clone()).await?;
    pods.until_phase("first", "Running").await?;
    pods.shell("second", "true", more.clone()).await?;
    let pod = pods.until_phase("second", "Failed").await?;
    let (reason, message) = verdict(&pod);
    ensure!(reason == "NodePorts", "{:?}", pod.status);
    ensure!(message.contains("didn't have free ports for the requested pod ports"), "{message:?}");
    // A port is free again with its pod.
    pods.delete("first", Some(1)).await?;
    pods.until_gone("first").await?;
    pods.shell("third", "true", more).await?;
    pods.until_phase("third", "Succeeded").await?;
    Ok(())
}

async fn not_this_node(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "affinity").await?;
    let label = format!("test.example.com/{}", pods.namespace);
    let more = json!({"nodeName": agent.nodes[0], "nodeSelector": {label.clone(): "yes"}});
    pods.shell("wrong", "true", more.clone()).await?;
    let pod = pods.until_phase("wrong", "Failed").await?;
    ensure!(verdict(&pod).0 == "NodeAffinity", "{:?}", pod.status);
    // A label that was given just now counts.
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let patch = json!({"metadata": {"labels": {label: "yes"}}});
    nodes.patch(&agent.nodes[0], &PatchParams::default(), &Patch::Merge(patch)).await?;
    pods.shell("right", "true", more).await?;
    pods.until_phase("right", "Succeeded").await?;
    Ok(())
}

/// Containers of one pod have one network: the second that takes a port is told so.
async fn port_in_use_inside(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "inuse").await?;
    let program = "import socket, os, time\n\
                   while not os.path.exists('/both/first') and os.environ['ME'] == 'b': time.sleep(0.05)\n\
                   s = socket.create_server(('', 7071))\nopen('/both/first', 'w').close()\n\
                   while not os.path.exists('/both/end'): time.sleep(0.05)";
    let container = |name: &str| {
        let line = format!(
            "export ME={name}; /usr/bin/python3 -c \"$PROGRAM\"; c=$?; touch /both/end; exit $c"
        );
        json!({"name": name, "image": "test", "command": ["sh", "-c", line],
            "env": [{"name": "PROGRAM", "value": program}],
            "volumeMounts": [{"name": "both", "mountPath": "/both"}]})
    };
    let spec = json!({"restartPolicy": "Never", "volumes": [{"name": "both", "emptyDir": {}}],
        "containers": [container("a"), container("b")]});
    pods.create("pair", spec).await?;
    let pod = pods.until_phase("pair", "Failed").await?;
    ensure!(exit_code(&pod, "a") == Some(0) && exit_code(&pod, "b") == Some(1), "{:?}", pod.status);
    let log = pods.logs(&["pair", "-c", "b"]).await?;
    ensure!(log.contains("Address already in use"), "{log}");
    Ok(())
}
