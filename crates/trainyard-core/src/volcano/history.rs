//! Property tests: random histories of a job, and what must hold after every step of each.

use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_api::volcano::JobPhase;

use super::world::{World, task};
use crate::{child::Child, effort::of_time, plan::Write};

/// Histories per property, usually and where there is much time.
const HISTORIES: [u32; 2] = [300, 3_000];
#[derive(Debug, Clone)]
enum Step {
    Settle,
    /// The operator stops after so many writes of a plan.
    Crash(usize),
    Admit,
    Group(&'static str),
    StartAll,
    Start(usize),
    /// The program ends; the kubelet publishes the final phase with a later step, if at all.
    Exit(usize, i64),
    Publish(usize),
    Delete(usize),
    Vanish(usize),
    InPlace(usize, i64),
    FinishDeletions,
    Scale(usize, u32),
    Command(&'static str),
    Pass(i64),
}

#[derive(Debug, Clone)]
struct Setup {
    replicas: [u32; 2],
    restart: [&'static str; 2],
    policies: Vec<(&'static str, &'static str, bool)>,
    task_policy: Option<(&'static str, &'static str)>,
    min: i64,
    max_retry: i64,
    min_success: Option<i64>,
    depends: bool,
    plugins: bool,
}

const EVENTS: [&str; 7] =
    ["PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "PodPending", "*"];
const ACTIONS: [&str; 7] = [
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "AbortJob",
    "CompleteJob",
    "TerminateJob",
    "ResumeJob",
];

fn step() -> impl Strategy<Value = Step> {
    let code = prop::sample::select(vec![0, 0, 1, 137]);
    prop_oneof![
        6 => Just(Step::Settle),
        3 => (0..7usize).prop_map(Step::Crash),
        5 => Just(Step::Admit),
        1 => prop::sample::select(vec!["Pending", "Unknown", "Running"]).prop_map(Step::Group),
        5 => Just(Step::StartAll),
        2 => any::<usize>().prop_map(Step::Start),
        4 => (any::<usize>(), code).prop_map(|(pod, code)| Step::Exit(pod, code)),
        3 => any::<usize>().prop_map(Step::Publish),
        1 => any::<usize>().prop_map(Step::Delete),
        1 => any::<usize>().prop_map(Step::Vanish),
        1 => (any::<usize>(), 1..4i64).prop_map(|(pod, count)| Step::InPlace(pod, count)),
        3 => Just(Step::FinishDeletions),
        1 => (0..2usize, 0..4u32).prop_map(|(task, count)| Step::Scale(task, count)),
        1 => prop::sample::select(ACTIONS.to_vec()).prop_map(Step::Command),
        2 => prop::sample::select(vec![500, 1_000, 12_000, 400_000]).prop_map(Step::Pass),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let event = || prop::sample::select(EVENTS.to_vec());
    let action = || prop::sample::select(ACTIONS.to_vec());
    let restart = || prop::sample::select(vec!["Never", "Never", "OnFailure"]);
    let tasks = ([1..3u32, 0..3u32], [restart(), restart()]);
    (
        tasks,
        prop::collection::vec((event(), action(), any::<bool>()), 0..3),
        prop::option::of((event(), action())),
        0..3i64,
        1..4i64,
        prop::option::weighted(0.2, 1..3i64),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |(tasks, policies, task_policy, min, max_retry, min_success, depends, plugins)| {
                let (replicas, restart) = tasks;
                Setup {
                    replicas,
                    restart,
                    policies,
                    task_policy,
                    min,
                    max_retry,
                    min_success,
                    depends,
                    plugins,
                }
            },
        )
}

impl Setup {
    fn world(&self) -> World {
        let policy = |(event, action, late): &(&str, &str, bool)| {
            let mut policy = json!({"event": event, "action": action});
            if *late {
                policy["timeout"] = "5s".into();
            }
            policy
        };
        let policies: Vec<Value> = self.policies.iter().map(policy).collect();
        let [a, b] = self.replicas;
        let total = i64::from(a + b);
        let mut spec = json!({"policies": policies, "maxRetry": self.max_retry,
            "minSuccess": self.min_success, "minAvailable": self.min.min(total),
            "tasks": [task("a", a), task("b", b)]});
        for (at, policy) in self.restart.into_iter().enumerate() {
            spec["tasks"][at]["template"]["spec"]["restartPolicy"] = policy.into();
        }
        if let Some((event, action)) = self.task_policy {
            spec["tasks"][0]["policies"] = json!([{"event": event, "action": action}]);
        }
        if self.depends {
            spec["tasks"][1]["dependsOn"] = json!({"name": ["a"]});
        }
        if self.plugins {
            spec["plugins"] = json!({"svc": [], "env": []});
        }
        World::new(spec)
    }
}

fn nth(w: &World, n: usize) -> Option<String> {
    let places = w.places();
    places.get(n.checked_rem(places.len())?).cloned()
}

/// Whether a pod's program runs, whatever phase is published: one that has ended does not end again.
fn runs(w: &mut World, pod: &str) -> bool {
    w.pod(pod)["status"]["containerStatuses"][0]["state"]["running"].is_object()
}

/// Whether nothing of the pod runs or will run again, whatever phase is published.
fn has_ended(pod: &Value) -> bool {
    let status = &pod["status"];
    let end = &status["containerStatuses"][0]["state"]["terminated"];
    matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"))
        || (end.is_object() && (end["exitCode"] == 0 || pod["spec"]["restartPolicy"] == "Never"))
}

/// Takes a step; tells how many causes for an action it may have given.
fn take(w: &mut World, step: &Step) -> i64 {
    match step {
        Step::Settle => settle(w),
        Step::Crash(writes) => {
            let plan = w.plan();
            for write in plan.writes().take(*writes) {
                check_write(w, write);
                w.write(write);
            }
        }
        Step::Admit => w.admit(),
        Step::Group(phase) => {
            w.set_group(phase);
            return 1;
        }
        Step::StartAll => w.start_all(),
        Step::FinishDeletions => w.finish_deletions(),
        Step::Scale(n, count) => {
            w.spec["tasks"][*n]["replicas"] = (*count).into();
            let total: u64 = (0..2).filter_map(|at| w.spec["tasks"][at]["replicas"].as_u64()).sum();
            let min = w.spec["minAvailable"].as_u64().unwrap_or(0);
            w.spec["minAvailable"] = min.min(total).into();
            // A task may be complete without the pods that it loses.
            return 1;
        }
        Step::Command(action) => {
            let name = format!("c{}", w.events.len() + w.objects.len() + w.deletes.len());
            if !w.names(Child::Command).contains(&name.as_str()) {
                w.command(&name, action);
                return 1;
            }
        }
        Step::Pass(ms) => w.pass_ms(*ms),
        Step::Start(n)
        | Step::Exit(n, _)
        | Step::Publish(n)
        | Step::Delete(n)
        | Step::Vanish(n)
        | Step::InPlace(n, _) => {
            return nth(w, *n).map_or(0, |pod| i64::from(move_pod(w, step, &pod)));
        }
    }
    0
}

/// What kubelets and people do to one pod; tells whether that may be a cause for an action.
fn move_pod(w: &mut World, step: &Step, pod: &str) -> bool {
    let runs = runs(w, pod);
    match step {
        Step::Start(_) if w.pod(pod)["status"]["phase"] == "Pending" => {
            w.start(pod);
            return false;
        }
        Step::Publish(_) => {
            w.publish_end(pod);
            return false;
        }
        // The pod fails, or it was the last of its task.
        Step::Exit(_, code) if runs => {
            if *code == 0 || w.pod(pod)["spec"]["restartPolicy"] == "Never" {
                w.terminate(pod, *code);
            } else {
                let status = &w.pod(pod)["status"]["containerStatuses"][0];
                let count = status["restartCount"].as_i64().unwrap_or(0);
                w.restart_in_place(pod, count + 1);
            }
        }
        Step::InPlace(_, count) if runs => w.restart_in_place(pod, *count),
        Step::Delete(_) => w.delete_pod(pod),
        Step::Vanish(_) => w.vanish(pod),
        _ => return false,
    }
    true
}

/// Settles write by write, checking each write before it is carried out.
fn settle(w: &mut World) {
    for _ in 0..40 {
        if w.deleted {
            return;
        }
        let plan = w.plan();
        if plan.is_idle() {
            w.settle();
            return;
        }
        for stage in &plan.stages {
            for write in &stage.writes {
                check_write(w, write);
                w.write(write);
            }
            w.events.extend(stage.events.iter().cloned());
        }
    }
    unreachable!("the planner does not come to rest: {:#?}", w.plan());
}

fn check_write(w: &World, write: &Write) {
    let status = w.typed();
    let phase = status.state.phase.unwrap_or(JobPhase::Pending);
    match write {
        Write::Create(child, create) => {
            let keeps = matches!(phase, JobPhase::Pending | JobPhase::Running);
            assert!(keeps, "{} is created in phase {phase:?}", create.name);
            if *child == Child::Pod {
                let group = w.object(Child::PodGroup, "j-u");
                let phase = group["status"]["phase"].as_str().unwrap_or("");
                assert!(!matches!(phase, "" | "Pending"), "{} comes too early", create.name);
                assert_eq!(
                    create.body["metadata"]["annotations"]["volcano.sh/job-version"],
                    status.version.to_string()
                );
            }
        }
        Write::Delete(Child::Pod, delete) => {
            let pod = w.object(Child::Pod, &delete.name);
            let ended = has_ended(pod);
            let ending =
                !matches!(phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
            if ending {
                let leaving = !pod["metadata"]["deletionTimestamp"].is_null();
                assert!(!ended || leaving, "{} has logs and goes", delete.name);
            } else if delete.grace_seconds.is_none() {
                let record = &status.pods[&delete.name];
                assert_eq!((&*record.uid, &*record.phase), (&*delete.uid, "Killed"));
            }
        }
        Write::PatchStatus { patch, .. } => {
            let moved = |key: &str| !patch["state"][key].is_null();
            assert!(moved("phase") || !moved("lastTransitionTime"), "only a phase moves the time");
        }
        _ => {}
    }
}

/// What must hold after every step.
fn check(w: &World, before: &World, causes: i64, max_retry: i64) {
    let (old, new) = (before.typed(), w.typed());
    assert!(new.retry_count <= max_retry, "{} retries of {max_retry}", new.retry_count);
    assert!(new.retry_count >= old.retry_count && new.version >= old.version);
    assert!(new.version <= causes, "{} kills for {causes} causes", new.version);
    assert!(new.retry_count <= causes, "{} restarts for {causes} causes", new.retry_count);
    if let Some(phase) = old.state.phase.filter(|phase| phase.is_finished()) {
        assert_eq!(new.state, old.state, "{phase:?} is not final");
    }
    let mut phases = w.visited();
    assert_eq!(phases.last().copied(), new.state.phase);
    phases.sort();
    phases.dedup();
    assert_eq!(phases.len(), new.conditions.len(), "a phase is listed twice");
}

fn live(setup: &Setup, steps: &[Step]) -> World {
    let mut w = setup.world();
    let mut causes = 0;
    for step in steps {
        let before = w.clone();
        causes += take(&mut w, step);
        // That a pod waits may be a cause as well.
        let pods = i64::try_from(w.creates.len()).unwrap();
        check(&w, &before, causes + pods, setup.max_retry);
    }
    w
}

proptest! {
    #![proptest_config(ProptestConfig { cases: of_time(HISTORIES), failure_persistence: None, ..ProptestConfig::default() })]

    /// What must hold after every step of every history does.
    #[test]
    fn safety(setup in setup(), steps in prop::collection::vec(step(), 1..24)) {
        live(&setup, &steps);
    }

    /// When nothing happens any more, the job comes to rest and stays there.
    #[test]
    fn liveness(setup in setup(), steps in prop::collection::vec(step(), 1..16)) {
        let mut w = live(&setup, &steps);
        let done = |w: &World| (w.status_writes, w.creates.len(), w.deletes.len(), w.patches.len());
        let mut quiet = 0;
        for _ in 0..20 {
            let before = done(&w);
            settle(&mut w);
            w.finish_deletions();
            if w.names(Child::PodGroup).len() == 1 {
                w.set_group("Running");
            }
            w.start_all();
            w.pass_ms(400_000);
            quiet = if done(&w) == before { quiet + 1 } else { 0 };
            if quiet == 3 {
                break;
            }
        }
        let before = done(&w);
        for _ in 0..2 {
            w.pass_ms(60_000);
            settle(&mut w);
        }
        prop_assert_eq!(before, done(&w));
        let (status, total) = (w.typed(), w.spec["tasks"][0]["replicas"].as_i64().unwrap()
            + w.spec["tasks"][1]["replicas"].as_i64().unwrap());
        let counted = status.pending + status.running + status.succeeded + status.failed;
        match status.state.phase.unwrap() {
            JobPhase::Running | JobPhase::Pending => {
                // What waits for a task that has failed waits for somebody to look at it.
                let waits = setup.depends && counted < total;
                prop_assert!(counted == total || waits, "{} pods of {}", counted, total);
                prop_assert!(status.terminating == 0 && status.timers.is_empty());
            }
            JobPhase::Aborted => prop_assert_eq!(status.pending + status.running, 0),
            phase => {
                prop_assert!(phase.is_finished(), "{:?} is no place to rest", phase);
                let alive = w.objects.iter().filter(|((child, _), object)| *child == Child::Pod
                    && !has_ended(object));
                prop_assert_eq!(alive.count(), 0, "something runs on");
                prop_assert!(w.names(Child::Service).is_empty() && w.names(Child::PodGroup).is_empty());
            }
        }
    }
}
