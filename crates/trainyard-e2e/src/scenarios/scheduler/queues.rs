//! Queues share the nodes as they are told, and those that cannot be used are named.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::Seen;
use crate::volcano::{Floor, Gang};

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/queues":
        never_more_than_its_capability,
        a_closed_queue_takes_nobody,
        closed_and_opened_by_commands,
        an_unknown_queue_is_named,
        shares_follow_weights,
        what_is_guaranteed_is_kept,
        a_share_is_taken_back_and_no_more,
        a_queue_that_gives_nothing_back,
        one_after_the_other,
        what_a_queue_uses_is_written_down,
        a_nested_queue_says_what_is_not_honoured,
        one_without_a_parent_is_root_s,
        a_plain_pod_names_its_queue,
        what_is_more_than_a_queue_may_ever_use_stays_out,
    ]
}

/// Gangs of one pod each in a queue.
async fn singles(floor: &Floor, queue: &str, start: &str, count: usize) -> Result<()> {
    for index in 0..count {
        floor.gang(Gang::new(&format!("{start}{index}"), 1).spec("queue", queue)).await?;
    }
    Ok(())
}

async fn a_plain_pod_names_its_queue(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let queue = floor.queue("q", json!({"capability": {"cpu": "1"}})).await?;
    let plain = |name: &str, notes: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "tensorflow",
                "image": "example.com/train:1", "resources": {"requests": {"cpu": "1"}}}]},
        })
    };
    let in_queue = || json!({"scheduling.volcano.sh/queue-name": queue});
    floor.create(Resource::Pods, &plain("first", in_queue())).await?;
    floor.placed(&["first"]).await?;
    floor.create(Resource::Pods, &plain("second", in_queue())).await?;
    floor.waits("second", "queue resource quota insufficient: insufficient cpu").await?;
    floor.create(Resource::Pods, &plain("third", json!({}))).await?;
    floor.placed(&["first", "third"]).await?;
    for (pod, queue) in [("first", queue.as_str()), ("second", &queue), ("third", "default")] {
        let group = format!("podgroup-{}", floor.seen().uid(pod));
        let has_group = |seen: &Seen| !seen.object(Resource::Groups, &group).is_null();
        let seen = floor.wait_until("the pod has a group", has_group).await?;
        equal(pod, &seen.object(Resource::Groups, &group)["spec"]["queue"], queue)?;
    }
    floor.stays_placed(&["first", "third"]).await
}

/// How many pods whose names start so have nodes and are not being deleted.
fn of(seen: &Seen, start: &str) -> usize {
    let live = seen.live_pods();
    seen.placed().iter().filter(|pod| pod.starts_with(start) && live.contains(pod)).count()
}

async fn never_more_than_its_capability(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let queue = floor.queue("q", json!({"capability": {"cpu": "2"}})).await?;
    floor.gang(Gang::new("one", 3).spec("queue", queue.as_str())).await?;
    let words = "queue resource quota insufficient: insufficient cpu";
    floor.waits("one-0", words).await?;
    floor.group_says("one", "NotEnoughResources", words).await?;
    floor.stays_placed(&[]).await?;
    let why = floor.explain("one").await?;
    equal("constraint", &why["constraint"], "queueLimit")?;
    let path = format!("/apis/scheduling.volcano.sh/v1beta1/queues/{queue}");
    let more = json!({"spec": {"capability": {"cpu": "3"}}});
    floor.rest.send(Method::PATCH, &path, Some(&more)).await?;
    floor.placed(&["one-0", "one-1", "one-2"]).await.map(drop)
}

async fn a_closed_queue_takes_nobody(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let queue = floor.queue("q", json!({})).await?;
    floor.queue_state(&queue, "Closed").await?;
    floor.gang(Gang::new("one", 1).spec("queue", queue.as_str())).await?;
    let words = format!(
        "can only submit PodGroup to queue with state `Open`, queue `{queue}` status is `Closed`."
    );
    floor.group_says("one", "NotEnoughResources", &words).await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "queueClosed")?;
    floor.stays_placed(&[]).await?;
    floor.queue_state(&queue, "Open").await?;
    floor.placed(&["one-0"]).await.map(drop)
}

async fn closed_and_opened_by_commands(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let queue = floor.queue("q", json!({})).await?;
    floor.gang(Gang::new("one", 1).spec("queue", queue.as_str())).await?;
    floor.placed(&["one-0"]).await?;
    for (action, state) in [("CloseQueue", "Closing"), ("OpenQueue", "Open")] {
        let command = json!({
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
            "metadata": {"generateName": "order-"}, "action": action,
            "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "name": queue, "uid": floor.get_queue(&queue).await?["metadata"]["uid"]},
        });
        floor.create(Resource::Commands, &command).await?;
        floor.queue_is(&queue, "/status/state", state).await?;
        let gone = |seen: &Seen| seen.names(Resource::Commands).is_empty();
        floor.wait_until("the order is gone", gone).await?;
        if state == "Closing" {
            floor.gang(Gang::new("two", 1).spec("queue", queue.as_str())).await?;
            floor.stays_placed(&["one-0"]).await?;
        }
    }
    floor.placed(&["one-0", "two-0"]).await.map(drop)
}

async fn an_unknown_queue_is_named(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let queue = floor.own("later");
    floor.gang(Gang::new("one", 1).spec("queue", queue.as_str())).await?;
    floor.gang(Gang::new("fine", 1)).await?;
    let words = format!("unable to find queue: {queue}");
    floor.group_says("one", "NotEnoughResources", &words).await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "queue")?;
    floor.placed(&["fine-0"]).await?;
    floor.queue("later", json!({})).await?;
    floor.placed(&["fine-0", "one-0"]).await.map(drop)
}

async fn shares_follow_weights(floor: Floor) -> Result<()> {
    let (q, r) = (
        floor.queue("q", json!({"weight": 1})).await?,
        floor.queue("r", json!({"weight": 3})).await?,
    );
    singles(&floor, &q, "q", 4).await?;
    singles(&floor, &r, "r", 4).await?;
    floor.node("a", json!({"cpu": "4"})).await?;
    floor
        .wait_until("one against three", |seen| (of(seen, "q"), of(seen, "r")) == (1, 3))
        .await
        .map(drop)
}

async fn what_is_guaranteed_is_kept(floor: Floor) -> Result<()> {
    let q = floor.queue("q", json!({})).await?;
    let r = floor.queue("r", json!({"guarantee": {"resource": {"cpu": "2"}}})).await?;
    floor.node("a", json!({"cpu": "4"})).await?;
    singles(&floor, &q, "q", 3).await?;
    floor.wait_until("two have nodes", |seen| of(seen, "q") == 2).await?;
    floor.never_within(300, "a third one", |seen| of(seen, "q") > 2).await?;
    singles(&floor, &r, "r", 2).await?;
    floor
        .wait_until("theirs was kept", |seen| (of(seen, "q"), of(seen, "r")) == (2, 2))
        .await
        .map(drop)
}

async fn a_share_is_taken_back_and_no_more(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let (q, r) = (floor.queue("q", json!({})).await?, floor.queue("r", json!({})).await?);
    floor.node("a", json!({"cpu": "4"})).await?;
    singles(&floor, &q, "q", 4).await?;
    floor.wait_until("one queue has all", |seen| of(seen, "q") == 4).await?;
    singles(&floor, &r, "r", 4).await?;
    let half = |seen: &Seen| (of(seen, "q"), of(seen, "r")) == (2, 2);
    let seen = floor.wait_until("each has half", half).await?;
    let told = |pod: &str| {
        let events = seen.events_about("Pod", pod);
        events.iter().any(|event| event.contains("because of reclaim"))
    };
    let evicted = (0..4).filter(|index| told(&format!("q{index}-0"))).count();
    equal("told to go", evicted, 2)?;
    floor.never_within(500, "below its share", |seen| of(seen, "q") < 2).await
}

async fn a_queue_that_gives_nothing_back(floor: Floor) -> Result<()> {
    let _auto = floor.kubelet.auto_bound();
    let q = floor.queue("q", json!({"reclaimable": false})).await?;
    let r = floor.queue("r", json!({})).await?;
    floor.node("a", json!({"cpu": "2"})).await?;
    singles(&floor, &q, "q", 2).await?;
    floor.wait_until("one queue has all", |seen| of(seen, "q") == 2).await?;
    singles(&floor, &r, "r", 1).await?;
    floor.waits("r0-0", "Insufficient cpu").await?;
    floor.stays_placed(&["q0-0", "q1-0"]).await
}

async fn one_after_the_other(floor: Floor) -> Result<()> {
    let queue = floor.queue("q", json!({"dequeueStrategy": "fifo"})).await?;
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(Gang::new("large", 3).spec("queue", queue.as_str())).await?;
    floor.waits("large-0", "Insufficient cpu").await?;
    floor.gang(Gang::new("small", 1).spec("queue", queue.as_str())).await?;
    floor.waits("small-0", "\"large\" is ahead").await?;
    equal("constraint", &floor.explain("small").await?["constraint"], "queueOrder")?;
    floor.node("b", json!({"cpu": "2"})).await?;
    floor.placed(&["large-0", "large-1", "large-2", "small-0"]).await.map(drop)
}

async fn what_a_queue_uses_is_written_down(floor: Floor) -> Result<()> {
    let queue = floor.queue("q", json!({})).await?;
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.gang(Gang::new("one", 2).spec("queue", queue.as_str())).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    floor.queue_is(&queue, "/status/allocated/cpu", "2").await?;
    floor.queue_is(&queue, "/status/allocated/pods", "2").await
}

async fn one_without_a_parent_is_root_s(floor: Floor) -> Result<()> {
    let queue = floor.queue("q", json!({})).await?;
    floor.queue_is(&queue, "/spec/parent", "root").await
}

async fn what_is_more_than_a_queue_may_ever_use_stays_out(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let queue = floor.queue("q", json!({"capability": {"cpu": "2"}})).await?;
    let gang =
        Gang::new("one", 1).spec("queue", queue.as_str()).spec("minResources", json!({"cpu": "3"}));
    floor.gang(gang).await?;
    floor.group_says("one", "NotEnoughResources", "queue resource quota insufficient").await?;
    floor.waits("one-0", "3 asked for").await?;
    floor.group_is("one", "Pending").await?;
    floor.stays_placed(&[]).await?;
    let path = format!("/apis/scheduling.volcano.sh/v1beta1/queues/{queue}");
    let more = json!({"spec": {"capability": {"cpu": "3"}}});
    floor.rest.send(Method::PATCH, &path, Some(&more)).await?;
    floor.placed(&["one-0"]).await.map(drop)
}

async fn a_nested_queue_says_what_is_not_honoured(floor: Floor) -> Result<()> {
    let team = floor.queue("team", json!({})).await?;
    let queue = floor.queue("q", json!({"parent": team})).await?;
    floor.node("a", json!({"cpu": "1"})).await?;
    floor.gang(Gang::new("one", 2).spec("queue", queue.as_str())).await?;
    floor.waits("one-0", "Insufficient cpu").await?;
    let why = floor.explain("one").await?;
    let notes = why["notes"].to_string();
    ensure!(notes.contains("not honoured yet") && notes.contains(&team), "notes: {notes}");
    Ok(())
}
