//! The node agent: pods bound to this machine run as sandboxed processes, and whatever API server it
//! is given sees a kubelet: a Node, a Lease, pod statuses, events, logs and exec.
//!
//! Knows Kubernetes only through `kube::Client` and the kubelet's contract. Must not know TFJobs, the
//! operator, or what stands behind the API. Makes no sandbox itself: that is the holder's.

mod accounts;
mod addresses;
mod agent;
mod env;
mod error;
mod events;
mod logs;
mod making;
mod net;
mod network;
mod node;
mod objects;
mod options;
mod outbound;
mod pod;
mod presence;
mod probes;
mod serve;
mod serving;
mod shared;
mod start;
mod state;
mod status;
mod upkeep;
mod volumes;
mod watch;
mod window;
mod yard;

pub use accounts::Accounts;
pub use agent::run;
pub use error::AgentError;
pub use logs::{KeptLine, KeptLines, KeptRun, kept_runs};
pub use options::{Options, Outbound, Timings, Wish};
pub use trainyard_holder::protocol::{Isolation, Network};
pub use window::{PodUse, Window};

/// This machine's name, fit for a Node.
#[must_use]
pub fn machine_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    if node::check_name(&name).is_ok() { name } else { "localhost".to_owned() }
}

/// Certificates in DER as PEM.
#[must_use]
pub fn pem(certificates: &[Vec<u8>]) -> Vec<u8> {
    use base64::Engine as _;
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        text.push_str(&base64::engine::general_purpose::STANDARD.encode(certificate));
        text.push_str("\n-----END CERTIFICATE-----\n");
    }
    text.into_bytes()
}
