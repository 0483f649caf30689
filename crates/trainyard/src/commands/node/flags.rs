//! The node's flags and what they set.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use trainyard_node::Options;

use super::super::logs::{Format, level};
use super::super::machine::Machine;
use crate::failure::Failure;

/// Make this machine a node of a cluster: pods bound to it run as sandboxed processes
///
/// Needs neither root nor anything installed. Every process of every pod ends with this command,
/// however it ends. Runs until it gets SIGTERM or SIGINT.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The node's name; this machine's if not given
    #[arg(long)]
    name: Option<String>,
    /// Several virtual nodes that share the machine, each with an address and a name of its own
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with = "name")]
    nodes: Vec<String>,
    /// Where the API server is and who we are; else KUBECONFIG, the pod's account, the home folder
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Address of the API server, over that of the kubeconfig
    #[arg(long, value_name = "URL")]
    pub(super) master: Option<String>,
    /// Where logs and claims are kept
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    machine: Machine,
    /// Pods may ask for Python packages by the annotation trainyard.dev/requirements
    #[arg(long)]
    allow_requirements: bool,
    /// Where the API server reaches this node's logs and exec
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Certificates of those who may ask for logs and exec; the kubeconfig's authority if not given
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Common name that such a certificate must have, as kube-apiserver-kubelet-client; several may
    /// be given. Any name will do if none is
    #[arg(long, value_name = "NAME")]
    client_name: Vec<String>,
    /// How log lines look
    #[arg(long, value_enum, default_value = "text")]
    pub(super) log_format: Format,
    /// What is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(super) log_level: Option<&'static str>,
}

impl Flags {
    /// What the flags ask for.
    pub(super) fn options(&self, config: &kube::Config) -> Result<Options, Failure> {
        let nodes = match (&self.name, self.nodes.is_empty()) {
            (Some(name), _) => vec![name.clone()],
            (None, false) => self.nodes.clone(),
            (None, true) => vec![trainyard_node::machine_name()],
        };
        let client_authority =
            match &self.client_ca_file {
                Some(file) => Some(std::fs::read(file).map_err(|error| {
                    Failure::other(format!("reading {}", file.display()), &error)
                })?),
                None => config.root_cert.as_deref().map(trainyard_node::pem),
            };
        let options = self.machine.options(nodes, self.state_dir()?, self.listen)?;
        let takes_requirements =
            self.allow_requirements || self.machine.file_allows_requirements()?;
        Ok(Options {
            takes_requirements,
            client_authority,
            client_names: self.client_name.clone(),
            api_server: api_server(config),
            ..options
        })
    }

    fn state_dir(&self) -> Result<PathBuf, Failure> {
        if let Some(dir) = &self.state_dir {
            return std::path::absolute(dir)
                .map_err(|error| Failure::other(format!("finding {}", dir.display()), &error));
        }
        let variable = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        variable("XDG_STATE_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
            .map(|state| state.join("trainyard/node"))
            .ok_or_else(|| {
                Failure::usage("there is no home folder to keep logs and claims in")
                    .hint("name a folder with --state-dir")
            })
    }
}

/// Host and port of the API server.
fn api_server(config: &kube::Config) -> Option<String> {
    let host = config.cluster_url.host()?;
    let port = config
        .cluster_url
        .port_u16()
        .unwrap_or(if config.cluster_url.scheme_str() == Some("http") { 80 } else { 443 });
    Some(format!("{host}:{port}"))
}
