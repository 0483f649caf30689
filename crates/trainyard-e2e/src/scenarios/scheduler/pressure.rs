//! Who makes room for whom inside a queue.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::seen::Seen;
use crate::volcano::{Floor, Gang};

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/pressure":
        a_whole_gang_makes_room,
        members_above_the_minimum_go_first,
        nobody_goes_where_it_would_not_help,
        equals_are_left_alone,
        the_spared_are_left_alone,
        who_is_beyond_a_budget_goes_last,
        a_budget_with_something_left_protects_nobody,
        who_may_not_preempt_waits,
        room_being_made_is_kept,
    ]
}

async fn classes(floor: &Floor) -> Result<[String; 2]> {
    Ok([floor.class("low", 1).await?, floor.class("high", 100).await?])
}

fn gang(name: &str, pods: usize, class: &str) -> Gang {
    Gang::new(name, pods).spec("priorityClassName", class).pod("priorityClassName", class)
}

/// Waits until these pods, and no others, have nodes and are not being deleted.
async fn stay(floor: &Floor, wanted: &[&str]) -> Result<Arc<Seen>> {
    let what = format!("the pods {wanted:?} have nodes and stay");
    floor
        .wait_until(&what, |seen| {
            let live = seen.live_pods();
            let mut placed = seen.placed();
            placed.retain(|pod| live.contains(pod));
            placed == wanted
        })
        .await
}

async fn a_whole_gang_makes_room(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = classes(&floor).await?;
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.node("b", json!({"cpu": "2"})).await?;
    floor.gang(gang("one", 2, &low)).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    floor.gang(gang("two", 2, &low)).await?;
    floor.placed(&["one-0", "one-1", "two-0", "two-1"]).await?;
    floor.gang(gang("urgent", 2, &high)).await?;
    let seen = stay(&floor, &["one-0", "one-1", "urgent-0", "urgent-1"]).await?;
    let told = seen.events_about("Pod", "two-0").join("\n");
    ensure!(told.contains("Evict Pod is evicted, because of preempt"), "events: {told}");
    Ok(())
}

async fn members_above_the_minimum_go_first(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = classes(&floor).await?;
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.gang(gang("elastic", 3, &low).min(1)).await?;
    floor.gang(gang("strict", 1, &low)).await?;
    floor.placed(&["elastic-0", "elastic-1", "elastic-2", "strict-0"]).await?;
    floor.gang(gang("urgent", 1, &high)).await?;
    stay(&floor, &["elastic-0", "elastic-1", "strict-0", "urgent-0"]).await.map(drop)
}

async fn nobody_goes_where_it_would_not_help(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = classes(&floor).await?;
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.node("b", json!({"cpu": "2"})).await?;
    floor.gang(gang("one", 4, &low)).await?;
    floor.placed(&["one-0", "one-1", "one-2", "one-3"]).await?;
    floor.gang(gang("wide", 1, &high).asks(json!({"cpu": "3"}))).await?;
    floor.gang(gang("many", 5, &high)).await?;
    floor.waits("wide-0", "Insufficient cpu").await?;
    floor.waits("many-0", "Insufficient cpu").await?;
    floor.stays_placed(&["one-0", "one-1", "one-2", "one-3"]).await
}

async fn equals_are_left_alone(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [_, high] = classes(&floor).await?;
    floor.node("a", json!({"cpu": "1"})).await?;
    floor.gang(gang("one", 1, &high)).await?;
    floor.placed(&["one-0"]).await?;
    floor.gang(gang("two", 1, &high)).await?;
    floor.waits("two-0", "Insufficient cpu").await?;
    equal("constraint", &floor.explain("two").await?["constraint"], "room")?;
    floor.stays_placed(&["one-0"]).await
}

async fn the_spared_are_left_alone(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = classes(&floor).await?;
    floor.node("a", json!({"cpu": "1"})).await?;
    let spared = gang("spared", 1, &low).annotation("volcano.sh/preemptable", "false");
    floor.gang(spared).await?;
    floor.placed(&["spared-0"]).await?;
    floor.gang(gang("urgent", 1, &high)).await?;
    floor.waits("urgent-0", "Insufficient cpu").await?;
    floor.stays_placed(&["spared-0"]).await
}

/// Makes a `PodDisruptionBudget` of a gang, of whose pods so many may be missing now. Its status is written here: no
/// controller does it.
async fn budget(floor: &Floor, of: &str, allowed: i64) -> Result<()> {
    let path = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", floor.namespace);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": of},
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"gang": of}}},
    });
    floor.rest.send(Method::POST, &path, Some(&budget)).await.context("making a budget")?;
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed,
        "currentHealthy": 1, "desiredHealthy": 1 - allowed, "expectedPods": 1}});
    let path = format!("{path}/{of}/status");
    let written = floor.rest.send(Method::PATCH, &path, Some(&status)).await;
    let written = written.context("writing what a budget allows")?;
    equal("allowed", &written["status"]["disruptionsAllowed"], allowed)
}

/// Two gangs of one pod that fill the cluster, the second of them the younger, which goes first of equals.
async fn filled(floor: &Floor, low: &str) -> Result<()> {
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(gang("old", 1, low)).await?;
    floor.placed(&["old-0"]).await?;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    floor.gang(gang("young", 1, low)).await?;
    floor.placed(&["old-0", "young-0"]).await.map(drop)
}

async fn who_is_beyond_a_budget_goes_last(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = classes(&floor).await?;
    budget(&floor, "young", 0).await?;
    filled(&floor, &low).await?;
    floor.gang(gang("urgent", 1, &high)).await?;
    stay(&floor, &["urgent-0", "young-0"]).await?;
    // Where nothing else helps a budget is no obstacle.
    floor.gang(gang("more", 1, &high)).await?;
    stay(&floor, &["more-0", "urgent-0"]).await.map(drop)
}

async fn a_budget_with_something_left_protects_nobody(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, high] = classes(&floor).await?;
    budget(&floor, "young", 1).await?;
    filled(&floor, &low).await?;
    floor.gang(gang("urgent", 1, &high)).await?;
    stay(&floor, &["old-0", "urgent-0"]).await.map(drop)
}

async fn who_may_not_preempt_waits(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let [low, _] = classes(&floor).await?;
    let meek = floor.class_with("meek", 100, "Never").await?;
    floor.node("a", json!({"cpu": "1"})).await?;
    floor.gang(gang("one", 1, &low)).await?;
    floor.placed(&["one-0"]).await?;
    // Servers that have no such admission do not copy it from the class.
    floor.gang(gang("meek", 1, &meek).pod("preemptionPolicy", "Never")).await?;
    floor.waits("meek-0", "Insufficient cpu").await?;
    floor.stays_placed(&["one-0"]).await
}

async fn room_being_made_is_kept(floor: Floor) -> Result<()> {
    let [low, high] = classes(&floor).await?;
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(gang("one", 2, &low)).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    floor.kubelet.start_all(&["one-0", "one-1"]).await?;
    floor.gang(gang("urgent", 2, &high)).await?;
    floor.wait_until("they are told to go", |seen| seen.live_pods().len() == 2).await?;
    floor.waits("urgent-0", "once resource is released").await?;
    equal("constraint", &floor.explain("urgent").await?["constraint"], "releasing")?;
    // The first half of the room is nobody else's.
    floor.kubelet.finish_termination("one-0").await?;
    floor.gang(gang("sly", 1, &low)).await?;
    let what = "somebody else takes the room";
    floor.never_within(400, what, |seen| !seen.node_of("sly-0").is_empty()).await?;
    floor.kubelet.finish_termination("one-1").await?;
    floor.placed(&["urgent-0", "urgent-1"]).await.map(drop)
}
