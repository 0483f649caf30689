//! What is told about a job, in which words, and how often.

use anyhow::{Result, ensure};

use crate::check::{equal, has_line};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["events":
        source_and_object,
        a_whole_life,
        many_replicas_are_told_as_a_range,
        an_image_that_cannot_be_pulled,
        a_pod_that_fits_nowhere,
        exit_codes_are_told_once,
    ]
}

async fn source_and_object(world: World) -> Result<()> {
    let job = world.submit(tfjob("a").workers(1)).await?;
    let line = "Normal SuccessfulCreatePod Created pod: a-worker-0";
    let seen = world.wait_until(line, |seen| seen.told("a", line)).await?;
    let (_, event) = seen
        .all(Resource::Events)
        .find(|(_, event)| event["reason"] == "SuccessfulCreatePod")
        .ok_or_else(|| anyhow::anyhow!("no event"))?;
    equal("source", &event["source"]["component"], "tf-operator")?;
    let object = &event["involvedObject"];
    equal("uid", &object["uid"], &job["metadata"]["uid"])?;
    equal("version", &object["apiVersion"], "kubeflow.org/v1")?;
    equal("namespace", &object["namespace"], &world.namespace)?;
    ensure!(event["firstTimestamp"].is_string(), "no time: {event}");
    ensure!(event["count"].as_i64() == Some(1), "count: {event}");
    Ok(())
}

async fn a_whole_life(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).ps(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let last = "Normal SuccessfulDeletePod Deleted pod: a-ps-0";
    world.wait_until(last, |seen| seen.told("a", last)).await?;
    world
        .wait_until("both services are told", |seen| {
            seen.told("a", "Normal SuccessfulDeleteService Deleted service: a-ps-0")
                && seen.told("a", "Normal SuccessfulDeleteService Deleted service: a-worker-0")
                && seen.told("a", "Normal TFJobSucceeded")
        })
        .await?;
    let mut events = world.seen().events("a");
    events.sort();
    let ns = &world.namespace;
    equal(
        "all events",
        events,
        [
            "Normal SuccessfulCreatePod Created pod: a-ps-0".to_owned(),
            "Normal SuccessfulCreatePod Created pod: a-worker-0".to_owned(),
            "Normal SuccessfulCreateService Created service: a-ps-0".to_owned(),
            "Normal SuccessfulCreateService Created service: a-worker-0".to_owned(),
            "Normal SuccessfulDeletePod Deleted pod: a-ps-0".to_owned(),
            "Normal SuccessfulDeleteService Deleted service: a-ps-0".to_owned(),
            "Normal SuccessfulDeleteService Deleted service: a-worker-0".to_owned(),
            format!("Normal TFJobSucceeded TFJob {ns}/a successfully completed."),
        ],
    )
}

async fn many_replicas_are_told_as_a_range(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(25).ps(2)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let pods = "Normal SuccessfulCreatePod Created pod: a-worker-0 .. a-worker-24 (25 in all)";
    let services =
        "Normal SuccessfulCreateService Created service: a-worker-0 .. a-worker-24 (25 in all)";
    let seen = world
        .wait_until("both ranges are told", |seen| seen.told("a", pods) && seen.told("a", services))
        .await?;
    has_line(
        "two are told one by one",
        &seen.events("a"),
        "Normal SuccessfulCreatePod Created pod: a-ps-1",
    )?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let ns = &world.namespace;
    let end = format!("Normal TFJobSucceeded TFJob {ns}/a successfully completed.");
    world.wait_until("the end is told", |seen| seen.told("a", &end)).await?;
    let pods = "Normal SuccessfulDeletePod Deleted pod: a-worker-1 .. a-worker-24 (24 in all)";
    world.wait_until("deletions are a range too", |seen| seen.told("a", pods)).await?;
    Ok(())
}

async fn an_image_that_cannot_be_pulled(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    let words = "Back-off pulling image \"example.com/train:1\"";
    world.kubelet.cannot_pull("a-worker-0", words).await?;
    let line = format!(
        "Warning ImagePullBackOff Error pod a-worker-0 container tensorflow waiting message: {words}"
    );
    world.wait_until(&line, |seen| seen.told("a", &line)).await?;
    // The same trouble seen again is not told again.
    world.submit(tfjob("b").workers(1)).await?;
    world
        .never_within(500, "it is told twice", |seen| {
            seen.events("a").iter().filter(|event| **event == line).count() > 1
        })
        .await
}

async fn a_pod_that_fits_nowhere(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    let words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
    world.kubelet.unschedulable("a-worker-0", words).await?;
    let line = format!("Warning Unschedulable Error pod a-worker-0 condition message: {words}");
    world.wait_until(&line, |seen| seen.told("a", &line)).await?;
    Ok(())
}

async fn exit_codes_are_told_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    let ns = &world.namespace;
    let line = format!("Normal ExitedWithCode Pod: {ns}.a-worker-1 exited with code 137");
    world.wait_until(&line, |seen| seen.told("a", &line)).await?;
    world
        .never_within(300, "it is told twice", |seen| {
            seen.events("a").iter().filter(|event| **event == line).count() > 1
        })
        .await
}
