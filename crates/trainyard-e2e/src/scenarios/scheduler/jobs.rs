//! Volcano Jobs from their submission to the nodes, with the operator and a real scheduler.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::volumes;
use crate::check::equal;
use crate::harness::{Case, cases};
use crate::volcano::{Floor, task, vcjob};

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/jobs":
        the_tutorial_from_its_file_to_its_end,
        two_jobs_never_hold_half_each,
        a_job_that_cannot_fit_says_why,
        an_evicted_job_comes_back,
        dependents_do_not_hold_up_the_first,
        a_closed_queue_keeps_pods_from_being_made,
        a_claim_that_is_not_there_is_waited_for,
        pods_of_higher_priority_first,
    ]
}

async fn the_tutorial_from_its_file_to_its_end(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "2"})).await?;
    let job: Value = serde_saphyr::from_str(include_str!("../../../seeds/tftest.yaml"))
        .context("the tutorial's manifest")?;
    floor.submit(job).await?;
    let job = "tensorflow-dist-mnist";
    floor.runs(job, 3).await?;
    for index in 0..2 {
        floor.kubelet.exit(&format!("{job}-worker-{index}"), 0).await?;
    }
    floor.phases(job, &["Pending", "Running", "Completing", "Completed"]).await?;
    floor.cleared(job, &[&format!("{job}-worker-0"), &format!("{job}-worker-1")]).await.map(drop)
}

async fn two_jobs_never_hold_half_each(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "4"})).await?;
    let job = |name: &str| vcjob(name).task(task("w", 3).asks(json!({"cpu": "1"})));
    floor.submit(job("a")).await?;
    floor.submit(job("b")).await?;
    let runs = |seen: &crate::seen::Seen, job: &str| seen.vc(job).phase() == "Running";
    let seen = floor.wait_until("one runs", |seen| runs(seen, "a") || runs(seen, "b")).await?;
    let (first, second) = if runs(&seen, "a") { ("a", "b") } else { ("b", "a") };
    floor
        .never_within(400, "the other has a part", |seen| {
            seen.placed().iter().any(|pod| pod.starts_with(second))
        })
        .await?;
    for index in 0..3 {
        floor.kubelet.exit(&format!("{first}-w-{index}"), 0).await?;
    }
    floor.phase(first, "Completed").await?;
    floor.phase(second, "Running").await.map(drop)
}

async fn a_job_that_cannot_fit_says_why(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.submit(vcjob("a").task(task("w", 4).asks(json!({"cpu": "1"})))).await?;
    let told = format!("Warning PodGroupPending PodGroup {}:a unschedulable", floor.namespace);
    floor.wait_until("it is told", |seen| seen.vc("a").told(&told)).await?;
    floor.never_within(300, "a part has nodes", |seen| !seen.placed().is_empty()).await?;
    let group = floor.seen().vc("a").group_name();
    let why = floor.explain(&group).await?;
    equal("constraint is named", why["constraint"] != "none", true)?;
    floor.node("b", json!({"cpu": "2"})).await?;
    floor.wait_until("now it fits", |seen| seen.placed().len() == 4).await.map(drop)
}

async fn pods_of_higher_priority_first(floor: Floor) -> Result<()> {
    let [low, high] = [floor.class("low", 1).await?, floor.class("high", 100).await?];
    floor.node("a", json!({"cpu": "2"})).await?;
    let tasks = |name: &str, class: &str| {
        task(name, 2).asks(json!({"cpu": "1"})).pod("priorityClassName", class)
    };
    // By their names and their order in the job the others would be first.
    let job = vcjob("j").min(2).task(tasks("a", &low)).task(tasks("z", &high));
    floor.submit(job).await?;
    floor.placed(&["j-z-0", "j-z-1"]).await?;
    floor.waits("j-a-0", "Insufficient cpu").await?;
    floor.stays_placed(&["j-z-0", "j-z-1"]).await?;
    floor.node("b", json!({"cpu": "2"})).await?;
    floor.placed(&["j-a-0", "j-a-1", "j-z-0", "j-z-1"]).await.map(drop)
}

async fn an_evicted_job_comes_back(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = [floor.class("low", 1).await?, floor.class("high", 100).await?];
    floor.node("a", json!({"cpu": "2"})).await?;
    let job = |name: &str, class: &str| {
        let policy = json!({"event": "PodEvicted", "action": "RestartJob"});
        let workers = task("w", 2).asks(json!({"cpu": "1"}));
        vcjob(name).task(workers).policy(policy).spec("priorityClassName", class)
    };
    floor.submit(job("a", &low)).await?;
    floor.runs("a", 2).await?;
    floor.submit(job("b", &high)).await?;
    floor.runs("b", 2).await?;
    let seen = floor.wait_until("it waits", |seen| seen.vc("a").retries() == 1).await?;
    equal("not its end", seen.vc("a").phase() == "Failed", false)?;
    for pod in ["b-w-0", "b-w-1"] {
        floor.kubelet.exit(pod, 0).await?;
    }
    let seen = floor.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

async fn dependents_do_not_hold_up_the_first(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "3"})).await?;
    let asks = json!({"cpu": "1"});
    let job = vcjob("a")
        .task(task("ps", 1).min(1).asks(asks.clone()))
        .task(task("w", 2).after(&["ps"]).asks(asks));
    floor.submit(job).await?;
    floor.runs("a", 3).await.map(drop)
}

async fn a_closed_queue_keeps_pods_from_being_made(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "3"})).await?;
    let queue = floor.queue("q", json!({})).await?;
    floor.queue_state(&queue, "Closed").await?;
    floor.submit(vcjob("a").task(task("w", 1)).spec("queue", queue.as_str())).await?;
    let told = |seen: &crate::seen::Seen| {
        seen.vc("a").events().iter().any(|event| event.contains("status is `Closed`"))
    };
    floor.wait_until("it is told", told).await?;
    floor.never_within(300, "pods are made", |seen| !seen.pods().is_empty()).await?;
    floor.queue_state(&queue, "Open").await?;
    floor.runs("a", 1).await.map(drop)
}

async fn a_claim_that_is_not_there_is_waited_for(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "3"})).await?;
    let mounts = json!([{"mountPath": "/data", "volumeClaimName": "late"}]);
    floor.submit(vcjob("a").task(task("w", 1)).spec("volumes", mounts)).await?;
    let words =
        "pvc late is not found, the job will be in the Pending state until the PVC is created";
    let says = |seen: &crate::seen::Seen| {
        let told = |event: &String| event.contains("PVCError") && event.contains(words);
        seen.vc("a").message() == words && seen.vc("a").events().iter().any(told)
    };
    floor.wait_until("the job says what it waits for", says).await?;
    let scheduled =
        |seen: &crate::seen::Seen| !seen.names(crate::rest::Resource::Groups).is_empty();
    floor.never_within(300, "it is scheduled", scheduled).await?;
    let class = volumes::class(&floor, "disk.example.com").await?;
    let _binder = volumes::binder(&floor);
    volumes::claim(&floor, "late", &class).await?;
    floor.runs("a", 1).await.map(drop)
}
