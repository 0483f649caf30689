//! Projected volumes, above all the one that the API server adds to every pod.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ProjectedVolumeSource};
use serde_json::{Value, from_value, json};

use super::{Projection, Readers, collect, common_user};
use crate::env::Facts;
use crate::objects::memory::MemoryObjects;

fn objects() -> MemoryObjects {
    let mut objects = MemoryObjects::default();
    let ca = ConfigMap {
        data: Some([("ca.crt".to_owned(), "PEM".to_owned())].into()),
        ..ConfigMap::default()
    };
    objects.config_maps.insert("kube-root-ca.crt".to_owned(), ca);
    objects
}

async fn collected(
    source: Value,
    readers: Readers,
    objects: &MemoryObjects,
) -> Result<Projection, String> {
    let pod: Pod = from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [], "serviceAccountName": "trainer"},
    }))
    .unwrap();
    let facts = Facts {
        pod_ip: None,
        host_ip: Ipv4Addr::LOCALHOST,
        node_name: String::new(),
        allocatable: BTreeMap::new(),
    };
    let source: ProjectedVolumeSource = from_value(source).unwrap();
    collect(&source, &pod, &facts, readers, objects).await
}

fn api_access() -> Value {
    json!({"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]})
}

#[tokio::test]
async fn what_the_api_server_adds_to_every_pod_is_served() {
    let objects = objects();
    let made = collected(api_access(), Readers::default(), &objects).await.unwrap();
    let files: Vec<_> = made
        .payload
        .iter()
        .map(|(p, f)| (p.as_str(), String::from_utf8_lossy(&f.data).into_owned(), f.mode))
        .collect();
    assert_eq!(
        files,
        [
            ("ca.crt", "PEM".to_owned(), 0o644),
            ("namespace", "ns".to_owned(), 0o644),
            ("token", "token-1".to_owned(), 0o644),
        ]
    );
    let asked = objects.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].0, "trainer");
    assert_eq!((asked[0].1.seconds, asked[0].1.pod_uid.as_str()), (3607, "u"));
    assert_eq!(made.tokens.len(), 1);
    assert_eq!(made.tokens[0].path.to_str(), Some("token"));
}

#[tokio::test]
async fn a_token_is_private_where_its_readers_are_known() {
    for (readers, mode, owner) in [
        (Readers { user: None, group: None }, 0o644, None),
        (Readers { user: Some(1000), group: None }, 0o600, Some(1000)),
        (Readers { user: None, group: Some(5) }, 0o600, None),
    ] {
        let made = collected(api_access(), readers, &objects()).await.unwrap();
        assert_eq!((made.payload["token"].mode, made.payload["token"].owner), (mode, owner));
        assert_eq!((made.payload["ca.crt"].mode, made.payload["ca.crt"].owner), (0o644, None));
    }
}

#[tokio::test]
async fn later_sources_replace_earlier_ones() {
    let source = json!({"sources": [
        {"serviceAccountToken": {"path": "./x"}},
        {"serviceAccountToken": {"path": "x", "audience": "vault"}},
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.uid"}}]}},
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]});
    let made = collected(source, Readers::default(), &objects()).await.unwrap();
    assert_eq!(made.payload["n"].data, b"p");
    assert_eq!(made.payload["x"].data, b"token-2");
    assert_eq!(made.tokens.len(), 1);
    assert_eq!(made.tokens[0].ask.audience.as_deref(), Some("vault"));
    assert_eq!(made.tokens[0].ask.seconds, 3600);
}

#[tokio::test]
async fn what_cannot_be_projected_is_said() {
    for (source, words) in [
        (json!({"configMap": {"name": "gone"}}), "configmap \"gone\" not found"),
        (json!({"secret": {"name": "gone"}}), "secret \"gone\" not found"),
        (json!({"clusterTrustBundle": {"path": "x"}}), "clusterTrustBundle cannot be projected"),
        (json!({}), "a projected source is of a kind that this node does not know"),
        (json!({"serviceAccountToken": {"path": "../token"}}), "invalid path"),
    ] {
        let source = json!({"sources": [source]});
        let error = collected(source, Readers::default(), &objects()).await.unwrap_err();
        assert!(error.starts_with(words), "{error}");
    }
    let optional = json!({"sources": [
        {"configMap": {"name": "gone", "optional": true}},
        {"secret": {"name": "gone", "optional": true}},
        {"clusterTrustBundle": {"path": "roots", "optional": true}},
    ]});
    let made = collected(optional, Readers::default(), &objects()).await.unwrap();
    assert_eq!(made.payload.keys().collect::<Vec<_>>(), ["roots"]);
    let objects = objects();
    *objects.broken.lock().unwrap() = Some("serviceaccounts \"trainer\" not found".to_owned());
    let error = collected(api_access(), Readers::default(), &objects).await.unwrap_err();
    assert_eq!(error, "failed to fetch token: serviceaccounts \"trainer\" not found");
}

#[test]
fn the_user_is_known_when_all_containers_name_the_same() {
    let user =
        |spec: Value| common_user(&from_value(json!({"metadata": {}, "spec": spec})).unwrap());
    let container = |user: Value| json!({"name": "c", "securityContext": {"runAsUser": user}});
    for (spec, expected) in [
        (json!({"containers": []}), None),
        (json!({"containers": [{"name": "c"}]}), None),
        (json!({"containers": [container(json!(7))]}), Some(7)),
        (json!({"containers": [container(json!(7)), container(json!(8))]}), None),
        (json!({"containers": [container(json!(7)), {"name": "d"}]}), None),
        (
            json!({"securityContext": {"runAsUser": 7},
                "containers": [container(json!(7)), {"name": "d"}]}),
            Some(7),
        ),
        (
            json!({"initContainers": [container(json!(9))], "containers": [container(json!(7))]}),
            None,
        ),
        (json!({"containers": [container(json!(-1))]}), None),
    ] {
        assert_eq!(user(spec.clone()), expected, "{spec}");
    }
}
