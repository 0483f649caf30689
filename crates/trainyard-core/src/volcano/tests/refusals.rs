//! Objects that the API server refuses for now.

use serde_json::json;
use trainyard_api::volcano::JobPhase::{Pending, Restarting, Running};

use crate::{
    child::Child,
    volcano::world::{World, mnist, task},
};

const QUOTA: &str = "pods \"j-worker-1\" is forbidden: exceeded quota: q";

fn says(w: &World) -> (String, String) {
    let state = w.typed().state;
    (state.reason, state.message)
}

fn refused() -> (String, String) {
    ("FailedCreate".to_owned(), QUOTA.to_owned())
}

#[test]
fn a_job_that_waits_says_what_is_refused() {
    let mut w = World::new(mnist());
    w.settle();
    w.admit();
    w.settle_refused(QUOTA);
    assert_eq!((w.phase(), says(&w)), (Pending, refused()));
    let since = w.typed().state.last_transition_time;
    w.settle_refused(QUOTA);
    assert_eq!(w.typed().state.last_transition_time, since);
    w.settle_counts();
    assert_eq!(says(&w), <(String, String)>::default(), "all are there, whatever was said before");
}

#[test]
fn a_job_that_runs_says_what_is_refused_when_a_pod_comes_back() {
    let mut w = World::running(json!({"minAvailable": 1, "tasks": [task("worker", 2)]}));
    w.vanish("worker-1");
    w.settle_refused(QUOTA);
    assert_eq!((w.phase(), says(&w)), (Running, refused()));
    w.create_failure = None;
    w.run();
    assert_eq!((w.phase(), says(&w)), (Running, <(String, String)>::default()));
}

#[test]
fn a_refusal_is_over_when_the_pods_are_not_asked_for_any_more() {
    let spec = || json!({"minAvailable": 1, "tasks": [task("worker", 1)]});
    let mut w = World::running(spec());
    w.spec["tasks"][0]["replicas"] = json!(3);
    w.settle_refused(QUOTA);
    assert_eq!((w.phase(), says(&w)), (Running, refused()));
    w.spec = spec();
    w.settle_counts();
    assert_eq!(w.create_failure.as_deref(), Some(QUOTA), "nobody has created anything since");
    assert_eq!((w.phase(), says(&w)), (Running, <(String, String)>::default()));
    assert_eq!(w.names(Child::Pod), ["j-worker-0"]);
}

#[test]
fn what_is_refused_after_a_restart_is_said() {
    let mut w = World::running(mnist());
    w.vanish("worker-0");
    w.settle();
    assert_eq!(w.phase(), Restarting);
    w.finish_deletions();
    w.settle();
    w.admit();
    w.settle_refused(QUOTA);
    assert_eq!((w.phase(), says(&w)), (Pending, refused()));
}
