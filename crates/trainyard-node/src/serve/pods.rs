//! What the API needs of the rest of the node.

use std::future::Future;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::stats::Summary;
use crate::logs::LogSource;

/// The pods of one node.
pub(crate) trait Pods: Send + Sync + 'static {
    /// Finds a container's log. Refuses a pod or container that is not here, and one that has not run
    /// yet, in a kubelet's words.
    fn log(&self, ask: LogAsk) -> impl Future<Output = Result<LogSource, Refused>> + Send;

    /// Starts a program in a running container.
    fn exec(&self, ask: ExecAsk) -> impl Future<Output = Result<ExecSession, Refused>> + Send;

    /// Connects to a port of a pod, from inside it.
    fn connect(
        &self,
        target: ForwardTarget,
        port: u16,
    ) -> impl Future<Output = Result<TcpStream, Refused>> + Send;

    /// What the node and its pods use now.
    fn summary(&self) -> impl Future<Output = Result<Summary, Refused>> + Send;

    /// The pods bound to the node.
    fn pods(&self) -> impl Future<Output = Vec<Pod>> + Send;
}

/// Which log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogAsk {
    /// The pod's namespace.
    pub(crate) namespace: String,
    /// The pod's name.
    pub(crate) pod: String,
    /// The container's name.
    pub(crate) container: String,
    /// The log of the run before this one.
    pub(crate) previous: bool,
}

/// Which program, and which of its streams are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "these are the four switches of the API")]
pub(crate) struct ExecAsk {
    /// The pod's namespace.
    pub(crate) namespace: String,
    /// The pod's name.
    pub(crate) pod: String,
    /// The pod's uid, if it must be a certain one.
    pub(crate) uid: Option<String>,
    /// The container's name.
    pub(crate) container: String,
    /// Program and arguments; never empty.
    pub(crate) command: Vec<String>,
    /// There is an input; without, it is empty.
    pub(crate) stdin: bool,
    /// The output is wanted; without, it goes nowhere.
    pub(crate) stdout: bool,
    /// The error output is wanted. Never with `tty`.
    pub(crate) stderr: bool,
    /// On a terminal: one stream for both outputs.
    pub(crate) tty: bool,
}

/// The pod whose ports are forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardTarget {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) pod: String,
    /// Its uid, if it must be a certain one.
    pub(crate) uid: Option<String>,
}

/// A program that was started.
pub(crate) struct ExecSession {
    /// Takes its input; dropped when the client has closed it.
    pub(crate) stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Its output, or its terminal's.
    pub(crate) stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Its error output.
    pub(crate) stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Sets its terminal's size; quick.
    pub(crate) resize: Option<Box<dyn FnMut(TerminalSize) + Send>>,
    /// Its exit code (128 + the number of the signal that killed it), or why there is none. Dropped
    /// before it is ready when the client has gone: then the program is to be killed.
    pub(crate) exit: BoxFuture<'static, Result<i32, String>>,
}

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct TerminalSize {
    /// Columns.
    #[serde(alias = "Width")]
    pub(crate) width: u16,
    /// Rows.
    #[serde(alias = "Height")]
    pub(crate) height: u16,
}

/// Why something asked for is not given, in words for the one who asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// There is no such pod or container here.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be had now, or not in this way.
    #[error("{0}")]
    BadRequest(String),
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}

impl Refused {
    /// One word for logs.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::BadRequest(_) => "bad_request",
            Self::Internal(_) => "internal",
        }
    }
}
