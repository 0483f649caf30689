//! Gangs in time: a group is made, waited for, kept, changed and dissolved.

use serde_json::{Value, json};

use crate::{child::Child, plan::Write, tfjob::world::World};

fn gang(replicas: &[(&str, u32, &str)]) -> World {
    World::with(replicas).gang("volcano")
}

fn running(replicas: &[(&str, u32, &str)]) -> World {
    let mut w = gang(replicas);
    w.settle();
    w.group_phase("Inqueue");
    w.settle();
    w.start_all();
    w.group_phase("Running");
    w.settle_counts();
    w
}

fn scale(w: &mut World, kind: &str, replicas: u32) {
    w.spec["tfReplicaSpecs"][kind]["replicas"] = replicas.into();
    w.generation += 1;
}

fn told(w: &World, reason: &str) -> usize {
    w.reasons().iter().filter(|one| **one == reason).count()
}

#[test]
fn pods_are_there_while_their_group_waits() {
    let mut w = gang(&[("Worker", 2, "Never"), ("PS", 1, "Never")]);
    w.settle();
    assert_eq!(w.live_replicas(), ["ps-0", "worker-0", "worker-1"]);
    assert_eq!(w.services.len(), 3);
    assert_eq!(w.conditions(), ["Created T"]);
    assert_eq!(w.status["startTime"], Value::Null, "who waits for nodes has not begun");
    w.settle_counts();
    let writes = (w.status_writes, w.group_writes);
    for phase in ["", "Pending", "Inqueue"] {
        w.group_phase(phase);
        w.pass_ms(120_000);
        assert!(w.plan().is_idle(), "{phase:?}");
    }
    assert_eq!((w.status_writes, w.group_writes), writes, "waiting writes nothing");
    w.group_phase("Running");
    w.settle();
    assert_eq!(w.typed().start_time, Some(w.now), "the clock starts now");
    w.start_all();
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!(w.group_writes, 1);
}

#[test]
fn the_group_is_made_before_its_pods() {
    let w = gang(&[("Worker", 1, "Never")]);
    let plan = w.plan();
    let stage_of = |child: Child| {
        let makes = |write: &Write| matches!(write, Write::Create(made, _) if *made == child);
        plan.stages.iter().position(|stage| stage.writes.iter().any(makes)).unwrap()
    };
    assert!(stage_of(Child::PodGroup) < stage_of(Child::Pod));
}

#[test]
fn a_job_whose_pods_run_has_begun_whatever_its_group_says() {
    let mut w = gang(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    assert_eq!(w.typed().start_time, Some(w.now));

    let mut w = gang(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!((w.typed().start_time, w.typed().is_finished()), (Some(w.now), true));
}

#[test]
fn the_plugins_delay_nobody() {
    let w = World::with(&[("Worker", 2, "Never")]).gang("sig-plugins");
    let plan = w.plan();
    let kinds: Vec<Vec<Child>> = plan
        .stages
        .iter()
        .map(|stage| {
            let kind = |write: &Write| match write {
                Write::Create(child, _) => Some(*child),
                _ => None,
            };
            stage.writes.iter().filter_map(kind).collect()
        })
        .collect();
    let first = [Child::PluginsPodGroup, Child::Service, Child::Service];
    assert_eq!(kinds, [first.to_vec(), vec![Child::Pod, Child::Pod]], "the group comes first");
}

#[test]
fn what_a_group_waits_for_is_told() {
    let mut w = gang(&[("Worker", 2, "Never")]).policy("startTimeoutSeconds", 300);
    w.settle();
    let message = "2/2 tasks in gang unschedulable: pod group is not ready";
    w.hold_up(message);
    let plan = w.settle();
    for pod in ["worker-0", "worker-1"] {
        w.pod(pod)["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": message}]);
    }
    let notices: Vec<_> = plan.notices.iter().map(|one| (&*one.reason, &*one.message)).collect();
    let text = format!("PodGroup ns:j unschedulable, reason: {message}");
    assert_eq!(notices, [("PodGroupPending", text.as_str())]);
    assert_eq!(w.settle().notices, plan.notices, "the same words, once for all pods");
    assert_eq!(plan.requeue_at.unwrap().duration_since(w.now).as_secs(), 1, "when it is written");
    w.settle_counts();
    let created = |w: &World| w.typed().conditions[0].message.clone();
    assert_eq!(created(&w), format!("TFJob j is created and waits for nodes: {message}"));
    assert_eq!(w.plan().requeue_at.unwrap().duration_since(w.now).as_secs(), 299);
    w.pass_ms(299_000);
    w.settle();
    assert_eq!(
        w.typed().conditions.last().unwrap().message,
        format!(
            "Job j has failed because not all its pods ran within 300 s: j-worker-0 waits: \
             Unschedulable: {message}"
        )
    );
    assert!(w.groups.is_empty());
}

#[test]
fn a_job_that_has_its_nodes_no_longer_says_that_it_waits() {
    let mut w = gang(&[("Worker", 1, "Never")]);
    w.settle();
    w.hold_up("cpu: 8 asked for, 6 free: 2 too little");
    w.settle_counts();
    let created = |w: &World| {
        let first = &w.typed().conditions[0];
        (first.message.clone(), first.last_update_time, first.last_transition_time)
    };
    let (message, _, since) = created(&w);
    assert!(message.ends_with("waits for nodes: cpu: 8 asked for, 6 free: 2 too little"));
    w.pass_ms(60_000);
    w.group_phase("Running");
    w.settle();
    assert_eq!(created(&w), ("TFJob j is created.".to_owned(), Some(w.now), since));
}

#[test]
fn what_another_controller_wrote_stays_while_there_is_nothing_to_say() {
    let mut w = running(&[("Worker", 1, "Never")]);
    w.status["conditions"][0]["message"] = "TFJob j was created elsewhere.".into();
    assert!(w.plan().is_idle());
}

#[test]
fn a_start_timeout_names_the_group_of_a_pod_that_nobody_has_looked_at() {
    let mut w = gang(&[("Worker", 1, "Never")]).policy("startTimeoutSeconds", 30);
    w.settle();
    w.pass_ms(30_000);
    w.settle();
    assert_eq!(
        w.typed().conditions.last().unwrap().message,
        "Job j has failed because not all its pods ran within 30 s: j-worker-0 waits: no scheduler \
         has taken up PodGroup j"
    );
}

#[test]
fn a_group_that_nobody_takes_up_is_told_after_a_while() {
    let mut w = gang(&[("Worker", 1, "Never")]);
    let plan = w.settle();
    assert!(plan.notices.is_empty());
    assert_eq!(plan.requeue_at.unwrap().duration_since(w.now).as_secs(), 60);
    w.pass_ms(60_000);
    let plan = w.settle();
    assert_eq!(
        plan.notices[0].message,
        "PodGroup ns:j has not been taken up by any scheduler; check that \"volcano\" runs and \
         serves PodGroups"
    );
    assert_eq!(plan.requeue_at, None, "nothing more to wait for");
    w.group_phase("Inqueue");
    assert!(w.settle().notices.is_empty());
}

#[test]
fn the_deadline_runs_when_the_job_does() {
    let mut w = gang(&[("Worker", 1, "Never")]).policy("activeDeadlineSeconds", 60);
    w.settle();
    w.pass_ms(600_000);
    w.settle();
    w.group_phase("Inqueue");
    w.settle();
    w.pass_ms(600_000);
    w.settle();
    assert_eq!(w.conditions(), ["Created T"], "a queue is no work");
    w.group_phase("Running");
    w.settle();
    w.pass_ms(60_000);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Failed T"]);
    assert!(w.groups.is_empty());
    assert_eq!((told(&w, "JobTerminated"), told(&w, "SuccessfulDeletePodGroup")), (1, 1));
}

#[test]
fn the_group_goes_when_the_job_ends_and_that_is_told_once() {
    for (code, condition) in [(0, "Succeeded T"), (1, "Failed T")] {
        let mut w = running(&[("Worker", 2, "Never")]);
        w.exit("worker-0", code);
        w.settle();
        assert_eq!(w.conditions().last().unwrap(), condition);
        assert!(w.groups.is_empty());
        w.finish_deletions();
        w.settle();
        assert!(w.plan().is_idle());
        assert_eq!((told(&w, "JobTerminated"), told(&w, "SuccessfulDeletePodGroup")), (1, 1));
        let deleted = w.events.iter().find(|one| one.reason == "SuccessfulDeletePodGroup");
        assert_eq!(deleted.unwrap().message, "Deleted PodGroup: j");
    }
}

#[test]
fn a_crash_before_the_group_is_gone_is_made_good() {
    let mut w = running(&[("Worker", 1, "Never")]);
    w.exit("worker-0", 0);
    let plan = w.plan();
    let first = plan.writes().next().unwrap().clone();
    assert!(matches!(first, Write::PatchStatus { .. }), "the evidence comes first");
    w.write(&first);
    assert_eq!(w.groups.len(), 1);
    w.settle();
    assert!(w.groups.is_empty());
    assert_eq!(told(&w, "JobTerminated"), 1);
}

#[test]
fn suspended_jobs_have_no_group_and_queue_again() {
    let mut w = running(&[("Worker", 2, "Never")]).policy("suspend", true);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert!(w.groups.is_empty() && w.pods.is_empty());
    assert_eq!((told(&w, "JobTerminated"), told(&w, "SuccessfulDeletePodGroup")), (1, 1));
    w.pass_ms(60_000);
    w = w.policy("suspend", false);
    w.settle();
    assert_eq!((w.pods.len(), w.typed().start_time), (2, None), "it waits like any other");
    w.group_phase("Running");
    w.settle();
    assert_eq!(w.typed().start_time, Some(w.now));

    let mut w = gang(&[("Worker", 2, "Never")]).policy("suspend", true);
    w.settle();
    assert!(w.groups.is_empty());
    assert_eq!(w.reasons(), ["TFJobSuspended"], "there was no group to delete");
}

#[test]
fn the_start_timeout_of_a_resumed_job_starts_anew() {
    let mut w = gang(&[("Worker", 1, "Never")]).policy("startTimeoutSeconds", 30);
    w.settle();
    w.pass_ms(20_000);
    w = w.policy("suspend", true);
    w.settle();
    w.pass_ms(100_000);
    w = w.policy("suspend", false);
    let plan = w.settle();
    assert_eq!(plan.requeue_at.unwrap().duration_since(w.now).as_secs(), 30);
    w.pass_ms(30_000);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
}

#[test]
fn a_group_that_somebody_deleted_is_made_again() {
    let mut w = running(&[("Worker", 2, "OnFailure")]);
    w.groups.clear();
    w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 2);
    assert_eq!(w.pods.len(), 2, "what runs is left alone");
    w.evict("worker-0");
    w.settle();
    assert_eq!(w.live_replicas(), ["worker-0", "worker-1"], "and who is missing is made");
}

#[test]
fn a_group_on_its_way_out_is_waited_for() {
    let mut w = gang(&[("Worker", 1, "OnFailure")]);
    w.settle();
    w.groups.get_mut("j").unwrap()["metadata"]["deletionTimestamp"] = json!("2027-01-01T00:00:00Z");
    w.evict("worker-0");
    w = w.policy("backoffLimit", 3);
    w.settle();
    assert!(w.pods.is_empty(), "a pod would be counted into it");
    assert_eq!(w.group_writes, 1);
    w.groups.clear();
    w.settle();
    assert_eq!((w.group_writes, w.live_replicas()), (2, vec!["worker-0".to_owned()]));
}

#[test]
fn restarts_keep_the_group() {
    for scope in ["Replica", "Job"] {
        let mut w = running(&[("Worker", 2, "OnFailure")]).policy("restartScope", scope);
        let uid = w.group()["metadata"]["uid"].clone();
        w.exit("worker-1", 1);
        w.settle();
        w.finish_deletions();
        w.settle_counts();
        assert_eq!(w.live_replicas(), ["worker-0", "worker-1"], "{scope}");
        assert_eq!((&w.group()["metadata"]["uid"], w.group_writes), (&uid, 1), "{scope}");
    }
}

#[test]
fn a_gang_that_lost_its_place_queues_again() {
    let mut w = running(&[("Worker", 2, "OnFailure")]);
    w.evict("worker-0");
    w.evict("worker-1");
    w.group_phase("Pending");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(w.live_replicas(), ["worker-0", "worker-1"]);
}

#[test]
fn the_minimum_follows_the_scale() {
    let mut w = running(&[("Worker", 2, "Never"), ("PS", 1, "Never")]);
    scale(&mut w, "Worker", 4);
    w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 5);
    assert_eq!(w.pods.len(), 5);
    scale(&mut w, "Worker", 1);
    w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 2);
    assert_eq!(w.group_writes, 3, "made and changed twice");
}

#[test]
fn a_job_scaled_to_nothing_asks_for_nothing() {
    let mut w = running(&[("Worker", 2, "Never")]);
    scale(&mut w, "Worker", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert!(w.groups.is_empty());
    assert_eq!(told(&w, "JobTerminated"), 0, "it has not ended");
    assert!(w.plan().is_idle());
    scale(&mut w, "Worker", 1);
    w.settle();
    assert_eq!((w.group()["spec"]["minMember"].as_i64(), w.pods.len()), (Some(1), 1));
}

#[test]
fn who_has_completed_is_no_member_any_more() {
    let mut w = running(&[("Worker", 3, "OnFailure")]);
    w.spec["successPolicy"] = "AllWorkers".into();
    w.exit("worker-1", 0);
    w.settle_counts();
    assert_eq!(w.group()["spec"]["minMember"], 2);
    w.exit("worker-2", 0);
    w.delete_pod("worker-1");
    w.settle_counts();
    assert_eq!((w.group()["spec"]["minMember"].as_i64(), w.group_writes), (Some(1), 3));
}

#[test]
fn tensorboard_is_no_member_and_takes_no_room_before_the_training() {
    let mut w = gang(&[("Worker", 1, "Never")]);
    w.spec["tensorBoard"] = json!({"logDir": "/logs"});
    w.settle();
    assert_eq!(w.live_replicas(), ["worker-0"]);
    assert_eq!(w.group()["spec"]["minMember"], 1);
    w.group_phase("Running");
    w.settle();
    let board = w.pod("tensorboard-0").clone();
    assert_eq!(board["spec"]["schedulerName"], Value::Null);
    assert_eq!(board["metadata"]["annotations"]["scheduling.k8s.io/group-name"], Value::Null);
    w.start_all();
    w.settle();
    w.exit("worker-0", 0);
    w.settle();
    assert!(w.groups.is_empty() && w.has("tensorboard-0"));
}

#[test]
fn pods_from_before_jobs_were_gangs_go_on_outside() {
    let mut w = World::with(&[("Worker", 3, "OnFailure"), ("PS", 1, "OnFailure")]);
    w.settle();
    w.start_all();
    w.settle();
    w = w.gang("volcano").policy("schedulingPolicy", json!({"minAvailable": 3}));
    w.settle();
    assert!(w.groups.is_empty(), "nobody of it has to be placed");
    w.evict("worker-1");
    w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 1, "it does not wait for those that run");
    assert!(w.pod("worker-1")["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "j");
    w.evict("worker-2");
    w.evict("ps-0");
    w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 2, "one of those needed runs outside");
    w = w.policy("schedulingPolicy", Value::Null);
    w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 3);
}
