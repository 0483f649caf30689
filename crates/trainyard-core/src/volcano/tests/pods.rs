//! What pods are made of beside what the plain path shows: volumes, what the job passes on, flags.

use serde_json::json;
use trainyard_api::volcano::JobPhase::Running;

use crate::{
    child::Child,
    volcano::world::{World, mnist, task},
};

#[test]
fn volumes_are_claimed_once_and_mounted_everywhere() {
    let mut spec = json!({"tasks": [task("w", 2)], "volumes": [
        {"mountPath": "/data", "volumeClaimName": "mine"},
        {"mountPath": "/again", "volumeClaimName": "mine"},
        {"mountPath": "/out", "volumeClaim": {"accessModes": ["ReadWriteMany"]}}]});
    spec["tasks"][0]["template"]["spec"]["initContainers"] = json!([{"name": "i"}]);
    let mut w = World::new(spec);
    w.settle();
    assert!(w.names(Child::PodGroup).is_empty(), "nothing is scheduled before its claim is there");
    let state = w.typed().state;
    let absent =
        "pvc mine is not found, the job will be in the Pending state until the PVC is created";
    assert_eq!((&*state.reason, &*state.message), ("PVCError", absent));
    let notice = w.plan().notices.pop().unwrap();
    assert_eq!(notice.reason, "PVCError");
    assert_eq!(notice.message, format!("Failed to create PVC, err: {absent}"));
    let mine = json!({"metadata": {"namespace": "ns", "name": "mine", "uid": "theirs"}});
    w.objects.insert((Child::Claim, "mine".to_owned()), mine);
    w.run();
    assert_eq!(w.phase(), Running);
    let claims = w.names(Child::Claim);
    let made = (*claims.iter().find(|name| **name != "mine").unwrap()).to_owned();
    assert_eq!((claims.len(), made.len()), (2, "j-pvc-".len() + 12));
    assert_eq!(w.object(Child::Claim, &made)["spec"], json!({"accessModes": ["ReadWriteMany"]}));
    let pod = &w.object(Child::Pod, "j-w-1")["spec"];
    let claimed: Vec<&str> = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["persistentVolumeClaim"]["claimName"].as_str().unwrap())
        .collect();
    assert_eq!(claimed, ["mine", &made]);
    let paths: Vec<&str> = pod["containers"][0]["volumeMounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["mountPath"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["/data", "/out"]);
    assert!(pod["initContainers"][0]["volumeMounts"].is_null());
    let key = format!("volume-pvc-{made}");
    assert_eq!(w.typed().controlled_resources[&key], made);
    w.exit("w-0", 0);
    w.exit("w-1", 0);
    w.settle();
    assert_eq!(w.names(Child::Claim), [made.as_str(), "mine"], "claims outlive the end of the job");
}

#[test]
fn what_the_job_says_reaches_its_pods() {
    let mut spec = mnist();
    spec["priorityClassName"] = "high".into();
    spec["tasks"][0]["topologyPolicy"] = "restricted".into();
    let template = &mut spec["tasks"][0]["template"];
    template["metadata"] = json!({"labels": {"a": "b", "volcano.sh/job-name": "forged"},
        "annotations": {"c": "d"}});
    template["spec"]["hostNetwork"] = true.into();
    template["spec"]["schedulerName"] = "other".into();
    let mut w = World::new(spec);
    w.metadata["labels"] = json!({"volcano.sh/preemptable": "true", "x": "y"});
    w.metadata["annotations"] = json!({"volcano.sh/jdb-min-available": "1",
        "volcano.sh/jdb-max-unavailable": "2", "trainyard.dev/requirements": "six"});
    w.run();
    let pod = w.object(Child::Pod, "j-ps-0");
    let (labels, notes) = (&pod["metadata"]["labels"], &pod["metadata"]["annotations"]);
    assert_eq!((&labels["a"], &labels["volcano.sh/job-name"]), (&json!("b"), &json!("j")));
    assert_eq!((&labels["volcano.sh/preemptable"], &labels["x"]), (&json!("true"), &json!(null)));
    assert_eq!((&notes["c"], &notes["volcano.sh/jdb-min-available"]), (&json!("d"), &json!("1")));
    assert!(notes["volcano.sh/jdb-max-unavailable"].is_null());
    assert_eq!(notes["volcano.sh/numa-topology-policy"], "restricted");
    assert_eq!(notes["trainyard.dev/requirements"], "six");
    let spec = &pod["spec"];
    assert_eq!(
        (&spec["schedulerName"], &spec["priorityClassName"]),
        (&json!("other"), &json!("high"))
    );
    assert_eq!(spec["dnsPolicy"], "ClusterFirstWithHostNet");
    let group = w.object(Child::PodGroup, "j-u");
    assert_eq!(group["spec"]["priorityClassName"], "high");
    assert_eq!(group["metadata"]["labels"]["x"], "y");
    w.spec["priorityClassName"] = "low".into();
    w.settle();
    assert_eq!(w.object(Child::PodGroup, "j-u")["spec"]["priorityClassName"], "low");
}

#[test]
fn the_flags_of_svc() {
    let mut spec = mnist();
    spec["plugins"]["svc"] = json!(["--disable-network-policy=true", "--inject-hosts-env=false"]);
    spec["tasks"][0]["template"]["spec"]["hostname"] = "fixed".into();
    spec["tasks"][0]["template"]["spec"]["subdomain"] = "there".into();
    spec["tasks"][0]["name"] = "the-ps".into();
    let w = World::running(spec);
    assert!(w.names(Child::NetworkPolicy).is_empty());
    let data = &w.object(Child::ConfigMap, "j-svc")["data"];
    assert_eq!(
        (&data["the_ps.host"], &data["VC_THE_PS_NUM"]),
        (&json!("fixed.there"), &json!("1"))
    );
    let pod = w.object(Child::Pod, "j-the-ps-0");
    assert_eq!(pod["spec"]["hostname"], "fixed");
    assert_eq!(pod["spec"]["containers"][0]["env"].as_array().unwrap().len(), 2);
}

#[test]
fn what_disappears_beside_the_pods_comes_back() {
    let mut w = World::running(mnist());
    w.objects.retain(|(child, _), _| *child == Child::Pod);
    w.settle_counts();
    assert_eq!(w.names(Child::ConfigMap).len() + w.names(Child::Service).len(), 2);
    assert_eq!((w.names(Child::PodGroup).len(), w.phase()), (1, Running));
}

#[test]
fn pods_marked_by_the_reference_are_not_evicted() {
    let mut w = World::running(mnist());
    w.status.as_object_mut().unwrap().remove("pods");
    w.pod("ps-0")["metadata"]["annotations"]["volcano.sh/controller-out-of-sync"] = "true".into();
    w.settle();
    w.finish_deletions();
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count, w.typed().running), (Running, 0, 3));
}
