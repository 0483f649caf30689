//! What all cases of the tier stand on: a whole control plane, its scheduler included, and the
//! operator as a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::control_plane::{ControlPlane, Identity, Options};
use crate::kubectl::Kubectl;
use crate::suite::{install, rights};

/// Controllers that pods, services, accounts and claims need.
const CONTROLLERS: [&str; 10] = [
    // Nodes stay tainted until it has seen them ready.
    "node-lifecycle-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "endpointslice-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
];

/// A control plane with the operator.
pub struct Stage {
    /// The control plane.
    pub plane: Mutex<ControlPlane>,
    /// May do everything.
    pub client: Client,
    /// The real kubectl, as an administrator.
    pub kubectl: Kubectl,
    /// The product.
    pub binary: PathBuf,
    /// What agents are told: where the API server is, who they are.
    pub kubeconfig: PathBuf,
    /// The authority of the API server's certificate to kubelets.
    pub authority: PathBuf,
    /// A folder for logs, removed at the end.
    pub dir: PathBuf,
    /// A folder that any user may enter, removed at the end.
    pub ground: TempDir,
    opened: AtomicUsize,
    _operator: Child,
}

fn ground() -> Result<TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let ground = tempfile::Builder::new().prefix("trainyard-nodes-").tempdir()?;
    std::fs::set_permissions(ground.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(ground)
}

impl Stage {
    /// Starts everything but a node.
    pub async fn start(binary: &Path) -> Result<Self> {
        Self::open(binary, false).await
    }

    /// The same with a log of all requests.
    pub async fn start_with_audit(binary: &Path) -> Result<Self> {
        Self::open(binary, true).await
    }

    async fn open(binary: &Path, audit: bool) -> Result<Self> {
        let options = Options {
            controller_manager: false,
            controllers: CONTROLLERS.map(str::to_owned).to_vec(),
            scheduler: true,
            audit,
            // Pods get tokens here, as on any cluster.
            // Whether a pod may be privileged is left to the node.
            api_server_flags: vec![
                "--disable-admission-plugins=".to_owned(),
                "--allow-privileged=true".to_owned(),
            ],
            ..Options::default()
        };
        let mut plane = ControlPlane::start(options).await?;
        install::install(&mut plane).await.context("installing the operator's manifests")?;
        let kubectl = plane.kubectl();
        install::install_node(&kubectl, binary).await.context("installing the nodes' account")?;
        let dir = plane.dir().to_owned();
        let log = std::fs::File::create(dir.join("operator.log"))?;
        let operator = Command::new(binary)
            .args(["operator", "--metrics-bind-address=0", "--health-probe-bind-address=0"])
            .env("KUBECONFIG", plane.kubeconfig(Identity::Operator))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("starting `trainyard operator`")?;
        Ok(Self {
            client: plane.client(Identity::Admin)?,
            kubectl,
            binary: binary.to_owned(),
            kubeconfig: plane.kubeconfig(Identity::Node),
            authority: plane.kubelet_client_authority(),
            dir,
            ground: ground()?,
            plane: Mutex::new(plane),
            opened: AtomicUsize::new(0),
            _operator: operator,
        })
    }

    /// An error when something of the control plane has died.
    pub fn check(&self) -> Result<()> {
        let mut plane = self.plane.lock().map_err(|_| anyhow::anyhow!("a case panicked"))?;
        plane.check()
    }

    /// Checks what the log of requests says of the nodes' rights; `all`: every right was to be used.
    pub async fn check_rights(&self, all: bool) -> Result<()> {
        let (log, user) = {
            let plane = self.plane.lock().map_err(|_| anyhow::anyhow!("a case panicked"))?;
            (plane.audit_log(), plane.user(Identity::Node))
        };
        if all {
            rights::check(&log, &user, &self.kubectl).await
        } else {
            rights::check_refusals(&log, &user).await
        }
    }

    /// A number that no other case has.
    pub fn number(&self) -> usize {
        self.opened.fetch_add(1, Ordering::Relaxed)
    }

    /// A namespace of its own.
    pub async fn namespace(&self, name: &str) -> Result<String> {
        let namespace = format!("n-{name}-{}", self.number());
        let api: Api<Namespace> = Api::all(self.client.clone());
        let object = serde_json::from_value(serde_json::json!({"metadata": {"name": namespace}}))?;
        api.create(&PostParams::default(), &object).await?;
        self.account_is_there(&namespace).await?;
        Ok(namespace)
    }

    /// Pods are refused until the namespace has its default account.
    async fn account_is_there(&self, namespace: &str) -> Result<()> {
        let api: Api<k8s_openapi::api::core::v1::ServiceAccount> =
            Api::namespaced(self.client.clone(), namespace);
        for _ in 0..600 {
            if api.get_opt("default").await?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        anyhow::bail!("namespace {namespace} got no default account")
    }
}
