//! What happens and what is done about it: every event with every action, and which policy decides.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::seen::Seen;
use crate::volcano::{Scene, policy, task, vcjob};

const ACTIONS: [&str; 6] =
    ["AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob"];
const PODS: [&str; 3] = ["a-ps-0", "a-w-0", "a-w-1"];

pub(super) fn all() -> Vec<Case<Scene>> {
    let mut all = cases!["volcano/policies":
        a_completed_task_completes_the_job,
        containers_restarted_too_often_fail_their_task,
        restarts_of_containers_are_counted_per_task,
        a_group_lost_by_the_scheduler_restarts_the_job,
        and_does_so_after_a_restart_too,
        a_star_stands_for_everything,
        the_task_decides_before_the_job,
        the_first_of_several_that_hit_decides,
        several_events_in_one_policy,
        without_a_policy_a_lost_pod_is_replaced,
    ];
    for event in ["PodFailed", "PodEvicted"] {
        for action in ACTIONS {
            let name =
                format!("volcano/policies/{}_{}", event.to_lowercase(), action.to_lowercase());
            all.push(Case::new(name, move |scene| one_worker(scene, event, action)));
        }
    }
    all
}

/// Which of the pods are others than before.
fn replaced<'a>(before: &Seen, now: &Seen) -> Vec<&'a str> {
    PODS.into_iter().filter(|pod| before.uid(pod) != now.uid(pod)).collect()
}

async fn one_worker(scene: Scene, event: &'static str, action: &'static str) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("ps", 1)).task(task("w", 2)).policy(policy(event, action));
    let before = scene.run(job, 3).await?;
    if event == "PodFailed" {
        scene.kubelet.exit("a-w-1", 1).await?;
    } else {
        scene.kubelet.delete("a-w-1", None).await?;
    }
    let told = format!("Normal ExecuteAction Start to execute action {action}");
    scene.wait_until("it is told", |seen| seen.vc("a").told(&told)).await?;
    match action {
        "AbortJob" => scene.phase("a", "Aborted").await.map(drop),
        "TerminateJob" => scene.phase("a", "Terminated").await.map(drop),
        "CompleteJob" => scene.phase("a", "Completed").await.map(drop),
        _ => {
            scene.wait_successor("a-w-1", &before.uid("a-w-1")).await?;
            let again = scene.runs("a", 3).await?;
            let wanted: &[&str] = match action {
                "RestartJob" => &PODS,
                "RestartTask" => &PODS[1..],
                _ => &PODS[2..],
            };
            equal("replaced", replaced(&before, &again), wanted)?;
            equal("retries", again.vc("a").retries(), 1)?;
            equal("phases", again.vc("a").phases(), ["Restarting", "Pending", "Running"])
        }
    }
}

async fn a_completed_task_completes_the_job(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 2).policy(policy("TaskCompleted", "CompleteJob"));
    scene.run(vcjob("a").task(task("ps", 1)).task(workers), 3).await?;
    scene.kubelet.exit("a-w-1", 0).await?;
    let seen = scene.counts("a", [0, 2, 1, 0, 0]).await?;
    equal("not all yet", seen.vc("a").phase(), "Running")?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.phase("a", "Completed").await?;
    scene.cleared("a", &["a-w-0", "a-w-1"]).await.map(drop)
}

async fn containers_restarted_too_often_fail_their_task(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 1)
        .restarts_in_place()
        .set("maxRetry", 2)
        .policy(policy("TaskFailed", "TerminateJob"));
    scene.run(vcjob("a").task(workers), 1).await?;
    scene.kubelet.restart_in_place("a-w-0", 1).await?;
    scene.never_within(300, "one is enough", |s| s.vc("a").phase() != "Running").await?;
    scene.kubelet.restart_in_place("a-w-0", 2).await?;
    scene.phase("a", "Terminated").await.map(drop)
}

async fn restarts_of_containers_are_counted_per_task(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let fails = policy("TaskFailed", "TerminateJob");
    let two = |name| task(name, 2).restarts_in_place().set("maxRetry", 3).policy(fails.clone());
    scene.run(vcjob("a").task(two("ps")).task(two("w")), 4).await?;
    scene.kubelet.restart_in_place("a-ps-0", 2).await?;
    scene.kubelet.restart_in_place("a-w-0", 2).await?;
    scene.never_within(300, "tasks are added up", |s| s.vc("a").phase() != "Running").await?;
    scene.kubelet.restart_in_place("a-w-1", 1).await?;
    scene.phase("a", "Terminated").await.map(drop)
}

async fn a_group_lost_by_the_scheduler_restarts_the_job(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(policy("Unknown", "RestartJob"));
    let before = scene.run(job, 2).await?;
    scene.set_group("a", "Unknown").await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

async fn and_does_so_after_a_restart_too(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 1)).policy(policy("Unknown", "RestartJob"));
    let mut before = scene.run(job, 1).await?;
    for retries in 1..3 {
        scene.set_group("a", "Unknown").await?;
        scene.successors(&before, &["a-w-0"]).await?;
        before = scene.runs("a", 1).await?;
        equal("retries", before.vc("a").retries(), retries)?;
    }
    Ok(())
}

async fn a_star_stands_for_everything(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = || vcjob("a").task(task("w", 2)).policy(policy("*", "TerminateJob"));
    scene.run(job(), 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    scene.phase("a", "Terminated").await.map(drop)
}

async fn the_task_decides_before_the_job(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 2).policy(policy("PodFailed", "RestartPod"));
    let job = vcjob("a").task(task("ps", 1)).task(workers);
    let before = scene.run(job.policy(policy("PodFailed", "TerminateJob")), 3).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    scene.wait_successor("a-w-0", &before.uid("a-w-0")).await?;
    scene.runs("a", 3).await?;
    scene.kubelet.exit("a-ps-0", 1).await?;
    scene.phase("a", "Terminated").await.map(drop)
}

async fn the_first_of_several_that_hit_decides(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let policies = json!([
        {"exitCode": 3, "action": "CompleteJob"},
        {"event": "PodFailed", "action": "TerminateJob"},
    ]);
    scene.run(vcjob("a").task(task("w", 1)).spec("policies", policies), 1).await?;
    scene.kubelet.exit("a-w-0", 3).await?;
    scene.phase("a", "Completed").await.map(drop)
}

async fn several_events_in_one_policy(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let either = json!([{"events": ["PodEvicted", "PodFailed"], "action": "RestartPod"}]);
    let before = scene.run(vcjob("a").task(task("w", 2)).spec("policies", either), 2).await?;
    scene.kubelet.delete("a-w-0", None).await?;
    scene.successors(&before, &["a-w-0"]).await?;
    scene.runs("a", 2).await?;
    scene.kubelet.exit("a-w-1", 1).await?;
    scene.successors(&before, &["a-w-1"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 2)
}

async fn without_a_policy_a_lost_pod_is_replaced(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let before = scene.run(vcjob("a").task(task("w", 2)), 2).await?;
    scene.kubelet.delete("a-w-0", None).await?;
    scene.successors(&before, &["a-w-0"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 0)?;
    ensure!(!seen.vc("a").told("Normal ExecuteAction"), "{:?}", seen.vc("a").events());
    Ok(())
}
