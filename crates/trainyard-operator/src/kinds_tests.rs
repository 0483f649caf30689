//! Kinds of job that have more than pods, and two kinds under one lease.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trainyard_core::Gang;

use super::{tests::Running, *};
use crate::{
    LeaderOptions, VolcanoJobs,
    fake::{Asked, Reply},
    toy::{Fault, Server, block, pass_time},
};

const STATUS: &str = "PATCH /apis/toys.dev/v1/namespaces/default/blocks/a/status";
const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
const COMMAND: &str = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands";

fn always() -> Options {
    Options { volcano_jobs: VolcanoJobs::Always, ..Options::default() }
}

fn submit(server: &Server, pods: u32) -> String {
    server.submit_to("blocks", "a", &json!({"pods": pods}))
}

fn command(server: &Server, action: &str, job: &str) {
    server.make(
        "commands",
        json!({"metadata": {"name": "c"}, "action": action, "target": {"kind": "Block", "uid": job}}),
    );
}

fn min_member(server: &Server) -> Value {
    server.get("podgroups", "a").unwrap()["spec"]["minMember"].clone()
}

#[tokio::test(start_paused = true)]
async fn everything_of_a_job_is_made_in_order_once_and_changed_where_it_is() {
    let server = Server::default();
    submit(&server, 3);
    let running = Running::start_with(&server, always());
    pass_time(100).await;
    let mut made = running.writes();
    made[..3].sort();
    let create_group = format!("POST {GROUPS}");
    assert_eq!(
        made,
        [
            "POST /api/v1/namespaces/default/configmaps",
            "POST /api/v1/namespaces/default/persistentvolumeclaims",
            "POST /apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            &create_group,
        ]
    );
    server.change("podgroups", "a", |group| group["status"]["phase"] = json!("Inqueue"));
    pass_time(100).await;
    assert_eq!(running.writes()[4..], ["POST /api/v1/namespaces/default/pods"]);
    server.change("blocks", "a", |job| job["spec"]["pods"] = json!(5));
    pass_time(100).await;
    assert_eq!(running.writes()[5..], [format!("PATCH {GROUPS}/a")]);
    assert_eq!(min_member(&server), 5);
    server.delete("configmaps", "a");
    pass_time(100).await;
    assert_eq!(running.writes()[6..], ["POST /api/v1/namespaces/default/configmaps"]);
    assert_eq!(server.events(), ["Created pod: a"], "as Volcano tells it");
}

#[tokio::test(start_paused = true)]
async fn a_command_is_recorded_then_deleted_even_if_the_job_has_finished() {
    let server = Server::default();
    let uid = submit(&server, 1);
    let running = Running::start_with(&server, always());
    pass_time(100).await;
    let before = running.writes().len();
    let done = [STATUS.to_owned(), format!("DELETE {COMMAND}/c")];
    command(&server, "Done", &uid);
    pass_time(100).await;
    assert_eq!(running.writes()[before..], done);
    assert_eq!(server.get("blocks", "a").unwrap()["status"]["phase"], "Done");
    let counted =
        "volcano_job_completed_phase_count{job_name=\"default/a\",queue_name=\"default\"} 1";
    assert!(running.metrics.encode().contains(counted));
    command(&server, "Done", &uid);
    pass_time(100).await;
    assert_eq!(running.writes()[before + 2..], done);
    server.delete("blocks", "a");
    pass_time(100).await;
    assert!(!running.metrics.encode().contains("default/a"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_is_gone_is_planned_again_without_a_word() {
    let server = Server::default();
    submit(&server, 1);
    let running = Running::start_with(&server, always());
    pass_time(100).await;
    let mut once = true;
    server.faults(move |asked| {
        (asked.line().starts_with("PATCH /apis/scheduling") && std::mem::take(&mut once))
            .then(|| Fault::Before(Reply::refuse(409, "Conflict", "UID in precondition")))
    });
    server.change("blocks", "a", |job| job["spec"]["pods"] = json!(2));
    pass_time(1000).await;
    assert_eq!(min_member(&server), 2);
    let (patch, create) = (format!("PATCH {GROUPS}/a"), format!("POST {GROUPS}"));
    assert_eq!(running.writes()[4..], [patch.clone(), create, patch]);
    assert!(server.events().is_empty(), "{:?}", server.events());
}

#[tokio::test(start_paused = true)]
async fn a_strangers_group_is_named_and_our_own_from_an_earlier_life_taken() {
    let server = Server::default();
    let uid = submit(&server, 1);
    let mut group = block("a", "somebody");
    group["metadata"]["labels"] = json!({});
    server.make("podgroups", group.clone());
    let running = Running::start_with(&server, always());
    pass_time(1000).await;
    let told = "Failed to create PodGroup, err: podgroups \"a\" already exists and is controlled \
                by Block/a; waiting for it to go away";
    assert_eq!(server.events(), [told]);
    server.delete("podgroups", "a");
    // The watch is blind to it, as after a lost connection.
    server.faults(|asked| {
        (asked.line() == format!("POST {GROUPS}"))
            .then(|| Fault::Before(Reply::refuse(409, "AlreadyExists", "a")))
    });
    group["metadata"]["ownerReferences"][0]["uid"] = json!(uid);
    group["status"]["phase"] = json!("Running");
    group["spec"]["minMember"] = json!(1);
    server.make("podgroups", group);
    pass_time(61_000).await;
    assert_eq!(server.names("pods"), ["a"]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_priority_class_that_changes_matters_to_every_job() {
    let server = Server::default();
    submit(&server, 1);
    let running = Running::start_with(&server, always());
    pass_time(100).await;
    server.make_for_all("priorityclasses", json!({"metadata": {"name": "high"}, "value": 10}));
    pass_time(100).await;
    assert_eq!(min_member(&server), 11);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_finds_invalid_is_tried_once() {
    let server = Server::default();
    submit(&server, 1);
    server.faults(|asked| {
        asked
            .line()
            .ends_with("/configmaps")
            .then_some(asked)
            .filter(|asked| asked.method == http::Method::POST)
            .map(|_| Fault::Before(Reply::refuse(422, "Invalid", "a")))
    });
    let running = Running::start_with(&server, always());
    pass_time(600_000).await;
    let tried = |running: &Running| {
        running.writes().iter().filter(|line| line.ends_with("/configmaps")).count()
    };
    assert_eq!(tried(&running), 1);
    server.faults(|_| None);
    server.change("blocks", "a", |job| job["metadata"]["generation"] = json!(2));
    pass_time(1000).await;
    assert_eq!(server.names("configmaps"), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn two_kinds_act_under_one_lease() {
    let server = Server::default();
    let options = |identity: &str| Options {
        leader: Some(LeaderOptions::new("default", "yard", identity)),
        ..always()
    };
    let first = Running::start_with(&server, options("first"));
    pass_time(100).await;
    let second = Running::start_with(&server, options("second"));
    server.submit("t", &json!({"pods": 1}));
    submit(&server, 1);
    pass_time(30_000).await;
    assert_eq!(server.names("leases"), ["yard"]);
    assert_eq!(server.names("pods"), ["t-0"]);
    assert_eq!(server.names("podgroups"), ["a"]);
    assert!(second.writes().is_empty() && second.health.is_ready());
    drop(first);
    server.delete("podgroups", "a");
    server.delete("pods", "t-0");
    pass_time(30_000).await;
    assert_eq!(
        (server.names("pods"), server.names("podgroups")),
        (vec!["t-0".to_owned()], vec!["a".to_owned()])
    );
    let text = second.metrics.encode();
    assert!(text.contains("trainyard_cached_objects{resource=\"pods\"} 1"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_both_kinds() {
    for volcano_jobs in [VolcanoJobs::Always, VolcanoJobs::Auto, VolcanoJobs::Never] {
        let server = Server::default();
        let options = Options { volcano_jobs, ..Options::default() };
        let mut running = Running::start_with(&server, options);
        pass_time(1000).await;
        running.stop.cancel();
        running.run.join_next().await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_there_does_not_hold_up_the_other() {
    let server = Server::default();
    server.submit("t", &json!({"pods": 1}));
    server.faults(|asked| {
        asked.path.ends_with("/blocks").then(|| Fault::Before(Reply::refuse(404, "NotFound", "")))
    });
    let running = Running::start_with(&server, always());
    pass_time(1000).await;
    assert!(running.health.is_ready() && running.health.is_acting());
    assert_eq!(server.names("pods"), ["t-0"]);
    submit(&server, 1);
    server.faults(|_| None);
    pass_time(60_000).await;
    assert_eq!(server.names("podgroups"), ["a"], "it comes as soon as it is there");
}

#[tokio::test(start_paused = true)]
async fn jobs_whose_definition_is_anothers_are_left_alone() {
    let server = Server::default();
    submit(&server, 1);
    let options = Options { volcano_jobs: VolcanoJobs::Auto, ..Options::default() };
    let running = Running::start_with(&server, options);
    let is_followed = |running: &Running| {
        running.fake.asked().iter().any(|asked| asked.path.ends_with("/blocks"))
    };
    pass_time(600_000).await;
    assert!(!is_followed(&running), "there is no definition");
    let resource = "customresourcedefinitions";
    let definition = json!({"metadata": {"name": "blocks.toys.dev"}});
    server.make_for_all(resource, definition);
    pass_time(600_000).await;
    assert!(!is_followed(&running), "the definition is not ours");
    server.change_for_all(resource, "blocks.toys.dev", |definition| {
        definition["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "trainyard"});
    });
    pass_time(61_000).await;
    assert_eq!(server.names("podgroups"), ["a"]);
    assert!(running.health.is_acting());
}

/// What the operator lists, with the selector.
async fn listed(options: Options) -> BTreeSet<String> {
    let fake = Server::default().fake();
    let operator = Operator::new(fake.client(), options);
    let mut run = JoinSet::new();
    run.spawn(operator.run(CancellationToken::new()));
    pass_time(100).await;
    let is_list = |asked: &Asked| asked.query.starts_with("limit=");
    let line = |asked: Asked| format!("{}?{}", asked.path, asked.query);
    fake.asked().into_iter().filter(is_list).map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn only_what_a_kind_needs_is_watched() {
    let ours = "limit=500&labelSelector=training.kubeflow.org%2Foperator-name%3Dtfjob-controller";
    let nodes = "/api/v1/nodes?limit=500".to_owned();
    let tfjobs = [
        nodes.clone(),
        "/apis/kubeflow.org/v1/tfjobs?limit=500".to_owned(),
        format!("/api/v1/pods?{ours}"),
        format!("/api/v1/services?{ours}"),
    ];
    let alone = listed(Options::default()).await;
    assert_eq!(alone, BTreeSet::from(tfjobs.clone()));

    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses?limit=500".to_owned();
    let scheduler = || "x".to_owned();
    for (gang, groups) in [
        (Gang::PodGroup { scheduler: scheduler() }, "scheduling.volcano.sh/v1beta1"),
        (Gang::PluginsPodGroup { scheduler: scheduler() }, "scheduling.x-k8s.io/v1alpha1"),
    ] {
        let mut options = Options::default();
        options.planner.gang = gang;
        let mut expected = BTreeSet::from(tfjobs.clone());
        expected.extend([format!("/apis/{groups}/podgroups?limit=500"), classes.clone()]);
        assert_eq!(listed(options).await, expected);
    }

    let selector = "limit=500&labelSelector=volcano.sh%2Fjob-name";
    let mut expected = BTreeSet::from([nodes]);
    for (prefix, resource) in [
        ("apis/kubeflow.org/v1", "tfjobs?limit=500"),
        ("apis/batch.volcano.sh/v1alpha1", "jobs?limit=500"),
        ("apis/scheduling.volcano.sh/v1beta1", "podgroups?limit=500"),
        ("apis/bus.volcano.sh/v1alpha1", "commands?limit=500"),
        ("api/v1", "persistentvolumeclaims?limit=500"),
    ] {
        expected.insert(format!("/{prefix}/namespaces/team/{resource}"));
    }
    for resource in ["pods", "services"] {
        expected.insert(format!("/api/v1/namespaces/team/{resource}?{ours}"));
        expected.insert(format!("/api/v1/namespaces/team/{resource}?{selector}"));
    }
    for (prefix, resource) in
        [("api/v1", "configmaps"), ("apis/networking.k8s.io/v1", "networkpolicies")]
    {
        expected.insert(format!("/{prefix}/namespaces/team/{resource}?{selector}"));
    }
    expected.insert(classes);
    let namespace = Some("team".to_owned());
    assert_eq!(listed(Options { namespace, ..always() }).await, expected);
}

/// A pod of a block, on a node.
fn bound(server: &Server, job: &str, node: &str) {
    let mut pod = block("a", job);
    pod["spec"] = json!({"nodeName": node});
    pod["status"] = json!({"phase": "Pending"});
    server.make_pod(pod);
}

fn ready(server: &Server, node: &str, word: &str) {
    server.change_for_all("nodes", node, |node| {
        node["status"]["conditions"] = json!([{"type": "Ready", "status": word}]);
    });
}

fn told_lost(server: &Server) -> usize {
    server.events().iter().filter(|event| *event == "a is lost").count()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_lost_matters_to_the_jobs_of_its_pods() {
    let server = Server::default();
    server.make_for_all("nodes", json!({"metadata": {"name": "n"}}));
    let uid = submit(&server, 1);
    bound(&server, &uid, "n");
    let running = Running::start_with(&server, always());
    pass_time(1000).await;
    let passes = running.passes();
    ready(&server, "n", "True");
    pass_time(1000).await;
    assert_eq!(
        (told_lost(&server), running.passes()),
        (0, passes),
        "a node that is well is no news"
    );
    ready(&server, "n", "Unknown");
    pass_time(1000).await;
    assert_eq!(told_lost(&server), 1);
    let again = Running::start_with(&server, always());
    drop(running);
    pass_time(1000).await;
    assert_eq!(told_lost(&server), 2, "an operator that comes later knows it from the list");
    let passes = again.passes();
    ready(&server, "n", "True");
    pass_time(1000).await;
    assert_eq!(again.passes(), passes + 1, "its return matters, too");
}

#[tokio::test(start_paused = true)]
async fn an_operator_without_a_right_over_nodes_goes_on() {
    let server = Server::default();
    server.faults(|asked| {
        (asked.path == "/api/v1/nodes")
            .then(|| Fault::Before(Reply::refuse(403, "Forbidden", "nodes")))
    });
    submit(&server, 1);
    let running = Running::start_with(&server, always());
    pass_time(1000).await;
    assert_eq!(server.names("configmaps"), ["a"]);
    assert!(running.health.is_ready());
    server.change("podgroups", "a", |group| group["status"]["phase"] = json!("Inqueue"));
    pass_time(1000).await;
    assert_eq!(server.names("pods"), ["a"]);
}
