//! What answers mean.

use serde_json::json;
use trainyard_core::{PodView, Role, Write};

use super::*;
use crate::{
    Options,
    fake::{Asked, Fake, Reply},
    queue::Queue,
    toy::{Toys, pod},
};

fn gone(answer: &Value) -> bool {
    is_gone(answer.to_string().as_bytes())
}

#[test]
fn the_answer_to_a_deletion_tells_gone_from_ending() {
    let ending = "2030-01-01T00:00:00Z";
    assert!(gone(&json!({"kind": "Status", "status": "Success"})));
    assert!(gone(&json!({"kind": "Service", "metadata": {"name": "a"}})));
    assert!(gone(&json!({"kind": "Pod", "metadata": {
        "deletionTimestamp": ending, "deletionGracePeriodSeconds": 0}})));
    assert!(!gone(&json!({"kind": "Pod", "metadata": {
        "deletionTimestamp": ending, "deletionGracePeriodSeconds": 30}})));
    assert!(!gone(&json!({"kind": "Pod", "metadata": {
        "deletionTimestamp": ending, "deletionGracePeriodSeconds": 0, "finalizers": ["x"]}})));
    assert!(!is_gone(b"not json"));
}

fn target() -> Target {
    Target {
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        uid: "job".to_owned(),
        version: "7".to_owned(),
    }
}

fn writes(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Writes<Toys>, Fake) {
    let fake = Fake::new(answer);
    let options = Options::default();
    let queue = Arc::new(Queue::new(&options, Arc::default()));
    let shared = Arc::new(Shared::new(queue, Arc::default()));
    (Writes::new(fake.calls(&options), shared, Arc::new(Semaphore::new(4))), fake)
}

fn held(uid: &str) -> PodView {
    PodView {
        namespace: "default".into(),
        name: "a-0".into(),
        uid: uid.into(),
        version: 5,
        owner: Some("job".into()),
        role: Role::Other,
        ..serde_json::from_value(pod("a-0", "job")).unwrap()
    }
}

fn delete() -> Write {
    Write::Delete(
        Child::Pod,
        Delete {
            name: "a-0".to_owned(),
            uid: "u".to_owned(),
            group: "toy".into(),
            index: 0,
            grace_seconds: Some(0),
        },
    )
}

#[tokio::test(start_paused = true)]
async fn a_deletion_names_the_identity_and_the_grace_period() {
    let (writes, fake) = writes(|_| Reply::Json(200, json!({"kind": "Status"})));
    writes.shared.cache().pods.own(held("u"));
    writes.carry_out(&target(), &delete()).await.unwrap();
    assert!(writes.shared.cache().pods.get("u").is_none());
    assert_eq!(
        fake.asked()[0].body,
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"},
            "propagationPolicy": "Background", "gracePeriodSeconds": 0})
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_already_counts_as_deleted() {
    for (code, reason, name) in [(404, "NotFound", "a-0"), (409, "Conflict", "UID in precondition")]
    {
        let (writes, _) = writes(move |_| Reply::refuse(code, reason, name));
        writes.shared.cache().pods.own(held("u"));
        writes.carry_out(&target(), &delete()).await.unwrap();
        assert!(writes.shared.cache().pods.get("u").is_none());
    }
    let (writes, _) = writes(|_| Reply::refuse(409, "Conflict", "try again"));
    writes.shared.cache().pods.own(held("u"));
    assert!(writes.carry_out(&target(), &delete()).await.is_err());
    assert!(writes.shared.cache().pods.get("u").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_status_names_the_version_it_replaces() {
    let (writes, fake) = writes(|_| {
        Reply::Json(
            200,
            json!({"metadata": {"name": "a", "uid": "job", "resourceVersion": "9"},
            "spec": {"pods": 1}}),
        )
    });
    let patch = Write::PatchStatus { patch: json!({"phase": "Created"}), marks: vec![] };
    let version = writes.carry_out(&target(), &patch).await.unwrap();
    assert_eq!(version.as_deref(), Some("9"));
    assert_eq!(writes.shared.cache().jobs.get("job").unwrap().version(), 9);
    assert_eq!(
        fake.asked()[0].body,
        json!({"metadata": {"uid": "job", "resourceVersion": "7"}, "status": {"phase": "Created"}})
    );
}

#[tokio::test(start_paused = true)]
async fn each_refusal_of_a_status_has_its_meaning() {
    for (code, name, then) in [
        (409, "a", Then::Conflict),
        (404, "a", Then::Gone),
        (404, "", Then::Retry),
        (422, "a", Then::Never),
        (500, "a", Then::Retry),
    ] {
        let (writes, _) = writes(move |_| Reply::refuse(code, "Reason", name));
        let patch = Write::PatchStatus { patch: json!({}), marks: vec![] };
        let failure = writes.carry_out(&target(), &patch).await.unwrap_err();
        assert_eq!(failure.then, then, "{code} {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn our_pod_that_lost_its_label_is_not_taken_for_watched() {
    let (writes, _) = writes(|asked| {
        if asked.method == http::Method::POST {
            return Reply::refuse(409, "AlreadyExists", "a-0");
        }
        let mut pod = pod("a-0", "job");
        pod["metadata"]["labels"] = json!({});
        Reply::Json(200, pod)
    });
    let create = Write::Create(
        Child::Pod,
        Create { name: "a-0".to_owned(), group: "toy".into(), index: 0, body: pod("a-0", "job") },
    );
    let failure = writes.carry_out(&target(), &create).await.unwrap_err();
    assert!(failure.text.contains("without the label by=toys"), "{}", failure.text);
}

fn group(uid: &str) -> Value {
    let mut group = pod("a", "job");
    group["metadata"]["labels"] = json!({});
    group["metadata"]["uid"] = json!(uid);
    group["metadata"]["resourceVersion"] = json!("5");
    group
}

fn create(child: Child) -> Write {
    let body = json!({"kind": child.kind()});
    Write::Create(child, Create { name: "a".to_owned(), group: "".into(), index: 0, body })
}

fn patch() -> Write {
    let (name, uid, body) = ("a".to_owned(), "g".to_owned(), json!({"spec": {"minMember": 2}}));
    Write::Patch(Child::PodGroup, Patch { name, uid, body })
}

#[tokio::test(start_paused = true)]
async fn every_kind_is_made_where_the_api_has_it_and_held_at_once() {
    for (child, store, prefix, resource) in [
        (Child::Pod, 0, "/api/v1", "pods"),
        (Child::Service, 1, "/api/v1", "services"),
        (Child::ConfigMap, 2, "/api/v1", "configmaps"),
        (Child::NetworkPolicy, 3, "/apis/networking.k8s.io/v1", "networkpolicies"),
        (Child::Claim, 4, "/api/v1", "persistentvolumeclaims"),
        (Child::PodGroup, 5, "/apis/scheduling.volcano.sh/v1beta1", "podgroups"),
        (Child::PluginsPodGroup, 5, "/apis/scheduling.x-k8s.io/v1alpha1", "podgroups"),
        (Child::Command, 6, "/apis/bus.volcano.sh/v1alpha1", "commands"),
    ] {
        let path = format!("{prefix}/namespaces/default/{resource}");
        let (writes, fake) = writes(|_| Reply::Json(201, group("g")));
        writes.carry_out(&target(), &create(child)).await.unwrap();
        assert_eq!(fake.asked()[0].line(), format!("POST {path}"));
        let held = |writes: &Writes<Toys>| {
            let cache = writes.shared.cache();
            [
                cache.pods.owned_by("job").len(),
                cache.services.owned_by("job").len(),
                cache.config_maps.owned_by("job").len(),
                cache.policies.owned_by("job").len(),
                cache.claims.owned_by("job").len(),
                cache.groups.owned_by("job").len(),
                cache.commands.owned_by("job").len(),
            ]
        };
        let mut expected = [0; 7];
        expected[store] = 1;
        assert_eq!(held(&writes), expected, "{child:?}");
        let options = Delete {
            name: "a".to_owned(),
            uid: "g".to_owned(),
            group: "".into(),
            index: 0,
            grace_seconds: None,
        };
        let gone = Write::Delete(child, options);
        writes.carry_out(&target(), &gone).await.unwrap();
        assert_eq!(fake.asked()[1].line(), format!("DELETE {path}/a"));
        assert_eq!(held(&writes), [0; 7], "{child:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_names_the_identity_and_its_answer_is_held() {
    let (writes, fake) = writes(|_| {
        let mut group = group("g");
        group["spec"]["minMember"] = json!(2);
        Reply::Json(200, group)
    });
    writes.carry_out(&target(), &patch()).await.unwrap();
    let body = json!({"metadata": {"uid": "g"}, "spec": {"minMember": 2}});
    assert_eq!(fake.asked()[0].body, body);
    let cache = writes.shared.cache();
    assert_eq!(cache.groups.get("g").unwrap().facts.spec.min_member, 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_has_gone_or_changed_is_planned_again() {
    for (code, name, then, is_held) in [
        (404, "a", Then::Conflict, false),
        (409, "UID in precondition", Then::Conflict, false),
        (409, "changed", Then::Conflict, true),
        (404, "", Then::Retry, true),
        (422, "a", Then::Retry, true),
    ] {
        let (writes, _) = writes(move |_| Reply::refuse(code, "Reason", name));
        let held = serde_json::from_value(group("g")).unwrap();
        writes.shared.cache().groups.own(held);
        let failure = writes.carry_out(&target(), &patch()).await.unwrap_err();
        assert_eq!(failure.then, then, "{code} {name}");
        assert_eq!(writes.shared.cache().groups.get("g").is_some(), is_held, "{code} {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_named_with_what_to_do() {
    let (writes, _) = writes(|_| Reply::refuse(404, "NotFound", ""));
    let failure = writes.carry_out(&target(), &create(Child::PodGroup)).await.unwrap_err();
    let told = "PodGroup is not served; install it with: trainyard crd | kubectl apply -f -";
    assert_eq!(failure.text, told);
}

#[tokio::test(start_paused = true)]
async fn our_group_needs_no_label_and_our_config_map_does() {
    let answer = |asked: &Asked| match asked.method {
        http::Method::POST => Reply::refuse(409, "AlreadyExists", "a"),
        _ => Reply::Json(200, group("g")),
    };
    let (writes, _) = writes(answer);
    writes.carry_out(&target(), &create(Child::PodGroup)).await.unwrap();
    assert!(writes.shared.cache().groups.get("g").is_some());
    let failure = writes.carry_out(&target(), &create(Child::ConfigMap)).await.unwrap_err();
    assert!(failure.text.contains("without the label by=toys"), "{}", failure.text);
}

/// The words are those of a real API server.
#[test]
fn the_schema_refuses_for_good_and_a_policy_of_the_cluster_for_now() {
    let refused = |kind: &'static str, text: &str| {
        let failure = Failure {
            kind,
            text: text.to_owned(),
            at_least: Duration::ZERO,
            in_doubt: false,
            then: Then::Retry,
        };
        (failure.is_a_refusal(), failure.is_for_good())
    };
    let denied =
        "admission webhook \"validate.kyverno.svc-fail\" denied the request: use our registry";
    let policy = "pods \"a-worker-0\" is forbidden: ValidatingAdmissionPolicy 'images' with binding \
                  'all' denied request: use our registry";
    let absent = "Internal error occurred: failed calling webhook \"images.example.com\": failed to \
                  call webhook: connection refused";
    for (kind, text, expected) in [
        ("invalid", "Pod \"a-worker-0\" is invalid: spec.nodeName: Invalid value", (true, true)),
        ("refused", "Pod in version \"v1\" cannot be handled as a Pod", (true, true)),
        ("forbidden", "pods \"a-worker-0\" is forbidden: exceeded quota: small", (true, false)),
        ("refused", denied, (true, false)),
        ("invalid", policy, (true, false)),
        ("server", absent, (true, false)),
        ("server", "etcdserver: request timed out", (false, false)),
        ("throttled", "too many requests", (false, false)),
        ("conflict", "the object has been modified", (false, false)),
        (
            "name_taken",
            "pods \"a-worker-0\" already exists and is controlled by nobody",
            (true, false),
        ),
    ] {
        assert_eq!(refused(kind, text), expected, "{text}");
    }
}
