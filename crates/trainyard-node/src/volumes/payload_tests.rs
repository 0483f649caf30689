//! Files from config maps, secrets and fields.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret};
use serde_json::json;

use super::{Payload, add, cleaned, of_config_map, of_fields, of_secret};
use crate::env::Facts;

fn config_map() -> ConfigMap {
    ConfigMap {
        data: Some([("train.py".to_owned(), "print(1)".to_owned())].into()),
        binary_data: Some([("model.bin".to_owned(), ByteString(vec![0xff, 0, 0xfe]))].into()),
        ..ConfigMap::default()
    }
}

fn item(key: &str, path: &str, mode: Option<i32>) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path: path.to_owned(), mode }
}

fn shown(payload: &Payload) -> Vec<(String, Vec<u8>, u32)> {
    payload.iter().map(|(path, f)| (path.clone(), f.data.clone(), f.mode)).collect()
}

#[test]
fn a_config_map_becomes_files_byte_for_byte() {
    let map = config_map();
    let all = of_config_map(Some(&map), &[], 0o644, false).unwrap();
    assert_eq!(
        shown(&all),
        [
            ("model.bin".to_owned(), vec![0xff, 0, 0xfe], 0o644),
            ("train.py".to_owned(), b"print(1)".to_vec(), 0o644),
        ]
    );
    let items = [item("train.py", "./code//main.py", Some(0o755)), item("model.bin", "m", None)];
    let some = of_config_map(Some(&map), &items, 0o400, false).unwrap();
    assert_eq!(
        shown(&some),
        [
            ("code/main.py".to_owned(), b"print(1)".to_vec(), 0o755),
            ("m".to_owned(), vec![0xff, 0, 0xfe], 0o400),
        ]
    );
}

#[test]
fn what_is_missing_is_an_error_unless_optional() {
    let map = config_map();
    let items = [item("nope", "x", None), item("train.py", "t", None)];
    let error = of_config_map(Some(&map), &items, 0o644, false).unwrap_err();
    assert_eq!(error.to_string(), "configmap references non-existent config key: nope");
    assert_eq!(of_config_map(Some(&map), &items, 0o644, true).unwrap().len(), 1);
    assert!(of_config_map(None, &[], 0o644, true).unwrap().is_empty());
    let secret = Secret::default();
    let error = of_secret(Some(&secret), &items, 0o644, false).unwrap_err();
    assert_eq!(error.to_string(), "references non-existent secret key: nope");
    assert!(of_secret(Some(&secret), &items, 0o644, true).unwrap().is_empty());
}

#[test]
fn secrets_are_files_too() {
    let secret = Secret {
        data: Some([("key".to_owned(), ByteString(vec![1, 2]))].into()),
        ..Secret::default()
    };
    let all = of_secret(Some(&secret), &[], 0o600, false).unwrap();
    assert_eq!(shown(&all), [("key".to_owned(), vec![1, 2], 0o600)]);
    let some = of_secret(Some(&secret), &[item("key", "a/b", None)], 0o440, false).unwrap();
    assert_eq!(shown(&some), [("a/b".to_owned(), vec![1, 2], 0o440)]);
}

#[test]
fn paths_stay_inside() {
    for (path, clean) in [("a", "a"), ("a/b/", "a/b"), ("./a/./b", "a/b"), ("a..b", "a..b")] {
        assert_eq!(cleaned(path).as_deref(), Ok(clean));
    }
    let long_name = "n".repeat(256);
    let long_path = "a/".repeat(2049);
    for path in [
        "",
        ".",
        "./",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/..",
        "..data",
        "..2024/x",
        "a\0b",
        &long_name,
        &long_path,
    ] {
        assert!(cleaned(path).is_err(), "{path:?}");
    }
    let hostile = ConfigMap {
        data: Some([("../../etc/cron.d/x".to_owned(), String::new())].into()),
        ..ConfigMap::default()
    };
    let error = of_config_map(Some(&hostile), &[], 0o644, false).unwrap_err();
    assert_eq!(error.to_string(), "invalid path: must not start with '..': \"../../etc/cron.d/x\"");
}

#[test]
fn modes_are_permission_bits_only() {
    let mut payload = Payload::new();
    for mode in [0, 0o400, 0o777] {
        add(&mut payload, "f", Vec::new(), mode, None).unwrap();
    }
    for mode in [-1, 0o1000, 0o4755, i32::MAX, i32::MIN] {
        let error = add(&mut payload, "f", Vec::new(), mode, None).unwrap_err();
        assert!(error.to_string().contains("octal 0777"), "{error}");
    }
}

#[test]
fn a_pod_is_told_about_itself() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "labels": {"a": "1", "b": "x y"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "64Mi"}}}]},
    }))
    .unwrap();
    let facts = Facts {
        pod_ip: None,
        host_ip: Ipv4Addr::LOCALHOST,
        node_name: String::new(),
        allocatable: BTreeMap::new(),
    };
    let read = |items: serde_json::Value| {
        let items: Vec<DownwardAPIVolumeFile> = serde_json::from_value(items).unwrap();
        of_fields(&items, 0o644, &pod, &facts).map_err(|e| e.to_string())
    };
    let files = read(json!([
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "mem", "mode": 256,
            "resourceFieldRef": {"containerName": "c", "resource": "limits.memory", "divisor": "1Mi"}},
    ]));
    assert_eq!(
        shown(&files.unwrap()),
        [
            ("labels".to_owned(), b"a=\"1\"\nb=\"x y\"".to_vec(), 0o644),
            ("mem".to_owned(), b"64".to_vec(), 0o400),
        ]
    );
    for (items, words) in [
        (json!([{"path": "x"}]), "file \"x\" names neither"),
        (
            json!([{"path": "x", "fieldRef": {"fieldPath": "status.podIP"}}]),
            "unsupported fieldPath: status.podIP",
        ),
        (
            json!([{"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}}]),
            "container  not found",
        ),
        (json!([{"path": "../x", "fieldRef": {"fieldPath": "metadata.name"}}]), "invalid path"),
    ] {
        let error = read(items).unwrap_err();
        assert!(error.starts_with(words), "{error}");
    }
}
