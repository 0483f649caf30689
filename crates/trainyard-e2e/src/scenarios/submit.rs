//! A job is submitted: which objects appear, under which names, with which fields.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::{equal, fields};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["submit":
        pods_services_and_conditions,
        labels_owner_and_service,
        chief_plays_the_master,
        one_replica,
        running_when_all_pods_run,
        a_very_fast_job,
        old_versions,
        replica_keys_in_any_case,
        the_stored_specification_stays,
        thirty_jobs_at_once,
        deletion_takes_everything_along,
    ]
}

async fn pods_services_and_conditions(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    let names = ["a-ps-0", "a-worker-0", "a-worker-1"];
    world.wait_pods(&names).await?;
    world.wait_services(&names).await?;
    let seen = world.wait_conditions("a", &["Created=True"]).await?;
    equal(
        "conditions",
        seen.condition_lines("a"),
        ["Created=True TFJobCreated: TFJob a is created."],
    )?;
    ensure!(seen.status("a")["startTime"].is_string(), "no startTime: {}", seen.status("a"));
    ensure!(seen.status("a")["completionTime"].is_null(), "completionTime of a new job");
    world.kubelet.start_all(&names).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal(
        "conditions",
        &seen.condition_lines("a")[1..],
        ["Running=True TFJobRunning: TFJob a is running."],
    )?;
    world
        .wait_until("all replicas are counted", |seen| {
            seen.counts("a", "Worker") == [2, 0, 0] && seen.counts("a", "PS") == [1, 0, 0]
        })
        .await?;
    Ok(())
}

fn labels(job: &str, kind: &str, index: &str) -> Value {
    json!({
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/replica-type": kind,
        "training.kubeflow.org/replica-index": index,
    })
}

async fn labels_owner_and_service(world: World) -> Result<()> {
    let job = world.submit(tfjob("a").workers(2)).await?;
    let names = ["a-worker-0", "a-worker-1"];
    world.wait_services(&names).await?;
    let seen = world.wait_pods(&names).await?;
    let owner = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a",
        "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    for (index, name) in ["0", "1"].into_iter().zip(names) {
        let plain = labels("a", "worker", index);
        let mut of_pod = plain.clone();
        if index == "0" {
            of_pod["training.kubeflow.org/job-role"] = "master".into();
        }
        let wanted = [
            ("/metadata/labels", of_pod),
            ("/metadata/ownerReferences", owner.clone()),
            ("/spec/restartPolicy", json!("Never")),
            (
                "/spec/containers/0/ports",
                json!([{"name": "tfjob-port", "containerPort": 2222, "protocol": "TCP"}]),
            ),
        ];
        fields(name, seen.pod(name), &wanted)?;
        let wanted = [
            ("/metadata/labels", plain.clone()),
            ("/metadata/ownerReferences", owner.clone()),
            ("/spec/selector", plain),
            ("/spec/clusterIP", json!("None")),
            (
                "/spec/ports",
                json!([{"name": "tfjob-port", "port": 2222, "protocol": "TCP", "targetPort": 2222}]),
            ),
            ("/spec/publishNotReadyAddresses", json!(true)),
        ];
        fields("service", seen.service(name), &wanted)?;
    }
    Ok(())
}

async fn chief_plays_the_master(world: World) -> Result<()> {
    world.submit(tfjob("a").chief().workers(1)).await?;
    world.submit(tfjob("b").replicas("Master", 1).workers(1)).await?;
    let seen = world.wait_pods(&["a-chief-0", "a-worker-0", "b-master-0", "b-worker-0"]).await?;
    for (pod, role) in
        [("a-chief-0", true), ("a-worker-0", false), ("b-master-0", true), ("b-worker-0", false)]
    {
        let label = &seen.pod(pod)["metadata"]["labels"]["training.kubeflow.org/job-role"];
        equal(pod, label == "master", role)?;
    }
    Ok(())
}

async fn one_replica(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_services(&["a-worker-0"]).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    equal("TF_CONFIG of a lone replica", seen.env("a-worker-0", "TF_CONFIG"), None)?;
    Ok(())
}

async fn running_when_all_pods_run(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    world.wait_pods(&["a-ps-0", "a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start("a-worker-0").await?;
    world.kubelet.start("a-worker-1").await?;
    let seen = world
        .wait_until("two workers are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0])
        .await?;
    equal("not yet running", seen.conditions("a"), ["Created=True"])?;
    world.never_within(200, "running without PS", |seen| seen.is("a", "Running")).await?;
    world.kubelet.start("a-ps-0").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    // It stays true while single replicas come and go by themselves.
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen = world
        .wait_until("its success is counted", |seen| seen.counts("a", "Worker") == [1, 1, 0])
        .await?;
    equal("still running", seen.conditions("a"), ["Created=True", "Running=True"])?;
    Ok(())
}

async fn a_very_fast_job(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    world.kubelet.bind("a-worker-0", "node-1").await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Succeeded=True"]).await?;
    ensure!(seen.status("a")["completionTime"].is_string(), "no completionTime");
    Ok(())
}

async fn old_versions(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    for version in ["v1beta2", "v1beta1", "v1alpha2"] {
        world.submit(tfjob(version).workers(1).version(&format!("kubeflow.org/{version}"))).await?;
        world.wait_conditions(version, &["Created=True", "Running=True"]).await?;
        let pod = format!("{version}-worker-0");
        world.kubelet.exit(&pod, 0).await?;
        let seen =
            world.wait_until("the job succeeds", |seen| seen.is(version, "Succeeded")).await?;
        equal("stored version", &seen.job(version)["apiVersion"], "kubeflow.org/v1")?;
    }
    Ok(())
}

async fn replica_keys_in_any_case(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").replicas("MASTER", 1).replicas("worker", 2).replicas("ps", 1)).await?;
    let names = ["a-master-0", "a-ps-0", "a-worker-0", "a-worker-1"];
    let seen = world.wait_pods(&names).await?;
    let ns = &world.namespace;
    let want = format!(
        "{{\"cluster\":{{\"master\":[\"a-master-0.{ns}.svc:2222\"],\
         \"ps\":[\"a-ps-0.{ns}.svc:2222\"],\
         \"worker\":[\"a-worker-0.{ns}.svc:2222\",\"a-worker-1.{ns}.svc:2222\"]}},\
         \"task\":{{\"type\":\"worker\",\"index\":0}},\"environment\":\"cloud\"}}"
    );
    equal("TF_CONFIG", seen.env("a-worker-0", "TF_CONFIG"), Some(want.as_str()))?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world
        .wait_until("status names the types in one spelling", |seen| {
            seen.counts("a", "Master") == [1, 0, 0] && seen.counts("a", "Worker") == [2, 0, 0]
        })
        .await?;
    world.kubelet.exit("a-master-0", 0).await?;
    world.wait_until("the master decides", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn the_stored_specification_stays(world: World) -> Result<()> {
    let created = world.submit(tfjob("a").replicas("WORKER", 1)).await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    let job = world.rest.get(Resource::Jobs, "a").await?;
    equal("specification", &job["spec"], &created["spec"])?;
    equal("generation", &job["metadata"]["generation"], 1)?;
    ensure!(job["metadata"]["finalizers"].is_null(), "the operator set a finalizer");
    Ok(())
}

async fn thirty_jobs_at_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let names: Vec<String> = (0..30).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.submit(tfjob(name).workers(2)).await?;
    }
    world
        .wait_until("all jobs run", |seen| names.iter().all(|name| seen.is(name, "Running")))
        .await?;
    for name in &names {
        world.kubelet.exit(&format!("{name}-worker-0"), 0).await?;
    }
    world
        .wait_until("all jobs succeed", |seen| names.iter().all(|name| seen.is(name, "Succeeded")))
        .await?;
    Ok(())
}

async fn deletion_takes_everything_along(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.delete("a").await?;
    world
        .wait_until("job, pods and services are gone", |seen| {
            seen.job("a").is_null() && seen.pods().is_empty() && seen.services().is_empty()
        })
        .await?;
    world.never_within(300, "a pod comes back", |seen| !seen.pods().is_empty()).await?;
    Ok(())
}
