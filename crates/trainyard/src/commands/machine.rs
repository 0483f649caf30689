//! Flags about this machine as a node, common to all commands that run pods here, and what they set.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use trainyard_image::{CodeMount, ConfigFile, Mapping, Settings, default_cache};
use trainyard_node::{Isolation, Network, Options, Outbound, Timings, Window, Wish};

use crate::failure::Failure;

/// The file that says what images mean, looked for in the current folder.
const CONFIG: &str = "trainyard.toml";

/// How pods run on this machine.
#[derive(Debug, Clone, Args)]
pub(super) struct Machine {
    /// What stands for an image: `NAME=tensorflow/tensorflow:X`, `NAME=env:DIR` or `NAME=host`
    #[arg(long, value_name = "NAME=TARGET")]
    image: Vec<String>,
    /// A folder or file of this machine in every container
    #[arg(long, value_name = "SRC:DST[:ro]")]
    mount: Vec<String>,
    /// A Python package in every environment
    #[arg(long, value_name = "PACKAGE")]
    with: Vec<String>,
    /// Packages may be built from their sources and be named by addresses: their code then runs, in a
    /// sandbox, when an environment is made
    #[arg(long)]
    allow_source_packages: bool,
    /// What images mean, instead of `trainyard.toml` in this folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Never use the network to make an environment
    #[arg(long)]
    offline: bool,
    /// Days that a Python environment is kept while nobody uses it
    #[arg(long, default_value_t = 90, value_name = "DAYS")]
    keep_environments: u32,
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
    /// Processes and threads that each pod may have
    #[arg(long, default_value_t = 2048, value_name = "N", value_parser = clap::value_parser!(u64).range(16..))]
    pod_pids_limit: u64,
    /// How isolated pods are: `auto` takes the best that works, `require:LEVEL` fails without it
    #[arg(long, default_value = "auto", value_name = "LEVEL", value_parser = sandbox)]
    sandbox: Wish<Isolation>,
    /// How pods reach each other
    #[arg(long, default_value = "auto", value_enum)]
    network: NetworkChoice,
    /// How pods reach other machines
    #[arg(long, default_value = "auto", value_enum)]
    outbound: OutboundChoice,
    /// The pods' network, seen by pods alone
    #[arg(long, default_value = "10.77.0.0/16", value_name = "CIDR", value_parser = subnet)]
    pod_network: (Ipv4Addr, u8),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutboundChoice {
    /// slirp4netns or pasta where one is installed and works, else the proxy
    Auto,
    /// All packets, by the program slirp4netns; fails without it
    #[value(name = "slirp4netns")]
    Slirp4netns,
    /// All packets, by the program pasta; fails without it
    Pasta,
    /// What uses the node's HTTP proxy, which the pods' variables name
    Proxy,
    /// Not at all
    None,
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

impl Machine {
    /// Takes out the images that are named for themselves, without saying what stands for them.
    pub(super) fn take_plain_images(&mut self) -> Vec<String> {
        let (plain, mapped) = std::mem::take(&mut self.image)
            .into_iter()
            .partition(|text: &String| !text.contains('='));
        self.image = mapped;
        plain
    }

    /// Says what stands for an image.
    pub(super) fn map_image(&mut self, text: &str) {
        self.image.push(text.to_owned());
    }

    /// Wants a package in every environment.
    pub(super) fn want(&mut self, package: String) {
        self.with.push(package);
    }

    /// What the flags ask for. Who may ask the nodes, and where the API server is, is left open. Pods may ask
    /// for packages.
    pub(super) fn options(
        &self,
        nodes: Vec<String>,
        state: PathBuf,
        listen: SocketAddr,
    ) -> Result<Options, Failure> {
        Ok(Options {
            nodes,
            holder: holder()?,
            state,
            images: self.images()?,
            opened: None,
            takes_requirements: true,
            keep_environments: Duration::from_hours(24 * u64::from(self.keep_environments)),
            resources: self.resource.clone(),
            node_cpu: self.node_cpu.clone(),
            node_memory: self.node_memory.clone(),
            max_pods: self.max_pods,
            pod_pids_limit: self.pod_pids_limit,
            sandbox: self.sandbox,
            network: match self.network {
                NetworkChoice::Auto => Wish::Best,
                NetworkChoice::Bridge => Wish::Require(Network::Bridge),
                NetworkChoice::Loopback => Wish::Require(Network::Loopback),
            },
            outbound: match self.outbound {
                OutboundChoice::Auto => Outbound::Auto,
                OutboundChoice::Slirp4netns => Outbound::Slirp4netns,
                OutboundChoice::Pasta => Outbound::Pasta,
                OutboundChoice::Proxy => Outbound::Proxy,
                OutboundChoice::None => Outbound::None,
            },
            pod_network: self.pod_network.0,
            pod_prefix: self.pod_network.1,
            listen,
            client_authority: None,
            client_names: Vec::new(),
            api_server: None,
            window: Window::default(),
            timing: Timings::default(),
        })
    }

    /// Whether the file that says what images mean lets pods ask for packages.
    pub(super) fn file_allows_requirements(&self) -> Result<bool, Failure> {
        self.file().map(|file| file.allow_requirements)
    }

    fn file(&self) -> Result<ConfigFile, Failure> {
        let file = match &self.config {
            Some(file) => Some(file.clone()),
            None => Some(PathBuf::from(CONFIG)).filter(|file| file.exists()),
        };
        let Some(file) = file else { return Ok(ConfigFile::default()) };
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure::other(format!("reading {}", file.display()), &error))?;
        // Of a bare name the folder would be empty, and paths in it relative for ever.
        let file = std::path::absolute(&file).unwrap_or(file);
        ConfigFile::parse(&text, &file).map_err(Failure::usage)
    }

    fn images(&self) -> Result<Settings, Failure> {
        let from_file = self.file()?;
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
            source_packages: self.allow_source_packages || from_file.allow_source_packages,
            offline: self.offline,
            ..Settings::default()
        })
    }
}

/// This very program, told to be the holder.
fn holder() -> Result<Vec<OsString>, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::other("finding the program's own file", &error))?;
    Ok(vec![own.into_os_string(), super::node::HOLDER.into()])
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
