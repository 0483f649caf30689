//! The flags of `up` and `down`, and what they set.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use tempfile::TempDir;

use super::super::logs::{Format, level};
use super::super::machine::Machine;
use crate::failure::Failure;
use crate::yard::folder::Folder;

/// Most virtual nodes that a number may ask for.
const MOST_NODES: usize = 64;

/// Run a Kubernetes API on this machine, with the TFJob operator and a node whose pods are processes
///
/// Needs neither root nor anything installed. A context `trainyard` is added to your kubeconfig, so
/// that kubectl and the Python SDK work at once. When it is ready it prints one line, `ready` and
/// its address. Runs until it gets SIGTERM or SIGINT, or `trainyard down`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Where the yard keeps its objects, logs and claims
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Keep nothing after the end
    #[arg(long, conflicts_with = "data_dir")]
    pub(super) ephemeral: bool,
    /// Where the API is served; loopback only
    #[arg(long, value_name = "ADDR:PORT", value_parser = loopback)]
    pub(super) listen: Option<SocketAddr>,
    /// Write the kubeconfig here, and leave the usual one alone
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Virtual nodes: how many, or their names; 0 for none
    #[arg(long, value_name = "N|A,B,…", default_value = "1")]
    pub(super) nodes: String,
    /// Serve the API and its controllers alone: no operator, no scheduler, no node; bring your own
    #[arg(long, conflicts_with = "nodes")]
    pub(super) api_only: bool,
    /// Return when the yard is ready, and leave it running
    #[arg(long)]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) machine: Machine,
    /// How log lines look
    #[arg(long, value_enum, default_value = "text")]
    pub(super) log_format: Format,
    /// What is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", value_parser = level, default_value = "warn")]
    pub(super) log_level: Option<&'static str>,
}

/// End a yard that `trainyard up` started
#[derive(Debug, Args)]
pub(crate) struct Down {
    /// The yard's folder, if it is not the usual one
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "write an address and a port, as 127.0.0.1:6443".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("a yard is served on loopback only: write 127.0.0.1 and a port".to_owned())
    }
}

impl Flags {
    /// The yard's folder; one that goes with the yard if nothing is to be kept.
    pub(super) fn folder(&self) -> Result<(Folder, Option<TempDir>), Failure> {
        if self.ephemeral {
            let temporary = tempfile::Builder::new()
                .prefix("trainyard-")
                .tempdir()
                .map_err(|error| Failure::other("making a temporary folder", &error))?;
            return Ok((Folder::open(temporary.path())?, Some(temporary)));
        }
        Ok((folder(self.data_dir.as_ref())?, None))
    }

    /// The node's settings; none when no node is wanted.
    pub(super) fn node(&self, folder: &Folder) -> Result<Option<trainyard_node::Options>, Failure> {
        if self.api_only {
            return Ok(None);
        }
        let names = names(&self.nodes, &trainyard_node::machine_name())?;
        if names.is_empty() {
            return Ok(None);
        }
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        self.machine.options(names, folder.node(), listen).map(Some)
    }
}

impl Down {
    pub(super) fn folder(&self) -> Result<Folder, Failure> {
        folder(self.data_dir.as_ref())
    }
}

fn folder(given: Option<&PathBuf>) -> Result<Folder, Failure> {
    match given {
        Some(path) => Folder::open(path),
        None => Folder::open(&Folder::usual()?),
    }
}

/// The names of the nodes: as given, or numbered.
pub(in crate::commands) fn names(text: &str, machine: &str) -> Result<Vec<String>, Failure> {
    match text.parse::<usize>() {
        Ok(0) => Ok(Vec::new()),
        Ok(1) => Ok(vec![machine.to_owned()]),
        Ok(count) if count <= MOST_NODES => {
            Ok((0..count).map(|number| format!("{machine}-{number}")).collect())
        }
        Ok(count) => Err(Failure::usage(format!(
            "--nodes {count} is more than a machine can pretend to be: at most {MOST_NODES}"
        ))),
        Err(_) => Ok(text.split(',').map(|name| name.trim().to_owned()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_by_number_and_name() {
        assert_eq!(names("0", "box").unwrap(), Vec::<String>::new());
        assert_eq!(names("1", "box").unwrap(), ["box"]);
        assert_eq!(names("2", "box").unwrap(), ["box-0", "box-1"]);
        assert_eq!(names("h10, h14", "box").unwrap(), ["h10", "h14"]);
        assert_eq!(names("65", "box").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn only_loopback_is_served() {
        assert!(loopback("127.0.0.1:0").is_ok() && loopback("[::1]:1").is_ok());
        assert!(loopback("0.0.0.0:6443").unwrap_err().contains("loopback"));
        assert!(loopback("6443").is_err());
    }
}
