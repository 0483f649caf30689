//! Objects that got past validation: each fails alone, says why, and never stops the others.
//!
//! Played against CRDs from which the rules have been taken out.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::seen::text;
use crate::volcano::{Scene, policy, task, vcjob};
use crate::world::World;

/// All of them.
pub(crate) fn all() -> Vec<Case<World>> {
    let mut all = cases!["malformed":
        a_status_nobody_can_read,
        a_name_that_is_too_long,
    ];
    for (name, key, value, parts) in volcano_jobs() {
        let name = format!("malformed/{name}");
        all.push(Case::new(name, move |world| {
            let job = vcjob("bad").task(task("w", 2)).spec(key, value.clone());
            invalid_volcano_job(world, job.json(), parts)
        }));
    }
    for (name, spec, parts) in specifications() {
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        let name = format!("malformed/{name}");
        all.push(Case::new(name, move |world| invalid(world, spec.clone(), parts.clone())));
    }
    all
}

fn specifications() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let worker = |edit: &dyn Fn(&mut Value)| {
        let mut job = tfjob("a").workers(1).json();
        edit(&mut job["spec"]);
        job["spec"].take()
    };
    let at = |pointer: &'static str, value: Value| {
        worker(&move |spec| {
            if let Some(place) = spec.pointer_mut(pointer) {
                *place = value.clone();
            }
        })
    };
    vec![
        ("a_number", json!(7), &["spec"]),
        ("nothing", Value::Null, &["spec"]),
        ("no_replica_type", json!({"tfReplicaSpecs": {}}), &["spec.tfReplicaSpecs"]),
        ("replica_types_as_a_list", json!({"tfReplicaSpecs": [1, 2]}), &["spec.tfReplicaSpecs"]),
        (
            "an_unknown_type",
            json!({"tfReplicaSpecs": {"Gardener": {}}}),
            &["spec.tfReplicaSpecs[Gardener]", "Worker"],
        ),
        (
            "negative_replicas",
            at("/tfReplicaSpecs/Worker/replicas", json!(-3)),
            &["spec.tfReplicaSpecs[Worker].replicas", "-3"],
        ),
        (
            "a_replica_that_is_text",
            at("/tfReplicaSpecs/Worker", json!("many")),
            &["spec.tfReplicaSpecs[Worker]"],
        ),
        (
            "no_container_that_trains",
            at("/tfReplicaSpecs/Worker/template/spec/containers/0/name", json!("main")),
            &["spec.tfReplicaSpecs[Worker].template.spec.containers", "tensorflow"],
        ),
        (
            "an_unknown_restart_policy",
            worker(&|spec| spec["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "Maybe".into()),
            &["spec.tfReplicaSpecs[Worker].restartPolicy", "Maybe", "OnFailure"],
        ),
        (
            "an_unknown_pod_policy",
            worker(&|spec| spec["runPolicy"]["cleanPodPolicy"] = "Sometimes".into()),
            &["spec.runPolicy.cleanPodPolicy", "Sometimes"],
        ),
        (
            "a_negative_deadline",
            worker(&|spec| spec["runPolicy"]["activeDeadlineSeconds"] = (-1).into()),
            &["spec.runPolicy.activeDeadlineSeconds", "-1"],
        ),
    ]
}

/// Volcano Jobs that could be run, by halves: a field of each, and what is said of it.
fn volcano_jobs() -> Vec<(&'static str, &'static str, Value, &'static [&'static str])> {
    let volume = |claim: &str| json!({"mountPath": "/data", "volumeClaimName": claim});
    vec![
        (
            "policies_that_contradict",
            "policies",
            json!([policy("*", "RestartJob"), policy("PodFailed", "AbortJob")]),
            &["spec.policies[1]", "if there's * here, no other policy should be here"],
        ),
        (
            "an_exit_code_with_two_policies",
            "policies",
            json!([{"exitCode": 3, "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}]),
            &["spec.policies[1]", "duplicate exitCode 3", "valid actions are"],
        ),
        (
            "two_volumes_at_one_place",
            "volumes",
            json!([volume("one"), volume("two")]),
            &["spec.volumes[1]", "duplicated mountPath: /data", "a path of its own"],
        ),
        (
            "a_plugin_that_is_not_there",
            "plugins",
            json!({"mpi": []}),
            &["spec.plugins[mpi]", "plugin mpi is not supported yet", "there are env, svc"],
        ),
    ]
}

async fn invalid_volcano_job(world: World, job: Value, parts: &[&str]) -> Result<()> {
    let scene = Scene::open(world).await?;
    let operator = scene.start_operator(|_| ()).await?;
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(job).await?;
    let seen = scene.phase("bad", "Failed").await?;
    equal("reason", &seen.vc("bad").status()["state"]["reason"], "InvalidJob")?;
    contains("message", seen.vc("bad").message(), parts)?;
    scene.run(vcjob("a").task(task("w", 1)), 1).await?;
    let seen = scene.seen();
    equal("pods", seen.pods(), vec!["a-w-0"])?;
    equal("groups", seen.ever(Resource::Groups), 1)?;
    ensure!(operator.health.is_live(), "the operator did not survive");
    operator.stop().await
}

/// A good job beside the bad one runs to its end.
async fn others_go_on(world: &World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("good").workers(1)).await?;
    world.wait_until("the good job runs", |seen| seen.is("good", "Running")).await?;
    world.kubelet.exit("good-worker-0", 0).await?;
    world.wait_until("the good job succeeds", |seen| seen.is("good", "Succeeded")).await?;
    Ok(())
}

async fn wait_invalid(world: &World, job: &str, parts: &[String]) -> Result<()> {
    let seen = world.wait_until("the bad job fails", |seen| seen.is(job, "Failed")).await?;
    let condition = seen.condition(job, "Failed");
    equal("reason", &condition["reason"], "TFJobFailedValidation")?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    contains("message", text(&condition["message"]), &parts)?;
    equal("kind", &seen.status(job)["failure"]["kind"], "InvalidSpec")?;
    world.wait_until("it is told", |seen| seen.told(job, "Warning TFJobFailedValidation")).await?;
    Ok(())
}

async fn invalid(world: World, spec: Value, parts: Vec<String>) -> Result<()> {
    let operator = world.start_operator(|_| ()).await?;
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "bad"},
    });
    if !spec.is_null() {
        job["spec"] = spec;
    }
    world.submit(job).await?;
    wait_invalid(&world, "bad", &parts).await?;
    others_go_on(&world).await?;
    let seen = world.seen();
    ensure!(
        seen.pods().iter().all(|pod| pod.starts_with("good")),
        "an invalid job got pods: {:?}",
        seen.pods()
    );
    ensure!(operator.health.is_live(), "the operator did not survive");
    operator.stop().await
}

async fn a_name_that_is_too_long(world: World) -> Result<()> {
    let operator = world.start_operator(|_| ()).await?;
    let name = "n".repeat(60);
    world.submit(tfjob(&name).workers(1)).await?;
    wait_invalid(&world, &name, &["metadata.name".to_owned(), "63".to_owned()]).await?;
    others_go_on(&world).await?;
    operator.stop().await
}

async fn a_status_nobody_can_read(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    let garbage = json!({"conditions": "many", "replicaStatuses": 4, "startTime": "yesterday"});
    world.patch_status("a", garbage).await?;
    let operator = world.start_operator(|_| ()).await?;
    others_go_on(&world).await?;
    let _auto = world.kubelet.auto();
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    operator.stop().await
}
