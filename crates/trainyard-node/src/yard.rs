//! The agent's end of the holder: requests that can be awaited, and endings that find whoever waits
//! for them. Knows no pods beyond their ids.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Arc, Mutex};

use tokio::sync::{oneshot, watch};
use trainyard_holder::client::Holder;
use trainyard_holder::protocol::{
    Answer, ContainerSpec, Ending, Event, ExecSpec, Place, PodSpec, PodUsage, Reach, Refusal,
    RefusalKind, Request, SetUp, SocketKind, Uplink,
};

use crate::shared::lock;

const SIGKILL: i32 = 9;

/// How a container or an executed program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) ending: Ending,
    pub(crate) oom_killed: bool,
}

/// Waits for an ending; an error means the holder itself ended.
pub(crate) type Exited = oneshot::Receiver<Exit>;

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Exit>>>>;

/// A program that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) exited: Exited,
    /// The other side of its terminal, if it has one.
    pub(crate) terminal: Option<OwnedFd>,
}

/// What the holder said of itself.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) rootless: bool,
    pub(crate) cgroups: trainyard_holder::protocol::Cgroups,
    pub(crate) cgroups_reason: Option<String>,
}

/// The holder, for the agent; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Yard {
    holder: Holder,
    waiting: Waiting,
    ended: watch::Receiver<bool>,
    level: Level,
}

impl Yard {
    /// Starts a holder and has it enter its namespaces.
    pub(crate) async fn start(command: Command, set_up: SetUp) -> Result<Self, Refusal> {
        let waiting = Waiting::default();
        let (end, ended) = watch::channel(false);
        let (listeners, left) = (Arc::clone(&waiting), Arc::clone(&waiting));
        let on_event = move |event| {
            let Event::Exited { target, ending, oom_killed, .. } = event;
            if let Some(listener) = lock(&listeners).remove(&target) {
                // Whoever started it may have gone; then nobody needs to know.
                let _ = listener.send(Exit { ending, oom_killed });
            }
        };
        let on_end = move || {
            // Whoever learns that no ending will come can ask why.
            end.send_replace(true);
            lock(&left).clear();
        };
        let holder = Holder::spawn(command, on_event, on_end).map_err(|error| Refusal {
            step: "starting the holder".to_owned(),
            reason: error.to_string(),
            kind: RefusalKind::Machine,
        })?;
        let ready = match ask(&holder, Request::SetUp(set_up), Vec::new()).await {
            Ok((Answer::Ready { rootless, cgroups, cgroups_reason, .. }, _)) => {
                Ok((rootless, cgroups, cgroups_reason))
            }
            Ok((answer, _)) => Err(misunderstood(&answer)),
            Err(refusal) => Err(refusal),
        };
        let (rootless, cgroups, cgroups_reason) = match ready {
            Ok(ready) => ready,
            Err(refusal) => {
                // Another one may be tried under the same name, when this one has gone.
                let _ = tokio::task::spawn_blocking(move || holder.end()).await;
                return Err(refusal);
            }
        };
        let level = Level { rootless, cgroups, cgroups_reason };
        Ok(Self { holder, waiting, ended, level })
    }

    /// What it reached.
    pub(crate) fn level(&self) -> &Level {
        &self.level
    }

    /// The holder's process.
    pub(crate) fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// Has the holder end everything; returns when it has.
    pub(crate) async fn end(&self) {
        let holder = self.holder.clone();
        // A panic in there has been reported where it happened.
        let _ = tokio::task::spawn_blocking(move || holder.end()).await;
    }

    /// Returns when the holder has ended.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.clone();
        // An error means that the sender is gone, and the holder with it.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Whether the holder has ended.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Makes a pod's sandbox.
    pub(crate) async fn add_pod(&self, spec: PodSpec) -> Result<(), Refusal> {
        self.done(Request::AddPod(Box::new(spec))).await
    }

    /// Ends all that is left of a pod.
    pub(crate) async fn remove_pod(&self, pod: &str) -> Result<(), Refusal> {
        self.done(Request::RemovePod { pod: pod.to_owned() }).await
    }

    /// Starts a container on these descriptors, or on a terminal.
    pub(crate) async fn start_container(
        &self,
        spec: ContainerSpec,
        stdio: Option<[OwnedFd; 3]>,
    ) -> Result<Begun, Refusal> {
        let id = spec.container.clone();
        self.run(id, Request::Start(Box::new(spec)), stdio).await
    }

    /// Runs one more program in a container, on these descriptors or on a terminal.
    pub(crate) async fn exec(
        &self,
        spec: ExecSpec,
        stdio: Option<[OwnedFd; 3]>,
    ) -> Result<Begun, Refusal> {
        let id = spec.exec.clone();
        self.run(id, Request::Exec(Box::new(spec)), stdio).await
    }

    async fn run(
        &self,
        id: String,
        request: Request,
        stdio: Option<[OwnedFd; 3]>,
    ) -> Result<Begun, Refusal> {
        let (listener, exited) = oneshot::channel();
        // It may end before the answer is read.
        lock(&self.waiting).insert(id.clone(), listener);
        match ask(&self.holder, request, stdio.into_iter().flatten().collect()).await {
            Ok((_, fds)) => Ok(Begun { exited, terminal: fds.into_iter().next() }),
            Err(refusal) => {
                lock(&self.waiting).remove(&id);
                Err(refusal)
            }
        }
    }

    /// Sends a signal.
    pub(crate) async fn signal(
        &self,
        target: &str,
        signal: i32,
        reach: Reach,
    ) -> Result<(), Refusal> {
        self.done(Request::Signal { target: target.to_owned(), signal, reach }).await
    }

    /// Kills a container or program without waiting for it.
    pub(crate) fn kill(&self, target: &str) {
        let request =
            Request::Signal { target: target.to_owned(), signal: SIGKILL, reach: Reach::All };
        // It may have ended just now.
        self.holder.call(request, Vec::new(), |_| {});
    }

    /// A socket that listens inside.
    pub(crate) async fn listen(
        &self,
        place: Place,
        address: SocketAddrV4,
        kind: SocketKind,
    ) -> Result<OwnedFd, Refusal> {
        self.socket(Request::Listen { place, address, kind }).await
    }

    /// A socket that is connecting, from inside.
    pub(crate) async fn connect(
        &self,
        place: Place,
        address: SocketAddrV4,
    ) -> Result<OwnedFd, Refusal> {
        self.socket(Request::Connect { place, address }).await
    }

    /// Gives the yard's own network one more address.
    pub(crate) async fn add_address(&self, address: Ipv4Addr) -> Result<(), Refusal> {
        self.done(Request::AddAddress { address }).await
    }

    /// Opens the way out of the pods' network.
    pub(crate) async fn uplink(&self, uplink: Uplink) -> Result<(), Refusal> {
        self.done(Request::Uplink(uplink)).await
    }

    /// Says where that does not lead.
    pub(crate) async fn keep_from(&self, networks: Vec<(Ipv4Addr, u8)>) -> Result<(), Refusal> {
        self.done(Request::KeepFrom { networks }).await
    }

    /// What pods use now.
    pub(crate) async fn usage(&self) -> Result<Vec<PodUsage>, Refusal> {
        match ask(&self.holder, Request::Usage, Vec::new()).await?.0 {
            Answer::Usage(usage) => Ok(usage),
            other => Err(misunderstood(&other)),
        }
    }

    async fn done(&self, request: Request) -> Result<(), Refusal> {
        ask(&self.holder, request, Vec::new()).await.map(drop)
    }

    async fn socket(&self, request: Request) -> Result<OwnedFd, Refusal> {
        let (answer, fds) = ask(&self.holder, request, Vec::new()).await?;
        fds.into_iter().next().ok_or_else(|| misunderstood(&answer))
    }
}

/// Asks a holder.
pub(crate) async fn ask(
    holder: &Holder,
    request: Request,
    fds: Vec<OwnedFd>,
) -> Result<(Answer, Vec<OwnedFd>), Refusal> {
    let (tell, answer) = oneshot::channel();
    holder.call(request, fds, move |result| {
        // The caller may have stopped waiting.
        let _ = tell.send(result);
    });
    answer.await.unwrap_or_else(|_| {
        Err(Refusal {
            step: "asking the holder".to_owned(),
            reason: "it has ended".to_owned(),
            kind: RefusalKind::Machine,
        })
    })
}

fn misunderstood(answer: &Answer) -> Refusal {
    Refusal {
        step: "asking the holder".to_owned(),
        reason: format!("unexpected answer {answer:?}"),
        kind: RefusalKind::Machine,
    }
}
