//! What a fresh yard has: its namespaces with accounts, a default storage class, the priority
//! classes of the system, and the service by which pods find the API server.
//!
//! Makes what is missing and changes nothing that is there.

use kube::Client;
use serde_json::{Value, json};

use super::calls::{core, object};
use super::claims::PROVISIONER;
use super::error::Error;
use super::{Context, Settings, accounts};

const NAMESPACES: [&str; 5] =
    ["default", "kube-system", "kube-public", "kube-node-lease", "kubeflow"];

/// Makes the objects that a fresh yard has. What is there already stays as it is.
pub async fn bootstrap(client: Client, settings: Settings) -> Result<(), Error> {
    let context = Context::new(client, settings);
    let calls = &context.calls;
    for name in NAMESPACES {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        calls.create_missing(&core("", "namespaces", ""), &namespace).await?;
    }
    // Pods are refused in a namespace without an account: these must not wait for a controller.
    for name in NAMESPACES {
        accounts::provide(calls, name, &context.settings.root_ca_pem).await?;
    }
    for (path, wanted) in others() {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        // Asked first: an address that is taken is refused before a name that is.
        if calls.find::<Value>(&format!("{path}/{name}")).await?.is_none() {
            calls.create_missing(&path, &wanted).await?;
        }
    }
    Ok(())
}

fn others() -> Vec<(String, Value)> {
    let classes = object("/apis/storage.k8s.io/v1", "", "storageclasses", "");
    let standard = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    });
    let priorities = object("/apis/scheduling.k8s.io/v1", "", "priorityclasses", "");
    let priority = |name: &str, value: i64, description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "globalDefault": false,
            "description": description, "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    let node = priority(
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    );
    let cluster = priority(
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another \
         node if necessary.",
    );
    let kubernetes = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.96.0.1", "sessionAffinity": "None",
            "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        },
    });
    vec![
        (classes, standard),
        (priorities.clone(), node),
        (priorities, cluster),
        (core("default", "services", ""), kubernetes),
    ]
}
