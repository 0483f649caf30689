//! The reference's TensorFlow job, step by step.

use serde_json::{Value, json};
use trainyard_api::volcano::JobPhase::{Completed, Completing, Failed, Pending, Running};

use crate::{
    child::Child,
    plan::Write,
    volcano::world::{World, mnist},
};

fn children(w: &World) -> Vec<Vec<Child>> {
    let kind = |write: &Write| match write {
        Write::Create(child, _) | Write::Patch(child, _) | Write::Delete(child, _) => Some(*child),
        Write::PatchStatus { .. } | Write::DeleteJob(_) => None,
    };
    let stages = w.plan().stages;
    stages.iter().map(|stage| stage.writes.iter().filter_map(kind).collect()).collect()
}

#[test]
fn the_first_pass_makes_all_but_pods() {
    let mut w = World::new(mnist());
    assert_eq!(
        children(&w),
        [vec![], vec![Child::ConfigMap, Child::Service, Child::NetworkPolicy, Child::PodGroup]]
    );
    w.settle_counts();
    assert_eq!(w.visited(), [Pending]);
    assert_eq!(w.typed().min_available, 3);
    let hosts = "j-worker-0.j,j-worker-1.j";
    assert_eq!(
        w.object(Child::ConfigMap, "j-svc")["data"],
        json!({"ps.host": "j-ps-0.j", "worker.host": hosts.replace(',', "\n"),
            "VC_PS_HOSTS": "j-ps-0.j", "VC_PS_NUM": "1",
            "VC_WORKER_HOSTS": hosts, "VC_WORKER_NUM": "2"})
    );
    let own = json!({"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"});
    assert_eq!(
        w.object(Child::Service, "j")["spec"],
        json!({"clusterIP": "None", "selector": own, "publishNotReadyAddresses": false})
    );
    let peers = json!({"matchLabels": own});
    assert_eq!(
        w.object(Child::NetworkPolicy, "j")["spec"],
        json!({"podSelector": peers, "ingress": [{"from": [{"podSelector": peers}]}],
            "policyTypes": ["Ingress"]})
    );
    let group = w.object(Child::PodGroup, "j-u");
    assert_eq!(
        group["spec"],
        json!({"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}, "queue": "default",
            "minResources": {"count/pods": "3", "pods": "3"}})
    );
    let owner = &group["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["controller"], &owner["kind"]), (&json!(true), &json!("Job")));
    assert!(w.names(Child::Pod).is_empty());
    w.set_group("Pending");
    assert!(w.plan().is_idle(), "no pods until the group may run");
}

#[test]
fn pods_come_when_the_group_may_run() {
    let mut w = World::new(mnist());
    w.settle();
    w.admit();
    assert_eq!(children(&w), [vec![Child::Pod; 3]]);
    w.settle_counts();
    assert_eq!(w.names(Child::Pod), ["j-ps-0", "j-worker-0", "j-worker-1"]);
    let pod = w.object(Child::Pod, "j-worker-1");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns",
            "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "1",
            "volcano.sh/queue-name": "default"})
    );
    assert_eq!(
        pod["metadata"]["annotations"],
        json!({"volcano.sh/task-index": "1", "volcano.sh/task-spec": "worker",
            "volcano.sh/job-name": "j", "volcano.sh/queue-name": "default",
            "volcano.sh/job-version": "0", "volcano.sh/job-retry-count": "0",
            "volcano.sh/template-uid": "j-worker", "scheduling.k8s.io/group-name": "j-u"})
    );
    let spec = &pod["spec"];
    assert_eq!(
        (&spec["schedulerName"], &spec["hostname"], &spec["subdomain"]),
        (&json!("volcano"), &json!("j-worker-1"), &json!("j"))
    );
    let env: Vec<(&str, &Value)> = spec["containers"][0]["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one.get("value").unwrap_or(&one["valueFrom"])))
        .collect();
    let key = |key: &str| json!({"configMapKeyRef": {"name": "j-svc", "key": key}});
    assert_eq!(
        env,
        [
            ("VK_TASK_INDEX", &json!("1")),
            ("VC_TASK_INDEX", &json!("1")),
            ("VC_PS_HOSTS", &key("VC_PS_HOSTS")),
            ("VC_PS_NUM", &key("VC_PS_NUM")),
            ("VC_WORKER_HOSTS", &key("VC_WORKER_HOSTS")),
            ("VC_WORKER_NUM", &key("VC_WORKER_NUM")),
        ]
    );
    assert_eq!(spec["volumes"], json!([{"name": "j-svc", "configMap": {"name": "j-svc"}}]));
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"name": "j-svc", "mountPath": "/etc/volcano"}])
    );
    assert_eq!(spec["containers"][0]["terminationMessagePolicy"], "FallbackToLogsOnError");
    let status = w.typed();
    assert_eq!((status.pending, w.visited()), (3, vec![Pending]));
    assert_eq!(
        w.status["taskStatusCount"],
        json!({"ps": {"phase": {"Pending": 1}},
        "worker": {"phase": {"Pending": 2}}})
    );
    assert_eq!(w.status["controlledResources"], json!({"plugin-env": "env", "plugin-svc": "svc"}));
}

/// A kubelet publishes the terminated container first and the pod's final phase later; the job
/// completes in between.
#[test]
fn finished_pods_are_kept_for_their_logs_before_their_phase_says_that_they_are() {
    let mut spec = mnist();
    for task in spec["tasks"].as_array_mut().unwrap() {
        task["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    }
    let mut w = World::running(spec);
    w.terminate("worker-0", 0);
    w.terminate("worker-1", 0);
    w.settle_counts();
    w.finish_deletions();
    w.settle_counts();
    assert_eq!(w.visited(), [Pending, Running, Completing, Completed]);
    assert_eq!(w.names(Child::Pod), ["j-worker-0", "j-worker-1"]);
    assert_eq!((w.typed().succeeded, w.typed().running), (2, 0));
}

#[test]
fn it_runs_and_completes_and_leaves_what_has_logs() {
    let mut w = World::running(mnist());
    assert_eq!(w.visited(), [Pending, Running]);
    assert_eq!(w.typed().running, 3);
    w.exit("worker-0", 0);
    w.settle_counts();
    let status = w.typed();
    assert_eq!((status.succeeded, status.running, w.phase()), (1, 2, Running));
    w.exit("worker-1", 0);
    w.step();
    let status = w.typed();
    assert_eq!(w.visited(), [Pending, Running, Completing]);
    assert_eq!((status.version, status.terminating, status.succeeded), (1, 1, 2));
    assert_eq!(status.state.reason, "TaskCompleted");
    assert_eq!(status.state.message, "CompleteJob: All 2 pods of task worker succeeded.");
    assert!(status.running_duration.is_some() && status.controlled_resources.is_empty());
    assert_eq!(w.told("ExecuteAction"), ["Start to execute action CompleteJob "]);
    w.settle();
    for child in [Child::ConfigMap, Child::Service, Child::NetworkPolicy, Child::PodGroup] {
        assert!(w.names(child).is_empty(), "{child:?}");
    }
    assert_eq!(w.phase(), Completing);
    w.finish_deletions();
    w.settle_counts();
    assert_eq!(w.visited(), [Pending, Running, Completing, Completed]);
    assert_eq!(w.names(Child::Pod), ["j-worker-0", "j-worker-1"]);
    let status = w.typed();
    assert_eq!((status.succeeded, status.terminating, status.running), (2, 0, 0));
    assert!(status.pods.is_empty());
    let writes = w.status_writes;
    w.pass_ms(1_000_000);
    w.settle_counts();
    assert!(w.plan().requeue_at.is_none(), "an ended job costs nothing");
    w.vanish("worker-0");
    w.settle_counts();
    assert_eq!((w.status_writes, w.typed().succeeded), (writes, 2));
}

#[test]
fn a_ttl_counts_from_the_end() {
    let mut spec = mnist();
    spec["ttlSecondsAfterFinished"] = 30.into();
    let mut w = World::running(spec);
    w.exit("worker-0", 0);
    w.exit("worker-1", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert_eq!(w.phase(), Completed);
    let due = w.plan().requeue_at.unwrap();
    assert_eq!(due.as_second(), w.now.as_second() + 30);
    w.pass_ms(31_000);
    w.settle();
    assert!(w.deleted);
}

#[test]
fn a_worker_that_fails_without_a_policy_is_told_and_nothing_else() {
    let mut w = World::running(mnist());
    w.exit("worker-0", 3);
    w.settle_counts();
    let status = w.typed();
    assert_eq!((status.failed, status.running, w.phase()), (1, 2, Running));
    w.exit("worker-1", 0);
    w.exit("ps-0", 0);
    w.settle_counts();
    assert_eq!(w.visited(), [Pending, Running, Failed]);
    let state = w.typed().state;
    assert_eq!(state.reason, "PodFailed");
    assert_eq!(
        state.message,
        "1 of 2 pods of task worker succeeded; its minAvailable is 2. Pod j-worker-0, container c \
         exited with code 3 (SIGQUIT, Error). Last words: last words of worker-0"
            .replace("SIGQUIT, ", "")
    );
    assert_eq!(w.told("JobFailed").len(), 1);
}

#[test]
fn tf_config_has_the_bytes_of_the_reference() {
    let mut spec = mnist();
    spec["plugins"] = json!({"tensorflow": ["--ps=ps", "--worker=worker", "--port=2222"]});
    let w = World::running(spec);
    let env = &w.object(Child::Pod, "j-worker-1")["spec"]["containers"][0]["env"];
    let last = env.as_array().unwrap().last().unwrap();
    assert_eq!(
        *last,
        json!({"name": "TF_CONFIG", "value": "{\"cluster\":{\"ps\":[\"j-ps-0.j:2222\"],\
            \"worker\":[\"j-worker-0.j:2222\",\"j-worker-1.j:2222\"]},\
            \"task\":{\"type\":\"worker\",\"index\":1}}"})
    );
    assert!(!env.to_string().contains("VK_TASK_INDEX"), "env is not implied");
    assert_eq!(
        w.status["controlledResources"],
        json!({"plugin-svc": "svc", "plugin-tensorflow": "tensorflow"})
    );
    let lone = json!({"plugins": {"tensorflow": []}, "tasks": [super::super::world::task("w", 1)]});
    let w = World::running(lone);
    let env = &w.object(Child::Pod, "j-w-0")["spec"]["containers"][0]["env"];
    assert!(!env.to_string().contains("TF_CONFIG"));
}
