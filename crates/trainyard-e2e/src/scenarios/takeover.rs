//! Jobs that the reference operator started: they go on without a restart.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["takeover":
        a_running_job,
        a_half_created_job,
        a_finished_job,
        an_operator_of_our_own_restarts,
    ]
}

/// Those that need kinds which only a complete API server has.
pub(super) fn on_complete_servers() -> Vec<Case<World>> {
    cases!["takeover": a_webhook_left_behind_is_noticed]
}

fn labels(kind: &str, index: usize) -> Value {
    json!({
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "a",
        "training.kubeflow.org/replica-type": kind,
        "training.kubeflow.org/replica-index": index.to_string(),
    })
}

/// Pod and service of a replica as the reference operator makes them.
async fn replica(world: &World, job: &Value, kind: &str, index: usize) -> Result<()> {
    let name = format!("a-{kind}-{index}");
    let owner = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a",
        "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let metadata = json!({"name": name, "labels": labels(kind, index), "ownerReferences": owner});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"restartPolicy": "OnFailure", "containers": [{
            "name": "tensorflow", "image": "example.com/train:1",
            "ports": [{"name": "tfjob-port", "containerPort": 2222}],
            "env": [{"name": "TF_CONFIG", "value": "{\"written by\":\"another\"}"}],
        }]},
    });
    world.create(Resource::Pods, &pod).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": "None", "selector": labels(kind, index),
            "ports": [{"name": "tfjob-port", "port": 2222}]},
    });
    world.create(Resource::Services, &service).await?;
    Ok(())
}

fn status(world: &World, more: &[(&str, &str, &str)]) -> Value {
    let at = "2025-02-01T10:00:00Z";
    let mut conditions = vec![json!({
        "type": "Created", "status": "True", "reason": "TFJobCreated",
        "message": format!("TFJob {}/a is created.", world.namespace),
        "lastUpdateTime": at, "lastTransitionTime": at,
    })];
    for (kind, value, reason) in more {
        conditions.push(json!({
            "type": kind, "status": value, "reason": reason,
            "message": format!("TFJob {}/a is told of by another.", world.namespace),
            "lastUpdateTime": at, "lastTransitionTime": at,
        }));
    }
    json!({"startTime": at, "conditions": conditions, "replicaStatuses": {}})
}

async fn a_running_job(world: World) -> Result<()> {
    let job = world.submit(tfjob("a").workers(2).ps(1).restart("OnFailure")).await?;
    for (kind, index) in [("worker", 0), ("worker", 1), ("ps", 0)] {
        replica(&world, &job, kind, index).await?;
        world.kubelet.start(&format!("a-{kind}-{index}")).await?;
    }
    let mut left = status(&world, &[("Running", "True", "TFJobRunning")]);
    left["replicaStatuses"] = json!({"Worker": {"active": 2}, "PS": {"active": 1}});
    world.patch_status("a", left).await?;
    let before = world.seen();
    let _operator = world.start_operator(|_| ()).await?;
    world.submit(tfjob("b").workers(1)).await?;
    world.wait_conditions("b", &["Created=True"]).await?;
    world
        .never_within(500, "something of the job is replaced", |seen| {
            ["a-ps-0", "a-worker-0", "a-worker-1"].iter().any(|name| {
                seen.uid(name) != before.uid(name)
                    || seen.service(name)["metadata"]["uid"]
                        != before.service(name)["metadata"]["uid"]
                    || !seen.pod(name)["metadata"]["deletionTimestamp"].is_null()
            }) || seen.conditions("a") != ["Created=True", "Running=True"]
        })
        .await?;
    let started = &world.seen().status("a")["startTime"].clone();
    equal("its start stays", started, "2025-02-01T10:00:00Z")?;
    let _auto = world.kubelet.auto_finish();
    world.kubelet.exit("a-worker-0", 0).await?;
    let done = ["Created=True", "Running=False", "Succeeded=True"];
    world.wait_conditions("a", &done).await?;
    world.wait_services(&["b-worker-0"]).await?;
    Ok(())
}

async fn a_half_created_job(world: World) -> Result<()> {
    let job = world.submit(tfjob("a").workers(2)).await?;
    replica(&world, &job, "worker", 0).await?;
    world.kubelet.start("a-worker-0").await?;
    let uid = world.seen().uid("a-worker-0");
    let _operator = world.start_operator(|_| ()).await?;
    world.wait_services(&["a-worker-0", "a-worker-1"]).await?;
    let seen = world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    equal("the first one stays", seen.uid("a-worker-0"), uid)?;
    world.kubelet.start("a-worker-1").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn a_finished_job(world: World) -> Result<()> {
    let job = world.submit(tfjob("a").workers(1).run_policy("cleanPodPolicy", "None")).await?;
    replica(&world, &job, "worker", 0).await?;
    world.kubelet.start("a-worker-0").await?;
    let mut left = status(
        &world,
        &[("Running", "False", "TFJobRunning"), ("Succeeded", "True", "TFJobSucceeded")],
    );
    left["completionTime"] = "2025-02-01T11:00:00Z".into();
    world.patch_status("a", left).await?;
    let before = world.seen();
    let operator = world.start_operator(|_| ()).await?;
    world.wait_services(&[]).await?;
    let seen = world.seen();
    equal("conditions", seen.condition_lines("a"), before.condition_lines("a"))?;
    equal("pods", seen.pods(), ["a-worker-0"])?;
    operator.stop().await
}

async fn an_operator_of_our_own_restarts(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let operator = world.start_operator(|_| ()).await?;
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.wait_until("all is counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    operator.stop().await?;
    let before = world.seen();
    let _operator = world.start_operator(|_| ()).await?;
    world.submit(tfjob("b").workers(1)).await?;
    world.wait_conditions("b", &["Created=True", "Running=True"]).await?;
    let seen = world.seen();
    equal("status", seen.status("a"), before.status("a"))?;
    equal("worker 1", seen.uid("a-worker-1"), before.uid("a-worker-1"))?;
    equal("nothing is told again", seen.events("a"), before.events("a"))
}

async fn a_webhook_left_behind_is_noticed(world: World) -> Result<()> {
    let base = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let name = trainyard_api::names::REFERENCE_WEBHOOK;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
    });
    world.rest.send(Method::POST, base, Some(&webhook)).await?;
    let operator = world.start_operator(|_| ()).await?;
    let mut noticed = false;
    for _ in 0..100 {
        noticed = operator.metrics.encode().contains("trainyard_reference_webhook 1");
        if noticed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.rest.send(Method::DELETE, &format!("{base}/{name}"), None).await?;
    ensure!(noticed, "the left-over webhook was not noticed: {}", operator.metrics.encode());
    operator.stop().await
}
