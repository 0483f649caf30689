//! A node's rights, each by what it may and what it may not.

use serde_json::{Value, json};

use super::restriction::{Deed, check, token};
use super::*;
use crate::http::auth;
use crate::kinds::rows;
use crate::kinds::testing::Few;

/// Two nodes with a pod each, which names a secret, a config map and an account of its own.
fn world() -> Few {
    let pod = |name: &str, node: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("u-{name}")},
            "spec": {
                "nodeName": node, "serviceAccountName": format!("account-{name}"),
                "imagePullSecrets": [{"name": format!("pull-{name}")}],
                "containers": [{"env": [
                    {"valueFrom": {"secretKeyRef": {"name": format!("key-{name}"), "key": "k"}}},
                ]}],
                "volumes": [
                    {"secret": {"secretName": format!("secret-{name}")}},
                    {"projected": {"sources": [
                        {"configMap": {"name": format!("map-{name}")}},
                        {"serviceAccountToken": {"path": "t"}},
                    ]}},
                ],
            },
        })
    };
    Few::of([
        ("pods", pod("a", "mine")),
        ("pods", pod("b", "other")),
        ("nodes", json!({"metadata": {"name": "mine", "uid": "u-mine"}})),
    ])
}

fn mine() -> Caller {
    auth::caller("system:node:mine", &[NODES])
}

fn allowed(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
    let resource = resource.to_owned();
    may(&world(), "mine", &Act { verb, group, resource, namespace, name, on_node: "" })
}

#[test]
fn only_names_of_the_group_are_nodes() {
    assert_eq!(node(&mine()), Some("mine"));
    assert_eq!(node(&auth::caller("system:node:mine", &[])), None);
    assert_eq!(node(&auth::caller("jane", &[NODES])), None);
    let nobody = Act { verb: "get", resource: "services".to_owned(), ..Act::default() };
    assert!(!may(&world(), "", &nobody));
    assert!(may(&world(), "mine", &nobody));
}

#[test]
fn what_pods_of_the_node_name_is_read_and_nothing_else() {
    for (resource, of) in
        [("secrets", "pull"), ("secrets", "key"), ("secrets", "secret"), ("configmaps", "map")]
    {
        assert!(allowed("get", "", resource, "ns", &format!("{of}-a")), "{of}");
        assert!(!allowed("get", "", resource, "ns", &format!("{of}-b")), "{of}");
        assert!(!allowed("get", "", resource, "elsewhere", &format!("{of}-a")), "{of}");
        assert!(!allowed("delete", "", resource, "ns", &format!("{of}-a")), "{of}");
        assert!(!allowed("list", "", resource, "ns", ""), "{of}");
        assert!(!allowed("list", "", resource, "", ""), "{of}");
    }
    assert!(allowed("create", "", "serviceaccounts/token", "ns", "account-a"));
    assert!(!allowed("create", "", "serviceaccounts/token", "ns", "account-b"));
    assert!(!allowed("create", "", "serviceaccounts", "ns", ""));
}

#[test]
fn a_pod_that_only_mirrors_opens_nothing() {
    let mut world = Few::default();
    world.put(
        "pods",
        json!({
            "metadata": {"namespace": "ns", "annotations": {"kubernetes.io/config.mirror": "x"}},
            "spec": {"nodeName": "mine", "volumes": [{"secret": {"secretName": "s"}}]},
        }),
    );
    assert!(!related::is(&world, "mine", Kin::Secret, "ns", "s"));
}

#[test]
fn pods_are_read_by_their_node() {
    let list = |on_node| {
        let act = Act { verb: "list", resource: "pods".to_owned(), on_node, ..Act::default() };
        may(&world(), "mine", &act)
    };
    assert!(list("mine"));
    assert!(!list("other"));
    assert!(!list(""));
    assert!(allowed("get", "", "pods", "ns", "a"));
    assert!(!allowed("get", "", "pods", "ns", "b"));
    for act in ["update", "patch", "deletecollection"] {
        assert!(!allowed(act, "", "pods", "ns", "a"), "{act}");
    }
    for sub in ["pods/exec", "pods/binding", "pods/log", "pods/ephemeralcontainers"] {
        assert!(!allowed("create", "", sub, "ns", "a"), "{sub}");
    }
    assert!(allowed("patch", "", "pods/status", "ns", "a"));
}

#[test]
fn its_own_object_and_lease_are_a_nodes() {
    assert!(allowed("get", "", "nodes", "", "mine"));
    assert!(!allowed("get", "", "nodes", "", "other"));
    assert!(!allowed("list", "", "nodes", "", ""));
    assert!(!allowed("delete", "", "nodes", "", "mine"));
    assert!(!allowed("get", "", "nodes/proxy", "", "mine"));
    let leases = "coordination.k8s.io";
    assert!(allowed("update", leases, "leases", "kube-node-lease", "mine"));
    assert!(!allowed("update", leases, "leases", "kube-node-lease", "other"));
    assert!(!allowed("update", leases, "leases", "kube-system", "mine"));
    assert!(!allowed("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""));
    assert!(allowed("get", "", "namespaces", "", "kube-system"));
    assert!(!allowed("get", "", "namespaces", "", "default"));
}

fn refused(storage: &str, deed: Deed<'_>) -> Option<String> {
    let rows = rows();
    let kind = rows.iter().find(|row| row.storage == storage).unwrap();
    assert!(check(&world(), &auth::caller("jane", &[]), kind, deed).is_ok());
    check(&world(), &mine(), kind, deed).err().map(|failure| failure.message)
}

#[test]
fn no_node_draws_pods_to_itself_or_touches_another() {
    let node = |name: &str, labels: Value, taints: Value| json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}});
    let old = node("mine", json!({"a": "b"}), json!([{"key": "k", "effect": "NoSchedule"}]));
    assert_eq!(refused("nodes", Deed::Update(&old, &old, false)), None);
    let other = node("other", json!({}), json!([]));
    assert_eq!(
        refused("nodes", Deed::Update(&other, &other, true)).unwrap(),
        "nodes \"other\" is forbidden: node \"mine\" is not allowed to modify node \"other\""
    );
    let bare = node("mine", json!({"a": "b"}), json!([]));
    assert_eq!(
        refused("nodes", Deed::Update(&bare, &old, false)).unwrap(),
        "nodes \"mine\" is forbidden: node \"mine\" is not allowed to modify taints"
    );
    let labels = json!({
        "a": "b", "node-role.kubernetes.io/master": "", "x.node-restriction.kubernetes.io/y": "z",
        "kubernetes.io/os": "linux", "node.kubernetes.io/x": "y", "trainyard.dev/sandbox": "s",
    });
    let drawn = node("mine", labels, old["spec"]["taints"].clone());
    assert_eq!(
        refused("nodes", Deed::Update(&drawn, &old, true)).unwrap(),
        "nodes \"mine\" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/master, x.node-restriction.kubernetes.io/y"
    );
    assert_eq!(
        refused("nodes", Deed::Create(&drawn)).unwrap(),
        "nodes \"mine\" is forbidden: node \"mine\" is not allowed to set the following labels: node-role.kubernetes.io/master, x.node-restriction.kubernetes.io/y"
    );
}

#[test]
fn pods_of_other_nodes_are_left_alone() {
    let pod = |node: &str| json!({"metadata": {"name": "p"}, "spec": {"nodeName": node}});
    let (own, strange) = (pod("mine"), pod("other"));
    for deed in [Deed::Delete(&own), Deed::Evict(&own), Deed::Update(&own, &own, true)] {
        assert_eq!(refused("pods", deed), None);
    }
    let deeds = [
        (
            Deed::Delete(&strange),
            "node \"mine\" can only delete pods with spec.nodeName set to itself",
        ),
        (Deed::Evict(&strange), "node mine can only evict pods with spec.nodeName set to itself"),
        (
            Deed::Update(&strange, &strange, true),
            "node \"mine\" can only update pod status for pods with spec.nodeName set to itself",
        ),
        (
            Deed::Create(&own),
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"mine\" can only create mirror pods",
        ),
    ];
    for (deed, why) in deeds {
        assert_eq!(refused("pods", deed).unwrap(), format!("pods \"p\" is forbidden: {why}"));
    }
    let mut labelled = own.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert!(refused("pods", Deed::Update(&labelled, &own, true)).is_some());
}

#[test]
fn a_mirror_pod_is_its_nodes_and_names_nothing() {
    let mut pod = json!({
        "metadata": {
            "name": "p", "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "mine", "uid": "u-mine", "controller": true},
            ],
        },
        "spec": {"nodeName": "mine", "containers": [{"name": "a"}]},
    });
    assert_eq!(refused("pods", Deed::Create(&pod)), None);
    pod["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "s"}}]);
    assert!(refused("pods", Deed::Create(&pod)).unwrap().ends_with("that reference secrets"));
    pod["metadata"]["ownerReferences"][0]["uid"] = json!("u-other");
    assert!(refused("pods", Deed::Create(&pod)).unwrap().contains("UID mismatch"));
}

#[test]
fn tokens_end_with_a_pod_of_the_node() {
    let ask = |pod: &str, audiences: Value| {
        let bound =
            json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": format!("u-{pod}")});
        let request = json!({"spec": {"boundObjectRef": bound, "audiences": audiences}});
        let account = format!("account-{pod}");
        token(&world(), &mine(), ("ns", &account), &request).err().map(|failure| failure.message)
    };
    assert_eq!(ask("a", json!([])), None);
    assert!(ask("a", json!(["vault"])).unwrap().contains("audience \"vault\" not found"));
    assert!(ask("b", json!([])).unwrap().ends_with("scheduled on a different node"));
    let unbound = token(&world(), &mine(), ("ns", "account-a"), &json!({"spec": {}})).unwrap_err();
    assert!(unbound.message.ends_with("not bound to a pod"), "{unbound}");
}
