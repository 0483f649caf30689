//! What the printed objects promise.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::yaml;

fn printed(flags: &[&str]) -> Vec<Value> {
    printed_without_namespace(&[&["-nops"], flags].concat())
}

fn printed_without_namespace(flags: &[&str]) -> Vec<Value> {
    let words = ["trainyard", "manifests"].iter().chain(flags);
    let crate::cli::Command::Manifests(manifests) =
        crate::cli::parse(words.map(Into::into)).unwrap().command
    else {
        panic!("another command");
    };
    manifests.objects()
}

fn objects() -> Vec<Value> {
    printed(&["--image=registry/ty:1"])
}

fn of_nodes() -> Vec<Value> {
    printed(&["--node"])
}

fn complete() -> Vec<Value> {
    printed(&["--image=registry/ty:1", "--volcano", "--scheduler"])
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found = objects
        .iter()
        .filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let object = found.next().unwrap_or_else(|| panic!("no {kind} {name}"));
    assert!(found.next().is_none(), "{kind} {name} twice");
    object
}

fn kinds(objects: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    objects
        .iter()
        .map(|object| format!("{}/{}", word(&object["kind"]), word(&object["metadata"]["name"])))
        .collect()
}

#[test]
fn kinds_and_order() {
    assert_eq!(
        kinds(&objects()),
        [
            "Namespace/ops",
            "CustomResourceDefinition/tfjobs.kubeflow.org",
            "ServiceAccount/trainyard-operator",
            "ClusterRole/trainyard-operator",
            "ClusterRoleBinding/trainyard-operator",
            "Role/trainyard-operator",
            "RoleBinding/trainyard-operator",
            "ClusterRole/trainyard-view",
            "ClusterRole/trainyard-edit",
            "ClusterRole/trainyard-admin",
            "ClusterRole/trainyard-explain",
            "Service/trainyard-operator",
            "Deployment/trainyard-operator",
        ]
    );
    assert_eq!(
        kinds(&of_nodes()),
        [
            "ServiceAccount/trainyard-node",
            "ClusterRole/trainyard-node",
            "ClusterRoleBinding/trainyard-node",
            "Role/trainyard-node",
            "RoleBinding/trainyard-node",
        ]
    );
}

#[test]
fn everything_that_has_a_namespace_is_in_the_one_asked_for() {
    let cluster_wide =
        ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];
    for object in complete() {
        let wide = cluster_wide.contains(&object["kind"].as_str().unwrap());
        let expected = if wide { Value::Null } else { json!("ops") };
        assert_eq!(object["metadata"]["namespace"], expected, "{object}");
        for subject in object["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["namespace"], "ops");
        }
    }
}

/// What a role gives, a line for each rule.
fn rights(objects: &[Value], kind: &str, name: &str) -> BTreeSet<String> {
    let role = find(objects, kind, name);
    let one = |rule: &Value, field: &str| rule[field][0].as_str().unwrap().to_owned();
    let line = |rule: &Value| {
        let verbs = rule["verbs"].as_array().unwrap().iter().map(|verb| verb.as_str().unwrap());
        let verbs: Vec<&str> = verbs.collect();
        let name = rule["resourceNames"][0].as_str().map(|name| format!(" {name}"));
        let (group, resource) = (one(rule, "apiGroups"), one(rule, "resources"));
        format!("{group}/{resource}{}: {}", name.unwrap_or_default(), verbs.join(" "))
    };
    role["rules"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn who_may_explain_reads_what_the_scheduler_reads_and_nobody_has_it_by_itself() {
    let objects = complete();
    let expected = [
        "/namespaces: get list",
        "/nodes: get list",
        "/persistentvolumeclaims: get list",
        "/persistentvolumes: get list",
        "/pods: get list",
        "policy/poddisruptionbudgets: get list",
        "scheduling.k8s.io/priorityclasses: get list",
        "scheduling.volcano.sh/podgroups: get list",
        "scheduling.volcano.sh/queues: get list",
        "storage.k8s.io/csidrivers: get list",
        "storage.k8s.io/csinodes: get list",
        "storage.k8s.io/csistoragecapacities: get list",
        "storage.k8s.io/storageclasses: get list",
        "storage.k8s.io/volumeattachments: get list",
    ];
    let name = crate::commands::explain::ROLE;
    assert_eq!(rights(&objects, "ClusterRole", name), expected.map(str::to_owned).into());
    let labels = find(&objects, "ClusterRole", name)["metadata"]["labels"].to_string();
    assert!(!labels.contains("aggregate-to"), "{labels}");
    assert!(objects.iter().all(|object| object["roleRef"]["name"] != name));
    let without = rights(&self::objects(), "ClusterRole", name);
    assert_eq!(without.len(), 12, "{without:?}");
    assert!(without.iter().all(|right| !right.contains("volcano")), "{without:?}");
}

#[test]
fn the_group_of_nodes_reads_nothing_secret() {
    let objects = printed_without_namespace(&["--node-group"]);
    let name = "trainyard-node-group";
    let expected = [
        "/namespaces kube-system: get",
        "/persistentvolumeclaims: get",
        "/persistentvolumes: get",
        "discovery.k8s.io/endpointslices: list watch",
    ];
    assert_eq!(rights(&objects, "ClusterRole", name), expected.map(str::to_owned).into());
    let subjects = &find(&objects, "ClusterRoleBinding", name)["subjects"];
    assert_eq!(subjects[0]["name"], "system:nodes");
}

#[test]
fn nodes_may_do_exactly_this() {
    let objects = of_nodes();
    let expected = [
        "/configmaps: get",
        "/events: create patch",
        "/namespaces kube-system: get",
        "/nodes/status: patch",
        "/nodes: create get patch",
        "/persistentvolumeclaims: get",
        "/persistentvolumes: get",
        "/pods/status: patch",
        "/pods: delete list watch",
        "/secrets: get",
        "/serviceaccounts/token: create",
        "/services: get list watch",
        "discovery.k8s.io/endpointslices: list watch",
    ];
    assert_eq!(rights(&objects, "ClusterRole", node::NAME), expected.map(str::to_owned).into());
    let leases = ["coordination.k8s.io/leases: create get update".to_owned()];
    assert_eq!(rights(&objects, "Role", node::NAME), leases.into());
    for kind in ["Role", "RoleBinding"] {
        let place = &find(&objects, kind, node::NAME)["metadata"]["namespace"];
        assert_eq!(place, "kube-node-lease");
    }
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        let binding = find(&objects, kind, node::NAME);
        let account = json!([{"kind": "ServiceAccount", "name": node::NAME, "namespace": "ops"}]);
        assert_eq!(binding["subjects"], account);
    }
}

#[test]
fn the_operator_may_do_exactly_this() {
    let objects = objects();
    let expected = [
        "/events: create patch",
        "/nodes: list watch",
        "/pods: create delete get list watch",
        "/services: create delete get list watch",
        "admissionregistration.k8s.io/validatingwebhookconfigurations \
         validator.training-operator.kubeflow.org: get",
        "kubeflow.org/tfjobs/finalizers: update",
        "kubeflow.org/tfjobs/status: patch",
        "kubeflow.org/tfjobs: delete list watch",
    ];
    assert_eq!(rights(&objects, "ClusterRole", NAME), expected.map(str::to_owned).into());
    let expected = [
        "coordination.k8s.io/leases 1ca428e5.training-operator.kubeflow.org: get update",
        "coordination.k8s.io/leases: create",
    ];
    assert_eq!(rights(&objects, "Role", NAME), expected.map(str::to_owned).into());
}

#[test]
fn volcanos_kinds_and_the_scheduler_only_when_asked() {
    let few = kinds(&objects());
    let more = |flags: &[&str]| -> Vec<String> {
        kinds(&printed(flags)).into_iter().filter(|kind| !few.contains(kind)).collect()
    };
    let gangs =
        ["ClusterRole", "ClusterRoleBinding"].map(|k| format!("{k}/trainyard-operator-gangs"));
    assert_eq!(more(&["--gang-scheduler-name=volcano"]), gangs);
    let volcano = more(&["--volcano"]);
    for name in [
        "CustomResourceDefinition/jobs.batch.volcano.sh",
        "CustomResourceDefinition/queues.scheduling.volcano.sh",
        "ClusterRole/trainyard-operator-volcano",
        "ClusterRole/trainyard-volcano-edit",
    ] {
        assert!(volcano.iter().any(|kind| kind == name), "{name} in {volcano:?}");
    }
    assert!(!volcano.iter().any(|kind| kind.contains("gangs") || kind.contains("scheduler")));
    let scheduler = more(&["--scheduler"]);
    for name in [
        "CustomResourceDefinition/podgroups.scheduling.volcano.sh",
        "ClusterRole/trainyard-operator-gangs",
        "Deployment/trainyard-scheduler",
        "Role/trainyard-scheduler",
    ] {
        assert!(scheduler.iter().any(|kind| kind == name), "{name} in {scheduler:?}");
    }
    assert!(!scheduler.iter().any(|kind| kind.contains("jobs.batch")), "{scheduler:?}");
}

#[test]
fn the_operator_is_told_what_its_rights_allow() {
    let args = |flags: &[&str]| {
        let objects = printed(flags);
        let pod = &find(&objects, "Deployment", NAME)["spec"]["template"]["spec"];
        pod["containers"][0]["args"].to_string()
    };
    assert_eq!(args(&[]), r#"["operator","--leader-elect","--volcano-jobs=never"]"#);
    assert_eq!(args(&["--volcano"]), r#"["operator","--leader-elect","--volcano-jobs=always"]"#);
    assert!(args(&["--scheduler"]).contains("--gang-scheduler-name=trainyard"));
    let flags = ["--scheduler", "--gang-scheduler-name=volcano"];
    assert!(args(&flags).contains("--gang-scheduler-name=volcano"));
}

#[test]
fn the_additions_allow_exactly_this() {
    let objects = complete();
    let groups = "scheduling.volcano.sh/podgroups: create delete get list patch watch".to_owned();
    let classes = "scheduling.k8s.io/priorityclasses: list watch".to_owned();
    let gangs = rights(&objects, "ClusterRole", "trainyard-operator-gangs");
    assert_eq!(gangs, [groups.clone(), classes.clone()].into());
    let expected = [
        "/configmaps: create delete get list patch watch",
        "/persistentvolumeclaims: create get list watch",
        "batch.volcano.sh/jobs/finalizers: update",
        "batch.volcano.sh/jobs/status: patch",
        "batch.volcano.sh/jobs: delete list watch",
        "bus.volcano.sh/commands: delete list watch",
        "networking.k8s.io/networkpolicies: create delete get list watch",
        &groups,
        &classes,
    ];
    let volcano = rights(&objects, "ClusterRole", "trainyard-operator-volcano");
    assert_eq!(volcano, expected.map(str::to_owned).into());
    let plugins = printed(&["--gang-scheduler-name=scheduler-plugins"]);
    let plugins = rights(&plugins, "ClusterRole", "trainyard-operator-gangs");
    assert!(plugins.iter().any(|line| line.starts_with("scheduling.x-k8s.io/podgroups")));
}

#[test]
fn the_scheduler_may_do_exactly_this() {
    let objects = complete();
    let expected = [
        "/events: create patch",
        "/namespaces: list watch",
        "/nodes: list watch",
        "/persistentvolumeclaims: list patch watch",
        "/persistentvolumes: list patch watch",
        "/pods/binding: create",
        "/pods/status: patch",
        "/pods: delete get list patch watch",
        "bus.volcano.sh/commands: delete list watch",
        "policy/poddisruptionbudgets: list watch",
        "scheduling.k8s.io/priorityclasses: list watch",
        "scheduling.volcano.sh/podgroups: create list patch watch",
        "scheduling.volcano.sh/queues/status: patch",
        "scheduling.volcano.sh/queues: create list patch watch",
        "storage.k8s.io/csidrivers: list watch",
        "storage.k8s.io/csinodes: list watch",
        "storage.k8s.io/csistoragecapacities: list watch",
        "storage.k8s.io/storageclasses: list watch",
        "storage.k8s.io/volumeattachments: list watch",
    ];
    let everywhere = rights(&objects, "ClusterRole", scheduler::NAME);
    assert_eq!(everywhere, expected.map(str::to_owned).into());
    let leases = [
        "coordination.k8s.io/leases trainyard-scheduler: get update",
        "coordination.k8s.io/leases: create",
    ];
    assert_eq!(rights(&objects, "Role", scheduler::NAME), leases.map(str::to_owned).into());
}

#[test]
fn the_pods_are_restricted_and_can_be_found() {
    let objects = complete();
    let operator = restricted(&objects, NAME);
    assert_eq!(operator["name"], "tf-job-operator");
    assert_eq!(operator["control-plane"], "kubeflow-training-operator");
    let scheduler = restricted(&objects, scheduler::NAME);
    assert_eq!(scheduler["app.kubernetes.io/component"], "scheduler");
}

/// Checks a Deployment; the labels of its pods.
fn restricted(objects: &[Value], name: &str) -> Value {
    let deployment = find(objects, "Deployment", name);
    let template = &deployment["spec"]["template"];
    let pod = &template["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert!(pod["securityContext"]["runAsUser"].as_u64().unwrap() > 0);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(pod["serviceAccountName"], name);
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry/ty:1");
    let security = &container["securityContext"];
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
    for field in ["requests", "limits"] {
        for resource in ["cpu", "memory"] {
            assert!(container["resources"][field][resource].is_string(), "{field} {resource}");
        }
    }
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");

    let labels = &template["metadata"]["labels"];
    let service = find(objects, "Service", name);
    for selector in [&deployment["spec"]["selector"]["matchLabels"], &service["spec"]["selector"]] {
        for (label, value) in selector.as_object().unwrap() {
            assert_eq!(&labels[label], value);
        }
    }
    labels.clone()
}

#[test]
fn the_pods_run_with_flags_that_exist() {
    let objects = complete();
    for name in [NAME, scheduler::NAME] {
        let pod = &find(&objects, "Deployment", name)["spec"]["template"]["spec"];
        let args = pod["containers"][0]["args"].as_array().unwrap().iter();
        let args = args.map(|arg| arg.as_str().unwrap());
        crate::cli::parse(["trainyard"].into_iter().chain(args).map(Into::into)).unwrap();
    }
}

#[test]
fn the_text_reads_back_as_the_same_objects() {
    let objects = [complete(), of_nodes()].concat();
    let text = yaml::to_string(&objects);
    let read = yaml::parse(text.as_bytes()).unwrap();
    assert_eq!(read.into_iter().map(|document| document.value).collect::<Vec<_>>(), objects);
}

#[test]
fn without_the_definition() {
    let objects = printed(&["--crds=false"]);
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].clone()).collect();
    assert!(!kinds.contains(&json!("CustomResourceDefinition")));
    assert_eq!(kinds.len(), 12);
}

#[test]
fn names_that_cannot_be_are_refused() {
    for wrong in ["", "Ops", "a_b", "-a", "a-", &"a".repeat(64)] {
        assert!(namespace(wrong).is_err(), "{wrong}");
    }
    assert!(namespace("kubeflow-2").is_ok());
    assert!(image("a b").is_err());
    assert!(image("").is_err());
}
