//! The configuration files of a node's programs and of the name server. Pure.

use std::path::Path;

use serde_json::{Value, json};

use super::addresses::{self, DNS, DNS_READY_PORT, PODS};
use super::folder::Folder;
use super::keys::Keys;
use super::machine::Share;

/// Where containerd listens inside of a node.
pub(super) const CONTAINERD: &str = "/run/containerd/containerd.sock";
/// The image of the program that keeps a pod's namespaces.
pub(super) const PAUSE: &str = "local/pause:1";
/// Where the distribution puts the network plugins.
pub(super) const PLUGINS: &str = "/usr/lib/cni";

/// What the name server may read, and what the API server may ask of kubelets.
pub(super) const ROLES: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"},
 "rules": [
  {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
  {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]},
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "system:coredns"},
 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
 "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}]},
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kube-apiserver-kubelet-client"},
 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
 "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kube-apiserver-kubelet-client"}]}]}
"#;

/// Of the settings, `restrict_oom_score_adj` lets pods start where this program may not lower scores below its own.
pub(super) fn containerd(folder: &Folder, index: usize) -> String {
    let node = folder.node(index);
    let node = node.display();
    format!(
        r#"version = 2
root = "{node}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{CONTAINERD}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/{PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{node}/etc/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"#
    )
}

/// The network of a node's pods: a bridge, an address of the node's range for each.
pub(super) fn network(index: usize) -> Value {
    json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "ipMasq": false,
         "hairpinMode": true,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": addresses::pods(index)}]]}},
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]})
}

/// A kubelet's configuration, with the fields of `over` laid over it.
pub(super) fn kubelet(
    folder: &Folder,
    index: usize,
    share: Share,
    quick_node_loss: bool,
    over: &Value,
) -> Value {
    let keys = Keys::of(folder);
    let serving = keys.kubelet_serving(index);
    let mut configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // Version 1 of control groups is still what many machines have.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": super::cgroup::root(folder.name(), index),
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
        "address": addresses::node(index),
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": folder.node(index).join("etc/resolv.conf"),
        "failSwapOn": false,
        "tlsCertFile": serving.certificate,
        "tlsPrivateKeyFile": serving.key,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": keys.authority().certificate},
        },
        "authorization": {"mode": "Webhook"},
        // A lower one may be more than this program's user may give.
        "oomScoreAdj": 0,
        // What is removed cannot be pulled again: there is no registry.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "200Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "systemReserved": {
            "cpu": share.reserved_cpus.to_string(),
            "memory": format!("{}Ki", share.reserved_memory_kib),
        },
    });
    if quick_node_loss {
        configuration["nodeLeaseDurationSeconds"] = json!(8);
    }
    if let Some(over) = over.as_object() {
        for (field, value) in over {
            configuration[field] = value.clone();
        }
    }
    configuration
}

/// Its limits of tracked connections are the machine's own, which a network namespace cannot change.
pub(super) fn kube_proxy(folder: &Folder, index: usize) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "hostnameOverride": addresses::name(index),
        "clusterCIDR": PODS,
        "clientConnection": {"kubeconfig": Keys::of(folder).kubeconfig("kube-proxy")},
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s",
        },
    })
}

/// The name server's configuration; `kubeconfig` is its own.
pub(super) fn coredns(kubeconfig: &Path) -> String {
    format!(
        ".:53 {{
    bind {DNS}
    errors
    ready {DNS}:{DNS_READY_PORT}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig \"{}\"
        pods insecure
        ttl 5
    }}
    loadbalance
}}
",
        kubeconfig.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_options_say_of_a_kubelet_is_laid_over_what_we_do() {
        let folder = Folder::of("test").unwrap();
        let share = Share { reserved_cpus: 3, reserved_memory_kib: 1024 };
        let over = json!({"maxPods": 7, "systemReserved": {}});
        let configuration = kubelet(&folder, 1, share, true, &over);
        assert_eq!(configuration["maxPods"], 7);
        assert_eq!(configuration["systemReserved"], json!({}));
        assert_eq!(configuration["nodeLeaseDurationSeconds"], 8);
        assert_eq!(configuration["cgroupRoot"], "/trainyard-test-node1");
        let plain = kubelet(&folder, 0, share, false, &json!({}));
        assert_eq!(plain["systemReserved"], json!({"cpu": "3", "memory": "1024Ki"}));
        assert!(plain.get("nodeLeaseDurationSeconds").is_none());
    }

    #[test]
    fn roles_are_json() {
        let roles: Value = serde_json::from_str(ROLES).unwrap();
        assert_eq!(roles["items"].as_array().map(Vec::len), Some(3));
    }
}
