//! TFJobs as gangs: a PodGroup each, pods from the start, and nothing left at the end.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_core::Gang as Mode;
use trainyard_operator::Options;

use crate::check::{equal, fields};
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::volcano::Floor;

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/tfjobs":
        pods_are_there_before_a_scheduler_is,
        two_jobs_never_hold_half_each,
        the_group_follows_scaling,
        the_policy_of_the_job_is_honoured,
        the_group_goes_at_the_end,
        the_group_goes_while_suspended,
        one_that_cannot_fit_says_why,
    ]
}

fn as_gangs(options: &mut Options) {
    options.planner.gang = Mode::PodGroup { scheduler: "volcano".to_owned() };
}

fn job(name: &str, workers: i64) -> Manifest {
    let one = |container: &mut Value| {
        container["resources"] = json!({"requests": {"cpu": "1"}});
    };
    tfjob(name).ps(1).workers(workers).container("PS", one).container("Worker", one)
}

fn group<'a>(seen: &'a Seen, job: &str) -> &'a Value {
    let is_of = |group: &Value| group["metadata"]["ownerReferences"][0]["name"] == job;
    let mut all = seen.all(Resource::Groups).map(|(_, group)| group);
    all.find(|group| is_of(group)).unwrap_or(&Value::Null)
}

async fn pods_are_there_before_a_scheduler_is(mut floor: Floor) -> Result<()> {
    floor.crash_scheduler().await;
    let _operator = floor.start_operator(as_gangs).await?;
    floor.world().submit(job("a", 2)).await?;
    let seen = floor.wait_pods(&["a-ps-0", "a-worker-0", "a-worker-1"]).await?;
    fields(
        "group",
        group(&seen, "a"),
        &[
            ("/metadata/name", json!("a")),
            ("/spec/minMember", json!(3)),
            ("/spec/minResources/cpu", json!("3")),
        ],
    )?;
    equal("not begun", seen.job("a")["status"]["startTime"].is_null(), true)?;
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "3"})).await?;
    floor.start_scheduler(crate::volcano::quick_scheduler());
    let seen = floor.wait_until("it runs", |seen| seen.is("a", "Running")).await?;
    for pod in ["a-ps-0", "a-worker-0", "a-worker-1"] {
        let pod = seen.pod(pod);
        equal("scheduler", &pod["spec"]["schedulerName"], "volcano")?;
        let named = &pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"];
        equal("group", named, "a")?;
    }
    Ok(())
}

async fn two_jobs_never_hold_half_each(floor: Floor) -> Result<()> {
    let _operator = floor.start_operator(as_gangs).await?;
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.world().submit(job("a", 2)).await?;
    floor.world().submit(job("b", 2)).await?;
    let is_up = |seen: &Seen| seen.is("a", "Running") || seen.is("b", "Running");
    let seen = floor.wait_until("one runs", is_up).await?;
    let (first, second) = if seen.is("a", "Running") { ("a", "b") } else { ("b", "a") };
    floor
        .never_within(400, "the other has a part", |seen| {
            seen.placed().iter().any(|pod| pod.starts_with(second))
        })
        .await?;
    floor.kubelet.exit(&format!("{first}-worker-0"), 0).await?;
    floor.wait_until("the first succeeds", |seen| seen.is(first, "Succeeded")).await?;
    floor.wait_until("the second runs", |seen| seen.is(second, "Running")).await.map(drop)
}

async fn the_group_follows_scaling(floor: Floor) -> Result<()> {
    let _operator = floor.start_operator(as_gangs).await?;
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "8"})).await?;
    floor.world().submit(job("a", 1)).await?;
    floor.wait_until("it runs", |seen| seen.is("a", "Running")).await?;
    for count in [3, 2] {
        floor.set_replicas("a", "Worker", count).await?;
        let follows = |seen: &Seen| group(seen, "a")["spec"]["minMember"] == count + 1;
        floor.wait_until("the group follows", follows).await?;
        let all = |seen: &Seen| seen.counts("a", "Worker") == [count, 0, 0];
        floor.wait_until("all run", all).await?;
    }
    Ok(())
}

async fn the_policy_of_the_job_is_honoured(floor: Floor) -> Result<()> {
    let _operator = floor.start_operator(as_gangs).await?;
    let queue = floor.queue("q", json!({})).await?;
    let class = floor.class("high", 100).await?;
    let policy = json!({"minAvailable": 2, "queue": queue, "priorityClass": class,
        "minResources": {"cpu": "2"}});
    floor.world().submit(job("a", 2).run_policy("schedulingPolicy", policy)).await?;
    let seen = floor.wait_until("there is a group", |seen| !group(seen, "a").is_null()).await?;
    fields(
        "group",
        group(&seen, "a"),
        &[
            ("/spec/minMember", json!(2)),
            ("/spec/queue", json!(queue)),
            ("/spec/priorityClassName", json!(class)),
            ("/spec/minResources", json!({"cpu": "2"})),
        ],
    )?;
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.wait_until("two of three have nodes", |seen| seen.placed().len() == 2).await.map(drop)
}

async fn runs(floor: &Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    floor.world().submit(job("a", 1)).await?;
    floor.wait_until("it runs", |seen| seen.is("a", "Running")).await.map(drop)
}

async fn the_group_goes_at_the_end(floor: Floor) -> Result<()> {
    let _operator = floor.start_operator(as_gangs).await?;
    let _auto = floor.kubelet.auto_bound();
    runs(&floor).await?;
    floor.kubelet.exit("a-worker-0", 0).await?;
    floor.wait_until("it succeeds", |seen| seen.is("a", "Succeeded")).await?;
    floor.wait_until("its group goes", |seen| group(seen, "a").is_null()).await?;
    floor.wait_pods(&["a-worker-0"]).await.map(drop)
}

async fn the_group_goes_while_suspended(floor: Floor) -> Result<()> {
    let _operator = floor.start_operator(as_gangs).await?;
    let _auto = floor.kubelet.auto_bound();
    runs(&floor).await?;
    floor.patch_spec("a", json!({"runPolicy": {"suspend": true}})).await?;
    floor.wait_pods(&[]).await?;
    floor.wait_until("its group goes", |seen| group(seen, "a").is_null()).await?;
    floor.patch_spec("a", json!({"runPolicy": {"suspend": false}})).await?;
    floor.wait_until("it runs again", |seen| seen.is("a", "Running")).await?;
    equal("a group again", group(&floor.seen(), "a").is_null(), false)
}

async fn one_that_cannot_fit_says_why(floor: Floor) -> Result<()> {
    let _operator = floor.start_operator(as_gangs).await?;
    floor.node("a", json!({"cpu": "1"})).await?;
    floor.world().submit(job("a", 3)).await?;
    let words = "1 of 4 pods fit; cpu: 4 asked for, 1 free: 3 too little";
    let pods = ["a-ps-0", "a-worker-0", "a-worker-1", "a-worker-2"];
    let seen = floor.wait_pods(&pods).await?;
    let name = text(&group(&seen, "a")["metadata"]["name"]).to_owned();
    floor.group_says(&name, "NotEnoughResources", words).await?;
    for pod in pods {
        floor.waits(pod, words).await?;
        let told = |seen: &Seen| {
            let events = seen.events_about("Pod", pod);
            events.iter().any(|event| event.contains("FailedScheduling") && event.contains(words))
        };
        floor.wait_until("the pod's event", told).await?;
    }
    let says = |seen: &Seen| {
        let told = |event: &String| event.contains("PodGroupPending") && event.contains(words);
        text(&seen.condition("a", "Created")["message"]).contains(words)
            && seen.events("a").iter().any(told)
    };
    let seen = floor.wait_until("the job says so", says).await?;
    let events = seen.events("a");
    let overused = events.iter().find(|event| event.contains("overused"));
    ensure!(overused.is_none(), "nothing runs here: {overused:?}");
    let why = floor.explain(&name).await?;
    equal("waiting", &why["waiting"], 4)?;
    equal("constraint", &why["constraint"], "tooLarge")?;
    let short = &why["shortages"][0];
    equal("asked and free", (&short["asked"], &short["free"]), (&json!(4000), &json!(1000)))?;
    floor.never_within(300, "a part runs", |seen| !seen.placed().is_empty()).await?;
    // What fits is placed, and nothing says any more that it waits.
    let _auto = floor.kubelet.auto_bound();
    floor.node("b", json!({"cpu": "3"})).await?;
    let seen = floor.wait_until("it runs", |seen| seen.is("a", "Running")).await?;
    equal("created", &seen.condition("a", "Created")["message"], "TFJob a is created.")
}
