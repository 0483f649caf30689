//! Claims: what a kubelet checks, and where data lies.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, from_value, json};

use super::{Backing, Wanted, backing};
use crate::objects::memory::MemoryObjects;
use crate::volumes::Written;

fn claim() -> Value {
    json!({
        "metadata": {"name": "data", "namespace": "ns", "uid": "c-1"},
        "spec": {"volumeName": "pv"},
        "status": {"phase": "Bound"},
    })
}

fn volume(source: &str, body: &Value) -> Value {
    let mut volume = json!({"metadata": {"name": "pv"}, "spec": {"claimRef": {"uid": "c-1"}}});
    volume["spec"][source] = body.clone();
    volume
}

fn objects(claim: Value, volume: Value) -> MemoryObjects {
    let mut objects = MemoryObjects::default();
    objects.claims.insert("data".to_owned(), from_value(claim).unwrap());
    objects.volumes.insert("pv".to_owned(), from_value(volume).unwrap());
    objects
}

async fn asked(objects: &MemoryObjects, folder: &Path) -> Result<Backing, String> {
    let (only_for, cluster, written) = (None, None, &Written::default());
    let wanted = Wanted { namespace: "ns", claim: "data", only_for, folder, cluster, written };
    backing(wanted, objects).await.map_err(|e| e.to_string())
}

#[tokio::test]
async fn a_kind_that_cannot_be_mounted_is_kept_in_a_local_folder_and_said_so() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap().join("claims/ns/data");
    let nfs = volume("nfs", &json!({"server": "s", "path": "/x", "readOnly": true}));
    let objects = objects(claim(), nfs);
    let first = asked(&objects, &folder).await.unwrap();
    assert_eq!(
        (first.path.as_path(), first.read_only, first.owned),
        (folder.as_path(), true, true)
    );
    let notice = first.notice.unwrap();
    assert!(notice.contains("of kind nfs") && notice.contains("claims/ns/data"), "{notice}");
    fs::write(folder.join("model"), "weights").unwrap();
    asked(&objects, &folder).await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("model")).unwrap(), "weights");
}

#[tokio::test]
async fn a_static_volume_lies_where_it_says() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let folder = root.join("unused");
    let disk = root.join("disk");
    let host = volume("hostPath", &json!({"path": disk, "type": "DirectoryOrCreate"}));
    let found = asked(&objects(claim(), host), &folder).await.unwrap();
    assert_eq!((found.path.as_path(), found.owned), (disk.as_path(), false));
    let local = volume("local", &json!({"path": disk}));
    let found = asked(&objects(claim(), local), &folder).await.unwrap();
    assert_eq!((found.path.as_path(), found.owned), (disk.as_path(), true));
    let gone = volume("local", &json!({"path": root.join("gone")}));
    let error = asked(&objects(claim(), gone), &folder).await.unwrap_err();
    assert!(error.contains("of PV pv cannot be used"), "{error}");
    assert!(!folder.exists());
}

#[tokio::test]
async fn what_a_kubelet_refuses_is_refused() {
    let nfs = || volume("nfs", &json!({"server": "s", "path": "/x"}));
    let with = |path: &str, value: Value| {
        let mut claim = claim();
        *claim.pointer_mut(path).unwrap() = value;
        claim
    };
    let mut deleted = claim();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut block = nfs();
    block["spec"]["volumeMode"] = json!("Block");
    let mut free = nfs();
    free["spec"]["claimRef"] = Value::Null;
    let other = with("/metadata/uid", json!("c-2"));
    for (claim, volume, words) in [
        (with("/status/phase", json!("Pending")), nfs(), "PVC is not bound"),
        (with("/spec/volumeName", json!("")), nfs(), "PVC has empty pvc.Spec.VolumeName"),
        (with("/spec/volumeName", json!("x")), nfs(), "failed to fetch PV x from API server: "),
        (deleted, nfs(), "PVC is being deleted"),
        (other, nfs(), "found PV object pv but its pv.Spec.ClaimRef.UID c-1 does not point to"),
        (claim(), free, "found PV object pv but it has a nil pv.Spec.ClaimRef"),
        (claim(), block, "volume pv has volumeMode Block"),
    ] {
        let error = asked(&objects(claim, volume), Path::new("/nowhere")).await.unwrap_err();
        let expected = format!("error processing PVC ns/data: {words}");
        assert!(error.starts_with(&expected), "{error}");
    }
    let error = asked(&MemoryObjects::default(), Path::new("/nowhere")).await.unwrap_err();
    assert_eq!(
        error,
        "error processing PVC ns/data: failed to fetch PVC from API server: \
         persistentvolumeclaims \"data\" not found"
    );
}

#[tokio::test]
async fn a_pods_own_claim_must_be_its_own() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("v");
    let pod: Pod =
        from_value(json!({"metadata": {"name": "p", "namespace": "ns", "uid": "p-1"}})).unwrap();
    let only_for = Some(&pod);
    let (folder, cluster, written) = (&*folder, Some("k"), &Written::default());
    let wanted = Wanted { namespace: "ns", claim: "data", only_for, folder, cluster, written };
    let nfs = || volume("nfs", &json!({"server": "s", "path": "/x"}));
    let error = backing(wanted, &objects(claim(), nfs())).await.unwrap_err().to_string();
    assert!(error.ends_with("PVC ns/data was not created for pod ns/p (pod is not owner)"));
    let mut owned = claim();
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
        "name": "p", "uid": "p-1", "controller": true}]);
    assert!(backing(wanted, &objects(owned, nfs())).await.is_ok());
}
