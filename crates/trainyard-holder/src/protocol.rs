//! What the agent asks of the holder and what it is told. Only data; how it travels is in `wire`.
//!
//! Requests are answered in any order, by id. File descriptors travel beside a message: a request
//! says in its documentation which it brings, an answer which it carries.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One request with the number its answer will bear.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the agent; never reused.
    pub id: u64,
    /// What is asked.
    pub request: Request,
}

/// What the holder says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The answer to the call of this id.
    Answer {
        /// The call's.
        id: u64,
        /// What came of it.
        result: Result<Answer, Refusal>,
    },
    /// Something ended.
    Event(Event),
}

/// What the agent can ask.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// The first request, once: enter the namespaces and say what level was reached.
    SetUp(SetUp),
    /// Makes a pod's sandbox: network, host name, IPC, memory-backed volumes, cgroup.
    AddPod(Box<PodSpec>),
    /// Kills what is left of a pod, removes its sandbox and its ephemeral folder; answered when all
    /// is gone. An unknown pod is no error.
    RemovePod {
        /// The pod's id.
        pod: String,
    },
    /// Runs a container. Brings three descriptors, standard input, output and error, or none if it gets
    /// a terminal. Answered by [`Answer::Started`] when the program has been executed, or
    /// a refusal that names the step which failed; nothing is left of it then.
    Start(Box<ContainerSpec>),
    /// Runs one more program in a running container. Brings descriptors like `Start`.
    Exec(Box<ExecSpec>),
    /// Sends a signal to a container or to a program started by `Exec`. One that has ended already is
    /// no error.
    Signal {
        /// The container's or program's id.
        target: String,
        /// The signal's number.
        signal: i32,
        /// Whom it reaches.
        reach: Reach,
    },
    /// Makes a listening (or, for datagrams, bound) socket inside; the answer carries it.
    Listen {
        /// In whose network.
        place: Place,
        /// The address to bind; port 0 takes a free one.
        address: SocketAddrV4,
        /// Stream or datagram.
        kind: SocketKind,
    },
    /// Makes a stream socket inside and begins to connect it without waiting; the answer carries it.
    Connect {
        /// In whose network.
        place: Place,
        /// Where to.
        address: SocketAddrV4,
    },
    /// Adds an address to the yard's own network, so that a service address is answered there.
    AddAddress {
        /// The address.
        address: Ipv4Addr,
    },
    /// What each pod uses now.
    Usage,
    /// Sends what is for other networks out by a link that a program has put into the yard's network.
    /// Refused as long as the link is not there.
    Uplink(Uplink),
    /// Networks that nothing is sent to by an uplink, in place of those told before.
    KeepFrom {
        /// Each by its address and the length of its prefix.
        networks: Vec<(Ipv4Addr, u8)>,
    },
    /// The first request instead of `SetUp`, for a holder of its own: keeps one program running beside
    /// a yard, in the machine's own network, and takes it along when it ends. Brings one descriptor, the
    /// program's standard error. Answered by [`Answer::Started`]; the program's end is an event
    /// about [`TETHERED`].
    Tether(Tether),
}

/// What the program of a [`Tether`] is called in its event.
pub const TETHERED: &str = "tethered";

/// Where the program of a [`Tether`] finds the yard's network namespace. Of the machine's own `/tmp` it sees
/// nothing.
pub const YARD_NETWORK: &str = "/tmp/yard-network";

/// A program beside a yard.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tether {
    /// The process of the yard's holder, whose user namespace is entered where it has one.
    pub holder: u32,
    /// The program's path and its arguments.
    pub argv: Vec<String>,
}

/// The way out of a yard's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uplink {
    /// The link's name.
    pub link: String,
    /// The yard's own address on it.
    pub address: Ipv4Addr,
    /// Length of the prefix of its network.
    pub prefix: u8,
    /// Whoever is at its other end.
    pub via: Ipv4Addr,
    /// The other end knows one address only: all that goes out bears the yard's own. Without it the
    /// yard answers there for the addresses of its pods.
    pub masquerade: bool,
}

/// Whom a signal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// The first program of the container (or the `Exec` program) alone.
    First,
    /// Every process of the container; with SIGKILL also those that fork meanwhile. For an `Exec`
    /// program: its process group.
    All,
}

/// A network that a socket can be made in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// The bridge that pods and nodes hang on.
    Yard,
    /// A virtual node's, by name.
    Node(String),
    /// A pod's, by id.
    Pod(String),
}

/// Kinds of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketKind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

/// How much isolation processes get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// No namespaces: plain processes, watched and ended together. They see the host's files, so a
    /// mount is refused unless it is there already (a bind of a path to itself), and so are
    /// memory-backed volumes. Without root, user 0 is whoever runs the yard.
    Processes,
    /// Private root, PID, mount, host name and IPC namespaces, seccomp, no new privileges. Needs
    /// Linux 5.12.
    Namespaces,
}

/// How pods reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The host's network; each pod has a loopback address of its own and a shim binds it there.
    Loopback,
    /// A network namespace per pod, on a bridge inside a namespace of the holder's own.
    Bridge,
}

/// Which limits can be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cgroups {
    /// None: limits are not enforced.
    None,
    /// Version 1 hierarchies: memory, cpu, pids.
    V1,
    /// A delegated version 2 subtree.
    V2,
}

/// The first request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetUp {
    /// A name for this yard that no other running one has: names the cgroup.
    pub yard: String,
    /// The isolation wanted; less is a refusal.
    pub isolation: Isolation,
    /// The network wanted; less is a refusal.
    pub network: Network,
    /// Whether to try to use cgroups at all.
    pub cgroups: bool,
    /// Limits of all pods together. Without root, what it says of processes is enforced without cgroups too,
    /// since Linux 5.14 and under `Namespaces`.
    pub limits: Limits,
    /// The bridge's own address; its subnet has this prefix length. Pods' default route goes there.
    pub gateway: Ipv4Addr,
    /// Length of the subnet's prefix.
    pub prefix: u8,
    /// Virtual nodes, each with its own network namespace on the bridge (under `Bridge`).
    pub nodes: Vec<NodeNetwork>,
    /// A folder for the holder to keep in memory what roots begin with; made by it and removed at its
    /// end. None: every root is composed anew.
    pub bases: Option<PathBuf>,
}

/// A virtual node's place on the bridge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeNetwork {
    /// The node's name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// A pod's sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PodSpec {
    /// Names the pod in all further requests: letters, digits and dashes.
    pub pod: String,
    /// The virtual node it runs on.
    pub node: String,
    /// Host name inside.
    pub hostname: String,
    /// Address on the bridge; none: the pod uses its node's network (`hostNetwork`).
    pub address: Option<Ipv4Addr>,
    /// Containers see each other's processes.
    pub share_processes: bool,
    /// A folder that is removed with the pod, whatever happens; made if it is not there. A refused pod
    /// leaves it to its owner. The name `.shm` in it is the holder's.
    pub ephemeral: PathBuf,
    /// Memory-backed volumes: mounted in the holder's view at these folders under `ephemeral`, so that
    /// containers can be given them by [`Mount::Bind`].
    pub memory_volumes: Vec<MemoryVolume>,
    /// Bytes that `/dev/shm` may hold.
    pub shared_memory: u64,
    /// Limits of all containers together.
    pub limits: Limits,
}

/// A tmpfs shared by a pod's containers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemoryVolume {
    /// An existing folder to mount it on.
    pub path: PathBuf,
    /// Bytes it may hold.
    pub size: Option<u64>,
}

/// Upper bounds; none means none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Share of the processor when it is short: thousandths of a core asked for.
    pub cpu_request_millis: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// A container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// Names it in further requests and events; never reused: letters, digits and dashes.
    pub container: String,
    /// The pod it belongs to.
    pub pod: String,
    /// Program and arguments; a program without a slash is looked up in the `PATH` of `env`, inside.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Working directory, inside; made if it is not there.
    pub cwd: PathBuf,
    /// An existing empty folder that takes what is written beside the mounts. Its owner and mode are
    /// those of `/`.
    pub scratch: PathBuf,
    /// What the root begins with. Containers that begin with the same share one copy of it, in memory,
    /// where overlays can be had; inside each can change its own. Nothing in it lies below one of its
    /// mounts.
    pub base: Vec<Mount>,
    /// What is mounted in the root beyond that, in this order. `/proc` and `/dev` are made by the
    /// holder: what would be in their place is left out.
    pub mounts: Vec<Mount>,
    /// Device nodes of the host to give, besides the usual harmless ones.
    pub devices: Vec<PathBuf>,
    /// Who it runs as.
    pub user: User,
    /// What it may do.
    pub privileges: Privileges,
    /// Limits of this container.
    pub limits: Limits,
    /// It gets a terminal of its own as input, output and error.
    pub tty: bool,
}

/// One step of composing a root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mount {
    /// A file or folder of the host. The target is made as its source is.
    Bind {
        /// On the host.
        source: PathBuf,
        /// Inside; absolute.
        target: PathBuf,
        /// Not writable inside, nor is anything mounted below it.
        read_only: bool,
    },
    /// A volume that pods write to, or a file or folder inside it. It is looked up when the root is
    /// composed and mounted by its descriptor: whatever a pod puts in its place, nothing outside of the
    /// volume is mounted. A descriptor of the agent's would not do, because the kernel takes views of
    /// mounts of the caller's own mount namespace only.
    Volume {
        /// What it is called in messages to the pod.
        name: String,
        /// The volume's folder or file on the host. There is no link on the way: one that is found there
        /// was put there since the path was resolved, and is not followed.
        place: PathBuf,
        /// What of it: a path below, of which folders that are missing are made. Empty: the whole.
        part: PathBuf,
        /// Inside; absolute.
        target: PathBuf,
        /// Not writable inside, nor is anything mounted below it.
        read_only: bool,
    },
    /// A folder of the host that inside can be written without changing it; where overlays cannot be
    /// had, a read-only bind.
    Overlay {
        /// On the host.
        lower: PathBuf,
        /// Inside; absolute.
        target: PathBuf,
        /// Takes what is written: an existing folder, which gets `upper` and `work`.
        changes: PathBuf,
    },
    /// Memory.
    Tmpfs {
        /// Inside; absolute.
        target: PathBuf,
        /// Bytes it may hold.
        size: Option<u64>,
        /// Permission bits.
        mode: u32,
    },
    /// A folder in the scratch root.
    Directory {
        /// Inside; absolute.
        target: PathBuf,
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// Inside; absolute.
        target: PathBuf,
        /// What it points to.
        to: PathBuf,
    },
    /// A small file of the host, as it is when the root is composed; inside it is the container's own.
    Copy {
        /// On the host.
        source: PathBuf,
        /// Inside; absolute.
        target: PathBuf,
        /// Another one for each state of the source, so that an old copy is not taken for a new one.
        stamp: String,
    },
    /// A file of the container's own that lies in memory; not for a base.
    MemoryFile {
        /// Inside; absolute.
        target: PathBuf,
        /// What it holds.
        content: String,
        /// Permission bits.
        mode: u32,
    },
    /// A file in the scratch root.
    File {
        /// Inside; absolute.
        target: PathBuf,
        /// What it holds.
        content: String,
        /// Permission bits.
        mode: u32,
    },
}

impl Mount {
    /// Where it is inside.
    #[must_use]
    pub fn target(&self) -> &std::path::Path {
        match self {
            Self::Bind { target, .. }
            | Self::Volume { target, .. }
            | Self::Overlay { target, .. }
            | Self::Tmpfs { target, .. }
            | Self::Directory { target, .. }
            | Self::Symlink { target, .. }
            | Self::Copy { target, .. }
            | Self::MemoryFile { target, .. }
            | Self::File { target, .. } => target,
        }
    }
}

/// Who a container runs as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User id inside.
    pub uid: u32,
    /// Group id inside.
    pub gid: u32,
    /// More groups. Refused where the holder has only one group to give.
    pub groups: Vec<u32>,
}

/// What a container may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges {
    /// Names of capabilities kept, as `CAP_NET_RAW`; all others are dropped. Kept only for uid 0.
    /// `ALL` keeps what the holder has; one that it has not is refused.
    pub capabilities: Vec<String>,
    /// Set-uid programs give nothing.
    pub no_new_privileges: bool,
    /// The seccomp filter is on.
    pub seccomp: bool,
    /// Nothing outside the mounts can be written.
    pub read_only_root: bool,
}

/// One more program in a container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecSpec {
    /// Names it in further requests and events; never reused.
    pub exec: String,
    /// The running container.
    pub container: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Working directory, inside.
    pub cwd: PathBuf,
    /// As in [`ContainerSpec`].
    pub user: User,
    /// As in [`ContainerSpec`].
    pub privileges: Privileges,
    /// It gets a terminal of its own as input, output and error.
    pub tty: bool,
}

/// Answers to requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// To `SetUp`.
    Ready {
        /// Entered a user namespace to get there (no root).
        rootless: bool,
        /// What limits can be enforced.
        cgroups: Cgroups,
        /// Why not more, in words, where cgroups are fewer than asked.
        cgroups_reason: Option<String>,
        /// Overlays can be made.
        overlay: bool,
    },
    /// To `Start` and `Exec`: the program runs. Carries one descriptor if it has a terminal: the other
    /// side of that.
    Started,
    /// To `Listen` and `Connect`; carries one descriptor.
    Socket,
    /// To `Usage`.
    Usage(Vec<PodUsage>),
    /// To all others.
    Done,
}

/// What a pod uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodUsage {
    /// The pod's id.
    pub pod: String,
    /// Per container.
    pub containers: Vec<ContainerUsage>,
}

/// What a container uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerUsage {
    /// The container's id.
    pub container: String,
    /// Processor time since it began, in microseconds.
    pub cpu_usec: u64,
    /// Bytes of memory now, without the page cache that can be given back.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// A request that could not be carried out. Nothing of it is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {reason}")]
pub struct Refusal {
    /// What was being done, with the path or name it was done to: `mounting /data`.
    pub step: String,
    /// Why it could not be.
    pub reason: String,
    /// Which kind of failure it is.
    pub kind: RefusalKind,
}

/// Kinds of refusals that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// The program is not there.
    NoSuchProgram,
    /// The program is there and cannot be executed.
    NotExecutable,
    /// A mount could not be made.
    Mount,
    /// A part of a volume is not in it, or can neither be followed nor made.
    Part,
    /// What was asked needs rights this yard does not have.
    NotPermitted,
    /// The request names something unknown, or twice the same.
    BadRequest,
    /// The machine could not: memory, processes, descriptors, disk.
    Machine,
}

/// Something ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A container or a program started by `Exec` ended, and nothing of it runs any more.
    Exited {
        /// The container's or program's id.
        target: String,
        /// How.
        ending: Ending,
        /// The kernel killed something in it for want of memory.
        oom_killed: bool,
        /// Processor time it took in all, in microseconds, where known.
        cpu_usec: Option<u64>,
        /// The most memory it held, in bytes, where known.
        peak_memory: Option<u64>,
    },
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}
