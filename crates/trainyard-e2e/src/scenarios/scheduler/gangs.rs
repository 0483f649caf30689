//! All pods of a gang or none.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::volcano::{Floor, Gang, quick_scheduler};

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/gangs":
        one_of_two_that_compete,
        gangs_that_ask_for_nothing,
        larger_than_the_cluster,
        above_the_minimum_as_many_as_fit,
        members_that_are_not_there_yet,
        a_task_without_its_minimum,
        a_group_that_is_not_there,
        pods_without_a_group,
        gates_keep_a_pod_out,
        a_group_ends_with_its_pods,
        an_idle_floor_is_quiet,
        another_scheduler_goes_on,
    ]
}

async fn one_of_two_that_compete(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.gang(Gang::new("one", 3)).await?;
    floor.gang(Gang::new("two", 3)).await?;
    for name in ["a", "b"] {
        floor.node(name, json!({"cpu": "2"})).await?;
    }
    floor.placed(&["one-0", "one-1", "one-2"]).await?;
    floor.waits("two-0", "Insufficient cpu").await?;
    floor.group_says("two", "NotEnoughResources", "tasks in gang unschedulable").await?;
    floor.stays_placed(&["one-0", "one-1", "one-2"]).await?;
    floor.group_is("one", "Running").await?;
    for pod in ["one-0", "one-1", "one-2"] {
        floor.kubelet.exit(pod, 0).await?;
    }
    let seen = floor.placed(&["two-0", "two-1", "two-2"]).await?;
    let told = seen.events_about("Pod", "two-0");
    let told = told.iter().filter(|event| event.starts_with("Normal Scheduled")).count();
    ensure!(told <= 1, "told {told} times");
    Ok(())
}

async fn gangs_that_ask_for_nothing(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "1", "pods": "3"})).await?;
    floor.gang(Gang::new("one", 2).asks(json!({}))).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    floor.gang(Gang::new("two", 2).asks(json!({}))).await?;
    floor.waits("two-0", "Too many pods").await?;
    floor.stays_placed(&["one-0", "one-1"]).await
}

async fn larger_than_the_cluster(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(Gang::new("big", 4)).await?;
    floor.group_says("big", "NotEnoughResources", "tasks in gang unschedulable").await?;
    floor.waits("big-3", "1 Insufficient cpu").await?;
    let why = floor.explain("big").await?;
    equal("constraint", &why["constraint"], "tooLarge")?;
    equal("short of", &why["shortages"][0]["resource"], "cpu")?;
    // Smaller ones go on.
    floor.gang(Gang::new("small", 2)).await?;
    floor.placed(&["small-0", "small-1"]).await.map(drop)
}

async fn above_the_minimum_as_many_as_fit(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "3"})).await?;
    floor.gang(Gang::new("one", 4).min(2)).await?;
    floor.wait_until("three have nodes", |seen| seen.placed().len() == 3).await?;
    floor.group_is("one", "Running").await?;
    floor.node("b", json!({"cpu": "1"})).await?;
    floor.placed(&["one-0", "one-1", "one-2", "one-3"]).await.map(drop)
}

async fn members_that_are_not_there_yet(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.gang(Gang::new("one", 2).min(3)).await?;
    let words = "Not enough valid tasks for gang-scheduling, valid: 2, min: 3";
    floor.group_says("one", "NotEnoughTasks", words).await?;
    floor.stays_placed(&[]).await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "members")
}

async fn a_task_without_its_minimum(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.gang(Gang::new("one", 2).spec("minTaskMember", json!({"ps": 1}))).await?;
    let words = "Not enough valid pods of each task for gang-scheduling";
    floor.group_says("one", "NotEnoughPodsOfTask", words).await?;
    floor.stays_placed(&[]).await
}

async fn a_group_that_is_not_there(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    let gang = Gang::new("one", 1);
    floor.members(&gang).await?;
    floor.waits("one-0", "pod group \"one\" not found").await?;
    floor.group(&gang).await?;
    floor.placed(&["one-0"]).await.map(drop)
}

async fn pods_without_a_group(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "1"})).await?;
    let lone = |name: &str, scheduler: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": scheduler, "containers": [{"name": "tensorflow",
                "image": "example.com/train:1", "resources": {"requests": {"cpu": "1"}}}]},
        })
    };
    floor.create(Resource::Pods, &lone("other", "somebody-else")).await?;
    floor.create(Resource::Pods, &lone("ours", "volcano")).await?;
    floor.placed(&["ours"]).await?;
    floor.create(Resource::Pods, &lone("next", "volcano")).await?;
    floor.waits("next", "1 Insufficient cpu.").await?;
    floor.stays_placed(&["ours"]).await?;
    // As Volcano's controller has it, a plain pod has a group of its own; others' have none.
    for pod in ["ours", "next"] {
        let group = format!("podgroup-{}", floor.seen().uid(pod));
        let annotation = |seen: &Seen| {
            text(&seen.pod(pod)["metadata"]["annotations"]["scheduling.k8s.io/group-name"]) == group
        };
        let seen = floor.wait_until("the pod names its group", annotation).await?;
        let group = seen.object(Resource::Groups, &group);
        equal("owner", &group["metadata"]["ownerReferences"][0]["name"], pod)?;
        equal("members", &group["spec"]["minMember"], 1)?;
    }
    let seen = floor.seen();
    let others = &seen.pod("other")["metadata"]["annotations"];
    equal("a stranger's", others["scheduling.k8s.io/group-name"].is_null(), true)?;
    let group = format!("podgroup-{}", seen.uid("ours"));
    floor.group_is(&group, "Running").await.map(drop)
}

async fn gates_keep_a_pod_out(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    let gates = json!([{"name": "example.com/quota"}]);
    floor.gang(Gang::new("one", 1).pod("schedulingGates", gates)).await?;
    floor.stays_placed(&[]).await?;
    let patch = json!({"spec": {"schedulingGates": []}});
    floor.merge(Resource::Pods, "one-0", &patch).await?;
    floor.placed(&["one-0"]).await.map(drop)
}

async fn a_group_ends_with_its_pods(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(Gang::new("one", 2)).await?;
    let counts = |name: &'static str| {
        move |seen: &crate::seen::Seen| {
            seen.object(Resource::Groups, "one")["status"][name].as_i64() == Some(2)
        }
    };
    floor.wait_until("both run", counts("running")).await?;
    for pod in ["one-0", "one-1"] {
        floor.kubelet.exit(pod, 0).await?;
    }
    floor.group_is("one", "Completed").await?;
    floor.wait_until("both succeeded", counts("succeeded")).await.map(drop)
}

async fn an_idle_floor_is_quiet(floor: Floor) -> Result<()> {
    let queue = floor.queue("q", json!({})).await?;
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(Gang::new("one", 2).spec("queue", queue.as_str())).await?;
    floor.gang(Gang::new("two", 2).spec("queue", queue.as_str())).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    floor.waits("two-1", "Insufficient cpu").await?;
    // Its status is written once a second at most.
    floor.queue_is(&queue, "/status/allocated/cpu", "2").await?;
    floor.settles().await?;
    let before = floor.get_queue(&queue).await?;
    floor.stays_silent().await?;
    let after = floor.get_queue(&queue).await?;
    let version =
        |queue: &serde_json::Value| text(&queue["metadata"]["resourceVersion"]).to_owned();
    equal("the queue is not written", version(&after), version(&before))
}

async fn another_scheduler_goes_on(mut floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "3"})).await?;
    floor.gang(Gang::new("one", 2)).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    floor.crash_scheduler().await;
    floor.gang(Gang::new("two", 2)).await?;
    floor.gang(Gang::new("three", 1)).await?;
    floor.start_scheduler(quick_scheduler());
    floor.placed(&["one-0", "one-1", "three-0"]).await?;
    let pods = floor.rest.path(Resource::Pods);
    for pod in ["one-0", "one-1"] {
        let now = json!({"gracePeriodSeconds": 0});
        floor.rest.send(Method::DELETE, &format!("{pods}/{pod}"), Some(&now)).await?;
    }
    floor.placed(&["three-0", "two-0", "two-1"]).await.map(drop)
}
