//! What is written for claims before their pods are bound.

use serde_json::{Value, json};

use super::{count, group, node, node_of, start, writes};
use crate::fake::{Fake, Reply};
use crate::toy::pass_time;
use crate::toy_server::{Fault, Server};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A gang of one that mounts a claim, and the claim, whose class waits for it.
fn claimed(server: &Server, provisioner: &str) {
    server.make_for_all(
        "storageclasses",
        json!({"metadata": {"name": "waits"}, "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer"}),
    );
    server.make(
        "persistentvolumeclaims",
        json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "waits",
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    group(server, "g", 1);
    let metadata = json!({"name": "g-0", "annotations": {"scheduling.k8s.io/group-name": "g"}});
    let spec = json!({"schedulerName": "volcano", "containers": [{}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    server.make_pod(json!({"metadata": metadata, "spec": spec}));
}

fn volume(server: &Server) {
    server.make_for_all(
        "persistentvolumes",
        json!({"metadata": {"name": "pv"}, "status": {"phase": "Available"}, "spec": {
            "storageClassName": "waits", "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}}}),
    );
}

/// Whoever binds claims has done so.
fn bound(server: &Server) {
    server.change("persistentvolumeclaims", "data", |claim| {
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
        claim["spec"]["volumeName"] = json!("pv");
    });
}

fn selected(server: &Server) -> Value {
    server.get("persistentvolumeclaims", "data").unwrap()["metadata"]["annotations"][SELECTED_NODE]
        .clone()
}

fn bindings(fake: &Fake) -> usize {
    count(&writes(fake), "/binding")
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_provisioned_for_the_node_before_its_pod_is_bound() {
    let server = Server::default();
    node(&server, "a", "4");
    claimed(&server, "disk.example.com");
    let (fake, _stop) = start(&server);
    pass_time(5_000).await;
    assert_eq!((selected(&server), bindings(&fake)), (json!("a"), 0));
    let pod = server.get("pods", "g-0").unwrap();
    assert_eq!(pod["status"]["nominatedNodeName"], "a");
    // Nothing is written twice while the volume is being made.
    assert_eq!(count(&writes(&fake), "persistentvolumeclaims/data"), 1);
    volume(&server);
    bound(&server);
    pass_time(1_000).await;
    assert_eq!(node_of(&server, "g-0").as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_there_is_kept_for_the_claim() {
    let server = Server::default();
    node(&server, "a", "4");
    volume(&server);
    claimed(&server, "kubernetes.io/no-provisioner");
    let (fake, _stop) = start(&server);
    pass_time(1_000).await;
    let volume = server.get_for_all("persistentvolumes", "pv").unwrap();
    let claim = server.get("persistentvolumeclaims", "data").unwrap();
    assert_eq!(volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"]);
    assert_eq!(volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes");
    assert_eq!((selected(&server), bindings(&fake)), (json!(null), 0));
    bound(&server);
    pass_time(1_000).await;
    assert_eq!(bindings(&fake), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_could_not_be_written_is_written_later() {
    let server = Server::default();
    node(&server, "a", "4");
    claimed(&server, "disk.example.com");
    let mut refusals = 0;
    server.faults(move |asked| {
        let is_it = asked.method == "PATCH" && asked.path.contains("persistentvolumeclaims");
        refusals += usize::from(is_it);
        (is_it && refusals <= 2)
            .then(|| Fault::Before(Reply::refuse(500, "InternalError", "no luck")))
    });
    let (fake, _stop) = start(&server);
    pass_time(10_000).await;
    assert_eq!(selected(&server), "a");
    assert_eq!(count(&writes(&fake), "persistentvolumeclaims/data"), 3);
}
