//! Tasks that wait for others.

use anyhow::Result;
use serde_json::json;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::rest::{Resource, refusal};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/depends":
        pods_are_made_when_the_first_task_is_ready,
        all_of_several_must_be_ready,
        one_of_several_is_enough,
        the_gang_counts_them_when_they_may_start,
        a_circle_fails_and_says_so,
    ]
}

async fn pods_are_made_when_the_first_task_is_ready(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a").task(task("ps", 2).min(1)).task(task("w", 1).after(&["ps"]));
    scene.submit(job).await?;
    scene.wait_pods(&["a-ps-0", "a-ps-1"]).await?;
    let what = "the workers are made";
    scene.never_within(300, what, |seen| !seen.pod("a-w-0").is_null()).await?;
    scene.kubelet.start("a-ps-1").await?;
    scene.wait_pods(&["a-ps-0", "a-ps-1", "a-w-0"]).await.map(drop)
}

async fn all_of_several_must_be_ready(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a")
        .task(task("ps", 1).min(1))
        .task(task("data", 1).min(1))
        .task(task("w", 1).after(&["ps", "data"]));
    scene.submit(job).await?;
    scene.wait_pods(&["a-data-0", "a-ps-0"]).await?;
    scene.kubelet.start("a-ps-0").await?;
    let what = "the worker is made";
    scene.never_within(300, what, |seen| !seen.pod("a-w-0").is_null()).await?;
    scene.kubelet.start("a-data-0").await?;
    scene.wait_pods(&["a-data-0", "a-ps-0", "a-w-0"]).await.map(drop)
}

async fn one_of_several_is_enough(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a")
        .task(task("ps", 1).min(1))
        .task(task("data", 1).min(1))
        .task(task("w", 1).after_any(&["ps", "data"]));
    scene.submit(job).await?;
    scene.wait_pods(&["a-data-0", "a-ps-0"]).await?;
    scene.kubelet.start("a-ps-0").await?;
    scene.wait_pods(&["a-data-0", "a-ps-0", "a-w-0"]).await.map(drop)
}

async fn the_gang_counts_them_when_they_may_start(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a").task(task("ps", 1).min(1)).task(task("w", 2).after(&["ps"]));
    scene.submit(job).await?;
    let seen = scene.wait_pods(&["a-ps-0"]).await?;
    equal("members", &seen.vc("a").group()["spec"]["minMember"], 1)?;
    equal("by task", &seen.vc("a").group()["spec"]["minTaskMember"], &json!({"ps": 1}))?;
    scene.kubelet.start("a-ps-0").await?;
    scene.wait_pods(&["a-ps-0", "a-w-0", "a-w-1"]).await?;
    scene
        .wait_until("the gang has grown", |seen| {
            let spec = &seen.vc("a").group()["spec"];
            spec["minMember"] == 3 && spec["minTaskMember"] == json!({"ps": 1, "w": 2})
        })
        .await?;
    let _auto = scene.kubelet.auto();
    scene.runs("a", 3).await.map(drop)
}

/// One that the definition's rules see is refused at once, any other by the job itself.
async fn a_circle_fails_and_says_so(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let words = "job has dependencies between tasks, but doesn't form a directed acyclic \
                 graph(DAG)";
    let pair = vcjob("a").task(task("b", 1).after(&["c"])).task(task("c", 1).after(&["b"]));
    let said = refusal(scene.rest.create(Resource::VolcanoJobs, &pair.json()).await)?;
    contains("refusal", &said, &[words])?;
    let circle = ["b", "c", "d", "e", "f"]
        .windows(2)
        .fold(vcjob("a"), |job, pair| job.task(task(pair[0], 1).after(&[pair[1]])));
    let circle = circle.task(task("f", 1).after(&["b"])).json();
    let said = match scene.rest.create(Resource::VolcanoJobs, &circle).await {
        Err(kube::Error::Api(refusal)) => refusal.message.clone(),
        Err(other) => return Err(other.into()),
        Ok(_) => scene.phase("a", "Failed").await?.vc("a").message().to_owned(),
    };
    contains("what is said", &said, &[words])?;
    scene.never_within(200, "pods are made", |seen| !seen.pods().is_empty()).await
}
