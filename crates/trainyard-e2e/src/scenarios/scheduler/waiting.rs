//! How long a gang waits while others pass it, and what is told of those that wait.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::{Seen, text};
use crate::volcano::{Floor, Gang};
use crate::world::World;

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/waiting":
        small_ones_pass_a_large_one_at_first,
        what_is_said_again_is_counted,
        everything_is_said_of_one_that_waits,
        one_that_runs_waits_for_nothing,
        nobody_is_let_in_beyond_what_there_is,
    ]
}

/// Those that set their scheduler themselves.
pub(super) fn own_scheduler() -> Vec<Case<World>> {
    cases!["scheduler/waiting": a_large_one_does_not_starve]
}

async fn small_ones_pass_a_large_one_at_first(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.gang(Gang::new("first", 2)).await?;
    floor.placed(&["first-0", "first-1"]).await?;
    floor.gang(Gang::new("large", 4)).await?;
    floor.waits("large-0", "Insufficient cpu").await?;
    floor.gang(Gang::new("small", 1)).await?;
    floor.placed(&["first-0", "first-1", "small-0"]).await.map(drop)
}

/// Small gangs keep coming, one for each that ends; a large one has to get its turn.
async fn a_large_one_does_not_starve(world: World) -> Result<()> {
    let floor = Floor::open_with(world, |options| {
        options.reserve_after_seconds = 2;
        options.overdue_after_seconds = 4;
    })
    .await?;
    let _auto = floor.kubelet.auto_bound();
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(Gang::new("s0", 1)).await?;
    floor.gang(Gang::new("s1", 1)).await?;
    floor.placed(&["s0-0", "s1-0"]).await?;
    floor.gang(Gang::new("large", 2)).await?;
    for round in 0..15 {
        let (oldest, next) = (format!("s{round}-0"), format!("s{}", round + 2));
        floor.gang(Gang::new(&next, 1)).await?;
        let seen = floor.seen();
        if !seen.node_of("large-0").is_empty() {
            return Ok(());
        }
        if !seen.node_of(&oldest).is_empty() {
            let started = |seen: &Seen| seen.pod(&oldest)["status"]["phase"] == "Running";
            floor.wait_until("it has started", started).await?;
            floor.kubelet.exit(&oldest, 0).await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    floor.wait_until("it has its turn", |seen| !seen.node_of("large-1").is_empty()).await?;
    Ok(())
}

/// A reason that goes and comes back is told by the event that told it first. Between two words to a
/// pod there are seconds, so that the second is written.
async fn what_is_said_again_is_counted(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "1"})).await?;
    floor.gang(Gang::new("one", 1).asks(json!({"cpu": "2"}))).await?;
    let seen = floor.waits("one-0", "Insufficient cpu").await?;
    let why = format!("Warning FailedScheduling {}", seen.unplaced("one-0"));
    floor.edit_node("a", json!({"spec": {"unschedulable": true}})).await?;
    floor.waits("one-0", "unschedulable").await?;
    floor.edit_node("a", json!({"spec": {"unschedulable": false, "taints": []}})).await?;
    let times = |seen: &Seen| {
        let told = seen.events_about("Pod", "one-0");
        told.into_iter().filter(|event| *event == why).count()
    };
    let seen = floor.wait_until("it is told twice", |seen| times(seen) >= 2).await?;
    let is_it = |event: &Value| {
        event["involvedObject"]["name"] == "one-0"
            && why.ends_with(text(&event["message"]))
            && event["reason"] == "FailedScheduling"
    };
    let events: Vec<_> = seen.all(Resource::Events).filter(|(_, event)| is_it(event)).collect();
    equal("events", events.len(), 1)
}

async fn everything_is_said_of_one_that_waits(floor: Floor) -> Result<()> {
    let queue = floor.queue("q", json!({})).await?;
    floor.node("a", json!({"cpu": "3"})).await?;
    floor.node("b", json!({"cpu": "1"})).await?;
    floor.gang(Gang::new("holder", 2).spec("queue", queue.as_str())).await?;
    floor.placed(&["holder-0", "holder-1"]).await?;
    floor.gang(Gang::new("one", 3).spec("queue", queue.as_str())).await?;
    floor.waits("one-0", "Insufficient cpu").await?;
    let why = floor.explain("one").await?;
    equal("constraint", &why["constraint"], "room")?;
    equal("queue", &why["queue"], queue.as_str())?;
    equal("position", (&why["position"], &why["of"]), (&json!(1), &json!(1)))?;
    equal("nodes", &why["nodes"], 2)?;
    equal("needed", (&why["minimum"], &why["waiting"]), (&json!(3), &json!(3)))?;
    let short = &why["shortages"][0];
    equal("short of", &short["resource"], "cpu")?;
    equal("asked and free", (&short["asked"], &short["free"]), (&json!(3000), &json!(2000)))?;
    equal("holder", why["holders"][0]["group"].to_string().contains("holder"), true)?;
    let remedy = why["remedies"].to_string();
    ensure!(remedy.contains("fewerMembers") || remedy.contains("FewerMembers"), "{remedy}");
    Ok(())
}

async fn one_that_runs_waits_for_nothing(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "3"})).await?;
    floor.gang(Gang::new("one", 2)).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "none")
}

async fn nobody_is_let_in_beyond_what_there_is(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    let group = |name: &str| {
        let least = json!({"cpu": "4", "pods": "4", "count/pods": "4"});
        Gang::new(name, 4).spec("minResources", least)
    };
    floor.group(&group("one")).await?;
    floor.group_is("one", "Inqueue").await?;
    floor.group(&group("two")).await?;
    let says = "resource in cluster is overused: cpu: 4 asked for, 0 free: 4 too little";
    floor.group_says("two", "NotEnoughResources", says).await?;
    let phase =
        |seen: &Seen| text(&seen.object(Resource::Groups, "two")["status"]["phase"]) == "Inqueue";
    floor.never_within(300, "it is let in", phase).await?;
    floor.rest.delete(Resource::Groups, "one", None).await?;
    floor.wait_until("now it is its turn", phase).await.map(drop)
}
