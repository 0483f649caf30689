//! Containers and the programs run in them: starting, signalling, hearing of their end.
//!
//! Must not know how a root is made or a pod is connected.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::LinkNameSpaceType;

use super::pods::Pod;
use super::{Yard, checked_name};
use crate::cgroup::Group;
use crate::container::init::{self, Birth};
use crate::container::{Order, Report};
use crate::protocol::{
    Answer, ContainerSpec, Ending, Event, ExecSpec, Isolation, Message, Network, Reach, Refusal,
    RefusalKind,
};
use crate::refuse::{OrRefuse, refusal};
use crate::root::base::Base;
use crate::sys::{self, Ended, Pid};
use crate::tree::{self, Process};
use crate::wire;

/// A container.
pub(super) struct Container {
    pub(super) pod: String,
    pub(super) pid: Pid,
    pub(super) control: UnixStream,
    pub(super) group: Option<Group>,
    /// What its root begins with, kept for as long as it is there.
    _base: Option<Rc<Base>>,
    /// Its init may still have something to say.
    pub(super) reports: bool,
    /// Its init is the first of a PID namespace.
    first: bool,
    /// The call to answer when it has started, or could not.
    call: Option<u64>,
    refused: Option<Refusal>,
    ending: Option<Ending>,
}

/// A program run in a container beside its own.
pub(super) struct Exec {
    container: String,
    /// The call to answer when it has started, or could not.
    call: Option<u64>,
}

fn bad(step: impl Into<String>, reason: impl Into<String>) -> Refusal {
    refusal(RefusalKind::BadRequest, step, reason)
}

impl Yard {
    /// Begins to start a container; the answer comes when it has, or could not.
    pub(super) fn start(
        &mut self,
        id: u64,
        spec: &ContainerSpec,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Refusal> {
        let step = || format!("starting container {}", spec.container);
        checked_name("container", &spec.container)?;
        let stdio = if spec.tty { None } else { Some(init::three(descriptors)?) };
        if self.containers.contains_key(&spec.container) || self.execs.contains_key(&spec.container)
        {
            return Err(bad(step(), "there is one of this name"));
        }
        if self.pods.get(&spec.pod).is_none_or(Pod::is_leaving) {
            return Err(bad(step(), format!("there is no pod {}", spec.pod)));
        }
        let base = match &mut self.bases {
            Some(bases) if !spec.base.is_empty() => Some(bases.with(&spec.base)?),
            _ => None,
        };
        let machine = RefusalKind::Machine;
        let (control, theirs) = UnixStream::pair().or_refuse(machine, step)?;
        let group = match self.pods.get(&spec.pod).and_then(|pod| pod.group.as_ref()) {
            None => None,
            Some(group) => {
                let made = group.child(&spec.container, &spec.limits, true);
                Some(made.or_refuse(machine, || "making the container's cgroup".to_owned())?)
            }
        };
        let forked = self.fork_init(spec, theirs, stdio, group.as_ref(), base.as_deref());
        let (pid, first) = match forked {
            Ok(forked) => forked,
            Err(error) => {
                if let Some(group) = group {
                    group.remove();
                }
                return Err(error).or_refuse(machine, step);
            }
        };
        let container = Container {
            pod: spec.pod.clone(),
            pid,
            control,
            group,
            _base: base,
            reports: true,
            first,
            call: Some(id),
            refused: None,
            ending: None,
        };
        self.containers.insert(spec.container.clone(), container);
        Ok(())
    }

    fn fork_init(
        &self,
        spec: &ContainerSpec,
        control: UnixStream,
        stdio: Option<[OwnedFd; 3]>,
        group: Option<&Group>,
        base: Option<&Base>,
    ) -> io::Result<(Pid, bool)> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let pod = self.pods.get(&spec.pod).ok_or_else(gone)?;
        let mut spaces = Vec::new();
        if let Some(own) = &pod.spaces {
            spaces.push((&own.uts, LinkNameSpaceType::HostNameAndNISDomainName));
            spaces.push((&own.ipc, LinkNameSpaceType::InterProcessCommunication));
            if self.network == Network::Bridge {
                let node = || self.nodes.get(&pod.node);
                let net = own.net.as_ref().or_else(node).ok_or_else(gone)?;
                spaces.push((&net.space, LinkNameSpaceType::Network));
            }
        }
        let isolated = self.rights.isolation == Isolation::Namespaces;
        let first = isolated && pod.pause.is_none();
        let birth = Birth {
            spec,
            control,
            stdio,
            spaces,
            entrances: group.map(Group::entrances).transpose()?.unwrap_or_default(),
            shm: pod.shm.as_deref(),
            base: base.map(Base::folder),
            rights: self.rights,
            overlay: self.overlay,
            resources: self.resources.clone(),
            first,
        };
        let child = || init::run(birth);
        let pid = match (&self.home, &pod.pause) {
            (Some(home), Some(pause)) => home.fork_into(&pause.pids, libc::CLONE_NEWNS, child)?,
            (Some(_), None) => sys::fork(libc::CLONE_NEWNS | libc::CLONE_NEWPID, child)?,
            (None, _) => sys::fork(0, child)?,
        };
        Ok((pid, first))
    }

    /// Begins to run one more program in a container.
    pub(super) fn exec(
        &mut self,
        id: u64,
        spec: ExecSpec,
        descriptors: &[OwnedFd],
    ) -> Result<(), Refusal> {
        let step = || format!("running a program in container {}", spec.container);
        checked_name("program", &spec.exec)?;
        if descriptors.len() != if spec.tty { 0 } else { 3 } {
            return Err(bad(step(), "three descriptors are needed, or none for a terminal"));
        }
        if self.execs.contains_key(&spec.exec) || self.containers.contains_key(&spec.exec) {
            return Err(bad(step(), "there is one of this name"));
        }
        let running = self.containers.get(&spec.container);
        let running = running.filter(|c| c.call.is_none() && c.ending.is_none() && c.reports);
        let Some(container) = running else {
            return Err(bad(step(), "it does not run"));
        };
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let (exec, container_id) = (spec.exec.clone(), spec.container.clone());
        let step = step();
        wire::send(&container.control, &Order::Exec(Box::new(spec)), &borrowed)
            .or_refuse(RefusalKind::Machine, || step)?;
        self.execs.insert(exec, Exec { container: container_id, call: Some(id) });
        Ok(())
    }

    /// Sends a signal; whoever has ended already is no error.
    pub(super) fn signal(
        &mut self,
        target: &str,
        signal: i32,
        reach: Reach,
    ) -> Result<(), Refusal> {
        if !(1..=64).contains(&signal) {
            return Err(bad(format!("sending signal {signal}"), "there is none of this number"));
        }
        let (id, exec) = match self.execs.get(target) {
            Some(exec) => (exec.container.as_str(), Some(target.to_owned())),
            None => (target, None),
        };
        let Some(container) = self.containers.get(id) else { return Ok(()) };
        if exec.is_none() && signal == libc::SIGKILL && reach == Reach::All {
            container.kill();
        } else {
            let order = Order::Signal { exec, signal, reach };
            // An init that hears no more has nobody left to signal.
            drop(wire::send(&container.control, &order, &[]));
        }
        Ok(())
    }

    pub(super) fn kill_containers(&self, pod: &str) {
        for container in self.containers.values().filter(|container| container.pod == pod) {
            container.kill();
        }
    }

    /// Takes one report of a container's init.
    pub(super) fn hear(&mut self, id: &str) {
        let Some(container) = self.containers.get_mut(id) else { return };
        let received = wire::receive(&container.control).ok().flatten();
        let read = |frame: wire::Frame| {
            Some((serde_json::from_slice(&frame.payload).ok()?, frame.descriptors))
        };
        let Some((report, terminal)) = received.and_then(read) else {
            container.reports = false;
            return;
        };
        match report {
            Report::Started { exec } => {
                let call = match exec {
                    None => container.call.take(),
                    Some(exec) => self.execs.get_mut(&exec).and_then(|exec| exec.call.take()),
                };
                if let Some(id) = call {
                    self.say(&Message::Answer { id, result: Ok(Answer::Started) }, &terminal);
                }
            }
            Report::Refused { exec: None, refusal } => container.refused = Some(refusal),
            Report::Ended { exec: None, ending } => container.ending = Some(ending),
            Report::Refused { exec: Some(exec), refusal } => {
                if let Some(call) = self.execs.remove(&exec).and_then(|exec| exec.call) {
                    self.answer(call, Err(refusal));
                }
            }
            Report::Ended { exec: Some(exec), ending } => self.exec_gone(&exec, ending),
        }
    }

    fn exec_gone(&mut self, id: &str, ending: Ending) {
        let Some(exec) = self.execs.remove(id) else { return };
        match exec.call {
            Some(call) => {
                let step = format!("running a program in container {}", exec.container);
                let gone = refusal(RefusalKind::Machine, step, "the container has ended");
                self.answer(call, Err(gone));
            }
            None => self.tell(Event::Exited {
                target: id.to_owned(),
                ending,
                oom_killed: false,
                cpu_usec: None,
                peak_memory: None,
            }),
        }
    }

    /// A child has ended; if it was a container's init, nothing of that runs any more.
    pub(super) fn container_gone(&mut self, ended: &Ended) {
        let found = self.containers.iter().find(|(_, container)| container.pid == ended.pid);
        let Some(id) = found.map(|(id, _)| id.clone()) else { return };
        while self.containers.get(&id).is_some_and(Container::has_report) {
            self.hear(&id);
        }
        let execs = self.execs.iter().filter(|(_, exec)| exec.container == id);
        let execs: Vec<String> = execs.map(|(exec, _)| exec.clone()).collect();
        for exec in execs {
            self.exec_gone(&exec, Ending::Signal(libc::SIGKILL));
        }
        let Some(container) = self.containers.remove(&id) else { return };
        if container.ending.is_none() && !container.first {
            self.kill_strays(container.group.as_ref());
        }
        let group = container.group.as_ref();
        match container.call {
            Some(call) => {
                let step = format!("starting container {id}");
                let killed = || refusal(RefusalKind::Machine, step, "it was ended meanwhile");
                self.answer(call, Err(container.refused.clone().unwrap_or_else(killed)));
            }
            None => self.tell(Event::Exited {
                target: id,
                ending: container.ending.unwrap_or(Ending::Signal(libc::SIGKILL)),
                oom_killed: group.is_some_and(|group| group.oom_kills() > 0),
                cpu_usec: group.and_then(Group::cpu_usec).or(Some(ended.cpu_usec)),
                peak_memory: group.and_then(Group::peak_memory).or(Some(ended.peak_memory)),
            }),
        }
        if let Some(group) = container.group
            && !group.remove()
            && let Some(pod) = self.pods.get_mut(&container.pod)
        {
            pod.dead_groups.push(group);
        }
    }

    /// Kills what an init that was itself killed could not: its processes have come to the holder,
    /// or to the first process of the pod's PID namespace.
    fn kill_strays(&self, group: Option<&Group>) {
        if let Some(group) = group {
            group.kill();
        }
        let mut adopters: Vec<Pid> = self.pods.values().filter_map(Pod::first_process).collect();
        if self.rights.isolation == Isolation::Processes {
            adopters.push(std::process::id().cast_signed());
        }
        let all = self.proc.processes().unwrap_or_default();
        let known = |pid| {
            self.sweepers.contains_key(&pid) || self.containers.values().any(|c| c.pid == pid)
        };
        let adopted = |process: &&Process| adopters.contains(&process.parent);
        for stray in all.iter().filter(adopted).filter(|process| !known(process.pid)) {
            for process in tree::below(&all, stray.pid).iter().chain([stray]) {
                drop(sys::kill(process.pid, libc::SIGKILL));
            }
        }
    }
}

impl Container {
    /// Kills all of it. A PID namespace dies with its first process; elsewhere the init does it.
    fn kill(&self) {
        if self.first {
            drop(sys::kill(self.pid, libc::SIGKILL));
        } else {
            drop(wire::send(&self.control, &Order::End, &[]));
            // The container's own programs may have stopped it.
            drop(sys::kill(self.pid, libc::SIGCONT));
        }
    }

    /// Whether there is something to be heard at once.
    fn has_report(&self) -> bool {
        let mut source = [PollFd::new(&self.control, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.reports && poll(&mut source, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}
