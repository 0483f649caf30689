//! The command lines of the control plane's servers, tuned for tests: nothing is kept, nothing is
//! throttled, everything is on loopback. Pure.

use std::path::Path;

use super::identity::{Credentials, Identity};

/// Records who did what with which answer, once per request, and no bodies.
pub(super) const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{ "level": "Metadata" }]
}
"#;

const DISABLED_PLUGINS: &str = "--disable-admission-plugins=";

/// Where the servers listen, on loopback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd_client: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
}

pub(crate) fn loopback(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}

pub(crate) fn etcd(ports: Ports, data: &Path, durable: bool) -> Vec<String> {
    let client = loopback("http", ports.etcd_client);
    let peer = loopback("http", ports.etcd_peer);
    let mut flags = vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=warn".to_owned(),
    ];
    if !durable {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

/// Files of the audit log, when there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Audit<'a> {
    pub(super) policy: &'a Path,
    pub(super) log: &'a Path,
}

pub(super) fn api_server(
    ports: Ports,
    secrets: &Credentials,
    audit: Option<Audit<'_>>,
    extra: &[String],
) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers={}", loopback("http", ports.etcd_client)),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.api_server),
        format!("--tls-cert-file={}", secrets.serving_certificate().display()),
        format!("--tls-private-key-file={}", secrets.serving_key().display()),
        format!("--token-auth-file={}", secrets.token_file().display()),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", secrets.account_public_key().display()),
        format!("--service-account-signing-key-file={}", secrets.account_key().display()),
        format!("--kubelet-client-certificate={}", secrets.kubelet_client_certificate().display()),
        format!("--kubelet-client-key={}", secrets.kubelet_client_key().display()),
        "--external-hostname=127.0.0.1".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"
            .to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        // Nobody dials the `kubernetes` service.
        "--endpoint-reconciler-type=none".to_owned(),
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-requests-inflight=4000".to_owned(),
        "--max-mutating-requests-inflight=2000".to_owned(),
        "--profiling=false".to_owned(),
    ];
    if let Some(audit) = audit {
        flags.push(format!("--audit-policy-file={}", audit.policy.display()));
        flags.push(format!("--audit-log-path={}", audit.log.display()));
        // Blocking: once a request is answered it is in the log. Never rotated: one file is all.
        flags.push("--audit-log-mode=blocking".to_owned());
        flags.push("--audit-log-maxsize=0".to_owned());
    }
    // The server adds up what repeated flags disable, so that one given here stands for ours.
    if !extra.iter().any(|flag| flag.starts_with(DISABLED_PLUGINS)) {
        // Pods of the tests name no service account, and no controller makes the default one.
        flags.push(format!("{DISABLED_PLUGINS}ServiceAccount"));
    }
    flags.extend_from_slice(extra);
    flags
}

pub(super) fn controller_manager(secrets: &Credentials, controllers: &[String]) -> Vec<String> {
    let kubeconfig = secrets.kubeconfig(Identity::ControllerManager);
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={}", controllers.join(",")),
        format!("--root-ca-file={}", secrets.authority_file().display()),
        format!("--service-account-private-key-file={}", secrets.account_key().display()),
        "--use-service-account-credentials=false".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        // The stock limit of 20 requests a second would make tests wait for the collector.
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
        "--concurrent-gc-syncs=20".to_owned(),
        "--concurrent-namespace-syncs=20".to_owned(),
    ]
}

pub(super) fn scheduler(secrets: &Credentials) -> Vec<String> {
    let kubeconfig = secrets.kubeconfig(Identity::Scheduler);
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ]
}
