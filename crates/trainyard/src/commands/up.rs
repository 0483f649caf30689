//! `trainyard up` and `trainyard down`: a yard that stays until it is told to go.
//!
//! Owns the folder, the listener, kubeconfigs, signals and what is said; the yard itself is `yard`.

mod detach;
pub(super) mod flags;
mod greeting;
pub(super) mod notice;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use tracing::warn;
use trainyard_apiserver::Life;

pub(crate) use flags::{Down, Flags};

use super::{logs, signals};
use crate::failure::Failure;
use crate::output;
use crate::yard::folder::Folder;
use crate::yard::residents::Lines;
use crate::yard::{Issuer, Plan, Yard, kubeconfig};
use notice::Notice;

/// The context's name in kubeconfigs.
pub(crate) const CONTEXT: &str = "trainyard";
/// Where the API is served unless something else is there already.
const USUAL_PORT: u16 = 6443;
/// How often the life of the user's certificate is looked at.
const LOOK: Duration = Duration::from_hours(1);

/// Runs a yard until a signal comes.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    if flags.detach {
        return detach::start(flags);
    }
    let (folder, temporary) = flags.folder()?;
    let lines = Lines::default();
    logs::start_with(
        flags.log_format,
        flags.log_level,
        Some(("trainyard_operator", lines.clone())),
    );
    let listener = listen(flags, &folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    let ended = runtime.block_on(stay(flags, &folder, listener, lines));
    // A thread that still reads a slow disk must not keep us.
    runtime.shutdown_background();
    drop(temporary);
    ended
}

async fn stay(
    flags: &Flags,
    folder: &Folder,
    listener: TcpListener,
    operator_lines: Lines,
) -> Result<(), Failure> {
    let mut signals = signals::Signals::catch()?;
    let node = flags.node(folder)?;
    let nodes = node.as_ref().map(|node| node.nodes.clone()).unwrap_or_default();
    let plan = Plan {
        folder: folder.clone(),
        durable: !flags.ephemeral,
        listener,
        node,
        api_only: flags.api_only,
        volcano_jobs: true,
        operator_lines,
    };
    let mut yard = Yard::start(plan).await?;
    yard.settle(&nodes).await;
    let issuer = yard.issuer();
    let (files, life) = announce(flags, folder, &yard.url(), &issuer)?;
    let ended = tokio::select! {
        broken = yard.broken() => Err(broken),
        signal = signals.next() => {
            tracing::info!(signal, "stopping");
            Ok(())
        }
        never = renew(&issuer, folder, &files, life) => match never {},
    };
    let stopped = tokio::select! {
        () = yard.stop() => ended,
        signal = signals.next() => Err(Failure::interrupted(signal)),
    };
    Notice::remove(folder);
    if flags.kubeconfig.is_none() {
        // Where the user's own file names a yard that is gone, kubectl would only time out.
        for file in files.into_iter().filter(|file| *file != folder.kubeconfig()) {
            if let Err(problem) = kubeconfig::remove(&file, CONTEXT) {
                warn!(%problem, "the context stays in the kubeconfig");
            }
        }
    }
    stopped
}

/// Gives kubeconfigs new keys in time, for as long as the yard runs.
async fn renew(
    issuer: &Issuer,
    folder: &Folder,
    files: &[PathBuf],
    mut life: Life,
) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        if !life.is_due(jiff::Timestamp::now().as_second()) {
            continue;
        }
        let access = match issuer.access(folder) {
            Ok(access) => access,
            Err(problem) => {
                warn!(%problem, "the user's certificate cannot be made anew");
                continue;
            }
        };
        for file in files {
            if let Err(problem) = kubeconfig::renew(file, CONTEXT, &access) {
                warn!(%problem, "a kubeconfig keeps a certificate that ends soon");
            }
        }
        tracing::info!("the user's certificate and token are made anew");
        life = access.life;
    }
}

/// Writes the kubeconfigs and says that the yard is ready. Answers with these files, and how long what
/// stands in them holds.
fn announce(
    flags: &Flags,
    folder: &Folder,
    url: &str,
    issuer: &Issuer,
) -> Result<(Vec<PathBuf>, Life), Failure> {
    let access = issuer.access(folder)?;
    kubeconfig::add(&folder.kubeconfig(), CONTEXT, &access)?;
    let users = match &flags.kubeconfig {
        Some(file) => Some(file.clone()),
        None => kubeconfig::usual(),
    };
    if let Some(file) = &users {
        kubeconfig::add(file, CONTEXT, &access)?;
    }
    Notice { pid: std::process::id(), url: url.to_owned() }.write(folder)?;
    output::say(&greeting::text(folder, users.as_deref(), flags.kubeconfig.is_some()));
    output::print(&format!("ready {url}\n"))?;
    Ok((users.into_iter().chain([folder.kubeconfig()]).collect(), access.life))
}

/// The listener that is asked for; else the one of last time, the usual one, or any.
fn listen(flags: &Flags, folder: &Folder) -> Result<TcpListener, Failure> {
    if let Some(address) = flags.listen {
        return TcpListener::bind(address).map_err(|error| {
            Failure::other(format!("listening on {address}"), &error)
                .hint("something else is there: choose another with --listen, or leave it out")
        });
    }
    let last = Notice::read_port(folder);
    let ports = [last, Some(USUAL_PORT), Some(0)];
    let mut failed = None;
    for port in ports.into_iter().flatten() {
        match TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = Some(error),
        }
    }
    let error = failed.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(Failure::other("listening on loopback", &error))
}

/// Ends the yard of a folder.
pub(crate) fn down(down: &Down) -> Result<(), Failure> {
    detach::stop(down)
}
