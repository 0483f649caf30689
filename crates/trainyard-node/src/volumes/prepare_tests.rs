//! Whole pods' volumes on a disk.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::{Value, from_value, json};
use trainyard_api::quantity::parse;

use super::prepare;
use crate::env::Facts;
use crate::objects::memory::MemoryObjects;
use crate::volumes::{Folders, VolumeError, Volumes, Written};

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    objects: MemoryObjects,
    written: Arc<Written>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut objects = MemoryObjects::default();
        let code = ConfigMap {
            data: Some([("train.py".to_owned(), "print(1)".to_owned())].into()),
            binary_data: Some([("blob".to_owned(), ByteString(vec![0xff, 0xfe]))].into()),
            ..ConfigMap::default()
        };
        objects.config_maps.insert("code".to_owned(), code);
        let login = Secret {
            data: Some([("password".to_owned(), ByteString(b"pw".to_vec()))].into()),
            ..Secret::default()
        };
        objects.secrets.insert("login".to_owned(), login);
        Self { _dir: dir, root, objects, written: Arc::default() }
    }

    /// A pod whose one container mounts every volume.
    fn pod(volumes: &Value, more: &Value) -> Pod {
        let names = volumes.as_array().unwrap().iter().map(|v| v["name"].clone());
        let mounts: Vec<Value> = names
            .enumerate()
            .map(|(i, name)| json!({"name": name, "mountPath": format!("/m{i}")}))
            .collect();
        let mut spec = json!({"volumes": volumes, "serviceAccountName": "trainer",
            "containers": [{"name": "main", "volumeMounts": mounts}]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let metadata = json!({"name": "p", "namespace": "ns", "uid": "u"});
        from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    async fn prepared(&self, pod: &Pod) -> Result<Volumes, VolumeError> {
        let facts = Facts {
            pod_ip: None,
            host_ip: Ipv4Addr::LOCALHOST,
            node_name: "yard".to_owned(),
            allocatable: BTreeMap::from([("memory".to_owned(), parse("8Gi").unwrap())]),
        };
        let folders = Folders {
            ephemeral: self.root.join("pod"),
            claims: self.root.join("claims"),
            cluster: None,
            written: Arc::clone(&self.written),
        };
        prepare(pod, &facts, &self.objects, &folders).await
    }

    fn at(&self, volume: &str) -> PathBuf {
        self.root.join("pod/volumes").join(volume)
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn every_kind_is_made() {
    let world = World::new();
    let host = world.root.join("host");
    let pod = World::pod(
        &json!([
            {"name": "scratch", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "code", "configMap": {"name": "code", "defaultMode": 0o755}},
            {"name": "login", "secret": {"secretName": "login",
                "items": [{"key": "password", "path": "deep/pw", "mode": 0o400}]}},
            {"name": "info", "downwardAPI": {"items": [
                {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "host", "hostPath": {"path": host, "type": "DirectoryOrCreate"}},
            {"name": "maybe", "configMap": {"name": "gone", "optional": true}},
        ]),
        &json!({}),
    );
    let volumes = world.prepared(&pod).await.unwrap();
    assert_eq!(mode(&world.at("scratch")), 0o777);
    assert_eq!(fs::read(world.at("code").join("train.py")).unwrap(), b"print(1)");
    assert_eq!(fs::read(world.at("code").join("blob")).unwrap(), [0xff, 0xfe]);
    assert_eq!(mode(&world.at("code").join("train.py")), 0o755);
    assert_eq!(fs::read(world.at("login").join("deep/pw")).unwrap(), b"pw");
    assert_eq!(mode(&world.at("login").join("deep/pw")), 0o400);
    assert_eq!(fs::read(world.at("info").join("name")).unwrap(), b"p");
    assert_eq!(fs::read_dir(world.at("maybe")).unwrap().count(), 0);
    assert!(host.is_dir());
    let memory = volumes.memory();
    assert_eq!(memory.len(), 1);
    assert_eq!((memory[0].path.clone(), memory[0].size), (world.at("shm"), Some(64 << 20)));
    assert_eq!(volumes.notices(), [] as [&str; 0]);
    let entries = &volumes.entries;
    assert!(entries["code"].read_only && entries["login"].read_only && entries["info"].read_only);
    assert!(!entries["scratch"].read_only && !entries["host"].read_only);

    fs::write(world.at("scratch").join("kept"), "").unwrap();
    world.prepared(&pod).await.unwrap();
    assert!(world.at("scratch").join("kept").exists(), "a second attempt keeps what is there");
}

#[tokio::test]
async fn failures_are_told_as_a_kubelet_tells_them() {
    let world = World::new();
    for (source, words) in [
        (
            json!({"configMap": {"name": "gone"}}),
            "MountVolume.SetUp failed for volume \"v\" : configmap \"gone\" not found",
        ),
        (
            json!({"secret": {"secretName": "gone"}}),
            "MountVolume.SetUp failed for volume \"v\" : secret \"gone\" not found",
        ),
        (
            json!({"hostPath": {"path": "/no/such", "type": "Directory"}}),
            "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: /no/such is not a directory",
        ),
        (
            json!({"configMap": {"name": "code", "defaultMode": 100_000}}),
            "MountVolume.SetUp failed for volume \"v\" : mode 100000 of \"train.py\" is not between",
        ),
        (
            json!({"emptyDir": {"medium": "Tape"}}),
            "MountVolume.SetUp failed for volume \"v\" : unknown storage medium \"Tape\"",
        ),
        (
            json!({"emptyDir": {"sizeLimit": "lots"}}),
            "MountVolume.SetUp failed for volume \"v\" : sizeLimit: \"lots\" is no quantity",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "gone"}}),
            "error processing PVC ns/gone: failed to fetch PVC",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "../../etc"}}),
            "MountVolume.SetUp failed for volume \"v\" : \"../../etc\" names no claim",
        ),
        (
            json!({"nfs": {"server": "s", "path": "/"}}),
            "volume \"v\" is of kind nfs, which this node cannot mount; use a persistentVolumeClaim",
        ),
        (json!({"csi": {"driver": "d"}}), "volume \"v\" is of kind csi"),
        (json!({"gitRepo": {"repository": "r"}}), "volume \"v\" is of kind gitRepo"),
        (
            json!({"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}}),
            "volume \"v\" is of kind iscsi",
        ),
        (json!({}), "volume \"v\" is of kind (unknown)"),
    ] {
        let mut volume = source.clone();
        volume["name"] = json!("v");
        let error = world.prepared(&World::pod(&json!([volume]), &json!({}))).await.unwrap_err();
        assert!(error.to_string().starts_with(words), "{error}\n{words}");
    }
    let hostile = json!([{"name": "../x", "emptyDir": {}}]);
    assert!(world.prepared(&World::pod(&hostile, &json!({}))).await.is_err());
}

// A link that one pod left in its `hostPath` made the folder inside it that another pod asked for any folder
// of the machine.
#[tokio::test]
async fn what_a_pod_can_write_to_leads_no_other_pod_out_of_it() {
    let world = World::new();
    let host = |path: &str| json!([{"name": "h", "hostPath": {"path": world.root.join(path)}}]);
    fs::create_dir_all(world.root.join("shared")).unwrap();
    fs::create_dir(world.root.join("private")).unwrap();
    let reader = json!({"containers": [{"name": "main", "volumeMounts": [
        {"name": "h", "mountPath": "/m", "readOnly": true}]}]});
    symlink("../private", world.root.join("shared/team")).unwrap();
    world.prepared(&World::pod(&host("shared"), &reader)).await.unwrap();
    // Nobody writes to it yet.
    world.prepared(&World::pod(&host("shared/team"), &reader)).await.unwrap();
    world.prepared(&World::pod(&host("shared"), &json!({}))).await.unwrap();
    for path in ["shared/team", "shared/team/new"] {
        let pod = World::pod(&host(path), &reader);
        let error = world.prepared(&pod).await.unwrap_err().to_string();
        assert!(error.ends_with("shared, which pods write to"), "{error}");
    }
    assert!(!world.root.join("private/new").exists());
    world.prepared(&World::pod(&host("shared/own/new"), &json!({}))).await.unwrap();
    assert!(world.root.join("shared/own/new").is_dir());
}

#[tokio::test]
async fn a_volume_that_nobody_mounts_is_not_made() {
    let world = World::new();
    let volumes = json!([{"name": "unused", "configMap": {"name": "gone"}}]);
    let bare = json!({"containers": [{"name": "main"}]});
    let made = world.prepared(&World::pod(&volumes, &bare)).await.unwrap();
    assert!(made.entries.is_empty());
    let block = json!({"containers": [
        {"name": "main", "volumeDevices": [{"name": "unused", "devicePath": "/dev/x"}]}]});
    let error = world.prepared(&World::pod(&volumes, &block)).await.unwrap_err();
    assert!(error.to_string().contains("volumeDevices"), "{error}");
}

#[tokio::test]
async fn an_empty_folder_that_grows_too_large_is_named() {
    let world = World::new();
    let volumes = json!([{"name": "small", "emptyDir": {"sizeLimit": "0.5Mi"}},
        {"name": "free", "emptyDir": {}}]);
    let made = world.prepared(&World::pod(&volumes, &json!({}))).await.unwrap();
    fs::write(world.at("free").join("big"), vec![1; 2 << 20]).unwrap();
    fs::write(world.at("small").join("a"), vec![1; 256 << 10]).unwrap();
    assert_eq!(made.over_limit(), None);
    fs::write(world.at("small").join("b"), vec![1; 512 << 10]).unwrap();
    assert_eq!(
        made.over_limit().unwrap(),
        "Usage of EmptyDir volume \"small\" exceeds the limit \"512Ki\". "
    );
}

#[tokio::test]
async fn claims_stay_and_what_stands_in_is_said() {
    let mut world = World::new();
    let claim = json!({"metadata": {"name": "data", "uid": "c"}, "spec": {"volumeName": "pv"},
        "status": {"phase": "Bound"}});
    let volume = json!({"metadata": {"name": "pv"},
        "spec": {"claimRef": {"uid": "c"}, "azureFile": {"secretName": "s", "shareName": "x"}}});
    world.objects.claims.insert("data".to_owned(), from_value(claim).unwrap());
    world.objects.volumes.insert("pv".to_owned(), from_value(volume).unwrap());
    let volumes = json!([{"name": "d",
        "persistentVolumeClaim": {"claimName": "data", "readOnly": true}}]);
    let made = world.prepared(&World::pod(&volumes, &json!({}))).await.unwrap();
    let entry = &made.entries["d"];
    assert_eq!((entry.path.clone(), entry.read_only), (world.root.join("claims/ns/data"), true));
    assert_eq!(made.notices().len(), 1);
    assert!(made.notices()[0].contains("azureFile"), "{:?}", made.notices());
}

#[tokio::test]
async fn tokens_are_renewed_in_time_and_in_one_step() {
    let world = World::new();
    let issued: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    *world.objects.now.lock().unwrap() = issued;
    let volumes = json!([{"name": "api", "projected": {"sources": [
        {"serviceAccountToken": {"path": "sub/token", "expirationSeconds": 600}}]}}]);
    let pod = World::pod(&volumes, &json!({"securityContext": {"runAsUser": 1000}}));
    let made = world.prepared(&pod).await.unwrap();
    let file = world.at("api").join("sub/token");
    let after = |seconds| issued + SignedDuration::from_secs(seconds);
    assert_eq!(fs::read(&file).unwrap(), b"token-1");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(made.next_renewal(), Some(after(480)));

    let early = made.renew_tokens(&pod, &world.objects, after(479)).await;
    assert_eq!((early.next, early.problems.len()), (Some(after(480)), 0));
    assert_eq!(fs::read(&file).unwrap(), b"token-1");

    *world.objects.broken.lock().unwrap() = Some("no".to_owned());
    let failed = made.renew_tokens(&pod, &world.objects, after(480)).await;
    assert_eq!(failed.next, Some(after(490)));
    assert_eq!(failed.problems, ["renewing the token in volume \"api\": no"]);
    assert_eq!(fs::read(&file).unwrap(), b"token-1");

    *world.objects.broken.lock().unwrap() = None;
    *world.objects.now.lock().unwrap() = after(490);
    let done = made.renew_tokens(&pod, &world.objects, after(490)).await;
    assert_eq!((done.next, done.problems.len()), (Some(after(490 + 480)), 0));
    assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"token-2".to_vec(), 0o600));
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    let none = World::pod(&json!([]), &json!({}));
    let nothing = world.prepared(&none).await.unwrap();
    assert_eq!(nothing.renew_tokens(&none, &world.objects, issued).await.next, None);
}

#[tokio::test]
async fn the_pods_group_gets_its_rights_or_the_user_is_told() {
    let world = World::new();
    let volumes = json!([{"name": "scratch", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "api", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]);
    let more = json!({"securityContext": {"fsGroup": 4321}});
    let pod = World::pod(&volumes, &more);
    let made = world.prepared(&pod).await.unwrap();
    if !rustix::process::geteuid().is_root() {
        assert!(made.notices().iter().any(|n| n.contains("without root")), "{:?}", made.notices());
        return;
    }
    assert!(made.notices().iter().all(|n| n.contains("memory-backed")), "{:?}", made.notices());
    let seen = |path: &Path| (fs::metadata(path).unwrap().gid(), mode(path));
    assert_eq!(seen(&world.at("scratch")), (4321, 0o2777));
    let token = world.at("api").join("token");
    assert_eq!(seen(&token), (4321, 0o640));
    let late = "2099-01-01T00:00:00Z".parse().unwrap();
    made.renew_tokens(&pod, &world.objects, late).await;
    assert_eq!(fs::read(&token).unwrap(), b"token-2");
    assert_eq!(seen(&token), (4321, 0o640));
    let bad = World::pod(&volumes, &json!({"securityContext": {"fsGroup": -1}}));
    assert!(world.prepared(&bad).await.is_err());
}

#[tokio::test]
async fn mounts_that_cannot_be_passed_on_are_said() {
    let world = World::new();
    let volumes = json!([{"name": "h", "hostPath": {"path": "/usr"}}]);
    let more = json!({"containers": [{"name": "main", "volumeMounts": [
        {"name": "h", "mountPath": "/h", "mountPropagation": "Bidirectional"}]}]});
    let made = world.prepared(&World::pod(&volumes, &more)).await.unwrap();
    assert!(made.notices()[0].contains("mountPropagation Bidirectional at /h"));
}
