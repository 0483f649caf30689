//! Each row of the state machine that can be reached through the API.

use anyhow::Result;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::volcano::{Scene, policy, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    let mut all = cases!["volcano/states":
        restarted_while_waiting,
        aborting_waits_for_the_last_pod,
        terminating_waits_for_the_last_pod,
        completing_waits_for_the_last_pod,
        resumed_while_aborting,
        resumed_after_abortion,
        an_aborted_job_stays_so_whatever_else_is_asked,
        a_completing_job_is_not_restarted,
        a_terminating_job_is_not_resumed,
        stopped_while_restarting,
        a_lost_pod_takes_it_back_to_waiting,
        without_pods_it_waits,
        each_phase_stands_once,
    ];
    for (action, phases) in [
        ("AbortJob", ["Pending", "Aborting", "Aborted"]),
        ("TerminateJob", ["Pending", "Terminating", "Terminated"]),
        ("CompleteJob", ["Pending", "Completing", "Completed"]),
    ] {
        let name = format!("volcano/states/{}_before_anything_runs", action.to_lowercase());
        all.push(Case::new(name, move |scene| before_anything_runs(scene, action, phases)));
    }
    for (action, end) in
        [("CompleteJob", "Completed"), ("TerminateJob", "Terminated"), ("none", "Failed")]
    {
        let name = format!("volcano/states/{}_is_final", end.to_lowercase());
        all.push(Case::new(name, move |scene| stays_at_its_end(scene, action, end)));
    }
    all
}

async fn before_anything_runs(scene: Scene, action: &str, phases: [&str; 3]) -> Result<()> {
    scene.submit(vcjob("a").task(task("w", 2)).plugin("svc", &[])).await?;
    scene.wait_until("there is a group", |seen| !seen.vc("a").group().is_null()).await?;
    scene.command("a", action).await?;
    scene.phases("a", &phases).await?;
    let seen = scene.cleared("a", &[]).await?;
    equal("pods there ever were", seen.ever(Resource::Pods), 0)
}

async fn stays_at_its_end(scene: Scene, action: &str, end: &str) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)), 1).await?;
    if end == "Failed" {
        scene.kubelet.exit("a-w-0", 1).await?;
    } else {
        scene.command("a", action).await?;
    }
    let seen = scene.phase("a", end).await?;
    let retries = seen.vc("a").retries();
    for asked in ["RestartJob", "ResumeJob", "AbortJob"] {
        scene.command("a", asked).await?;
        scene
            .wait_until("it is taken away", |seen| seen.names(Resource::Commands).is_empty())
            .await?;
    }
    let what = "a finished job does something";
    scene
        .never_within(400, what, |seen| {
            seen.vc("a").phase() != end || seen.vc("a").retries() != retries
        })
        .await
}

async fn restarted_while_waiting(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    scene.submit(vcjob("a").task(task("w", 2))).await?;
    let before = scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    let _auto = scene.kubelet.auto_finish();
    scene.command("a", "RestartJob").await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    let seen = scene.phases("a", &["Restarting", "Pending"]).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

/// A job of two whose pods run and end only when they are told to.
async fn two_run(scene: &Scene) -> Result<()> {
    scene.submit(vcjob("a").task(task("w", 2))).await?;
    scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    scene.kubelet.start_all(&["a-w-0", "a-w-1"]).await?;
    scene.runs("a", 2).await.map(drop)
}

async fn waits_for_the_last_pod(
    scene: &Scene,
    action: &str,
    leaving: &str,
    left: &str,
) -> Result<()> {
    let _door = scene.admit_all();
    two_run(scene).await?;
    scene.command("a", action).await?;
    scene.phase("a", leaving).await?;
    scene.counts("a", [0, 0, 0, 0, 2]).await?;
    scene.kubelet.finish_termination("a-w-0").await?;
    let seen = scene.counts("a", [0, 0, 0, 0, 1]).await?;
    equal("one is still there", seen.vc("a").phase(), leaving)?;
    scene.kubelet.finish_termination("a-w-1").await?;
    let seen = scene.phases("a", &["Pending", "Running", leaving, left]).await?;
    equal("counts", seen.vc("a").counts(), [0; 5])?;
    scene.cleared("a", &[]).await.map(drop)
}

async fn aborting_waits_for_the_last_pod(scene: Scene) -> Result<()> {
    waits_for_the_last_pod(&scene, "AbortJob", "Aborting", "Aborted").await
}

async fn terminating_waits_for_the_last_pod(scene: Scene) -> Result<()> {
    waits_for_the_last_pod(&scene, "TerminateJob", "Terminating", "Terminated").await
}

async fn completing_waits_for_the_last_pod(scene: Scene) -> Result<()> {
    waits_for_the_last_pod(&scene, "CompleteJob", "Completing", "Completed").await
}

async fn resumed_while_aborting(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    two_run(&scene).await?;
    scene.command("a", "AbortJob").await?;
    scene.phase("a", "Aborting").await?;
    scene.command("a", "ResumeJob").await?;
    scene.phase("a", "Restarting").await?;
    let _auto = scene.kubelet.auto();
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)?;
    equal("never aborted", seen.vc("a").phases().contains(&"Aborted"), false)
}

async fn resumed_after_abortion(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let before = scene.run(vcjob("a").task(task("w", 2)), 2).await?;
    scene.command("a", "AbortJob").await?;
    scene.phase("a", "Aborted").await?;
    scene.wait_pods(&[]).await?;
    scene.command("a", "ResumeJob").await?;
    let seen = scene.runs("a", 2).await?;
    let phases = ["Aborting", "Aborted", "Restarting", "Pending", "Running"];
    equal("phases", seen.vc("a").phases(), phases)?;
    equal("retries", seen.vc("a").retries(), 1)?;
    equal("new pods", seen.uid("a-w-0") != before.uid("a-w-0"), true)
}

async fn an_aborted_job_stays_so_whatever_else_is_asked(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)), 1).await?;
    scene.command("a", "AbortJob").await?;
    scene.phase("a", "Aborted").await?;
    for asked in ["RestartJob", "TerminateJob", "CompleteJob"] {
        scene.command("a", asked).await?;
        scene
            .wait_until("it is taken away", |seen| seen.names(Resource::Commands).is_empty())
            .await?;
    }
    let what = "an aborted job does something";
    scene.never_within(300, what, |seen| seen.vc("a").phase() != "Aborted").await
}

async fn a_completing_job_is_not_restarted(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    two_run(&scene).await?;
    scene.command("a", "CompleteJob").await?;
    scene.phase("a", "Completing").await?;
    scene.command("a", "RestartJob").await?;
    scene.wait_until("it is taken away", |seen| seen.names(Resource::Commands).is_empty()).await?;
    let _auto = scene.kubelet.auto_finish();
    let seen = scene.phase("a", "Completed").await?;
    equal("retries", seen.vc("a").retries(), 0)
}

async fn a_terminating_job_is_not_resumed(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    two_run(&scene).await?;
    scene.command("a", "TerminateJob").await?;
    scene.phase("a", "Terminating").await?;
    scene.command("a", "ResumeJob").await?;
    scene.wait_until("it is taken away", |seen| seen.names(Resource::Commands).is_empty()).await?;
    let _auto = scene.kubelet.auto_finish();
    let seen = scene.phase("a", "Terminated").await?;
    equal("retries", seen.vc("a").retries(), 0)
}

async fn stopped_while_restarting(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    two_run(&scene).await?;
    scene.command("a", "RestartJob").await?;
    scene.phase("a", "Restarting").await?;
    scene.command("a", "AbortJob").await?;
    scene.phase("a", "Aborting").await?;
    let _auto = scene.kubelet.auto();
    let seen = scene.phase("a", "Aborted").await?;
    equal("retries", seen.vc("a").retries(), 1)?;
    scene.cleared("a", &[]).await.map(drop)
}

async fn a_lost_pod_takes_it_back_to_waiting(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    two_run(&scene).await?;
    let before = scene.seen();
    scene.kubelet.delete_and_finish("a-w-1").await?;
    scene.wait_successor("a-w-1", &before.uid("a-w-1")).await?;
    let seen = scene.phases("a", &["Running", "Pending"]).await?;
    equal("no restart", seen.vc("a").retries(), 0)?;
    equal("the other stays", seen.uid("a-w-0"), before.uid("a-w-0"))?;
    scene.kubelet.start("a-w-1").await?;
    scene.runs("a", 2).await.map(drop)
}

async fn without_pods_it_waits(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.submit(vcjob("a").task(task("w", 0))).await?;
    scene.wait_until("it is looked at", |seen| !seen.vc("a").phase().is_empty()).await?;
    let what = "a job without pods ends";
    let is_over = |phase: &str| !matches!(phase, "Pending" | "Running");
    scene.never_within(300, what, |seen| is_over(seen.vc("a").phase())).await?;
    scene.resize("a", 0, 1).await?;
    scene.runs("a", 1).await.map(drop)
}

async fn each_phase_stands_once(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 3)).policy(policy("PodFailed", "RestartJob"));
    let before = scene.run(job, 3).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    scene.successors(&before, &["a-w-0", "a-w-1", "a-w-2"]).await?;
    let seen = scene.runs("a", 3).await?;
    equal("visits", seen.vc("a").visits(), vec!["Restarting", "Pending", "Running"])
}
