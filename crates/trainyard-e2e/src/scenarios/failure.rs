//! A replica fails for good: the job fails and says which pod, how and with which last words.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::kubelet::End;
use crate::manifest::{Manifest, tfjob};
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["failure":
        a_worker_and_its_last_words,
        a_parameter_server,
        an_evaluator,
        a_chief,
        out_of_memory,
        an_eviction_nobody_may_repair,
        failure_is_final,
        one_of_all_workers,
        others_are_stopped_and_logs_kept,
        an_init_container,
        beside_a_sidecar,
    ]
}

const FAILED: [&str; 3] = ["Created=True", "Running=False", "Failed=True"];

async fn running(world: &World, job: Manifest) -> Result<()> {
    world.submit(job).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn a_worker_and_its_last_words(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(2)).await?;
    let words = "step 17\nValueError: logits and labels must have the same shape\n";
    world.kubelet.end("a-worker-1", End { code: 1, reason: "", message: words }).await?;
    let seen = world.wait_conditions("a", &FAILED).await?;
    let condition = seen.condition("a", "Failed");
    equal("reason", &condition["reason"], "TFJobFailed")?;
    let ns = &world.namespace;
    let start = format!("TFJob {ns}/a has failed because 1 Worker replica(s) failed.");
    let message = text(&condition["message"]);
    ensure!(message.starts_with(&start), "{message}");
    contains(
        "message",
        message,
        &["a-worker-1", "tensorflow", "1", "ValueError: logits and labels must have"],
    )?;
    let failure = &seen.status("a")["failure"];
    equal("kind", &failure["kind"], "ReplicaFailed")?;
    equal("pod", &failure["pod"], "a-worker-1")?;
    equal("container", &failure["container"], "tensorflow")?;
    equal("code", &failure["exitCode"], 1)?;
    equal("reason", &failure["reason"], "Error")?;
    contains("last words", text(&failure["message"]), &["ValueError: logits"])?;
    ensure!(seen.status("a")["completionTime"].is_string(), "no completionTime");
    let told = |seen: &crate::seen::Seen| {
        seen.events("a").iter().any(|event| event.contains(&format!("TFJobFailed {start}")))
    };
    world.wait_until("it is told", told).await?;
    world.wait_until("it is counted", |seen| seen.counts("a", "Worker")[2] == 1).await?;
    Ok(())
}

async fn a_parameter_server(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).ps(2).restart("OnFailure").restart_of("PS", "Never"))
        .await?;
    world.kubelet.exit("a-ps-1", 2).await?;
    let seen = world.wait_conditions("a", &FAILED).await?;
    contains(
        "message",
        text(&seen.condition("a", "Failed")["message"]),
        &["has failed because 1 PS replica(s) failed.", "a-ps-1"],
    )
}

async fn an_evaluator(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").chief().workers(1).evaluators(1)).await?;
    world.kubelet.exit("a-evaluator-0", 1).await?;
    let seen = world.wait_conditions("a", &FAILED).await?;
    equal("pod", &seen.status("a")["failure"]["pod"], "a-evaluator-0")
}

async fn a_chief(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").chief().workers(1)).await?;
    world.kubelet.exit("a-chief-0", 3).await?;
    let seen = world.wait_conditions("a", &FAILED).await?;
    equal("pod", &seen.status("a")["failure"]["pod"], "a-chief-0")
}

async fn out_of_memory(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1)).await?;
    world.kubelet.oom("a-worker-0").await?;
    let seen = world.wait_conditions("a", &FAILED).await?;
    let failure = &seen.status("a")["failure"];
    equal("reason", &failure["reason"], "OOMKilled")?;
    equal("signal", &failure["signal"], "SIGKILL")?;
    contains("message", text(&seen.condition("a", "Failed")["message"]), &["OOMKilled"])
}

async fn an_eviction_nobody_may_repair(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).restart("Never")).await?;
    world.kubelet.evict_for_its_storage("a-worker-0").await?;
    let seen = world.wait_conditions("a", &FAILED).await?;
    let failure = &seen.status("a")["failure"];
    equal("reason", &failure["reason"], "Evicted")?;
    // Its kubelet says so while the program still runs.
    equal("how the program took it", &failure["exitCode"], &json!(null))?;
    contains("message", text(&failure["message"]), &["exceeds the limit"])
}

async fn failure_is_final(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(2).run_policy("cleanPodPolicy", "None")).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    world.wait_conditions("a", &FAILED).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.never_within(400, "the verdict changes", |seen| seen.conditions("a") != FAILED).await
}

async fn one_of_all_workers(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(3).spec("successPolicy", "AllWorkers")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.kubelet.exit("a-worker-2", 1).await?;
    world.wait_conditions("a", &FAILED).await?;
    Ok(())
}

async fn others_are_stopped_and_logs_kept(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(3).ps(1)).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "1").await?;
    world.kubelet.exit("a-worker-2", 1).await?;
    world.wait_conditions("a", &FAILED).await?;
    world.wait_pods(&["a-worker-1", "a-worker-2"]).await?;
    world.wait_services(&[]).await?;
    let spec = json!({"tfReplicaSpecs": {"Worker": {"replicas": 5}}});
    world.patch_spec("a", spec).await?;
    world.never_within(300, "a finished job grows", |seen| seen.pods().len() > 2).await
}

async fn an_init_container(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).edit("Worker", |spec| {
        spec["template"]["spec"]["initContainers"] =
            json!([{"name": "fetch", "image": "example.com/fetch:2"}]);
    });
    world.submit(job).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    world.kubelet.init_fails("a-worker-0", 3, "no such bucket: training-data").await?;
    let seen = world.wait_conditions("a", &["Created=True", "Failed=True"]).await?;
    let failure = &seen.status("a")["failure"];
    equal("container", &failure["container"], "fetch")?;
    equal("code", &failure["exitCode"], 3)?;
    contains(
        "message",
        text(&seen.condition("a", "Failed")["message"]),
        &["fetch", "3", "no such bucket: training-data"],
    )
}

/// A sidecar that never stops keeps neither a success nor a failure from being seen.
async fn beside_a_sidecar(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    for (job, code, wanted) in [("a", 0, "Succeeded"), ("b", 7, "Failed")] {
        let manifest = tfjob(job).workers(1).edit("Worker", |spec| {
            if let Some(containers) = spec["template"]["spec"]["containers"].as_array_mut() {
                containers.push(json!({"name": "istio-proxy", "image": "example.com/proxy:1"}));
            }
        });
        world.submit(manifest).await?;
        world.wait_until("the job runs", |seen| seen.is(job, "Running")).await?;
        world.kubelet.main_exits(&format!("{job}-worker-0"), code).await?;
        let seen = world.wait_until("the verdict", |seen| seen.is(job, wanted)).await?;
        if code != 0 {
            equal("container", &seen.status(job)["failure"]["container"], "tensorflow")?;
        }
    }
    Ok(())
}
