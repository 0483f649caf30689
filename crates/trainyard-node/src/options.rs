//! What a node agent is told at its start. Must not read the environment or a command line.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use trainyard_holder::protocol::{Isolation, Network};

use crate::window::Window;

/// Settings of an agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names of its nodes: one, or several virtual ones that share the machine.
    pub nodes: Vec<String>,
    /// The program that is the holder, with its arguments.
    pub holder: Vec<OsString>,
    /// Where everything lies that must survive: claims, logs. Pods' own folders lie there too.
    pub state: PathBuf,
    /// What images mean here.
    pub images: trainyard_image::Settings,
    /// The same opened already, where this process has asked about images before: what it has learnt is
    /// not asked again.
    pub opened: Option<trainyard_image::Images>,
    /// Pods may ask for Python packages by an annotation.
    pub takes_requirements: bool,
    /// How long a Python environment that nobody uses is kept.
    pub keep_environments: Duration,
    /// Extended resources, each as `[NODE:]NAME=COUNT`.
    pub resources: Vec<String>,
    /// Processor of each node; an even share of the machine's if not given.
    pub node_cpu: Option<String>,
    /// Memory of each node; an even share of the machine's if not given.
    pub node_memory: Option<String>,
    /// Pods that each node takes.
    pub max_pods: u64,
    /// Processes and threads of each pod.
    pub pod_pids_limit: u64,
    /// How isolated pods are.
    pub sandbox: Wish<Isolation>,
    /// How pods reach each other.
    pub network: Wish<Network>,
    /// How pods reach other machines.
    pub outbound: Outbound,
    /// An address in the pods' network.
    pub pod_network: Ipv4Addr,
    /// Length of its prefix.
    pub pod_prefix: u8,
    /// Where the kubelet's API is served.
    pub listen: SocketAddr,
    /// Certificates (PEM) of those who may ask the kubelet's API; without any nobody may.
    pub client_authority: Option<Vec<u8>>,
    /// Common names that their certificates must have; without any, every name will do.
    pub client_names: Vec<String>,
    /// Host and port of the API server, for pods that talk to it.
    pub api_server: Option<String>,
    /// Shows what pods use and print to whoever shares this process.
    pub window: Window,
    /// Durations.
    pub timing: Timings,
}

/// A level that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish<T> {
    /// The best that works here.
    Best,
    /// This one; fail where it cannot be had.
    Require(T),
}

/// The ways from pods to other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outbound {
    /// The first of the programs that works, else the proxy.
    Auto,
    /// The program slirp4netns; fail where it cannot be used.
    Slirp4netns,
    /// The program pasta; fail where it cannot be used.
    Pasta,
    /// The node's HTTP proxy.
    Proxy,
    /// None at all.
    None,
}

/// Durations that tests shorten; the defaults are a kubelet's.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    /// The wait after a container's second crash; doubles with each further one.
    pub crash_first: Duration,
    /// The longest such wait.
    pub crash_longest: Duration,
    /// Between attempts at what only the user can mend.
    pub config_retry: Duration,
    /// What running pods get when the agent is told to end.
    pub closing_grace: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            crash_first: Duration::from_secs(10),
            crash_longest: Duration::from_mins(5),
            config_retry: Duration::from_secs(10),
            closing_grace: Duration::from_secs(10),
        }
    }
}
