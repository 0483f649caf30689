//! The command lines of a cluster's servers: those of a control plane for people, where tests allow it with nothing
//! throttled. Pure.

use std::path::Path;

use super::addresses::{self, API_PORT, SERVICES};
use super::keys::{FRONT_PROXY, Keys};
use crate::certificates::Signed;
use crate::control_plane::flags::{Ports, loopback};

/// Where the control plane's servers listen inside of node 0.
pub(super) const PORTS: Ports = Ports { etcd_client: 2379, etcd_peer: 2380, api_server: API_PORT };

fn pair(certificate: &str, key: &str, files: &Signed) -> [String; 2] {
    [
        format!("{certificate}={}", files.certificate.display()),
        format!("{key}={}", files.key.display()),
    ]
}

pub(super) fn api_server(keys: &Keys, scratch: &Path) -> Vec<String> {
    let authority = keys.authority().certificate;
    let authority = authority.display();
    let mut flags = vec![
        format!("--etcd-servers={}", loopback("http", PORTS.etcd_client)),
        "--bind-address=0.0.0.0".to_owned(),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={}", addresses::node(0)),
        format!("--cert-dir={}", scratch.display()),
        format!("--client-ca-file={authority}"),
        format!("--kubelet-certificate-authority={authority}"),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", keys.account_public_key().display()),
        format!("--service-account-signing-key-file={}", keys.account_key().display()),
        format!("--requestheader-client-ca-file={authority}"),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--service-cluster-ip-range={SERVICES}"),
        "--profiling=false".to_owned(),
    ];
    flags.extend(pair("--tls-cert-file", "--tls-private-key-file", &keys.api_server()));
    flags.extend(pair(
        "--kubelet-client-certificate",
        "--kubelet-client-key",
        &keys.kubelet_client(),
    ));
    flags.extend(pair("--proxy-client-cert-file", "--proxy-client-key-file", &keys.front_proxy()));
    flags
}

pub(super) fn controller_manager(
    keys: &Keys,
    scratch: &Path,
    quick_node_loss: bool,
) -> Vec<String> {
    let authority = keys.authority();
    let mut flags = client(keys, "kube-controller-manager", scratch);
    flags.extend([
        format!("--service-account-private-key-file={}", keys.account_key().display()),
        format!("--root-ca-file={}", authority.certificate.display()),
        "--use-service-account-credentials=true".to_owned(),
    ]);
    flags.extend(pair("--cluster-signing-cert-file", "--cluster-signing-key-file", &authority));
    if quick_node_loss {
        flags.extend([
            "--node-monitor-grace-period=10s".to_owned(),
            "--node-monitor-period=1s".to_owned(),
        ]);
    }
    flags
}

pub(super) fn scheduler(keys: &Keys, scratch: &Path) -> Vec<String> {
    client(keys, "kube-scheduler", scratch)
}

/// What the programs beside the API server have in common.
fn client(keys: &Keys, name: &str, scratch: &Path) -> Vec<String> {
    let kubeconfig = keys.kubeconfig(name);
    let mut flags: Vec<_> = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| format!("--{flag}={}", kubeconfig.display()))
        .into();
    flags.extend([
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", scratch.display()),
        "--profiling=false".to_owned(),
    ]);
    flags
}

pub(super) fn kubelet(keys: &Keys, configuration: &Path, index: usize) -> Vec<String> {
    let name = addresses::name(index);
    vec![
        format!("--config={}", configuration.display()),
        format!("--kubeconfig={}", keys.kubeconfig(&format!("kubelet-{name}")).display()),
        format!("--hostname-override={name}"),
        format!("--node-ip={}", addresses::node(index)),
        "--v=2".to_owned(),
    ]
}
