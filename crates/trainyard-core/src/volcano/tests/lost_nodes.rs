//! Pods whose nodes cannot be reached.

use serde_json::json;
use trainyard_api::volcano::JobPhase::{Aborting, Pending, Running};

use crate::volcano::world::{World, mnist, task};

fn says(w: &World) -> (String, String) {
    let state = w.typed().state;
    (state.reason, state.message)
}

fn lost(message: &str) -> (String, String) {
    ("NodeUnreachable".to_owned(), message.to_owned())
}

fn notices(w: &World) -> Vec<String> {
    let of = w.plan().notices.into_iter().filter(|one| one.reason == "NodeUnreachable");
    of.map(|one| one.message).collect()
}

#[test]
fn a_job_that_runs_names_the_pod_and_since_when() {
    let mut w = World::running(mnist());
    let since = w.now;
    w.lost.insert("j-worker-1".into(), Some(since));
    w.pass_ms(5_000);
    w.settle_counts();
    let message = format!("The node of pod j-worker-1 cannot be reached since {since}.");
    assert_eq!((w.phase(), says(&w)), (Running, lost(&message)));
    assert_eq!(notices(&w), [message]);
    let moved = w.typed().state.last_transition_time.unwrap();
    assert!(moved < since + jiff::SignedDuration::from_secs(5), "only a phase moves the time");
    w.lost.clear();
    w.settle_counts();
    assert_eq!((w.phase(), says(&w)), (Running, <(String, String)>::default()));
    assert!(notices(&w).is_empty());
}

#[test]
fn what_a_pod_shows_itself_is_said_too() {
    let mut w = World::running(mnist());
    w.pod("ps-0")["status"]["conditions"] = json!([
        {"type": "ContainersReady", "status": "True"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "2027-01-15T08:00:00Z"},
    ]);
    w.settle_counts();
    let message = "The node of pod j-ps-0 cannot be reached since 2027-01-15T08:00:00Z.";
    assert_eq!(says(&w), lost(message));
}

#[test]
fn a_job_that_waits_names_the_pod_that_cannot_start() {
    let mut w = World::new(mnist());
    w.settle();
    w.admit();
    w.settle();
    w.start("ps-0");
    w.lost.insert("j-worker-0".into(), None);
    w.settle_counts();
    let message = "The node of pod j-worker-0 cannot be reached.";
    assert_eq!((w.phase(), says(&w)), (Pending, lost(message)));
}

#[test]
fn of_many_some_are_named_and_all_are_counted() {
    let mut w = World::running(json!({"tasks": [task("worker", 9)]}));
    for index in 0..9 {
        w.lost.insert(format!("j-worker-{index}"), None);
    }
    w.settle_counts();
    let message = "The node of pod j-worker-0 cannot be reached, nor those of 8 others: \
                   j-worker-1, j-worker-2, j-worker-3, j-worker-4, j-worker-5 ….";
    assert_eq!(says(&w), lost(message));
}

#[test]
fn a_job_that_cannot_end_tells_on_whom_it_waits() {
    let mut w = World::running(mnist());
    w.command("stop", "AbortJob");
    w.lost.insert("j-worker-1".into(), None);
    w.settle_counts();
    assert_eq!(w.phase(), Aborting);
    assert_eq!(notices(&w), ["The node of pod j-worker-1 cannot be reached."]);
    assert_ne!(says(&w).0, "NodeUnreachable", "why it is aborted is said in its state");
}

#[test]
fn a_job_that_runs_says_what_a_pod_that_was_made_anew_waits_for() {
    let mut w = World::running(json!({"minAvailable": 1, "tasks": [task("worker", 2)]}));
    w.vanish("worker-1");
    w.settle_counts();
    w.pod("worker-1")["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "message": "no node has room"}]});
    w.settle_counts();
    let said = ("Unschedulable".to_owned(), "Pod j-worker-1 waits: no node has room".to_owned());
    assert_eq!((w.phase(), says(&w)), (Running, said));
}
