//! Pods are added and taken away while a job runs.

use anyhow::Result;
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::rest::refusal;
use crate::seen::text;
use crate::volcano::{Scene, policy, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/scale":
        up,
        down_is_no_eviction,
        to_nothing_and_back,
        hosts_and_group_follow,
        nothing_else_may_be_changed,
    ]
}

async fn up(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let before = scene.run(vcjob("a").task(task("w", 1)), 1).await?;
    scene.resize("a", 0, 3).await?;
    scene.wait_pods(&["a-w-0", "a-w-1", "a-w-2"]).await?;
    let seen = scene.runs("a", 3).await?;
    equal("the old one stays", seen.uid("a-w-0"), before.uid("a-w-0"))?;
    equal("retries", seen.vc("a").retries(), 0)
}

async fn down_is_no_eviction(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 3)).policy(policy("PodEvicted", "RestartJob"));
    let before = scene.run(job, 3).await?;
    scene.resize("a", 0, 1).await?;
    scene.wait_pods(&["a-w-0"]).await?;
    let seen = scene.runs("a", 1).await?;
    equal("the first stays", seen.uid("a-w-0"), before.uid("a-w-0"))?;
    let what = "it is restarted";
    scene
        .never_within(400, what, |seen| {
            seen.vc("a").retries() != 0 || seen.vc("a").phase() != "Running"
        })
        .await
}

async fn to_nothing_and_back(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("ps", 1)).task(task("w", 2));
    scene.run(job.policy(policy("PodEvicted", "RestartJob")), 3).await?;
    scene.resize("a", 1, 0).await?;
    scene.wait_pods(&["a-ps-0"]).await?;
    scene.resize("a", 1, 2).await?;
    let seen = scene.runs("a", 3).await?;
    equal("retries", seen.vc("a").retries(), 0)
}

async fn hosts_and_group_follow(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 1).asks(json!({"cpu": "100m"}));
    scene.run(vcjob("a").task(workers).plugin("svc", &[]), 1).await?;
    scene.resize("a", 0, 2).await?;
    scene
        .wait_until("hosts and group have followed", |seen| {
            let (hosts, group) = (&seen.vc("a").hosts()["data"], &seen.vc("a").group()["spec"]);
            hosts["VC_W_NUM"] == "2"
                && hosts["w.host"] == "a-w-0.a\na-w-1.a"
                && group["minMember"] == 2
                && group["minTaskMember"] == json!({"w": 2})
                && matches!(text(&group["minResources"]["cpu"]), "200m" | "0.2")
        })
        .await
        .map(drop)
}

async fn nothing_else_may_be_changed(scene: Scene) -> Result<()> {
    scene.submit(vcjob("a").task(task("w", 1))).await?;
    let patch = json!({"spec": {"queue": "other"}});
    let said = refusal(scene.rest.merge(Resource::VolcanoJobs, "a", &patch).await)?;
    let words = "job updates may not change fields other than `minAvailable`, \
                 `tasks[*].replicas under spec` and `PriorityClassName`";
    crate::check::contains("refusal", &said, &[words])
}
