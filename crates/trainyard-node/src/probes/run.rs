//! One probing, over whatever way there is into the container.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use super::http::{self, Request};
use super::outcome::Outcome;
use super::plan::{Action, Plan};

/// How often a probe that cannot be made is tried, as a kubelet does.
const TRIES: u32 = 3;
/// Bytes of a command's output that are kept.
const MOST_OUTPUT: usize = 10 << 10;

/// A running container, as probes reach it.
pub(crate) trait Target: Send + Sync {
    /// The pod's own address: where probes without a host go.
    fn address(&self) -> IpAddr;

    /// A connection from the pod's network.
    fn connect(&self, host: &str, port: u16) -> impl Future<Output = io::Result<TcpStream>> + Send;

    /// Runs a command in the container: its exit code and what it wrote, or why it could not be run.
    /// Dropping the future ends the command.
    fn exec(
        &self,
        command: &[String],
    ) -> impl Future<Output = Result<(i32, Vec<u8>), String>> + Send;
}

/// Makes one probe.
pub(crate) async fn run(plan: &Plan, target: &impl Target) -> Outcome {
    let mut outcome = once(plan, target).await;
    for _ in 1..TRIES {
        match outcome {
            Outcome::Errored(_) if !matches!(plan.action, Action::Impossible(_)) => {
                outcome = once(plan, target).await;
            }
            done => return done,
        }
    }
    outcome
}

async fn once(plan: &Plan, target: &impl Target) -> Outcome {
    let own = target.address().to_string();
    match &plan.action {
        Action::Impossible(problem) => Outcome::Errored(problem.clone()),
        Action::Exec { command } => exec(command, target, plan.timeout).await,
        Action::Tcp { host, port } => {
            tcp(host.as_deref().unwrap_or(&own), *port, target, plan.timeout).await
        }
        Action::Http { host, port, tls, path, headers } => {
            let host = host.as_deref().unwrap_or(&own);
            let request = Request { host, port: *port, tls: *tls, path, headers };
            http::get(request, target, plan.timeout).await
        }
    }
}

async fn tcp(host: &str, port: u16, target: &impl Target, timeout: Duration) -> Outcome {
    match tokio::time::timeout(timeout, target.connect(host, port)).await {
        Ok(Ok(_connection)) => Outcome::Success,
        Ok(Err(error)) => Outcome::Failure(dial_error(host, port, &error)),
        Err(_) => Outcome::Failure(format!("dial tcp {}: i/o timeout", authority(host, port))),
    }
}

async fn exec(command: &[String], target: &impl Target, timeout: Duration) -> Outcome {
    match tokio::time::timeout(timeout, target.exec(command)).await {
        Ok(Ok((0, _))) => Outcome::Success,
        Ok(Ok((_, mut output))) => {
            output.truncate(MOST_OUTPUT);
            Outcome::Failure(String::from_utf8_lossy(&output).into_owned())
        }
        Ok(Err(problem)) => Outcome::Errored(problem),
        Err(_) => {
            let (command, seconds) = (command.join(" "), timeout.as_secs());
            Outcome::Failure(format!("command timed out: {command:?} timed out after {seconds}s"))
        }
    }
}

/// As a kubelet words it: `dial tcp 10.0.0.1:80: connect: connection refused`.
pub(super) fn dial_error(host: &str, port: u16, error: &io::Error) -> String {
    let problem = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        io::ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {}: {problem}", authority(host, port))
}

/// `host:port`, with brackets where an IPv6 address needs them.
pub(super) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
