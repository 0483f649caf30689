//! Where Python environments are made: in a sandbox of the holder's, like a pod's, with less rights than a
//! pod has. It sees what its task says, and reaches other machines by a proxy of its own while it fetches.
//!
//! Must not know what is made, nor which programs make it.

mod way;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::oneshot;
use trainyard_holder::protocol::{
    ContainerSpec, Ending, Isolation, Limits, PodSpec, Privileges, Refusal, User,
};
use trainyard_holder::sweep::sweep;
use trainyard_image::{Begun, Ground, Pending, Sandbox, Task};

use crate::pod::root::{self, Hosts, PodFiles, Root};
use crate::pod::{files_of_run, limits, stdio};
use crate::shared::{Shared, lock};
use crate::yard::Exited;

const HOSTNAME: &str = "making";
const HOSTS: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost\n";
const LAST_WORDS: &str = "/dev/termination-log";
/// Processes and threads: installers and compilers take some dozens.
const PIDS: u64 = 4096;

/// Where environments are made on this node.
pub(crate) fn ground(shared: &Arc<Shared>) -> Ground {
    match shared.isolation {
        Isolation::Namespaces => Ground::Sandbox(Arc::new(Maker {
            shared: Arc::downgrade(shared),
            count: AtomicU64::new(0),
        })),
        Isolation::Processes => {
            tracing::warn!(
                "there is no sandbox to make Python environments in: only wheels are installed, and what \
                 pods ask for is not tried"
            );
            Ground::Machine
        }
    }
}

/// Runs the programs that make environments.
#[derive(Debug)]
struct Maker {
    shared: Weak<Shared>,
    count: AtomicU64,
}

impl Sandbox for Maker {
    fn start(&self, task: Task) -> Pending<'_, io::Result<Begun>> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let shared = self.shared.upgrade();
        Box::pin(async move {
            let shared = shared.ok_or_else(|| io::Error::other("the node has ended"))?;
            let id = format!("making-{number}");
            // Whoever asks may go away meanwhile; what was begun must then be ended in order.
            let beginning = tokio::spawn(async move { Making::begin(shared, id, task).await });
            beginning.await.map_err(io::Error::other)?
        })
    }
}

/// One program's sandbox.
struct Making {
    shared: Arc<Shared>,
    id: String,
    address: Ipv4Addr,
    way: way::Way,
}

impl Making {
    async fn begin(shared: Arc<Shared>, id: String, task: Task) -> io::Result<Begun> {
        let address = lock(&shared.addresses).take();
        let address = address.ok_or_else(|| io::Error::other("no address is free for it"))?;
        let mut env = task.env.clone();
        let way = match &task.fetches {
            Some(servers) => way::open(&shared, address, servers, &mut env).await,
            None => Ok(way::Way::default()),
        };
        let (way, failed) = match way {
            Ok(way) => (way, None),
            Err(error) => (way::Way::default(), Some(error)),
        };
        let making = Self { shared, id, address, way };
        let started = match failed {
            Some(error) => Err(error),
            None => making.start(task, env).await,
        };
        match started {
            Ok((exited, stdout, stderr)) => {
                let (keep, given_up) = oneshot::channel();
                let (tell, ended) = oneshot::channel();
                tokio::spawn(async move {
                    let code = making.play(exited, given_up).await;
                    // Whoever asked may have gone.
                    let _ = tell.send(code);
                });
                let ended = Box::pin(async move { ended.await.ok().flatten() });
                Ok(Begun { stdout, stderr, ended, keep })
            }
            Err(error) => {
                making.end().await;
                Err(error)
            }
        }
    }

    async fn start(
        &self,
        task: Task,
        env: Vec<(String, String)>,
    ) -> io::Result<(Exited, OwnedFd, OwnedFd)> {
        let folder = self.shared.places.pods.join(&self.id);
        let (scratch, termination) = files_of_run(&folder)?;
        let yard = &self.shared.yard;
        yard.add_pod(self.sandbox(folder.clone())).await.map_err(|refusal| refused(&refusal))?;
        let spec = self.container(task, env, scratch, &termination, &folder);
        let (inside, out, err) = stdio()?;
        let begun =
            yard.start_container(spec, Some(inside)).await.map_err(|refusal| refused(&refusal))?;
        Ok((begun.exited, out, err))
    }

    fn sandbox(&self, ephemeral: PathBuf) -> PodSpec {
        PodSpec {
            pod: self.id.clone(),
            node: self.shared.nodes.keys().next().cloned().unwrap_or_default(),
            hostname: HOSTNAME.to_owned(),
            address: Some(self.address),
            share_processes: false,
            ephemeral,
            memory_volumes: Vec::new(),
            shared_memory: limits::SHARED_MEMORY,
            limits: Limits { pids: Some(PIDS), ..Limits::default() },
        }
    }

    fn container(
        &self,
        task: Task,
        env: Vec<(String, String)>,
        scratch: PathBuf,
        termination: &Path,
        folder: &Path,
    ) -> ContainerSpec {
        let files = PodFiles {
            hosts: Hosts::Text(HOSTS.to_owned()),
            resolv: match self.shared.network.resolver() {
                Some(resolver) => resolver.resolv_conf(&Pod::default()).text,
                None => std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
            },
            hostname: format!("{HOSTNAME}\n"),
        };
        let user = User::default();
        let last_words = (termination, Path::new(LAST_WORDS));
        let changes = folder.join("changes");
        let Root { base, mounts } =
            root::root(&task.root, &user, files, last_words, &changes, Vec::new());
        ContainerSpec {
            container: format!("{}-program", self.id),
            pod: self.id.clone(),
            argv: task.argv,
            env,
            cwd: task.cwd,
            scratch,
            base,
            mounts,
            devices: Vec::new(),
            user,
            privileges: Privileges {
                capabilities: Vec::new(),
                no_new_privileges: true,
                seccomp: true,
                read_only_root: false,
            },
            limits: Limits { pids: Some(PIDS), ..Limits::default() },
            tty: false,
        }
    }

    /// Waits for the program's end, or brings it about when nobody waits any more.
    async fn play(self, exited: Exited, given_up: oneshot::Receiver<()>) -> Option<i32> {
        let exit = tokio::select! {
            exit = exited => exit.ok(),
            _ = given_up => None,
        };
        self.end().await;
        exit.map(|exit| match exit.ending {
            Ending::Code(code) => code,
            Ending::Signal(signal) => 128 + signal,
        })
    }

    /// Ends all that is left of it.
    async fn end(self) {
        if let Err(error) = self.shared.yard.remove_pod(&self.id).await {
            tracing::warn!(sandbox = self.id, %error, "a sandbox could not be removed");
        }
        // The holder leaves it where it refused the sandbox.
        let left = self.shared.places.pods.join(&self.id);
        let _ = tokio::task::spawn_blocking(move || sweep(&left)).await;
        drop(self.way);
        lock(&self.shared.addresses).give_back(self.address);
    }
}

fn refused(refusal: &Refusal) -> io::Error {
    io::Error::other(format!("in a sandbox: {refusal}"))
}
