//! The cluster takes pods away: eviction, preemption, drain, deletion by others, lost nodes. Never
//! a failure of the job, whatever its policy, and never counted.

use anyhow::Result;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::{Seen, text};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    let mut all = cases!["disruption":
        preempted,
        drained,
        deleted_by_somebody,
        deleted_while_pending,
        ended_by_the_deletion,
        node_lost,
        node_that_comes_back,
        node_that_starts_anew,
        node_that_starts_anew_without_its_pod,
        node_that_shuts_down,
        node_that_does_not_take_it,
        deletions_of_a_replica_that_never_restarts,
        completed_pod_deleted,
        many_evictions_do_not_fail_the_job,
        all_replicas_again_with_scope_job,
    ];
    for policy in ["OnFailure", "Always", "ExitCode", "Never"] {
        for (marked, word) in [(true, "marked"), (false, "unmarked")] {
            let name = format!("disruption/evicted_{}_{word}", policy.to_lowercase());
            all.push(Case::new(name, move |world| evicted(world, policy, marked)));
        }
    }
    all
}

/// Those that need an operator which is not always there.
pub(super) fn own_operator() -> Vec<Case<World>> {
    cases!["disruption": told_by_an_operator_that_was_away]
}

/// The first replica that is away, and why.
fn away(seen: &Seen) -> [&str; 2] {
    let first = &seen.status("a")["unavailableReplicas"][0];
    ["replica", "reason"].map(|key| text(&first[key]))
}

/// Waits until the job says that this replica is away, for this reason.
async fn is_away(world: &World, replica: &str, reason: &str) -> Result<()> {
    let what = format!("{replica} is away: {reason}");
    let seen = world
        .wait_until(&what, |seen| seen.is("a", "Restarting") && away(seen) == [replica, reason])
        .await?;
    equal("the job", seen.is("a", "Running"), false)?;
    let condition = seen.condition("a", "Restarting");
    equal("the reason", &condition["reason"], "TFJobRestarting")?;
    contains("the message", text(&condition["message"]), &[replica, "does not run since 2"])
}

fn unharmed(seen: &Seen) -> Result<()> {
    equal("no failure", seen.is("a", "Failed"), false)?;
    equal("not counted", seen.restarts("a"), 0)
}

/// Starts two workers by hand; nobody completes deletions.
async fn two_workers(world: &World, policy: &str) -> Result<()> {
    world.submit(tfjob("a").workers(2).restart(policy).run_policy("backoffLimit", 0)).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start_all(&["a-worker-0", "a-worker-1"]).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

/// The pod is gone; its successor is started and the job runs.
async fn comes_back(world: &World, pod: &str, uid: &str) -> Result<()> {
    world.wait_successor(pod, uid).await?;
    world.kubelet.start(pod).await?;
    let seen = world
        .wait_until("the job runs with both", |seen| {
            seen.conditions("a") == ["Created=True", "Running=True"]
                && seen.counts("a", "Worker") == [2, 0, 0]
        })
        .await?;
    unharmed(&seen)
}

async fn evicted(world: World, policy: &'static str, marked: bool) -> Result<()> {
    two_workers(&world, policy).await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.evict("a-worker-1", marked).await?;
    comes_back(&world, "a-worker-1", &uid).await
}

async fn preempted(world: World) -> Result<()> {
    two_workers(&world, "OnFailure").await?;
    let uid = world.seen().uid("a-worker-0");
    world.kubelet.preempt("a-worker-0").await?;
    world.never_within(300, "a leaving pod fails the job", |seen| seen.is("a", "Failed")).await?;
    world.kubelet.finish_termination_with("a-worker-0", 137).await?;
    comes_back(&world, "a-worker-0", &uid).await
}

async fn drained(world: World) -> Result<()> {
    two_workers(&world, "ExitCode").await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.drain("a-worker-1").await?;
    world.never_within(300, "a leaving pod fails the job", |seen| seen.is("a", "Failed")).await?;
    // The program took its leave with an error of its own; that is still no failure.
    world.kubelet.finish_termination_with("a-worker-1", 1).await?;
    comes_back(&world, "a-worker-1", &uid).await
}

async fn deleted_by_somebody(world: World) -> Result<()> {
    two_workers(&world, "OnFailure").await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.delete_and_finish("a-worker-1").await?;
    comes_back(&world, "a-worker-1", &uid).await
}

async fn deleted_while_pending(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    let seen = world.wait_pods(&["a-worker-0"]).await?;
    let uid = seen.uid("a-worker-0");
    world.kubelet.delete("a-worker-0", None).await?;
    let seen = world.wait_successor("a-worker-0", &uid).await?;
    equal("conditions", seen.conditions("a"), ["Created=True"])
}

async fn ended_by_the_deletion(world: World) -> Result<()> {
    two_workers(&world, "ExitCode").await?;
    let uid = world.seen().uid("a-worker-0");
    world.kubelet.delete("a-worker-0", None).await?;
    // 0 on SIGTERM is not a completed training: the program was told to stop.
    world.kubelet.finish_termination_with("a-worker-0", 143).await?;
    comes_back(&world, "a-worker-0", &uid).await
}

async fn node_lost(world: World) -> Result<()> {
    two_workers(&world, "OnFailure").await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.lose_contact("a-worker-1").await?;
    is_away(&world, "worker-1", "NodeUnreachable").await?;
    let since = world.seen().status("a")["unavailableReplicas"][0]["since"].clone();
    world.kubelet.node_lost("a-worker-1").await?;
    is_away(&world, "worker-1", "DeletionByTaintManager").await?;
    equal("since", &world.seen().status("a")["unavailableReplicas"][0]["since"], &since)?;
    // No kubelet completes this deletion; the operator does, after its patience.
    comes_back(&world, "a-worker-1", &uid).await
}

async fn node_that_comes_back(world: World) -> Result<()> {
    two_workers(&world, "Never").await?;
    let before = world.seen();
    world.kubelet.lose_contact("a-worker-0").await?;
    is_away(&world, "worker-0", "NodeUnreachable").await?;
    world.kubelet.regain_contact("a-worker-0").await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("the pod", seen.uid("a-worker-0"), before.uid("a-worker-0"))?;
    unharmed(&seen)
}

/// Its kubelet restarts the replica in place, which nobody caused.
async fn node_that_starts_anew(world: World) -> Result<()> {
    two_workers(&world, "OnFailure").await?;
    let before = world.seen();
    world.kubelet.lose_contact("a-worker-1").await?;
    is_away(&world, "worker-1", "NodeUnreachable").await?;
    world.kubelet.reboot("a-worker-1").await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("the pod", seen.uid("a-worker-1"), before.uid("a-worker-1"))?;
    world.settles().await?;
    unharmed(&world.seen())
}

async fn node_that_starts_anew_without_its_pod(world: World) -> Result<()> {
    two_workers(&world, "Never").await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.reboot("a-worker-1").await?;
    comes_back(&world, "a-worker-1", &uid).await
}

async fn node_that_shuts_down(world: World) -> Result<()> {
    two_workers(&world, "Never").await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.shut_down("a-worker-1").await?;
    comes_back(&world, "a-worker-1", &uid).await
}

/// The scheduler knew less of the node than its kubelet.
async fn node_that_does_not_take_it(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).restart("Never").run_policy("backoffLimit", 0)).await?;
    let before = world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start("a-worker-0").await?;
    let message = "Node didn't have enough resource: cpu";
    world.kubelet.reject("a-worker-1", "OutOfcpu", message).await?;
    comes_back(&world, "a-worker-1", &before.uid("a-worker-1")).await
}

/// `kubectl delete pod`, a drain and a lost node mean the same under a policy that never restarts.
async fn deletions_of_a_replica_that_never_restarts(world: World) -> Result<()> {
    two_workers(&world, "Never").await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.delete("a-worker-1", None).await?;
    is_away(&world, "worker-1", "Deleted").await?;
    world.kubelet.finish_termination_with("a-worker-1", 143).await?;
    comes_back(&world, "a-worker-1", &uid).await?;
    let uid = world.seen().uid("a-worker-1");
    world.kubelet.drain("a-worker-1").await?;
    is_away(&world, "worker-1", "EvictionByEvictionAPI").await?;
    world.kubelet.finish_termination_with("a-worker-1", 1).await?;
    comes_back(&world, "a-worker-1", &uid).await?;
    let uid = world.seen().uid("a-worker-0");
    world.kubelet.node_lost("a-worker-0").await?;
    comes_back(&world, "a-worker-0", &uid).await
}

/// A drain takes the operator together with a replica; the pods are gone when it comes back, and
/// there is no room for the new one yet.
async fn told_by_an_operator_that_was_away(world: World) -> Result<()> {
    let operator = world.start_operator(|_| ()).await?;
    two_workers(&world, "OnFailure").await?;
    world
        .wait_until("who has started is recorded", |seen| {
            seen.status("a")["replicaStatuses"]["Worker"]["startedIndexes"] == "0-1"
        })
        .await?;
    let uid = world.seen().uid("a-worker-1");
    operator.crash().await;
    world.kubelet.drain("a-worker-1").await?;
    world.kubelet.finish_termination("a-worker-1").await?;
    let _operator = world.start_operator(|_| ()).await?;
    is_away(&world, "worker-1", "Deleted").await?;
    comes_back(&world, "a-worker-1", &uid).await
}

async fn completed_pod_deleted(world: World) -> Result<()> {
    two_workers(&world, "OnFailure").await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "1").await?;
    world.kubelet.delete("a-worker-1", Some(0)).await?;
    world
        .never_within(400, "completed work runs again", |seen| !seen.pod("a-worker-1").is_null())
        .await?;
    unharmed(&world.seen())
}

async fn many_evictions_do_not_fail_the_job(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).restart("ExitCode").run_policy("backoffLimit", 1)).await?;
    for _ in 0..4 {
        let seen = world
            .wait_until("the worker runs", |seen| {
                seen.is("a", "Running") && seen.pod("a-worker-0")["status"]["phase"] == "Running"
            })
            .await?;
        world.kubelet.evict("a-worker-0", true).await?;
        world.wait_successor("a-worker-0", &seen.uid("a-worker-0")).await?;
    }
    let seen = world.wait_until("it runs", |seen| seen.is("a", "Running")).await?;
    unharmed(&seen)
}

async fn all_replicas_again_with_scope_job(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a")
        .workers(2)
        .restart("OnFailure")
        .run_policy("restartScope", "Job")
        .run_policy("backoffLimit", 0);
    world.submit(job).await?;
    let before = world
        .wait_until("both run", |seen| {
            seen.is("a", "Running") && seen.counts("a", "Worker") == [2, 0, 0]
        })
        .await?;
    world.kubelet.evict("a-worker-1", true).await?;
    for pod in ["a-worker-0", "a-worker-1"] {
        world.wait_successor(pod, &before.uid(pod)).await?;
    }
    let seen = world.wait_until("the job runs again", |seen| seen.is("a", "Running")).await?;
    unharmed(&seen)
}
