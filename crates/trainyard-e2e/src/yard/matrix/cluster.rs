//! Specimens of what belongs to the cluster, its rules and its machines.

use serde_json::json;

use super::specimen::Specimen;

pub(super) const KINDS: &[Specimen] = &[
    Specimen {
        kind: "Namespace",
        resource: "namespaces",
        short: "ns",
        version: "v1",
        namespaced: false,
        columns: "NAME, STATUS, AGE",
        field: ("namespace.spec.finalizers", "<[]string>"),
        described: &["Status:", "Active", "No resource quota."],
        body: || json!({}),
    },
    Specimen {
        kind: "Node",
        resource: "nodes",
        short: "no",
        version: "v1",
        namespaced: false,
        columns: "NAME, STATUS, ROLES, AGE, VERSION, INTERNAL-IP*, EXTERNAL-IP*, OS-IMAGE*, \
                  KERNEL-VERSION*, CONTAINER-RUNTIME*",
        field: ("node.spec.unschedulable", "<boolean>"),
        described: &["Roles:", "Taints:", "Unschedulable:", "true", "System Info:"],
        // A machine that nobody has switched on yet.
        body: || json!({"spec": {"unschedulable": true}}),
    },
    Specimen {
        kind: "ServiceAccount",
        resource: "serviceaccounts",
        short: "sa",
        version: "v1",
        namespaced: true,
        columns: "NAME, AGE",
        field: ("serviceaccount.automountServiceAccountToken", "<boolean>"),
        described: &["Image pull secrets:", "Events:"],
        body: || json!({}),
    },
    Specimen {
        kind: "Lease",
        resource: "leases",
        short: "lease",
        version: "coordination.k8s.io/v1",
        namespaced: true,
        columns: "NAME, HOLDER, AGE",
        field: ("lease.spec.holderIdentity", "<string>"),
        described: &["Holder Identity:", "somebody"],
        body: || json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 40}}),
    },
    Specimen {
        kind: "PriorityClass",
        resource: "priorityclasses",
        short: "pc",
        version: "scheduling.k8s.io/v1",
        namespaced: false,
        columns: "NAME, VALUE, GLOBAL-DEFAULT, AGE, PREEMPTIONPOLICY",
        field: ("priorityclass.value", "<integer>"),
        described: &["Value:", "1000", "GlobalDefault:", "PreemptionPolicy:"],
        body: || json!({"value": 1000, "description": "before the others"}),
    },
    Specimen {
        kind: "NetworkPolicy",
        resource: "networkpolicies",
        short: "netpol",
        version: "networking.k8s.io/v1",
        namespaced: true,
        columns: "NAME, POD-SELECTOR, AGE",
        field: ("networkpolicy.spec.policyTypes", "<[]string>"),
        described: &["PodSelector:", "app=matrix", "Policy Types: Ingress"],
        body: || {
            json!({"spec": {
                "podSelector": {"matchLabels": {"app": "matrix"}}, "policyTypes": ["Ingress"],
            }})
        },
    },
    Specimen {
        kind: "Role",
        resource: "roles",
        short: "role",
        version: "rbac.authorization.k8s.io/v1",
        namespaced: true,
        columns: "NAME, CREATED AT",
        field: ("role.rules.verbs", "<[]string>"),
        described: &["PolicyRule:", "tfjobs.kubeflow.org", "[get list]"],
        body: || {
            json!({"rules": [
                {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list"]},
            ]})
        },
    },
    Specimen {
        kind: "RoleBinding",
        resource: "rolebindings",
        short: "rolebinding",
        version: "rbac.authorization.k8s.io/v1",
        namespaced: true,
        columns: "NAME, ROLE, AGE, USERS*, GROUPS*, SERVICEACCOUNTS*",
        field: ("rolebinding.roleRef.name", "<string>"),
        described: &["Role:", "Kind:", "Subjects:", "ServiceAccount"],
        body: || {
            json!({
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
            })
        },
    },
    Specimen {
        kind: "ClusterRole",
        resource: "clusterroles",
        short: "clusterrole",
        version: "rbac.authorization.k8s.io/v1",
        namespaced: false,
        columns: "NAME, CREATED AT",
        field: ("clusterrole.rules.resources", "<[]string>"),
        described: &["PolicyRule:", "nodes", "[get]"],
        body: || json!({"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]}),
    },
    Specimen {
        kind: "ClusterRoleBinding",
        resource: "clusterrolebindings",
        short: "clusterrolebinding",
        version: "rbac.authorization.k8s.io/v1",
        namespaced: false,
        columns: "NAME, ROLE, AGE, USERS*, GROUPS*, SERVICEACCOUNTS*",
        field: ("clusterrolebinding.subjects.kind", "<string>"),
        described: &["Role:", "ClusterRole", "Subjects:", "jane"],
        body: || {
            json!({
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"},
                ],
            })
        },
    },
    Specimen {
        kind: "CustomResourceDefinition",
        resource: "customresourcedefinitions",
        short: "crd",
        version: "apiextensions.k8s.io/v1",
        namespaced: false,
        columns: "NAME, CREATED AT",
        field: ("crd.spec.scope", "<string>"),
        described: &["Group:", "example.com", "Names:", "Wagon", "Accepted Names:"],
        body: || {
            json!({"spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Wagon", "plural": "wagons", "singular": "wagon"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"load": {"type": "integer"}},
                    }},
                }],
            }})
        },
    },
];
