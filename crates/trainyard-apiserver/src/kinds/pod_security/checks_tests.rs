//! Each check by a pod that it refuses, and the versions.

use serde_json::{Value, json};

use super::*;

fn told(level: Level, version: Version, pod: &Value) -> Vec<String> {
    let subject = Subject { metadata: &pod["metadata"], spec: &pod["spec"] };
    violations(Demand { level, version }, subject).iter().map(Violation::whole).collect()
}

fn of_container(context: &Value) -> Value {
    json!({"spec": {"containers": [{"name": "a", "securityContext": context}]}})
}

#[test]
fn the_order_is_that_of_the_names() {
    for table in [BASELINE, RESTRICTED] {
        assert!(table.is_sorted_by_key(|check| check.id));
    }
    for check in RESTRICTED.iter().filter(|check| !check.instead_of.is_empty()) {
        assert!(BASELINE.iter().any(|one| one.id == check.instead_of), "{}", check.id);
    }
}

#[test]
fn the_baseline_keeps_pods_from_their_machine() {
    let cases = [
        (
            json!({"spec": {"hostNetwork": true, "hostIPC": true}}),
            "host namespaces (hostNetwork=true, hostIPC=true)",
        ),
        (
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}),
            "hostPath volumes (volume \"v\")",
        ),
        (
            json!({"spec": {
                "initContainers": [{"name": "b", "ports": [{"hostPort": 9}]}],
                "containers": [{"name": "a", "ports": [{"hostPort": 80}, {"containerPort": 1}]}],
            }}),
            "hostPort (containers \"b\", \"a\" use hostPorts 80, 9)",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "lifecycle": {"preStop": {"httpGet": {"host": "h"}}}}]}}),
            "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"h\")",
        ),
        (
            of_container(&json!({"privileged": true})),
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ),
        (
            of_container(&json!({"capabilities": {"add": ["SYS_PTRACE", "CHOWN", "BPF"]}})),
            "non-default capabilities (container \"a\" must not include \"BPF\", \"SYS_PTRACE\" in securityContext.capabilities.add)",
        ),
        (
            of_container(&json!({"procMount": "Unmasked"})),
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            json!({"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            of_container(&json!({"seLinuxOptions": {"type": "spc_t", "user": "u"}})),
            "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
        ),
        (
            json!({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}},
                "spec": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}}),
            "forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to \"Unconfined\", \"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\")",
        ),
        (
            json!({"spec": {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            of_container(&json!({"windowsOptions": {"hostProcess": true}})),
            "hostProcess (container \"a\" must not set securityContext.windowsOptions.hostProcess=true)",
        ),
    ];
    for (pod, expected) in cases {
        assert_eq!(told(Level::Baseline, Version::Latest, &pod), [expected]);
        assert!(told(Level::Privileged, Version::Latest, &pod).is_empty());
    }
}

#[test]
fn the_restricted_level_asks_for_what_the_baseline_only_allows() {
    let plain = json!({"spec": {"containers": [{"name": "a"}]}});
    assert!(told(Level::Baseline, Version::Latest, &plain).is_empty());
    let expected = [
        "allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false)",
        "unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"])",
        "runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true)",
        "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
    ];
    assert_eq!(told(Level::Restricted, Version::Latest, &plain), expected);
    let careful = json!({"spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        }}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }});
    assert!(told(Level::Restricted, Version::Latest, &careful).is_empty());
    let mut careless = careful;
    careless["spec"]["containers"][0]["securityContext"]["runAsUser"] = json!(0);
    careless["spec"]["containers"][0]["securityContext"]["capabilities"]["add"] = json!(["CHOWN"]);
    careless["spec"]["volumes"][0] = json!({"name": "v", "nfs": {"server": "s", "path": "/"}});
    let expected = [
        "unrestricted capabilities (container \"a\" must not include \"CHOWN\" in securityContext.capabilities.add)",
        "restricted volume types (volume \"v\" uses restricted volume type \"nfs\")",
        "runAsUser=0 (container \"a\" must not set runAsUser=0)",
    ];
    assert_eq!(told(Level::Restricted, Version::Latest, &careless), expected);
}

#[test]
fn a_pinned_version_judges_as_it_did() {
    let old = |minor, pod: &Value| told(Level::Restricted, Version::Minor(minor), pod);
    let root = of_container(&json!({
        "runAsUser": 0, "runAsNonRoot": true, "allowPrivilegeEscalation": true,
    }));
    assert!(old(7, &root).is_empty());
    assert_eq!(old(18, &root).len(), 1);
    assert_eq!(old(22, &root).len(), 3);
    assert_eq!(old(23, &root).len(), 4);
    assert_eq!(old(999, &root), told(Level::Restricted, Version::Latest, &root));
    let keepalive =
        json!({"spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_fin_timeout"}]}}});
    assert_eq!(told(Level::Baseline, Version::Minor(28), &keepalive).len(), 1);
    assert!(told(Level::Baseline, Version::Minor(29), &keepalive).is_empty());
    let mut own_users = of_container(&json!({"procMount": "Unmasked"}));
    own_users["spec"]["hostUsers"] = json!(false);
    assert!(told(Level::Baseline, Version::Latest, &own_users).is_empty());
    assert_eq!(told(Level::Baseline, Version::Minor(34), &own_users).len(), 1);
    let by_annotation = json!({
        "metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}},
    });
    let told = told(Level::Baseline, Version::Minor(18), &by_annotation);
    let expected = "seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")";
    assert_eq!(told, [expected]);
}
