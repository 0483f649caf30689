//! The holder proper: one loop over its owner's requests, its containers' reports and its children's
//! ends. It never waits for a single one of them.
//!
//! Owns the books: pods, containers, programs, and who waits for which answer.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::cgroup::Group;
use crate::container::privileges::Rights;
use crate::container::program::Resources;
use crate::enter::{Entered, Ledger, because};
use crate::memory::Idle;
use crate::net::{Bridge, NetSpace};
use crate::protocol::{
    Answer, Call, Event, Isolation, Message, Network, Refusal, RefusalKind, Request, SetUp,
};
use crate::refuse::{OrRefuse, refusal};
use crate::root::Overlay;
use crate::root::base::Bases;
use crate::sys::{self, Pid};
use crate::tree::Proc;
use crate::{root, wire};

mod containers;
mod pods;
mod sockets;
mod spaces;

use containers::{Container, Exec};
use pods::Pod;
use spaces::Home;

/// How long the end of everything may take before the kernel is left to it.
const LAST_PATIENCE: Duration = Duration::from_secs(30);
/// How soon something that could not be done yet is tried again.
const AGAIN: Duration = Duration::from_millis(10);
/// The longest name of a pod or container; cgroup folders bear them.
const LONGEST_NAME: usize = 200;

/// Everything the holder knows.
pub(crate) struct Yard {
    socket: UnixStream,
    signals: OwnedFd,
    /// Ends with the outer process.
    life: OwnedFd,
    ledger: Ledger,
    proc: Proc,
    home: Option<Home>,
    rights: Rights,
    network: Network,
    overlay: Overlay,
    bases: Option<Bases>,
    resources: Resources,
    group: Option<Group>,
    bridge: Option<Bridge>,
    nodes: BTreeMap<String, NetSpace>,
    pods: BTreeMap<String, Pod>,
    containers: BTreeMap<String, Container>,
    execs: BTreeMap<String, Exec>,
    /// Children that remove the folders of pods.
    sweepers: BTreeMap<Pid, String>,
    /// Since when everything is being ended.
    ending: Option<Instant>,
    /// The outer process went first.
    deserted: bool,
}

/// Letters, digits and dashes, beginning with none of the last.
pub(crate) fn checked_name(what: &str, name: &str) -> Result<(), Refusal> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty()
        || name.len() > LONGEST_NAME
        || name.starts_with('-')
        || !name.chars().all(good)
    {
        return Err(refusal(
            RefusalKind::BadRequest,
            format!("naming a {what} {name:?}"),
            "a name has letters, digits and dashes, and not too many",
        ));
    }
    Ok(())
}

impl Yard {
    /// The inner process's whole life; its exit code.
    pub(crate) fn live(socket: UnixStream, entered: Entered) -> i32 {
        let call = entered.call;
        let (cgroups, cgroups_reason) = entered.cgroups();
        let speaking = socket.try_clone();
        match Self::new(socket, entered) {
            Ok(mut yard) => {
                let ready = Answer::Ready {
                    rootless: yard.rights.rootless,
                    cgroups,
                    cgroups_reason,
                    overlay: yard.overlay != Overlay::None,
                };
                yard.answer(call, Ok(ready));
                yard.attend();
                0
            }
            Err(refusal) => {
                let message = Message::Answer { id: call, result: Err(refusal) };
                drop(speaking.and_then(|socket| wire::send(&socket, &message, &[])));
                1
            }
        }
    }

    fn new(socket: UnixStream, entered: Entered) -> Result<Self, Refusal> {
        let machine = RefusalKind::Machine;
        let step = || "setting up".to_owned();
        let signals = sys::child_signals().or_refuse(machine, step)?;
        let rights = entered.rights;
        let isolated = rights.isolation == Isolation::Namespaces;
        let (proc, home) = if isolated {
            let proc = root::detached_proc().map_err(|error| {
                let reason = because(&error, rights.rootless);
                refusal(RefusalKind::NotPermitted, "mounting /proc", reason)
            })?;
            let proc = Proc::of(proc);
            let home = Home::new(&proc).or_refuse(machine, step)?;
            (proc, Some(home))
        } else {
            let me = rustix::process::getpid();
            rustix::process::set_child_subreaper(Some(me)).or_refuse(machine, step)?;
            (Proc::open().or_refuse(machine, step)?, None)
        };
        // In a user namespace of its own the yard's processes are counted apart from the user's others.
        let countable = rights.rootless && isolated && entered.groups.is_err();
        let processes = entered.set_up.limits.pids.filter(|_| countable);
        let mut yard = Self {
            socket,
            signals,
            life: entered.life,
            ledger: entered.ledger,
            proc,
            home,
            rights,
            network: entered.set_up.network,
            overlay: if isolated { root::overlays(rights.rootless) } else { Overlay::None },
            bases: None,
            resources: Resources { descriptors: entered.descriptors, processes },
            group: entered.groups.ok(),
            bridge: None,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            containers: BTreeMap::new(),
            execs: BTreeMap::new(),
            sweepers: BTreeMap::new(),
            ending: None,
            deserted: false,
        };
        yard.connect(&entered.set_up)?;
        if yard.overlay != Overlay::None
            && let Some(folder) = entered.set_up.bases
        {
            yard.bases = Some(yard.make_bases(&folder)?);
        }
        Ok(yard)
    }

    fn make_bases(&mut self, folder: &Path) -> Result<Bases, Refusal> {
        let step = || format!("taking the folder {}", folder.display());
        pods::made(folder)
            .and_then(|()| self.ledger.add(folder))
            .and_then(|()| Bases::at(folder))
            .or_refuse(RefusalKind::Machine, step)
    }

    /// Nothing uses them any more.
    fn remove_bases(&mut self) {
        let Some(folder) = self.bases.take().map(Bases::remove) else { return };
        // What stays in the ledger the outer process removes.
        if std::fs::remove_dir(&folder).is_ok() {
            drop(self.ledger.strike(&folder));
        }
    }

    /// Makes the bridge and the virtual nodes' networks.
    fn connect(&mut self, set_up: &SetUp) -> Result<(), Refusal> {
        let Some(home) = &self.home else { return Ok(()) };
        if set_up.network != Network::Bridge {
            return Ok(());
        }
        let kind = RefusalKind::NotPermitted;
        let mut bridge = Bridge::new(set_up.gateway, set_up.prefix)
            .or_refuse(kind, || "making the bridge".to_owned())?;
        for node in &set_up.nodes {
            let step = || format!("making the network of node {}", node.name);
            let bad = |reason| refusal(RefusalKind::BadRequest, step(), reason);
            bridge.check(node.address).map_err(bad)?;
            let mut space = home.new_network(&self.proc).or_refuse(kind, step)?;
            bridge.join(&mut space, node.address).or_refuse(kind, step)?;
            self.nodes.insert(node.name.clone(), space);
        }
        self.bridge = Some(bridge);
        Ok(())
    }

    fn answer(&mut self, id: u64, result: Result<Answer, Refusal>) {
        self.say(&Message::Answer { id, result }, &[]);
    }

    fn tell(&mut self, event: Event) {
        if self.deserted {
            // What ends now was not ended by its own doing, nor by its owner's.
            return;
        }
        self.say(&Message::Event(event), &[]);
    }

    fn say(&mut self, message: &Message, descriptors: &[OwnedFd]) {
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        // An owner that is gone is noticed by the end of its requests.
        drop(wire::send(&self.socket, message, &descriptors));
    }

    /// Serves until the owner is gone and nothing is left.
    fn attend(&mut self) {
        let mut idle = Idle::new();
        loop {
            let ready = self.wait(&mut idle);
            if ready.owner && self.ending.is_none() && !self.take_call() {
                self.end();
            }
            if ready.outer_gone {
                self.deserted = true;
                self.end();
            }
            for container in ready.reports {
                self.hear(&container);
            }
            if ready.children {
                self.reap();
            }
            self.advance_all();
            if let Some(since) = self.ending
                && (self.pods.is_empty() || since.elapsed() > LAST_PATIENCE)
            {
                break;
            }
        }
        self.remove_bases();
        for _ in 0..100 {
            if self.group.as_ref().is_none_or(Group::remove_yard) {
                break;
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn wait(&self, idle: &mut Idle) -> Ready {
        let mut sources =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.life, PollFlags::IN)];
        let reporting: Vec<_> = self.containers.iter().filter(|(_, c)| c.reports).collect();
        sources.extend(reporting.iter().map(|(_, c)| PollFd::new(&c.control, PollFlags::IN)));
        if self.ending.is_none() {
            sources.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        let tries = self.pods.values().filter_map(Pod::tries_again);
        let most = tries.chain(self.ending.map(|_| AGAIN)).min();
        if idle.poll(&mut sources, most).is_err() {
            return Ready::default();
        }
        let ready: Vec<bool> = sources.iter().map(|s| !s.revents().is_empty()).collect();
        let reports = reporting.iter().zip(&ready[2..]).filter(|(_, ready)| **ready);
        Ready {
            children: ready[0],
            outer_gone: ready[1] && self.ending.is_none(),
            reports: reports.map(|((id, _), _)| (*id).clone()).collect(),
            owner: self.ending.is_none() && ready.last().copied().unwrap_or(false),
        }
    }

    /// Takes one request. False: the owner is gone.
    fn take_call(&mut self) -> bool {
        let Ok(Some(frame)) = wire::receive(&self.socket) else { return false };
        let call: Call = match serde_json::from_slice(&frame.payload) {
            Ok(call) => call,
            Err(error) => {
                // Only its number is needed to say so.
                let value: serde_json::Value =
                    serde_json::from_slice(&frame.payload).unwrap_or_default();
                let Some(id) = value.get("id").and_then(serde_json::Value::as_u64) else {
                    return false;
                };
                let bad =
                    refusal(RefusalKind::BadRequest, "reading the request", error.to_string());
                self.answer(id, Err(bad));
                return true;
            }
        };
        let id = call.id;
        match self.carry_out(id, call.request, frame.descriptors) {
            Ok(Some(answer)) => self.answer(id, Ok(answer)),
            Ok(None) => {}
            Err(refusal) => self.answer(id, Err(refusal)),
        }
        true
    }

    /// Does what is asked. None: the answer comes later, or was sent.
    fn carry_out(
        &mut self,
        id: u64,
        request: Request,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Option<Answer>, Refusal> {
        match request {
            Request::SetUp(_) | Request::Tether(_) => {
                Err(refusal(RefusalKind::BadRequest, "setting up", "it has been done"))
            }
            Request::AddPod(spec) => self.add_pod(*spec).map(|()| Some(Answer::Done)),
            Request::RemovePod { pod } => Ok(self.remove_pod(id, &pod)),
            Request::Start(spec) => self.start(id, &spec, descriptors).map(|()| None),
            Request::Exec(spec) => self.exec(id, *spec, &descriptors).map(|()| None),
            Request::Signal { target, signal, reach } => {
                self.signal(&target, signal, reach).map(|()| Some(Answer::Done))
            }
            Request::Listen { place, address, kind } => {
                let socket = self.listen(&place, address, kind)?;
                self.say(&Message::Answer { id, result: Ok(Answer::Socket) }, &[socket]);
                Ok(None)
            }
            Request::Connect { place, address } => {
                let socket = self.connect_to(&place, address)?;
                self.say(&Message::Answer { id, result: Ok(Answer::Socket) }, &[socket]);
                Ok(None)
            }
            Request::AddAddress { address } => {
                self.add_address(address).map(|()| Some(Answer::Done))
            }
            Request::Usage => Ok(Some(Answer::Usage(self.usage()))),
            Request::Uplink(uplink) => self.uplink(&uplink).map(|()| Some(Answer::Done)),
            Request::KeepFrom { networks } => {
                self.keep_from(&networks).map(|()| Some(Answer::Done))
            }
        }
    }

    /// Ends everything.
    fn end(&mut self) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Instant::now());
        let pods: Vec<String> = self.pods.keys().cloned().collect();
        for pod in pods {
            self.begin_removal(&pod);
        }
    }

    fn reap(&mut self) {
        let mut notice = [0; 128];
        while rustix::io::read(&self.signals, &mut notice).is_ok() {}
        while let Ok(Some(ended)) = sys::reap(false) {
            if let Some(pod) = self.sweepers.remove(&ended.pid) {
                self.swept(&pod, ended.ending);
            } else if !self.pause_gone(ended.pid) {
                self.container_gone(&ended);
            }
        }
    }
}

/// What there is to do.
#[derive(Default)]
struct Ready {
    children: bool,
    outer_gone: bool,
    reports: Vec<String>,
    owner: bool,
}
