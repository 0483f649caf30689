//! What becomes of a pod template: everything in it survives, and little is added.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::{contains, equal, fields, has_line, no_line};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["pods":
        the_template_survives,
        a_sidecar_is_left_alone,
        ports_of_the_template,
        restart_policy_of_the_template,
        restart_policy_of_the_replica_wins,
        last_words_are_kept,
        how_long_a_lost_node_is_tolerated,
        a_template_the_server_refuses,
    ]
}

async fn how_long_a_lost_node_is_tolerated(world: World) -> Result<()> {
    let job = tfjob("a")
        .workers(1)
        .spec("tensorBoard", json!({"logDir": "/logs"}))
        .run_policy("nodeLossTolerationSeconds", 20);
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-tensorboard-0", "a-worker-0"]).await?;
    for pod in ["a-tensorboard-0", "a-worker-0"] {
        let tolerations = seen.pod(pod)["spec"]["tolerations"].as_array();
        let mut found: Vec<(&str, i64)> = tolerations
            .into_iter()
            .flatten()
            .map(|one| (text(&one["key"]), one["tolerationSeconds"].as_i64().unwrap_or(-1)))
            .collect();
        found.sort_unstable();
        let wanted = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
        equal(pod, found, wanted.map(|key| (key, 20)).to_vec())?;
    }
    Ok(())
}

fn rich_template() -> Value {
    json!({
        "metadata": {
            "labels": {"team": "vision", "training.kubeflow.org/job-name": "mine"},
            "annotations": {"sidecar.istio.io/inject": "false"},
            "creationTimestamp": null,
        },
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "schedulerName": "another",
            "terminationGracePeriodSeconds": 7,
            "initContainers": [{"name": "fetch", "image": "example.com/fetch:2"}],
            "containers": [{
                "name": "tensorflow", "image": "example.com/train:1",
                "command": ["python", "train.py"], "args": ["--steps=10"],
                "env": [{"name": "A", "value": "1"}],
                "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

async fn the_template_survives(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).edit("Worker", |spec| {
        spec["template"] = rich_template();
    });
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    let wanted = [
        ("/metadata/labels/team", json!("vision")),
        // Ours wins over one of the same key.
        ("/metadata/labels/training.kubeflow.org~1job-name", json!("a")),
        ("/metadata/annotations", json!({"sidecar.istio.io/inject": "false"})),
        ("/spec/nodeSelector", json!({"disk": "ssd"})),
        ("/spec/tolerations/0/key", json!("gpu")),
        ("/spec/schedulerName", json!("another")),
        ("/spec/terminationGracePeriodSeconds", json!(7)),
        ("/spec/initContainers/0/image", json!("example.com/fetch:2")),
        ("/spec/volumes/0", json!({"name": "data", "emptyDir": {}})),
        ("/spec/containers/0/command", json!(["python", "train.py"])),
        ("/spec/containers/0/args", json!(["--steps=10"])),
        ("/spec/containers/0/env", json!([{"name": "A", "value": "1"}])),
        ("/spec/containers/0/resources/limits/nvidia.com~1gpu", json!("1")),
        ("/spec/containers/0/volumeMounts/0/mountPath", json!("/data")),
    ];
    fields("pod", seen.pod("a-worker-0"), &wanted)
}

async fn a_sidecar_is_left_alone(world: World) -> Result<()> {
    let job = tfjob("a").workers(2).edit("Worker", |spec| {
        let containers = spec["template"]["spec"]["containers"].as_array_mut();
        if let Some(containers) = containers {
            containers.insert(
                0,
                json!({"name": "proxy", "image": "example.com/proxy:3",
                    "ports": [{"name": "admin", "containerPort": 15000}]}),
            );
        }
    });
    world.submit(job).await?;
    world.wait_services(&["a-worker-0", "a-worker-1"]).await?;
    let seen = world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    let proxy = &seen.pod("a-worker-0")["spec"]["containers"][0];
    equal("order of containers", &proxy["name"], "proxy")?;
    ensure!(proxy["env"].is_null(), "the sidecar got {}", proxy["env"]);
    let count = |list: &Value| list.as_array().map(Vec::len);
    equal("ports of the sidecar", count(&proxy["ports"]), Some(1))?;
    let config = seen.env("a-worker-0", "TF_CONFIG");
    ensure!(config.is_some(), "no TF_CONFIG for tensorflow");
    let ports = &seen.service("a-worker-0")["spec"]["ports"];
    equal("only the training container's ports", count(ports), Some(1))
}

async fn ports_of_the_template(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).ps(1).container("Worker", |container| {
        container["ports"] = json!([
            {"name": "profiler", "containerPort": 6009},
            {"name": "tfjob-port", "containerPort": 3333},
        ]);
    });
    world.submit(job).await?;
    let seen = world.wait_services(&["a-ps-0", "a-worker-0"]).await?;
    let ports = seen.service("a-worker-0")["spec"]["ports"].clone();
    let mut ports: Vec<(String, Option<i64>)> = ports
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|port| (text(&port["name"]).to_owned(), port["port"].as_i64()))
        .collect();
    ports.sort();
    let wanted = [("profiler", 6009), ("tfjob-port", 3333)];
    let wanted = wanted.map(|(name, port)| (name.to_owned(), Some(port)));
    equal("ports of the service", ports, wanted)?;
    let seen = world.wait_pods(&["a-ps-0", "a-worker-0"]).await?;
    let ports = seen.container("a-worker-0")["ports"].as_array().map(Vec::len);
    equal("no port is added", ports, Some(2))?;
    let config = seen.env("a-ps-0", "TF_CONFIG").unwrap_or_default();
    let address = format!("a-worker-0.{}.svc:3333", world.namespace);
    ensure!(config.contains(&address), "{config}");
    Ok(())
}

fn policy_in_template(spec: &mut Value) {
    spec["template"]["spec"]["restartPolicy"] = "OnFailure".into();
}

async fn restart_policy_of_the_template(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).edit("Worker", policy_in_template);
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    let policy = &seen.pod("a-worker-0")["spec"]["restartPolicy"];
    equal("pod policy", policy, "OnFailure")?;
    let created = "Normal SuccessfulCreatePod";
    let seen = world.wait_until("creation is told", |seen| seen.told("a", created)).await?;
    no_line("nothing is overwritten", &seen.events("a"), "Warning SettedPodTemplate")
}

async fn restart_policy_of_the_replica_wins(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).restart("Always").edit("Worker", policy_in_template);
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    equal("pod policy", &seen.pod("a-worker-0")["spec"]["restartPolicy"], "Always")?;
    let seen = world
        .wait_until("creation is told", |seen| {
            seen.told("a", "Normal SuccessfulCreatePod") && seen.told("a", "Warning")
        })
        .await?;
    has_line(
        "what was overwritten is told",
        &seen.events("a"),
        "Warning SettedPodTemplateRestartPolicy Restart policy in pod template will be \
         overwritten by restart policy in replica spec",
    )
}

async fn last_words_are_kept(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    let job = tfjob("b").workers(1).container("Worker", |container| {
        container["terminationMessagePolicy"] = "File".into();
    });
    world.submit(job).await?;
    let seen = world.wait_pods(&["a-worker-0", "b-worker-0"]).await?;
    let policy = |pod| seen.container(pod)["terminationMessagePolicy"].clone();
    equal("left unset", policy("a-worker-0"), "FallbackToLogsOnError")?;
    equal("set", policy("b-worker-0"), "File")
}

/// What no schema sees: the pod mounts a volume that it does not have. It will never be accepted.
async fn a_template_the_server_refuses(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(1).container("Worker", |container| {
        container["volumeMounts"] = json!([{"name": "nowhere", "mountPath": "/data"}]);
    });
    world.submit(job).await?;
    world.submit(tfjob("b").workers(1)).await?;
    let told = "Warning FailedCreatePod Error creating:";
    let seen = world.wait_until("the refusal is told", |seen| seen.told("a", told)).await?;
    contains("event", &seen.events("a").join("\n"), &["volumeMounts", "nowhere"])?;
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    let condition = seen.condition("a", "Failed");
    equal("reason", &condition["reason"], "TFJobFailedValidation")?;
    let message = text(&condition["message"]);
    contains("message", message, &["volumeMounts[0].name", "nowhere"])?;
    world.wait_conditions("b", &["Created=True", "Running=True"]).await?;
    world.wait_services(&["b-worker-0"]).await?;
    Ok(())
}
