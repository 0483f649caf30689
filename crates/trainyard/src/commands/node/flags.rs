//! The node's flags and what they set.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use trainyard_image::{CodeMount, ConfigFile, Mapping, Settings, default_cache};
use trainyard_node::{Isolation, Network, Options, Timings, Wish};

use super::super::logs::{Format, level};
use crate::failure::Failure;

/// The file that says what images mean, looked for in the current folder.
const CONFIG: &str = "trainyard.toml";

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
    /// What stands for an image: `NAME=tensorflow/tensorflow:X`, `NAME=env:DIR` or `NAME=host`
    #[arg(long, value_name = "NAME=TARGET")]
    image: Vec<String>,
    /// A folder or file of this machine in every container
    #[arg(long, value_name = "SRC:DST[:ro]")]
    mount: Vec<String>,
    /// A Python package in every environment
    #[arg(long, value_name = "PACKAGE")]
    with: Vec<String>,
    /// What images mean, instead of `trainyard.toml` in this folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Never use the network to make an environment
    #[arg(long)]
    offline: bool,
    /// An extended resource the node has, as nvidia.com/gpu=2
    #[arg(long, value_name = "[NODE:]NAME=COUNT")]
    resource: Vec<String>,
    /// Processor of each node, as 4 or 1500m; an even share of the machine's if not given
    #[arg(long, value_name = "CORES")]
    node_cpu: Option<String>,
    /// Memory of each node, as 8Gi; an even share of the machine's if not given
    #[arg(long, value_name = "BYTES")]
    node_memory: Option<String>,
    /// Pods that each node takes
    #[arg(long, default_value_t = 110, value_name = "N")]
    max_pods: u64,
    /// How isolated pods are: `auto` takes the best that works, `require:LEVEL` fails without it
    #[arg(long, default_value = "auto", value_name = "LEVEL", value_parser = sandbox)]
    sandbox: Wish<Isolation>,
    /// How pods reach each other
    #[arg(long, default_value = "auto", value_enum)]
    network: NetworkChoice,
    /// The pods' network, seen by pods alone
    #[arg(long, default_value = "10.77.0.0/16", value_name = "CIDR", value_parser = subnet)]
    pod_network: (Ipv4Addr, u8),
    /// Where the API server reaches this node's logs and exec
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Certificates of those who may ask for logs and exec; the kubeconfig's authority if not given
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// How log lines look
    #[arg(long, value_enum, default_value = "text")]
    pub(super) log_format: Format,
    /// What is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(super) log_level: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NetworkChoice {
    /// The best that works here
    Auto,
    /// A network namespace per pod
    Bridge,
    /// The machine's own network, a loopback address per pod
    Loopback,
}

fn sandbox(text: &str) -> Result<Wish<Isolation>, String> {
    match text {
        "auto" => Ok(Wish::Best),
        "namespaces" | "require:namespaces" => Ok(Wish::Require(Isolation::Namespaces)),
        "processes" | "require:processes" => Ok(Wish::Require(Isolation::Processes)),
        _ => Err("write auto, require:namespaces or require:processes".to_owned()),
    }
}

fn subnet(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let parsed = text.split_once('/').and_then(|(address, prefix)| {
        Some((address.parse::<Ipv4Addr>().ok()?, prefix.parse::<u8>().ok()?))
    });
    match parsed {
        Some((address, prefix)) if (8..=28).contains(&prefix) => Ok((address, prefix)),
        Some(_) => Err("the prefix must be between 8 and 28".to_owned()),
        None => Err("write a network like 10.77.0.0/16".to_owned()),
    }
}

impl Flags {
    /// What the flags ask for.
    pub(super) fn options(
        &self,
        config: &kube::Config,
        holder: Vec<OsString>,
    ) -> Result<Options, Failure> {
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
        Ok(Options {
            nodes,
            holder,
            state: self.state_dir()?,
            images: self.images()?,
            resources: self.resource.clone(),
            node_cpu: self.node_cpu.clone(),
            node_memory: self.node_memory.clone(),
            max_pods: self.max_pods,
            sandbox: self.sandbox,
            network: match self.network {
                NetworkChoice::Auto => Wish::Best,
                NetworkChoice::Bridge => Wish::Require(Network::Bridge),
                NetworkChoice::Loopback => Wish::Require(Network::Loopback),
            },
            pod_network: self.pod_network.0,
            pod_prefix: self.pod_network.1,
            listen: self.listen,
            client_authority,
            api_server: api_server(config),
            timing: Timings::default(),
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

    fn images(&self) -> Result<Settings, Failure> {
        let file = match &self.config {
            Some(file) => Some(file.clone()),
            None => Some(PathBuf::from(CONFIG)).filter(|file| file.exists()),
        };
        let from_file = match &file {
            Some(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    Failure::other(format!("reading {}", file.display()), &error)
                })?;
                ConfigFile::parse(&text, file).map_err(Failure::usage)?
            }
            None => ConfigFile::default(),
        };
        let here = std::env::current_dir()
            .map_err(|error| Failure::other("finding the current folder", &error))?;
        let here: &Path = &here;
        let given: Result<Vec<_>, _> =
            self.image.iter().map(|text| Mapping::parse(text, here)).collect();
        let mut mappings = given.map_err(Failure::usage)?;
        // The command line's come first, and the first that fits counts.
        mappings.extend(from_file.mappings);
        let mounts: Result<Vec<_>, _> =
            self.mount.iter().map(|text| CodeMount::parse(text, here)).collect();
        let mut all_mounts = from_file.mounts;
        all_mounts.extend(mounts.map_err(Failure::usage)?);
        let mut with = from_file.with;
        with.extend(self.with.iter().cloned());
        Ok(Settings {
            cache: default_cache().unwrap_or_default(),
            mappings,
            mounts: all_mounts,
            with,
            offline: self.offline,
            ..Settings::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_and_networks_by_name() {
        assert_eq!(sandbox("auto"), Ok(Wish::Best));
        assert_eq!(sandbox("require:namespaces"), Ok(Wish::Require(Isolation::Namespaces)));
        assert!(sandbox("chroot").unwrap_err().contains("require:processes"));
        assert_eq!(subnet("10.1.0.0/16"), Ok((Ipv4Addr::new(10, 1, 0, 0), 16)));
        for bad in ["10.1.0.0", "10.1.0.0/32", "10.1/16", "x/16"] {
            assert!(subnet(bad).is_err(), "{bad}");
        }
    }
}
