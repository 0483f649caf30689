//! The TensorBoard beside a job.

use serde_json::json;

use crate::tfjob::world::World;

fn world() -> World {
    let mut w = World::with(&[("Master", 1, "Never"), ("Worker", 2, "Never"), ("PS", 1, "Never")]);
    w.spec["tensorBoard"] = json!({"logDir": "/logs"});
    let template = &mut w.spec["tfReplicaSpecs"]["Master"]["template"]["spec"];
    template["volumes"] = json!([{"name": "logs", "persistentVolumeClaim": {"claimName": "c"}}]);
    template["containers"][0]["volumeMounts"] = json!([{"name": "logs", "mountPath": "/logs"}]);
    w
}

#[test]
fn one_pod_and_one_service_more() {
    let mut w = world();
    w.settle();
    assert_eq!(w.pods.len(), 5, "one master, two workers, one ps, one TensorBoard");
    let pod = w.pod("tensorboard-0").clone();
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["image"], "tf", "the image of the deciding replica");
    assert_eq!(
        container["command"],
        json!(["tensorboard", "--logdir", "/logs", "--host", "0.0.0.0"])
    );
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/logs");
    assert_eq!(pod["spec"]["volumes"][0]["name"], "logs");
    assert_eq!(pod["metadata"]["annotations"], json!({"trainyard.dev/expose": "6006"}));
    let service = &w.services["j-tensorboard-0"];
    assert_eq!(
        service["spec"]["ports"][0],
        json!({"name": "tb-port", "port": 80, "targetPort": 6006})
    );
    let config = w.pod("master-0")["spec"]["containers"][0]["env"][0]["value"].clone();
    assert!(!config.as_str().unwrap().contains("tensorboard"));
}

#[test]
fn it_does_not_count() {
    let mut w = world();
    w.settle();
    for replica in ["master-0", "worker-0", "worker-1", "ps-0"] {
        w.start(replica);
    }
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.evict("tensorboard-0");
    w.settle();
    assert!(w.has("tensorboard-0"), "it comes back");
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!(w.typed().restarts, 0);
}

#[test]
fn it_outlives_the_training() {
    let mut w = world().policy("cleanPodPolicy", "All").policy("ttlSecondsAfterFinished", 60);
    w.settle();
    w.start_all();
    w.settle();
    w.exit("master-0", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert_eq!(w.pod_names(), ["j-tensorboard-0"]);
    assert_eq!(w.services.len(), 1);
    w.pass_ms(60_000);
    w.settle();
    assert!(w.deleted);
}

#[test]
fn it_goes_when_it_is_no_longer_asked_for() {
    let mut w = world();
    w.settle();
    w.start_all();
    w.settle();
    w.spec.as_object_mut().unwrap().remove("tensorBoard");
    w.settle();
    w.finish_deletions();
    w.settle();
    assert!(!w.has("tensorboard-0"));
    assert!(!w.services.contains_key("j-tensorboard-0"));
}

#[test]
fn its_own_settings_win() {
    let mut w = world();
    w.spec["tensorBoard"] = json!({
        "logDir": "/own", "image": "board", "serviceType": "NodePort",
        "volumes": [{"name": "own", "emptyDir": {}}],
        "volumeMounts": [{"name": "own", "mountPath": "/own"}],
    });
    w.settle();
    let spec = w.pod("tensorboard-0")["spec"].clone();
    assert_eq!(spec["containers"][0]["image"], "board");
    assert_eq!(spec["volumes"], json!([{"name": "own", "emptyDir": {}}]));
    assert_eq!(w.services["j-tensorboard-0"]["spec"]["type"], "NodePort");
}
