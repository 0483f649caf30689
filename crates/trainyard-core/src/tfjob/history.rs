//! Property tests: random histories of a job, and what must hold after every step of each.

use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_api::{ConditionType, names};

use super::world::World;
use crate::{
    child::Child,
    config::Gang,
    effort::of_time,
    end::{EndedBy, ended_by},
    phase::Phase,
    plan::{Create, Write},
    tfjob::{end::WHOSE, exit_code::is_retryable},
    view::PodView,
};

mod availability;
mod counting;
mod setup;

use availability::check_running;
use setup::{Setup, Step, setup, step};

/// Histories per property, usually and where there is much time.
const HISTORIES: [u32; 2] = [1_000, 10_000];

/// The n-th pod, as `worker-0`.
fn nth(w: &World, n: usize) -> Option<String> {
    let names: Vec<&str> = w.pod_names();
    let name = names.get(n.checked_rem(names.len())?)?;
    Some(name.trim_start_matches("j-").to_owned())
}

fn take(w: &mut World, step: &Step) {
    match step {
        Step::Settle => check_settle(w),
        Step::Crash(writes) => {
            let plan = w.plan();
            for write in plan.writes().take(*writes).cloned().collect::<Vec<_>>() {
                check_write(w, &write);
                w.write(&write);
            }
        }
        Step::StartAll => w.start_all(),
        Step::FinishDeletions => w.finish_deletions(),
        Step::Scale(n, count) => {
            let specs = w.spec["tfReplicaSpecs"].as_object_mut().unwrap();
            let kinds: Vec<String> =
                specs.keys().filter(|kind| *kind != "Chief").cloned().collect();
            if let Some(kind) = n.checked_rem(kinds.len()).and_then(|at| kinds.get(at)) {
                specs[kind]["replicas"] = (*count).into();
                w.generation += 1;
            }
        }
        Step::Suspend(on) => {
            w.spec["runPolicy"]["suspend"] = (*on).into();
            w.generation += 1;
        }
        Step::Pass(ms) => w.pass_ms(*ms),
        Step::Group(phase) => w.group_phase(phase),
        Step::DropGroup => w.groups.clear(),
        Step::Node(n, is_lost) => turn_node(w, *n, *is_lost),
        Step::Silence(n) => nth(w, *n).into_iter().for_each(|pod| w.silence_node(&pod)),
        Step::FindNodes => w.find_all_nodes(),
        _ => move_pod(w, step),
    }
}

/// The control plane loses the node of a pod that has started, or finds it again.
fn turn_node(w: &mut World, n: usize, is_lost: bool) {
    let Some(pod) = nth(w, n).filter(|pod| w.pod(pod)["status"]["phase"] == "Running") else {
        return;
    };
    if is_lost { w.lose_node(&pod) } else { w.find_node(&pod) }
}

/// What kubelets and people do to single pods.
fn move_pod(w: &mut World, step: &Step) {
    let phase = |w: &mut World, pod: &str| w.pod(pod)["status"]["phase"].clone();
    // A container that has ended does not end again, whatever phase is published.
    let runs = |w: &mut World, pod: &str| {
        w.pod(pod)["status"]["containerStatuses"][0]["state"]["running"].is_object()
    };
    match step {
        Step::Start(n) => {
            if let Some(pod) = nth(w, *n)
                && phase(w, &pod) == "Pending"
            {
                w.start(&pod);
            }
        }
        Step::Exit(n, code) => {
            if let Some(pod) = nth(w, *n)
                && runs(w, &pod)
            {
                w.exit(&pod, *code);
            }
        }
        Step::Terminate(n, code) => {
            // One that is started again in place has not ended.
            if let Some(pod) = nth(w, *n)
                && runs(w, &pod)
                && w.pod(&pod)["spec"]["restartPolicy"] == "Never"
            {
                w.terminate(&pod, *code);
            }
        }
        Step::PublishEnd(n) => {
            if let Some(pod) = nth(w, *n) {
                w.publish_end(&pod);
            }
        }
        Step::Evict(n) => {
            if let Some(pod) = nth(w, *n)
                && phase(w, &pod) != "Succeeded"
            {
                w.evict(&pod);
            }
        }
        Step::Delete(n) => {
            if let Some(pod) = nth(w, *n) {
                w.delete_pod(&pod);
            }
        }
        Step::Vanish(n) => {
            if let Some(pod) = nth(w, *n) {
                w.pods.remove(&format!("j-{pod}"));
            }
        }
        Step::InPlace(n, count) => {
            if let Some(pod) = nth(w, *n)
                && phase(w, &pod) == "Running"
                && w.pod(&pod)["spec"]["restartPolicy"] != "Never"
            {
                w.restart_in_place(&pod, *count);
            }
        }
        _ => unreachable!("{step:?} is about no single pod"),
    }
}

/// Settles write by write, checking each write before it is carried out.
fn check_settle(w: &mut World) {
    for _ in 0..20 {
        if w.deleted {
            return;
        }
        let plan = w.plan();
        if plan.is_idle() {
            w.settle();
            check_rest(w);
            check_running(w);
            return;
        }
        for write in plan.writes() {
            check_write(w, write);
            w.write(write);
        }
    }
    unreachable!("the planner does not come to rest: {:#?}", w.plan());
}

/// S1: a pod is made only when its group is there, and as a member of it.
fn check_gang(w: &World, pod: &Create) {
    let meta = &pod.body["metadata"];
    let name = match w.config.gang {
        Gang::Off => return,
        Gang::PodGroup { .. } => &meta["annotations"]["scheduling.k8s.io/group-name"],
        Gang::PluginsPodGroup { .. } => &meta["labels"]["scheduling.x-k8s.io/pod-group"],
    };
    assert!(w.group().is_object(), "S1: {} comes before its group", pod.name);
    assert_eq!(name, "j");
    assert_eq!(pod.body["spec"]["schedulerName"].as_str(), w.config.gang.scheduler());
}

/// A job at rest has a group that its members can fill, or none if nothing is to run.
fn check_rest(w: &World) {
    let suspended = w.spec["runPolicy"]["suspend"] == true;
    let member = |spec: &Value| spec["replicas"].as_i64().unwrap();
    let all: i64 = w.spec["tfReplicaSpecs"].as_object().unwrap().values().map(member).sum();
    let ended = w.deleted || w.typed().is_finished() || suspended;
    if ended || all == 0 || w.config.gang == Gang::Off {
        assert!(w.groups.is_empty(), "a group without a job: {:?}", w.groups);
        return;
    }
    let done: i64 = w.typed().replica_statuses.values().map(|counts| counts.succeeded).sum();
    // Counts that are being held back are not heeded yet.
    if let Some(least) = w.group()["spec"]["minMember"].as_i64() {
        assert!((1..=all).contains(&least), "{least} of {all}, {done} done");
    } else {
        assert!(done >= all, "no group although there is work: {done} of {all}");
    }
}

fn view(w: &World, name: &str) -> PodView {
    w.view(&w.pods[name])
}

/// Whether nothing of the pod runs or will run again, whatever phase is published.
fn has_ended(pod: &Value) -> bool {
    let status = &pod["status"];
    let is_final = |container: &Value| {
        container["state"]["terminated"].is_object() && pod["spec"]["restartPolicy"] == "Never"
    };
    status["phase"] == "Succeeded"
        || status["phase"] == "Failed"
        || status["containerStatuses"]
            .as_array()
            .is_some_and(|all| !all.is_empty() && all.iter().all(is_final))
}

/// S5, S8, S9: no creation for an ended job; a deletion only of what a rule names.
fn check_write(w: &World, write: &Write) {
    let status = w.typed();
    let finished = status.is_finished();
    let suspended = w.spec["runPolicy"]["suspend"] == true;
    match write {
        Write::Create(_, create) => {
            assert!(!finished, "S5: {} is created for an ended job", create.name);
            assert!(!suspended, "S9: {} is created for a suspended job", create.name);
            if matches!(write, Write::Create(Child::Pod, _)) {
                check_gang(w, create);
            }
        }
        Write::Delete(Child::Pod, delete) => {
            let pod = view(w, &delete.name);
            let ended = has_ended(&w.pods[&delete.name]);
            if finished {
                let policy = w.spec["runPolicy"]["cleanPodPolicy"].as_str().unwrap();
                let limit = status.failure.is_some_and(|failure| failure.kind.stops_everything());
                let named = match policy {
                    "All" => true,
                    "None" => limit && !ended,
                    _ => !ended,
                };
                assert!(named, "S9: {policy} does not name {}", delete.name);
            } else if !suspended {
                check_replacement(w, &pod);
            }
        }
        Write::DeleteJob(_) => {
            assert!(finished, "S9: only an ended job is deleted");
            assert!(w.spec["runPolicy"]["ttlSecondsAfterFinished"].is_number());
        }
        Write::Patch(..) | Write::Delete(..) | Write::PatchStatus { .. } => {}
    }
}

/// A pod of a job that goes on is deleted only as surplus, on a lost node, with a whole attempt,
/// or as a failed pod whose policy allows another run.
fn check_replacement(w: &World, pod: &PodView) {
    let crate::view::Role::Replica(id) = pod.role else {
        return;
    };
    let spec = &w.spec["tfReplicaSpecs"][id.kind.as_str()];
    let surplus = u64::from(id.index) >= spec["replicas"].as_u64().unwrap_or(0);
    let whole = w.spec["runPolicy"]["restartScope"] == "Job";
    if surplus || whole || pod.deletion.is_some() {
        return;
    }
    assert_eq!(pod.phase, Phase::Failed, "S9: {} is deleted although it has not failed", pod.name);
    let policy = spec["restartPolicy"].as_str().unwrap();
    let disrupted = ended_by(pod, WHOSE) == EndedBy::Cluster;
    assert!(policy != "Never" || disrupted, "S8: {} is restarted", pod.name);
    if policy == "ExitCode" && !disrupted {
        let code =
            w.pods[&*pod.name]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
                .as_i64();
        assert!(code.is_none_or(is_retryable), "S8: {code:?} is restarted");
    }
    let recorded = w.typed().replica_records.iter().any(|r| r.replaced && *r.uid == *pod.uid);
    assert!(recorded, "the end of {} is recorded before it is deleted", pod.name);
}

/// What must hold after every step.
fn check(w: &World, before: &World, in_place: bool) {
    let (old, new) = (before.typed(), w.typed());
    let both = new.is(ConditionType::Succeeded) && new.is(ConditionType::Failed);
    assert!(!both, "S5: succeeded and failed");
    if old.is_finished() {
        let same = |kind| old.is(kind) == new.is(kind);
        assert!(same(ConditionType::Succeeded) && same(ConditionType::Failed), "S5: not absorbing");
        assert_eq!(old.completion_time, new.completion_time, "S5: completion time moved");
    }
    assert!(new.restarts >= old.restarts, "restarts are forgotten");
    if let (Some(limit), false) = (w.spec["runPolicy"]["backoffLimit"].as_i64(), in_place) {
        assert!(new.restarts <= limit, "S8: {} restarts, limit {limit}", new.restarts);
    }
    // S3: one live pod for each place; names are unique, so places must be too.
    let mut places = w.live_replicas();
    let pods = places.len();
    places.dedup();
    assert_eq!(places.len(), pods, "S3: two pods in one place");
    check_clusters(w);
    assert!(w.pods.contains_key("stranger") || w.deleted, "S6: a stranger was touched");
}

/// S7: pods made from one generation agree on the cluster, whose lists are dense.
fn check_clusters(w: &World) {
    if w.spec["enableDynamicWorker"] == true {
        return;
    }
    let mut clusters: Vec<(String, Value)> = Vec::new();
    for pod in w.pods.values() {
        let labels = &pod["metadata"]["labels"];
        let generation = labels["generation"].as_str().unwrap_or_default().to_owned();
        let Some(text) = pod["spec"]["containers"][0]["env"][0]["value"].as_str() else {
            continue;
        };
        let config: Value = serde_json::from_str(text).unwrap();
        assert_eq!(config["task"]["type"], labels[names::LABEL_TYPE]);
        assert_eq!(
            config["task"]["index"].to_string(),
            labels[names::LABEL_INDEX].as_str().unwrap()
        );
        let mut cluster = config["cluster"].clone();
        cluster.as_object_mut().unwrap().remove("evaluator");
        for (kind, members) in cluster.as_object().unwrap() {
            for (index, member) in members.as_array().unwrap().iter().enumerate() {
                assert_eq!(
                    member,
                    &json!(format!("j-{kind}-{index}.ns.svc:2222")),
                    "S7: not dense"
                );
            }
        }
        clusters.push((generation, cluster));
    }
    for pair in clusters.windows(2) {
        if let [(one, a), (other, b)] = pair
            && one == other
        {
            assert_eq!(a, b, "S7: two pods of one generation disagree");
        }
    }
}

fn stranger() -> Value {
    json!({"metadata": {"name": "stranger", "uid": "x", "labels": {}},
        "status": {"phase": "Running", "containerStatuses": []}, "spec": {}})
}

fn live(setup: &Setup, steps: &[Step]) -> World {
    let mut w = setup.world();
    w.pods.insert("stranger".into(), stranger());
    let mut in_place = false;
    for step in steps {
        if w.deleted {
            break;
        }
        // The stranger stands beside the job; the kubelet's moves are for the job's own pods.
        let saved = w.pods.remove("stranger");
        let mut with_stranger = w.clone();
        with_stranger.pods.extend(saved.map(|pod| ("stranger".to_owned(), pod)));
        if matches!(step, Step::Settle | Step::Crash(_)) {
            w = with_stranger.clone();
            take(&mut w, step);
        } else {
            take(&mut w, step);
            w.pods.insert("stranger".into(), stranger());
        }
        in_place |= matches!(step, Step::InPlace(..));
        check(&w, &with_stranger, in_place);
    }
    w
}

proptest! {
    #![proptest_config(ProptestConfig { cases: of_time(HISTORIES), failure_persistence: None, ..ProptestConfig::default() })]

    /// S3 and S5 to S9 hold after every step of every history.
    #[test]
    fn safety(setup in setup(), steps in prop::collection::vec(step(), 1..24)) {
        live(&setup, &steps);
    }

    /// L1: when nothing happens any more, the job comes to rest and stays there.
    #[test]
    fn liveness(setup in setup(), steps in prop::collection::vec(step(), 1..16)) {
        let mut w = live(&setup, &steps);
        for _ in 0..8 {
            check_settle(&mut w);
            w.finish_deletions();
            w.group_phase("Inqueue");
            check_settle(&mut w);
            w.start_all();
            // Longer than every pause between two restarts.
            w.pass_ms(301_000);
        }
        check_settle(&mut w);
        let written = |w: &World| (w.status_writes, w.creates.len(), w.deletes.len(), w.group_writes);
        let before = written(&w);
        for _ in 0..10 {
            w.pass_ms(60_000);
            if w.spec["runPolicy"]["activeDeadlineSeconds"].is_null()
                && w.spec["runPolicy"]["ttlSecondsAfterFinished"].is_null()
            {
                check_settle(&mut w);
            }
        }
        prop_assert_eq!(before, written(&w));
        if !w.deleted && !w.typed().is_finished() && w.spec["runPolicy"]["suspend"] != true {
            let wanted: u64 = w.spec["tfReplicaSpecs"].as_object().unwrap().values()
                .map(|spec| spec["replicas"].as_u64().unwrap()).sum();
            let completed: usize = w.typed().replica_statuses.values()
                .map(|counts| usize::try_from(counts.succeeded).unwrap()).sum();
            let there = w.pods.values().filter(|pod| pod["status"]["phase"] != "Succeeded").count() - 1;
            prop_assert!(there + completed >= usize::try_from(wanted).unwrap(), "something is missing");
        }
    }

    /// A crash between any two writes and a fresh start end where an undisturbed run ends.
    #[test]
    fn a_crash_changes_nothing(
        setup in setup(),
        code in prop::sample::select(vec![0, 1, 137]),
        crashes in prop::collection::vec(0..8usize, 1..6),
    ) {
        let run = |crashes: &[usize]| {
            let mut w = setup.world();
            let mut crashes = crashes.iter().copied();
            for round in 0..4 {
                for _ in 0..2 {
                    if let Some(writes) = crashes.next() {
                        let plan = w.plan();
                        for write in plan.writes().take(writes).cloned().collect::<Vec<_>>() {
                            w.write(&write);
                        }
                    }
                }
                w.settle();
                w.group_phase("Inqueue");
                w.settle();
                w.start_all();
                w.settle();
                if let Some(pod) = nth(&w, round)
                    && w.pod(&pod)["status"]["phase"] == "Running"
                {
                    w.exit(&pod, code);
                }
            }
            w.settle();
            w.pass_ms(400_000);
            w.settle_counts();
            w.finish_deletions();
            w.settle_counts();
            let status = w.typed();
            let names: Vec<String> = w.pods.keys().cloned().collect();
            let group = w.group()["spec"].clone();
            (w.conditions(), status.restarts, names, w.services.len(), group, status.replica_statuses)
        };
        prop_assert_eq!(run(&[]), run(&crashes));
    }
}
