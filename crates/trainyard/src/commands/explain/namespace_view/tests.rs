//! What a namespace tells of jobs that wait, case by case.

use super::*;

fn pod(index: u32, status: &Value) -> Value {
    json!({
        "metadata": {"name": format!("mnist-worker-{index}"), "labels": {
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": index.to_string()}},
        "spec": {}, "status": status,
    })
}

fn unplaced(index: u32) -> Value {
    pod(
        index,
        &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available:\n1 Insufficient cpu."}]}),
    )
}

fn denied() -> Vec<Denied> {
    let problem = |resource: &str| {
        format!("{resource} is forbidden: User \"ann\" cannot list resource \"{resource}\"")
    };
    ["nodes", "queues"].map(|resource| Denied { resource, problem: problem(resource) }).into()
}

#[test]
fn conditions_and_events_say_why_and_missing_rights_are_named() {
    let kind = Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
    let job = json!({"metadata": {"name": "mnist", "uid": "u"}});
    let groups = [json!({"metadata": {"name": "mnist", "ownerReferences": [{"uid": "u"}]},
        "spec": {"minMember": 2, "queue": "vision"}, "status": {"phase": "Pending",
        "conditions": [{"type": "Unschedulable", "status": "True", "message": "2/2 tasks wait"}]}})];
    let pods = [unplaced(0), unplaced(1)];
    let events = [json!({"type": "Warning", "reason": "FailedScheduling", "message": "no\nroom",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {"kind": "Pod", "name": "mnist-worker-0"}})];
    let denied = denied();
    let view = NamespaceView::of(&kind, &job, &groups, &pods, &events, &denied);
    let text = view.text("tfjob.kubeflow.org/mnist", "2026-01-01T00:00:30Z".parse().unwrap());
    let expected = "\
tfjob.kubeflow.org/mnist: 2 pods have no node
  asks       2 pods together or none
  queue      vision; the PodGroup mnist is Pending
  because    2/2 tasks wait
  pods       worker-0 and worker-1: 0/1 nodes are available: 1 Insufficient cpu.
  event      30s ago, FailedScheduling of pod/mnist-worker-0: no room
  not seen   nodes (what each has left, and what keeps it out): forbidden: User \"ann\" cannot list resource \"nodes\"
  not seen   queues (the share and limits of its queue): forbidden: User \"ann\" cannot list resource \"queues\"
  rights     what is short, who has it and what would fit takes the right to list nodes and queues
             an administrator gives it by the ClusterRole trainyard-explain, which `trainyard manifests` brings
";
    assert_eq!(text, expected);
    let mut shown = json!({});
    view.add_to(&mut shown);
    assert_eq!(shown["notSeen"][0]["resource"], "nodes");
    assert_eq!(shown["podGroups"][0]["message"], "2/2 tasks wait");
    assert_eq!(shown["waitingPods"].as_array().unwrap().len(), 2);
}

#[test]
fn a_pod_that_has_a_node_says_what_its_container_waits_for() {
    let kind = Kind::example("", "v1", "Pod", "pods", true);
    let mut one = pod(
        0,
        &json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting":
            {"reason": "ImagePullBackOff", "message": "no such image"}}}]}),
    );
    one["spec"]["nodeName"] = json!("a");
    let denied = denied();
    let view = NamespaceView::of(&kind, &one, &[], &[], &[], &denied);
    let text = view.text("pod/x", Timestamp::UNIX_EPOCH);
    assert!(text.starts_with("pod/x: 1 pod has not started yet\n"), "{text}");
    assert!(text.contains("  pods       worker-0: ImagePullBackOff: no such image\n"), "{text}");
}

#[test]
fn what_has_its_node_is_told_beside_an_explanation_about_nodes() {
    let kind = Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
    let job = json!({"metadata": {"name": "mnist", "uid": "u"},
        "status": {"conditions": [{"type": "Created", "status": "True"}]}});
    let mut placed = pod(
        0,
        &json!({"phase": "Pending", "initContainerStatuses": [{"state": {"waiting":
            {"reason": "ImagePullBackOff", "message": "no such image"}}}],
            "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}),
    );
    placed["spec"]["nodeName"] = json!("a");
    let pods = [placed, unplaced(1)];
    let view = NamespaceView::of(&kind, &job, &[], &pods, &[], &[]);
    assert!(view.is_needed());
    let told = view.starting(Timestamp::UNIX_EPOCH);
    assert_eq!(told, "  pods       worker-0: ImagePullBackOff: no such image\n");
    let all = view.text("x", Timestamp::UNIX_EPOCH);
    assert!(!all.contains("not seen") && !all.contains("rights"), "{all}");
    let none = NamespaceView::of(&kind, &job, &[], &pods[1..], &[], &[]);
    assert!(!none.is_needed() && none.starting(Timestamp::UNIX_EPOCH).is_empty());
}

#[test]
fn a_warning_about_many_pods_is_one_line() {
    let about = |index: u32, message: &str| {
        json!({"type": "Warning", "reason": "Failed", "message": message,
            "lastTimestamp": "2026-01-01T00:00:00Z",
            "involvedObject": {"kind": "Pod", "name": format!("mnist-worker-{index}")}})
    };
    let all = [about(0, "x"), about(1, "x"), about(1, "x"), about(1, "other"), about(2, "x")];
    let now = "2026-01-01T00:00:05Z".parse().unwrap();
    let told: Vec<String> = warnings(&all).iter().map(|warning| warning.words(now)).collect();
    assert_eq!(
        told,
        [
            "5s ago, Failed of pod/mnist-worker-1: other",
            "5s ago, Failed of pod/mnist-worker-2 and 2 more: x",
        ]
    );
}

#[test]
fn a_group_that_has_its_nodes_has_nothing_against_it() {
    let condition = |kind: &str, at: &str| {
        json!({"type": kind, "status": "True", "message": "2/2 tasks wait",
            "lastTransitionTime": at})
    };
    let group = |scheduled: &str| {
        json!({"status": {"phase": "Running", "conditions": [
            condition("Scheduled", scheduled),
            condition("Unschedulable", "2026-01-01T00:00:10Z")]}})
    };
    assert_eq!(because(&group("2026-01-01T00:00:20Z")), "");
    assert_eq!(because(&group("2026-01-01T00:00:00Z")), "2/2 tasks wait");
}

#[test]
fn a_job_that_is_not_let_in_has_no_pods_yet() {
    let kind = Kind::example("batch.volcano.sh", "v1alpha1", "Job", "jobs", true);
    let job = json!({"metadata": {"uid": "u"}, "status": {"state": {"phase": "Pending"}}});
    let group = [json!({"metadata": {"name": "vj-u", "ownerReferences": [{"uid": "u"}]},
        "spec": {"minMember": 3}, "status": {"phase": "Pending"}})];
    let denied = denied();
    let waits = NamespaceView::of(&kind, &job, &group, &[], &[], &denied);
    assert!(waits.headline().starts_with("waits to be let into its queue"));
    let runs = NamespaceView::of(&kind, &job, &[], &[], &[], &denied);
    assert_eq!(runs.headline(), "none of its pods waits for a node; it is Pending");
}
