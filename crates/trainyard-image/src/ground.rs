//! Where environments are made: inside a sandbox that somebody else provides, or, where there is none to be
//! had, on the machine itself. Only says what such a sandbox must do; makes none.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::image::View;

/// A future that can be handed on.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs programs so that they see and change nothing of the machine but what they are given.
pub trait Sandbox: Debug + Send + Sync {
    /// Starts a program.
    fn start(&self, task: Task) -> Pending<'_, io::Result<Begun>>;
}

/// A program to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The program's path, inside, and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment, apart from what the sandbox says of its own way out.
    pub env: Vec<(String, String)>,
    /// Its working directory, inside.
    pub cwd: PathBuf,
    /// What it sees, in the order in which it is mounted.
    pub root: Vec<View>,
    /// It asks the package index: with the servers that the configuration of the machine names, which are
    /// reached even where other programs in sandboxes are kept from them. None: it needs no network.
    pub fetches: Option<Vec<Server>>,
}

/// A server by its name or address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// A name, or an address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A program that runs in a sandbox.
pub struct Begun {
    /// What it says.
    pub stdout: OwnedFd,
    /// What it says of errors.
    pub stderr: OwnedFd,
    /// Its exit code, 128 + the signal's number as a shell says it, when nothing of it is left; none when
    /// the sandbox itself broke.
    pub ended: Pending<'static, Option<i32>>,
    /// Ends the program and all that it started, when it is dropped.
    pub keep: oneshot::Sender<()>,
}

/// Where environments are made.
#[derive(Debug, Clone)]
pub enum Ground {
    /// In a sandbox.
    Sandbox(Arc<dyn Sandbox>),
    /// On the machine: only wheels are installed, and nothing of what somebody asked for is run.
    Machine,
}
