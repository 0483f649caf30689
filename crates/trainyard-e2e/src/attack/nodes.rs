//! A machine that was lost to a stranger: what its node's certificate opens, and what it does not.
//!
//! Every attack is first tried by the account that nodes had before they had their own, one that may do
//! everything: there each of them succeeds, so what stops it afterwards is the node's limits.

use std::fs;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::{Value, json};

use super::ground::Ground;
use crate::harness::{Case, cases};
use crate::raw::{Door, Shown};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["nodes":
        reads_secrets,
        asks_for_tokens,
        writes_to_other_nodes,
        draws_pods_to_itself,
        reaches_pods_of_others,
        goes_on_as_a_kubelet,
    ]
}

/// A client with a certificate of the server's own authority.
fn known_as(ground: &Ground, name: &str, group: &str) -> Result<Door> {
    let authority = fs::read_to_string(ground.keys().join("ca.crt")).context("the authority")?;
    let key = KeyPair::from_pem(&fs::read_to_string(ground.keys().join("ca.key"))?)?;
    let issuer = Issuer::from_ca_cert_pem(&authority, key)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    let own = KeyPair::generate()?;
    let signed = params.signed_by(&own, &issuer)?.pem();
    let shown = Shown { certificate: &signed, key: &own.serialize_pem() };
    ground.door().as_other(&ground.lone.authority, "", Some(shown))
}

/// The two of them, and a namespace with a pod on the lost node and one on another.
struct Scene<'a> {
    ground: &'a Ground,
    namespace: String,
    /// The account that nodes had.
    before: Door,
    /// The node `lost`.
    lost: Door,
}

impl<'a> Scene<'a> {
    async fn open(ground: &'a Ground, namespace: &str) -> Result<Self> {
        let before = known_as(ground, "system:node", "system:masters")?;
        let lost = known_as(ground, "system:node:lost", "system:nodes")?;
        let scene = Self { ground, namespace: namespace.to_owned(), before, lost };
        let made = json!({"metadata": {"name": namespace}}).to_string();
        ground.must(Method::POST, "/api/v1/namespaces", &made, &[201]).await?;
        for node in ["lost", "other"] {
            let node = json!({"metadata": {"name": node}}).to_string();
            ground.must(Method::POST, "/api/v1/nodes", &node, &[201, 409]).await?;
        }
        for name in ["default", "rich"] {
            scene.make("serviceaccounts", &json!({"metadata": {"name": name}})).await?;
        }
        for name in ["own", "canary"] {
            let secret = json!({"metadata": {"name": name}, "stringData": {"word": name}});
            scene.make("secrets", &secret).await?;
        }
        for (pod, node, secret, account) in
            [("mine", "lost", "own", "default"), ("theirs", "other", "canary", "rich")]
        {
            let volumes = json!([{"name": "s", "secret": {"secretName": secret}}]);
            let containers = json!([{"name": "c", "image": "i"}]);
            let spec = json!({
                "nodeName": node, "serviceAccountName": account, "volumes": volumes,
                "containers": containers,
            });
            scene.make("pods", &json!({"metadata": {"name": pod}, "spec": spec})).await?;
        }
        Ok(scene)
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    async fn make(&self, kind: &str, object: &Value) -> Result<Value> {
        self.ground.must(Method::POST, &self.path(kind), &object.to_string(), &[201]).await
    }

    /// An attack: it succeeds by the old account, and is refused to the node.
    async fn attack(&self, method: Method, path: &str, body: &Value) -> Result<()> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let refused = self.lost.ask(method.clone(), path, &body).await?;
        let said = refused.value();
        ensure!(refused.code == 403, "{method} {path} as the node: {} {said}", refused.code);
        ensure!(said["reason"] == "Forbidden", "{method} {path}: {said}");
        let done = self.before.ask(method.clone(), path, &body).await?;
        let said = done.value();
        ensure!(done.code < 300, "{method} {path} as before: {} {said}", done.code);
        Ok(())
    }

    /// What the node needs goes on.
    async fn works(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let done = self.lost.ask(method.clone(), path, &body).await?;
        let said = done.value();
        ensure!(done.code < 300, "{method} {path} as the node: {} {said}", done.code);
        Ok(said)
    }
}

async fn reads_secrets(ground: &Ground) -> Result<()> {
    let scene = Scene::open(ground, "attack-secrets").await?;
    let named = format!("{}?fieldSelector=metadata.name%3Dcanary", scene.path("secrets"));
    for path in [
        scene.path("secrets/canary"),
        scene.path("secrets"),
        "/api/v1/secrets".to_owned(),
        named,
        // A watch of one object by its name, in words that might be taken for a list of its own pods.
        format!("{}?watch=true&fieldSelector=spec.nodeName%3Dlost", scene.path("pods/theirs")),
    ] {
        scene.attack(Method::GET, &path, &Value::Null).await?;
    }
    let own = scene.works(Method::GET, &scene.path("secrets/own"), &Value::Null).await?;
    ensure!(own["data"]["word"] == "b3du", "{own}");
    Ok(())
}

fn token_for(pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    let bound = json!({
        "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"],
    });
    json!({"spec": {"boundObjectRef": bound}})
}

async fn asks_for_tokens(ground: &Ground) -> Result<()> {
    let scene = Scene::open(ground, "attack-tokens").await?;
    let pod = async |name: &str| {
        ground.must(Method::GET, &scene.path(&format!("pods/{name}")), "", &[200]).await
    };
    let (mine, theirs) = (pod("mine").await?, pod("theirs").await?);
    let rich = scene.path("serviceaccounts/rich/token");
    scene.attack(Method::POST, &rich, &token_for(&theirs)).await?;
    scene.attack(Method::POST, &rich, &json!({"spec": {}})).await?;
    let own = scene.path("serviceaccounts/default/token");
    scene.attack(Method::POST, &own, &json!({"spec": {}})).await?;
    // That of its own pod comes from a projected volume, which the server adds.
    scene.works(Method::POST, &own, &token_for(&mine)).await?;
    Ok(())
}

async fn writes_to_other_nodes(ground: &Ground) -> Result<()> {
    let scene = Scene::open(ground, "attack-nodes").await?;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let gone = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    scene.attack(Method::PATCH, "/api/v1/nodes/other", &label).await?;
    scene.attack(Method::PATCH, "/api/v1/nodes/other/status", &gone).await?;
    scene.attack(Method::GET, "/api/v1/nodes", &Value::Null).await?;
    let lease = json!({"metadata": {"name": "other"}, "spec": {"holderIdentity": "lost"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease";
    let space = json!({"metadata": {"name": "kube-node-lease"}}).to_string();
    ground.must(Method::POST, "/api/v1/namespaces", &space, &[201, 409]).await?;
    scene.attack(Method::POST, &format!("{leases}/leases"), &lease).await?;
    scene.attack(Method::DELETE, &format!("{leases}/leases/other"), &Value::Null).await?;
    scene.works(Method::PATCH, "/api/v1/nodes/lost", &label).await?;
    Ok(())
}

async fn draws_pods_to_itself(ground: &Ground) -> Result<()> {
    let scene = Scene::open(ground, "attack-labels").await?;
    for label in ["node-role.kubernetes.io/control-plane", "node-restriction.kubernetes.io/zone"] {
        let patch = json!({"metadata": {"labels": {label: ""}}});
        scene.attack(Method::PATCH, "/api/v1/nodes/lost", &patch).await?;
    }
    let free = json!({"spec": {"taints": null}});
    scene.attack(Method::PATCH, "/api/v1/nodes/lost", &free).await
}

async fn reaches_pods_of_others(ground: &Ground) -> Result<()> {
    let scene = Scene::open(ground, "attack-pods").await?;
    let phase = json!({"status": {"phase": "Succeeded"}});
    let theirs = scene.path("pods/theirs");
    scene.attack(Method::PATCH, &format!("{theirs}/status"), &phase).await?;
    let eviction = json!({"metadata": {"name": "theirs"}});
    scene.attack(Method::POST, &format!("{theirs}/eviction?dryRun=All"), &eviction).await?;
    scene.attack(Method::GET, "/api/v1/pods", &Value::Null).await?;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    scene.attack(Method::PATCH, &scene.path("pods/mine"), &label).await?;
    let pod = json!({
        "metadata": {"name": "new"},
        "spec": {
            "nodeName": "lost", "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "s", "secret": {"secretName": "canary"}}],
        },
    });
    scene.attack(Method::POST, &scene.path("pods"), &pod).await?;
    let role = json!({
        "metadata": {"name": "attack"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    scene.attack(Method::POST, bindings, &role).await?;
    scene.attack(Method::DELETE, &theirs, &Value::Null).await
}

/// What a kubelet does with its own, so that the limits are not simply a wall.
async fn goes_on_as_a_kubelet(ground: &Ground) -> Result<()> {
    let scene = Scene::open(ground, "attack-kubelet").await?;
    let list = "/api/v1/pods?fieldSelector=spec.nodeName%3Dlost";
    let pods = scene.works(Method::GET, list, &Value::Null).await?;
    let all = pods["items"].as_array().context("no list")?;
    ensure!(all.iter().all(|pod| pod["spec"]["nodeName"] == "lost"), "{pods}");
    let mine = scene.path("pods/mine");
    let phase = json!({"status": {"phase": "Running"}});
    scene.works(Method::PATCH, &format!("{mine}/status"), &phase).await?;
    scene.works(Method::GET, "/api/v1/services", &Value::Null).await?;
    scene.works(Method::GET, "/api/v1/nodes/lost", &Value::Null).await?;
    let event = json!({
        "metadata": {"name": "e"}, "reason": "R", "type": "Normal", "message": "m",
        "involvedObject": {"kind": "Pod", "name": "mine", "namespace": scene.namespace},
    });
    scene.works(Method::POST, &scene.path("events"), &event).await?;
    scene.works(Method::DELETE, &format!("{mine}?gracePeriodSeconds=0"), &Value::Null).await?;
    Ok(())
}
