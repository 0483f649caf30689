//! What the cases stand on: objects as JSON, namespaces, nodes that give signs of life, and waiting.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::rest::{Rest, is_missing};

const PATIENCE: Duration = Duration::from_secs(40);

/// The server, and one node on it that lives.
pub(super) struct Ground {
    client: Client,
    /// Where claims have their folders.
    pub(super) claims: PathBuf,
    /// A node that lives as long as the tests.
    pub(super) node: Node,
    opened: AtomicUsize,
}

/// A namespace of its own.
pub(super) struct Place {
    rest: Rest,
    pub(super) name: String,
    /// The node for its pods.
    pub(super) node: String,
}

/// A node. Its lease is renewed until it is dropped, or told to be silent.
pub(super) struct Node {
    pub(super) name: String,
    heart: AbortHandle,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.heart.abort();
    }
}

impl Node {
    /// No more signs of life.
    pub(super) fn fall_silent(&self) {
        self.heart.abort();
    }

    /// Signs of life again.
    pub(super) fn wake(&mut self, ground: &Ground) {
        self.heart = beat(Rest::new(ground.client.clone(), ""), self.name.clone());
    }
}

/// The path of a node.
pub(super) fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

impl Ground {
    pub(super) async fn open(client: Client, claims: &Path) -> Result<Self> {
        let node = new_node(&Rest::new(client.clone(), ""), "ground").await?;
        Ok(Self { client, claims: claims.to_owned(), node, opened: AtomicUsize::new(0) })
    }

    /// Objects that are in no namespace.
    pub(super) fn cluster(&self) -> Rest {
        Rest::new(self.client.clone(), "")
    }

    /// A name that no other case has.
    pub(super) fn unique(&self, name: &str) -> String {
        format!("{name}-{}", self.opened.fetch_add(1, Ordering::Relaxed))
    }

    /// A node of its own.
    pub(super) async fn node(&self, name: &str) -> Result<Node> {
        new_node(&self.cluster(), &self.unique(name)).await
    }

    /// A namespace of its own; it has its account already.
    pub(super) async fn place(&self, name: &str) -> Result<Place> {
        let name = self.unique(&format!("k-{name}"));
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        self.cluster().send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await?;
        let rest = Rest::new(self.client.clone(), name.clone());
        let place = Place { rest, name, node: self.node.name.clone() };
        place.until_there("serviceaccounts/default").await?;
        Ok(place)
    }
}

async fn new_node(rest: &Rest, name: &str) -> Result<Node> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    rest.send(Method::POST, "/api/v1/nodes", Some(&node)).await?;
    ready(rest, name, "True").await?;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
    });
    rest.send(Method::POST, LEASES, Some(&lease)).await?;
    Ok(Node { name: name.to_owned(), heart: beat(rest.clone(), name.to_owned()) })
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn beat(rest: Rest, name: String) -> AbortHandle {
    let heart = async move {
        loop {
            let now = jiff::Timestamp::now();
            let patch = json!({"spec": {"renewTime": format!("{now:.6}")}});
            // A beat that fails is followed by another.
            let _ = rest.send(Method::PATCH, &format!("{LEASES}/{name}"), Some(&patch)).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::spawn(heart).abort_handle()
}

/// A node tells its condition.
pub(super) async fn ready(rest: &Rest, name: &str, status: &str) -> Result<()> {
    let now = second(jiff::Timestamp::now());
    let condition = json!({
        "type": "Ready", "status": status, "reason": "Told", "message": "by the tests",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    let told = json!({"status": {"conditions": [condition]}});
    let path = format!("{}/status", node_path(name));
    rest.send(Method::PATCH, &path, Some(&told)).await?;
    Ok(())
}

/// A time as objects carry it.
pub(super) fn second(time: jiff::Timestamp) -> String {
    format!("{time:.0}")
}

/// What an object is, or null when it is not there.
pub(super) async fn look(rest: &Rest, path: &str) -> Result<Value> {
    match rest.send(Method::GET, path, None).await {
        Ok(found) => Ok(found),
        Err(error) if is_missing(&error) => Ok(Value::Null),
        Err(error) => Err(error).with_context(|| format!("reading {path}")),
    }
}

/// Waits until an object (null when it is not there) is as wanted; says what it was.
pub(super) async fn until(
    rest: &Rest,
    path: &str,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let started = Instant::now();
    loop {
        let mut found = look(rest, path).await?;
        if holds(&found) {
            return Ok(found);
        }
        if started.elapsed() > PATIENCE {
            if let Some(meta) = found["metadata"].as_object_mut() {
                meta.remove("managedFields");
            }
            bail!("{path}: not {what} within {PATIENCE:?}; it is {found:#}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

impl Place {
    /// The path of an object: `pods/a`, `batch/v1/jobs/a`, `discovery.k8s.io/v1/endpointslices`.
    pub(super) fn path(&self, name: &str) -> String {
        let parts: Vec<&str> = name.split('/').collect();
        match parts.as_slice() {
            [group, version, rest @ ..] if group.contains('.') || *group == "batch" => {
                format!("/apis/{group}/{version}/namespaces/{}/{}", self.name, rest.join("/"))
            }
            _ => format!("/api/v1/namespaces/{}/{name}", self.name),
        }
    }

    /// Creates an object.
    pub(super) async fn make(&self, collection: &str, object: &Value) -> Result<Value> {
        let made = self.rest.send(Method::POST, &self.path(collection), Some(object)).await;
        made.with_context(|| format!("creating {collection} {}", object["metadata"]))
    }

    /// Creates a config map, for all that needs no kind of its own. Answers its UID.
    pub(super) async fn thing(&self, name: &str, owners: &Value) -> Result<String> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": owners},
        });
        uid(&self.make("configmaps", &object).await?)
    }

    /// Creates a pod on this place's node.
    pub(super) async fn pod(&self, name: &str, more: &Value) -> Result<String> {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": self.node, "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "none",
                    "ports": [{"name": "http", "containerPort": 8080}]}]},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            pod["spec"][key] = value.clone();
        }
        uid(&self.make("pods", &pod).await?)
    }

    /// A kubelet says how a pod is.
    pub(super) async fn runs(&self, pod: &str, ip: &str, ready: bool) -> Result<()> {
        let ready = if ready { "True" } else { "False" };
        let status = json!({"status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": "10.9.9.9",
            "conditions": [{"type": "Ready", "status": ready}],
        }});
        self.change(&format!("pods/{pod}/status"), &status).await
    }

    /// Merges a patch into an object.
    pub(super) async fn change(&self, name: &str, patch: &Value) -> Result<()> {
        let changed = self.rest.send(Method::PATCH, &self.path(name), Some(patch)).await;
        changed.with_context(|| format!("changing {name}"))?;
        Ok(())
    }

    /// Deletes an object with these options.
    pub(super) async fn delete(&self, name: &str, options: &Value) -> Result<()> {
        delete(&self.rest, &self.path(name), options).await
    }

    /// Deletes an object that may be gone already.
    pub(super) async fn delete_if_there(&self, name: &str) -> Result<()> {
        match self.rest.send(Method::DELETE, &self.path(name), None).await {
            Err(error) if !crate::rest::is_missing(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Waits until an object is as wanted.
    pub(super) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        until(&self.rest, &self.path(name), what, holds).await
    }

    /// Waits until an object is there.
    pub(super) async fn until_there(&self, name: &str) -> Result<Value> {
        self.until(name, "there", |found| !found.is_null()).await
    }

    /// Waits until an object is gone.
    pub(super) async fn until_gone(&self, name: &str) -> Result<()> {
        self.until(name, "gone", Value::is_null).await.map(|_| ())
    }

    /// What an object is now; null when it is not there.
    pub(super) async fn look(&self, name: &str) -> Result<Value> {
        look(&self.rest, &self.path(name)).await
    }

    /// Waits for an event about an object; answers its message.
    pub(super) async fn until_event(&self, about: &str, reason: &str) -> Result<String> {
        let of = |list: &Value| {
            let all = list["items"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().find(|event| {
                event["involvedObject"]["name"] == about && event["reason"] == reason
            });
            found.and_then(|event| event["message"].as_str().map(str::to_owned))
        };
        let what = format!("with an event {reason} about {about}");
        let list = self.until("events", &what, |list| of(list).is_some()).await?;
        of(&list).context("it was there")
    }
}

/// Deletes an object with these options.
pub(super) async fn delete(rest: &Rest, path: &str, options: &Value) -> Result<()> {
    let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    for (key, value) in options.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let deleted = rest.send(Method::DELETE, path, Some(&body)).await;
    deleted.with_context(|| format!("deleting {path}"))?;
    Ok(())
}

/// The UID of an object.
pub(super) fn uid(object: &Value) -> Result<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned).context("no UID")
}

/// The options of a deletion with that propagation.
pub(super) fn propagated(policy: &str) -> Value {
    json!({"propagationPolicy": policy})
}

/// An owner reference to a config map.
pub(super) fn owned(name: &str, uid: &str, blocks: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
        "blockOwnerDeletion": blocks})
}
