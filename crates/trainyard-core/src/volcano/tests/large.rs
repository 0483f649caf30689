//! Large jobs, and specifications that nobody can mean.

use serde_json::{Value, json};
use trainyard_api::volcano::JobPhase::{Completed, Failed, Running};

use crate::{
    child::Child,
    plan::Write,
    volcano::world::{World, task},
};

fn pods(w: &World) -> usize {
    let plan = w.plan();
    plan.writes().filter(|write| matches!(write, Write::Create(Child::Pod, _))).count()
}

#[test]
fn pods_are_made_in_batches() {
    let mut w = World::new(json!({"tasks": [task("w", 1_200)]}));
    w.settle();
    w.admit();
    let mut batches = Vec::new();
    for _ in 0..20 {
        batches.push(pods(&w));
        w.step();
        w.pass_ms(1_000);
    }
    assert!(batches.iter().all(|batch| *batch <= 500), "{batches:?}");
    assert_eq!(batches.iter().sum::<usize>(), 1_200, "{batches:?}");
    w.start_all();
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().running), (Running, 1_200));
}

/// Before there were bounds each of them took all memory, or more time than anybody has.
#[test]
fn what_one_job_may_not_cost_fails_it_alone() {
    let many = |count: usize| -> Value {
        (0..count).map(|n| task(&format!("t{n}"), 1)).collect::<Vec<_>>().into()
    };
    let mut named = task("w", 9_000);
    named["template"]["spec"]["subdomain"] = "d".repeat(100_000).into();
    let mut crowded = many(100);
    for task in crowded.as_array_mut().unwrap() {
        let containers = vec![json!({"name": "c", "image": "i"}); 21];
        task["template"]["spec"]["containers"] = containers.into();
    }
    let mut far = task("w", 1);
    far["minAvailable"] = i64::MAX.into();
    for (spec, told) in [
        (
            json!({"tasks": [task("w", 2_147_483_647)]}),
            "spec.tasks[0].replicas: 2147483647 must be",
        ),
        (json!({"tasks": [task("v", 9_999), task("w", 2)]}), "10001 replicas in all tasks"),
        (json!({"tasks": many(101)}), "spec.tasks: has 101 items, must have at most 100"),
        (json!({"tasks": [far.clone(), far]}), "is greater than 'replicas'"),
        (json!({"tasks": [named], "plugins": {"tensorflow": []}}), "must be no more than 63"),
        (json!({"tasks": crowded, "plugins": {"svc": []}}), "2100 lists in every pod"),
        (
            json!({"tasks": [task("w", 1)], "policies": vec![
            json!({"event": "PodFailed", "action": "AbortJob"}); 51]}),
            "spec.policies: has 51",
        ),
    ] {
        let mut w = World::new(spec);
        w.settle();
        assert_eq!(w.phase(), Failed, "{told}");
        let message = w.typed().state.message;
        assert!(message.contains(told), "{message}");
        assert_eq!(w.names(Child::Pod).len(), 0);
    }
}

/// All pods of the job were gone through for each task and once more for each that it waits for.
#[test]
fn many_tasks_that_wait_for_each_other_are_each_looked_at_once() {
    let names: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
    let tasks: Vec<Value> = (0..100)
        .map(|n| {
            let mut task = task(&names[n], 100);
            task["dependsOn"] = json!({"name": &names[..n]});
            task
        })
        .collect();
    let mut w = World::new(json!({"tasks": tasks}));
    let done = |n: usize| {
        (format!("j-t{}-{}", n / 100, n % 100), json!({"uid": "u", "phase": "Succeeded"}))
    };
    w.status = json!({
        "state": {"phase": "Running"},
        "pods": (0..10_000).map(done).collect::<serde_json::Map<_, _>>(),
    });
    w.step();
    assert_eq!(w.phase(), Completed);
}
