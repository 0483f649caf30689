//! Environments of containers, from what a pod and the API say.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::json;

use super::{Environment, environment};
use crate::env::{EnvError, Facts};
use crate::objects::memory::MemoryObjects;

fn objects() -> MemoryObjects {
    let mut objects = MemoryObjects::default();
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    let settings = ConfigMap {
        data: Some(map(&[("EPOCHS", "5"), ("file.txt", "$(EPOCHS)")])),
        ..ConfigMap::default()
    };
    objects.config_maps.insert("settings".to_owned(), settings);
    let bad = ConfigMap { data: Some(map(&[("A=B", "x")])), ..ConfigMap::default() };
    objects.config_maps.insert("bad".to_owned(), bad);
    let secret = |key: &str, value: &[u8]| Secret {
        data: Some([(key.to_owned(), ByteString(value.to_vec()))].into()),
        ..Secret::default()
    };
    objects.secrets.insert("login".to_owned(), secret("password", b"p$(X)w"));
    objects.secrets.insert("binary".to_owned(), secret("key", &[0xff, 0xfe]));
    objects.secrets.insert("zero".to_owned(), secret("key", b"a\0b"));
    objects
}

async fn made(container: serde_json::Value) -> Result<Environment, EnvError> {
    made_with(container, &objects()).await
}

async fn made_with(
    container: serde_json::Value,
    objects: &MemoryObjects,
) -> Result<Environment, EnvError> {
    let mut container = container;
    container["name"] = json!("main");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [container]},
    }))
    .unwrap();
    let facts = Facts {
        pod_ip: Some(Ipv4Addr::new(10, 77, 0, 9)),
        host_ip: Ipv4Addr::new(10, 77, 0, 2),
        node_name: "yard".to_owned(),
        allocatable: BTreeMap::new(),
    };
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    let image = [pair("PATH", "/bin"), pair("LANG", "C")];
    let services = [pair("KUBERNETES_SERVICE_HOST", "10.96.0.1"), pair("DB", "svc")];
    let spec = pod.spec.as_ref().unwrap();
    environment(&pod, &spec.containers[0], &image, &services, &facts, objects).await
}

fn shown(environment: &Environment) -> String {
    let pairs: Vec<String> =
        environment.variables().iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join(";")
}

#[tokio::test]
async fn later_ones_win_and_order_is_kept() {
    let made = made(json!({
        "envFrom": [
            {"configMapRef": {"name": "settings"}},
            {"prefix": "S_", "secretRef": {"name": "login"}},
            {"configMapRef": {"name": "gone", "optional": true}},
        ],
        "env": [
            {"name": "LANG", "value": "de"},
            {"name": "DB", "value": "$(DB):5432"},
            {"name": "ALL", "value": "$(EPOCHS) $(S_password) $(LATER) $(PATH) $$(DB)"},
            {"name": "LATER", "value": "now"},
            {"name": "EMPTY"},
        ],
    }))
    .await
    .unwrap();
    assert_eq!(
        shown(&made),
        "PATH=/bin;LANG=de;KUBERNETES_SERVICE_HOST=10.96.0.1;DB=svc:5432;EPOCHS=5;\
         file.txt=$(EPOCHS);S_password=p$(X)w;\
         ALL=5 p$(X)w $(LATER) $(PATH) $(DB);LATER=now;EMPTY="
    );
    assert_eq!(made.declared("LANG"), Some("de"));
    assert_eq!(made.declared("PATH"), None);
    assert!(!format!("{made:?}").contains("p$(X)w"), "secrets must not show in logs");
}

#[tokio::test]
async fn every_source_is_read() {
    let made = made(json!({"env": [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        {"name": "EPOCHS", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "EPOCHS"}}},
        {"name": "PASS", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        {"name": "NO1", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "k", "optional": true}}},
        {"name": "NO2", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k", "optional": true}}},
        {"name": "BOTH", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "nope"}}},
    ]}))
    .await
    .unwrap();
    assert_eq!(
        shown(&made),
        "PATH=/bin;LANG=C;KUBERNETES_SERVICE_HOST=10.96.0.1;DB=svc;\
         NAME=p;IP=10.77.0.9;CPU=0;EPOCHS=5;PASS=p$(X)w;BOTH=x"
    );
}

#[tokio::test]
async fn what_is_missing_or_unusable_is_said_as_a_kubelet_says_it() {
    let one = |source: serde_json::Value| json!({"env": [{"name": "V", "valueFrom": source}]});
    for (container, words) in [
        (
            one(json!({"configMapKeyRef": {"name": "gone", "key": "k"}})),
            "configmap \"gone\" not found",
        ),
        (one(json!({"secretKeyRef": {"name": "gone", "key": "k"}})), "secret \"gone\" not found"),
        (
            one(json!({"configMapKeyRef": {"name": "settings", "key": "k"}})),
            "couldn't find key k in ConfigMap ns/settings",
        ),
        (
            one(json!({"secretKeyRef": {"name": "login", "key": "k"}})),
            "couldn't find key k in Secret ns/login",
        ),
        (
            one(json!({"fieldRef": {"fieldPath": "spec.volumes"}})),
            "field label not supported: spec.volumes",
        ),
        (
            one(json!({"resourceFieldRef": {"resource": "limits.gpu"}})),
            "unsupported container resource : limits.gpu",
        ),
        (one(json!({})), "environment variable V has a valueFrom that this node does not know"),
        (
            one(json!({"secretKeyRef": {"name": "binary", "key": "key"}})),
            "the value of environment variable V (Secret ns/binary) is not UTF-8 text",
        ),
        (
            one(json!({"secretKeyRef": {"name": "zero", "key": "key"}})),
            "the value of environment variable V (env) holds a zero byte",
        ),
        (json!({"env": [{"name": "V", "value": "a\u{0}"}]}), "the value of environment variable V"),
        (json!({"env": [{"name": "", "value": "a"}]}), "\"\" (env) cannot be the name"),
        (
            json!({"envFrom": [{"configMapRef": {"name": "bad"}}]}),
            "\"A=B\" (ConfigMap ns/bad) cannot be the name",
        ),
        (json!({"envFrom": [{"configMapRef": {"name": "gone"}}]}), "configmap \"gone\" not found"),
        (
            json!({"envFrom": [{"secretRef": {"name": "binary"}}]}),
            "the value of environment variable key (Secret ns/binary) is not UTF-8 text",
        ),
        (
            json!({
                "envFrom": [{"configMapRef": {"name": "gone", "optional": true}}],
                "env": [{"name": "V",
                    "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "k"}}}],
            }),
            "configmap \"gone\" not found",
        ),
    ] {
        let error = made(container).await.unwrap_err();
        assert!(error.to_string().starts_with(words), "{error}\n{words}");
        assert_eq!(error.kind(), "CreateContainerConfigError");
    }
}

#[tokio::test]
async fn an_api_server_that_refuses_is_quoted_even_for_optional_objects() {
    let objects = objects();
    *objects.broken.lock().unwrap() = Some("secrets \"x\" is forbidden".to_owned());
    let container = json!({"envFrom": [{"secretRef": {"name": "x", "optional": true}}]});
    let error = made_with(container, &objects).await.unwrap_err();
    assert_eq!(error.to_string(), "secrets \"x\" is forbidden");
}
