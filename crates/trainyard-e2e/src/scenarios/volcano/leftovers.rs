//! What is left of a job that has ended, for how long, and what it costs.

use anyhow::Result;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::volcano::{Scene, policy, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/leftovers":
        gone_when_its_time_is_over,
        gone_at_once,
        kept_without_a_time,
        a_terminated_job_has_its_time_too,
        an_ended_pod_may_be_taken_away,
        strangers_are_left_alone,
        times_stand_still_when_counts_move,
    ]
}

async fn ends(scene: &Scene) -> Result<()> {
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.phase("a", "Completed").await.map(drop)
}

async fn all_gone(scene: &Scene) -> Result<()> {
    scene
        .wait_until("all is gone", |seen| seen.vc("a").object().is_null() && seen.pods().is_empty())
        .await
        .map(drop)
}

async fn gone_when_its_time_is_over(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 1)).spec("ttlSecondsAfterFinished", 2);
    scene.run(job, 1).await?;
    ends(&scene).await?;
    scene.never_within(600, "it goes early", |seen| seen.vc("a").object().is_null()).await?;
    all_gone(&scene).await
}

async fn gone_at_once(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)).spec("ttlSecondsAfterFinished", 0), 1).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    all_gone(&scene).await
}

async fn kept_without_a_time(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)).plugin("svc", &[]), 1).await?;
    ends(&scene).await?;
    scene.cleared("a", &["a-w-0"]).await?;
    scene.stays_silent().await
}

async fn a_terminated_job_has_its_time_too(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)).spec("ttlSecondsAfterFinished", 0), 1).await?;
    scene.command("a", "TerminateJob").await?;
    all_gone(&scene).await
}

async fn an_ended_pod_may_be_taken_away(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 1)).policy(policy("PodEvicted", "RestartJob"));
    scene.run(job, 1).await?;
    ends(&scene).await?;
    scene.kubelet.delete("a-w-0", Some(0)).await?;
    let what = "a finished job starts again";
    scene
        .never_within(400, what, |seen| {
            seen.vc("a").phase() != "Completed" || !seen.pods().is_empty()
        })
        .await
}

async fn strangers_are_left_alone(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let stranger = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-w-0"},
        "spec": {"containers": [{"name": "tensorflow", "image": "example.com/other:1"}]},
    });
    scene.create(Resource::Pods, &stranger).await?;
    let uid = scene.seen().uid("a-w-0");
    scene.submit(vcjob("a").task(task("w", 1))).await?;
    let what = "the job takes a stranger for its own";
    scene
        .never_within(500, what, |seen| {
            seen.uid("a-w-0") != uid || seen.vc("a").phase() == "Running"
        })
        .await?;
    scene.kubelet.delete("a-w-0", Some(0)).await?;
    scene.wait_until("its own pod comes", |seen| !seen.pod("a-w-0").is_null()).await?;
    scene.runs("a", 1).await.map(drop)
}

async fn times_stand_still_when_counts_move(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let before = scene.run(vcjob("a").task(task("w", 3)), 3).await?;
    let time =
        |seen: &crate::seen::Seen| seen.vc("a").status()["state"]["lastTransitionTime"].clone();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    scene.kubelet.exit("a-w-0", 0).await?;
    let seen = scene.counts("a", [0, 2, 1, 0, 0]).await?;
    equal("since when it runs", time(&seen), time(&before))
}
