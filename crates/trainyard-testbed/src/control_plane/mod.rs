//! A real Kubernetes control plane for tests: etcd, kube-apiserver and, where wanted,
//! kube-controller-manager and kube-scheduler, on loopback, ended with their owner.
//! Knows nothing of TFJobs, of the operator or of any scenario.

mod binaries;
mod build;
pub(crate) mod flags;
pub mod go;
pub(crate) mod ground;
pub(crate) mod identity;
pub(crate) mod probe;
pub(crate) mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

pub use binaries::{
    ASSETS_VARIABLE, Binaries, COREDNS_VERSION, ETCD_VERSION, KUBERNETES_VERSION, Program,
    cache_root,
};
use flags::{Audit, Ports, loopback};
pub use ground::free_ports;
use identity::Credentials;
pub use identity::{Identity, KUBELET_CLIENT_NAME, ServiceAccount};
use probe::Probe;
use process::Process;

use crate::kubectl::Kubectl;

/// Patience with a server that starts; a loaded machine needs about ten seconds.
const START_PATIENCE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(50);

/// What kind of control plane is wanted.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a yes or no of its own")]
pub struct Options {
    /// Start kube-controller-manager at once. Its garbage collector learns of new kinds only every
    /// 30 s, so a test that installs CRDs says `false` here and calls
    /// [`ControlPlane::start_controller_manager`] when they are in place.
    pub controller_manager: bool,
    /// The controllers that run in it.
    pub controllers: Vec<String>,
    /// Start the stock scheduler.
    pub scheduler: bool,
    /// Keep an audit log.
    pub audit: bool,
    /// Whom [`Identity::Operator`] is to the API server.
    pub operator: ServiceAccount,
    /// More flags for kube-apiserver; the last one wins.
    pub api_server_flags: Vec<String>,
    /// Keep what was written on disk before it is answered, as a cluster does. Tests have no use for it.
    pub durable: bool,
    /// Keep the folder with logs, keys and kubeconfigs at the end.
    pub keep: bool,
}

impl Default for Options {
    fn default() -> Self {
        let controllers = ["garbage-collector-controller", "namespace-controller"];
        Self {
            controller_manager: true,
            controllers: controllers.map(str::to_owned).to_vec(),
            scheduler: false,
            audit: true,
            operator: ServiceAccount {
                namespace: "kubeflow".to_owned(),
                name: "trainyard-operator".to_owned(),
            },
            api_server_flags: Vec::new(),
            durable: false,
            keep: false,
        }
    }
}

/// A running control plane. Dropping it ends its processes and removes its files.
#[derive(Debug)]
pub struct ControlPlane {
    // In the order in which they are to end: clients before servers, files last.
    scheduler: Option<Process>,
    controller_manager: Option<Process>,
    api_server: Option<Process>,
    etcd: Process,
    options: Options,
    binaries: Binaries,
    ports: Ports,
    credentials: Credentials,
    _database: Option<TempDir>,
    dir: TempDir,
    ready_after: Duration,
}

/// Files with which a server on loopback proves what it is.
#[derive(Debug)]
pub struct Serving {
    /// Its certificate.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// The authority that signed it.
    pub authority: PathBuf,
}

impl ControlPlane {
    /// Provides the programs (building them the first time), starts the servers and returns when
    /// the API server is ready.
    pub async fn start(options: Options) -> Result<Self> {
        let binaries = Binaries::provide(&needed(&options)).await?;
        let mut dir = tempfile::Builder::new()
            .prefix("trainyard-control-plane-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        dir.disable_cleanup(options.keep);
        let (data, database) = if options.durable {
            (dir.path().join("etcd"), None)
        } else {
            ground::database_dir(dir.path())?
        };
        let [etcd_client, etcd_peer, api_server] = ground::free_ports()?;
        let ports = Ports { etcd_client, etcd_peer, api_server };
        let credentials = Credentials::create(dir.path().join("auth"), options.operator.clone())?;
        credentials.write_kubeconfigs(&loopback("https", ports.api_server))?;
        fs::write(audit_policy(dir.path()), flags::AUDIT_POLICY)?;
        let started = Instant::now();
        let etcd = Process::start(
            &binaries.path(Program::Etcd),
            &flags::etcd(ports, &data, options.durable),
            dir.path().join("etcd.log"),
        )?;
        let mut plane = Self {
            scheduler: None,
            controller_manager: None,
            api_server: None,
            etcd,
            options,
            binaries,
            ports,
            credentials,
            _database: database,
            dir,
            ready_after: Duration::ZERO,
        };
        // The API server waits for etcd by itself.
        plane.start_api_server().await?;
        plane.ready_after = started.elapsed();
        plane.wait_for_system_namespaces().await?;
        if plane.options.controller_manager {
            plane.start_controller_manager()?;
        }
        if plane.options.scheduler {
            plane.start_scheduler()?;
        }
        Ok(plane)
    }

    /// Starts the API server after [`Self::stop_api_server`], on the same port and data. Does
    /// nothing when it runs.
    pub async fn start_api_server(&mut self) -> Result<()> {
        if self.api_server.is_some() {
            return Ok(());
        }
        let policy = audit_policy(self.dir.path());
        let log = self.audit_log();
        let audit = Audit { policy: &policy, log: &log };
        let audit = self.options.audit.then_some(audit);
        let extra = &self.options.api_server_flags;
        let arguments = flags::api_server(self.ports, &self.credentials, audit, extra);
        self.api_server = Some(self.launch(Program::ApiServer, &arguments)?);
        self.wait_until_ready().await
    }

    /// Kills the API server, as a crash would: no goodbye to its clients.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts kube-controller-manager. Does nothing when it runs.
    pub fn start_controller_manager(&mut self) -> Result<()> {
        if self.controller_manager.is_none() {
            let controllers = &self.options.controllers;
            let arguments = flags::controller_manager(&self.credentials, controllers);
            self.controller_manager = Some(self.launch(Program::ControllerManager, &arguments)?);
        }
        Ok(())
    }

    fn start_scheduler(&mut self) -> Result<()> {
        if self.scheduler.is_none() {
            let arguments = flags::scheduler(&self.credentials);
            self.scheduler = Some(self.launch(Program::Scheduler, &arguments)?);
        }
        Ok(())
    }

    fn launch(&self, program: Program, arguments: &[String]) -> Result<Process> {
        let log = self.dir.path().join(format!("{}.log", program.file_name()));
        Process::start(&self.binaries.path(program), arguments, log)
    }

    /// An error, with its last log lines, when any of the processes has died.
    pub fn check(&mut self) -> Result<()> {
        self.etcd.check()?;
        let others = [&mut self.api_server, &mut self.controller_manager, &mut self.scheduler];
        others.into_iter().flatten().try_for_each(Process::check)
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let probe = self.probe()?;
        let started = Instant::now();
        let mut last = String::new();
        while started.elapsed() < START_PATIENCE {
            self.check()?;
            match probe.status("/readyz").await {
                Ok(200) => return Ok(()),
                Ok(status) => last = format!("it answers {status}"),
                Err(error) => last = format!("{error:#}"),
            }
            tokio::time::sleep(POLL).await;
        }
        let log = self.api_server.as_ref().map(Process::last_lines).unwrap_or_default();
        bail!("kube-apiserver is not ready after {START_PATIENCE:?}: {last}; its log ends:\n{log}")
    }

    /// The API server makes its own namespaces a moment after it says that it is ready.
    async fn wait_for_system_namespaces(&mut self) -> Result<()> {
        let probe = self.probe()?;
        let started = Instant::now();
        for name in ["default", "kube-system"] {
            loop {
                match probe.status(&format!("/api/v1/namespaces/{name}")).await? {
                    200 => break,
                    404 => {}
                    status => bail!("asked for the namespace `{name}`, it answers {status}"),
                }
                self.check()?;
                if started.elapsed() > START_PATIENCE {
                    bail!("there is no namespace `{name}` after {START_PATIENCE:?}");
                }
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    fn probe(&self) -> Result<Probe> {
        let token = self.credentials.token(Identity::Admin);
        Probe::new(self.ports.api_server, self.credentials.authority(), Some(token))
    }

    /// Where the API server listens.
    #[must_use]
    pub fn url(&self) -> String {
        loopback("https", self.ports.api_server)
    }

    /// From the start of the first process to the first answer that the API server is ready.
    #[must_use]
    pub const fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The bearer token of `identity`.
    #[must_use]
    pub fn token(&self, identity: Identity) -> &str {
        self.credentials.token(identity)
    }

    /// The certificate of the authority that all servers here are signed by, in DER.
    #[must_use]
    pub fn authority(&self) -> &[u8] {
        self.credentials.authority()
    }

    /// A kubeconfig file for programs of their own.
    #[must_use]
    pub fn kubeconfig(&self, identity: Identity) -> PathBuf {
        self.credentials.kubeconfig(identity)
    }

    /// The name that requests of `identity` carry in the audit log.
    #[must_use]
    pub fn user(&self, identity: Identity) -> String {
        self.credentials.user(identity)
    }

    /// The authority that signed the certificate which the API server shows to kubelets.
    #[must_use]
    pub fn kubelet_client_authority(&self) -> PathBuf {
        self.credentials.authority_file()
    }

    /// The audit log: one JSON object a line, complete up to the last answered request.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.dir.path().join("audit.log")
    }

    /// What another server on loopback shows its clients.
    #[must_use]
    pub fn serving(&self) -> Serving {
        Serving {
            certificate: self.credentials.serving_certificate(),
            key: self.credentials.serving_key(),
            authority: self.credentials.authority_file(),
        }
    }

    /// The folder with logs, keys and kubeconfigs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Process ids by program name, of those that run.
    #[must_use]
    pub fn pids(&self) -> Vec<(&'static str, u32)> {
        let processes = [
            (Program::Etcd, Some(&self.etcd)),
            (Program::ApiServer, self.api_server.as_ref()),
            (Program::ControllerManager, self.controller_manager.as_ref()),
            (Program::Scheduler, self.scheduler.as_ref()),
        ];
        let running = processes.into_iter().filter_map(|(program, process)| {
            process.map(|process| (program.file_name(), process.pid()))
        });
        running.collect()
    }

    /// The real kubectl, speaking as the admin.
    #[must_use]
    pub fn kubectl(&self) -> Kubectl {
        self.kubectl_as(Identity::Admin)
    }

    /// The real kubectl, speaking as `identity`.
    #[must_use]
    pub fn kubectl_as(&self, identity: Identity) -> Kubectl {
        Kubectl::new(
            self.binaries.path(Program::Kubectl),
            self.kubeconfig(identity),
            self.dir.path().join("kubectl-home"),
        )
    }
}

/// All but the scheduler, which few tests want.
fn needed(options: &Options) -> Vec<Program> {
    let wanted = |program: &Program| options.scheduler || *program != Program::Scheduler;
    Program::CONTROL_PLANE.into_iter().filter(wanted).collect()
}

fn audit_policy(dir: &Path) -> PathBuf {
    dir.join("audit-policy.json")
}
