//! What answers mean.

use serde_json::json;
use trainyard_core::{Role, Write};

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
    (Writes::new(fake.calls(&options), shared, 4), fake)
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
    Write::DeletePod(Delete {
        name: "a-0".to_owned(),
        uid: "u".to_owned(),
        group: "toy",
        index: 0,
        grace_seconds: Some(0),
    })
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
    let create = Write::CreatePod(Create {
        name: "a-0".to_owned(),
        group: "toy",
        index: 0,
        body: pod("a-0", "job"),
    });
    let failure = writes.carry_out(&target(), &create).await.unwrap_err();
    assert!(failure.text.contains("without the label by=toys"), "{}", failure.text);
}
