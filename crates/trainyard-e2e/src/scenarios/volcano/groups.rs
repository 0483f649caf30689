//! The PodGroup of a job: what it asks for and what the job does about what it says.

use anyhow::Result;
use serde_json::{Value, json};

use crate::check::{equal, fields};
use crate::harness::{Case, cases};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/groups":
        the_minimum_is_what_the_tasks_need,
        the_least_resources_of_a_part,
        devices_are_counted_as_quota_and_as_they_are,
        an_obstacle_is_told_of_the_job,
        marks_for_the_scheduler_reach_pods_and_group,
        a_group_that_was_taken_away_is_made_again,
        nothing_is_written_when_nothing_changes,
    ]
}

async fn group_of(scene: &Scene, job: Value) -> Result<Value> {
    scene.submit(job).await?;
    let seen = scene.wait_until("there is a group", |seen| !seen.vc("a").group().is_null()).await?;
    Ok(seen.vc("a").group()["spec"].clone())
}

async fn the_minimum_is_what_the_tasks_need(scene: Scene) -> Result<()> {
    let job = vcjob("a").task(task("ps", 2).min(1)).task(task("w", 3));
    let group = group_of(&scene, job.spec("queue", "default").json()).await?;
    fields(
        "group",
        &group,
        &[
            ("/minMember", json!(4)),
            ("/minTaskMember", json!({"ps": 1, "w": 3})),
            ("/minResources/pods", json!("4")),
        ],
    )
}

async fn the_least_resources_of_a_part(scene: Scene) -> Result<()> {
    let job = vcjob("a")
        .min(3)
        .task(task("master", 2).min(2).asks(json!({"cpu": "50m"})))
        .task(task("worker", 2).min(1).asks(json!({"cpu": "100m"})));
    let group = group_of(&scene, job.json()).await?;
    fields(
        "least",
        &group["minResources"],
        &[
            ("/cpu", json!("200m")),
            ("/requests.cpu", json!("200m")),
            ("/pods", json!("3")),
            ("/count~1pods", json!("3")),
        ],
    )
}

async fn devices_are_counted_as_quota_and_as_they_are(scene: Scene) -> Result<()> {
    let has = json!({"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"});
    let one = |name| task(name, 1).container("resources", json!({"requests": has, "limits": has}));
    let group = group_of(&scene, vcjob("a").task(one("b")).task(one("c")).json()).await?;
    let wanted = json!({
        "count/pods": "2", "pods": "2", "cpu": "2", "memory": "2000Mi",
        "limits.cpu": "2", "limits.memory": "2000Mi",
        "requests.cpu": "2", "requests.memory": "2000Mi",
        "requests.nvidia.com/gpu": "2", "nvidia.com/gpu": "2",
    });
    equal("least", &group["minResources"], &wanted)
}

async fn an_obstacle_is_told_of_the_job(scene: Scene) -> Result<()> {
    group_of(&scene, vcjob("a").task(task("w", 1)).json()).await?;
    let group = scene.seen().vc("a").group_name();
    let obstacle = json!({"phase": "Pending", "conditions": [{
        "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources",
        "message": "test message", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "transitionID": "1",
    }]});
    scene.mark_group(&group, obstacle).await?;
    let words = format!(
        "Warning PodGroupPending PodGroup {}:a unschedulable, reason: test message",
        scene.namespace
    );
    scene
        .wait_until(&words, |seen| {
            let reason = &seen.vc("a").status()["state"]["reason"];
            seen.vc("a").told(&words) && reason == "NotEnoughResources"
        })
        .await?;
    scene.stays_silent().await?;
    equal("told once", scene.seen().vc("a").told_times(&words), 1)
}

async fn a_group_that_was_taken_away_is_made_again(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let before = scene.run(vcjob("a").task(task("w", 1)), 1).await?;
    let (name, uid) = (before.vc("a").group_name(), &before.vc("a").group()["metadata"]["uid"]);
    scene.rest.delete(crate::rest::Resource::Groups, &name, None).await?;
    scene
        .wait_until("there is another", |seen| {
            let group = seen.vc("a").group();
            !group.is_null() && group["metadata"]["uid"] != *uid
        })
        .await?;
    equal("the pod stays", scene.seen().uid("a-w-0"), before.uid("a-w-0"))
}

async fn nothing_is_written_when_nothing_changes(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 2)).plugin("svc", &[]).plugin("env", &[]), 2).await?;
    scene.stays_silent().await
}

async fn marks_for_the_scheduler_reach_pods_and_group(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let (spared, zone) = ("volcano.sh/preemptable", "volcano.sh/revocable-zone");
    let job = vcjob("a").task(task("w", 1));
    scene.submit(job.meta("labels", spared, "false").meta("annotations", zone, "rz1")).await?;
    let seen = scene.wait_pods(&["a-w-0"]).await?;
    for object in [seen.pod("a-w-0"), seen.vc("a").group()] {
        equal("label", &object["metadata"]["labels"][spared], "false")?;
        equal("annotation", &object["metadata"]["annotations"][zone], "rz1")?;
    }
    Ok(())
}
