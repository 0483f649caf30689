//! The init of a container: first process of its PID namespace, or, where it has none of its own,
//! the subreaper above its processes.
//!
//! It outlives the program by nothing: when that has ended, or the holder is gone, it kills what is
//! left, says how the program ended, and ends. Must not know cgroups beyond their entrances.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, Pid as RustixPid, Signal, pidfd_open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::confine;
use super::privileges::Rights;
use super::program::{self, Program, Resources};
use super::terminal::Terminals;
use super::{Order, Report};
use crate::cgroup::Entrances;
use crate::memory::{self, Idle};
use crate::protocol::{
    ContainerSpec, ExecSpec, Isolation, Mount, Reach, Refusal, RefusalKind, User,
};
use crate::refuse::{OrRefuse, refusal};
use crate::root::{self, Manner, Overlay, Plan};
use crate::sys::{self, Ended, Pid};
use crate::tree::{self, Proc};
use crate::wire;

/// What the holder gives an init by forking it.
pub(crate) struct Birth<'a> {
    pub(crate) spec: &'a ContainerSpec,
    pub(crate) control: UnixStream,
    /// None: it gets a terminal.
    pub(crate) stdio: Option<[OwnedFd; 3]>,
    /// Namespaces of the pod to join.
    pub(crate) spaces: Vec<(&'a OwnedFd, LinkNameSpaceType)>,
    pub(crate) entrances: Entrances,
    pub(crate) shm: Option<&'a Path>,
    /// A copy of what the root begins with.
    pub(crate) base: Option<&'a Path>,
    pub(crate) rights: Rights,
    pub(crate) overlay: Overlay,
    pub(crate) resources: Resources,
    /// First process of a PID namespace of its own.
    pub(crate) first: bool,
}

/// The init's whole life; its exit code.
pub(crate) fn run(birth: Birth<'_>) -> i32 {
    let mut keep: Vec<RawFd> = vec![0, 1, 2, birth.control.as_raw_fd()];
    let inherited = birth.stdio.iter().flatten().chain(birth.entrances.descriptors());
    keep.extend(inherited.map(AsRawFd::as_raw_fd));
    keep.extend(birth.spaces.iter().map(|(space, _)| space.as_raw_fd()));
    let Ok(control) = birth.control.try_clone() else { return 1 };
    keep.push(control.as_raw_fd());
    let begun = sys::close_all_but(&keep)
        .or_refuse(RefusalKind::Machine, || "closing descriptors".to_owned())
        .and_then(|()| Init::begin(birth));
    let ended = begun.and_then(Init::attend);
    match ended {
        Ok(()) => 0,
        Err(refusal) => {
            // When the holder is gone there is nobody to tell.
            drop(wire::send(&control, &Report::Refused { exec: None, refusal }, &[]));
            1
        }
    }
}

/// A program of the container that runs, or is about to.
struct Running {
    pid: Pid,
    /// None: the container's own.
    exec: Option<String>,
    /// Where it says whether it could be started, until it has.
    report: Option<OwnedFd>,
    /// The other side of its terminal, until it is handed on.
    terminal: Option<OwnedFd>,
}

struct Init {
    control: UnixStream,
    signals: OwnedFd,
    proc: Proc,
    entrances: Entrances,
    rights: Rights,
    resources: Resources,
    first: bool,
    /// Its seccomp filter is that of the container's programs.
    filtered: bool,
    user: User,
    terminals: Terminals,
    /// The container's own program, for its user namespace.
    peer: Option<OwnedFd>,
    programs: Vec<Running>,
}

impl Init {
    /// Makes the root and starts the program.
    fn begin(birth: Birth<'_>) -> Result<Self, Refusal> {
        let machine = RefusalKind::Machine;
        let step = || "preparing the container".to_owned();
        let spec = birth.spec;
        for (space, kind) in &birth.spaces {
            move_into_link_name_space(space.as_fd(), Some(*kind))
                .or_refuse(machine, || "joining the pod's namespaces".to_owned())?;
        }
        // A PID namespace dies with the holder; elsewhere the end of the control socket says so.
        let terminals = if birth.rights.isolation == Isolation::Namespaces {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .or_refuse(machine, step)?;
            Terminals::Own(enter_root(&birth)?)
        } else {
            plain_mounts(spec.base.iter().chain(&spec.mounts))?;
            Terminals::Machine
        };
        if !birth.first {
            let me = rustix::process::getpid();
            rustix::process::set_child_subreaper(Some(me)).or_refuse(machine, step)?;
        }
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .or_refuse(machine, step)?;
        let signals = sys::child_signals().or_refuse(machine, step)?;
        let proc = Proc::open().or_refuse(machine, step)?;
        let (stdio, terminal) = connected(birth.stdio, &terminals, &spec.user)?;
        let (go, gate) = std::io::pipe().or_refuse(machine, step)?;
        let (pid, report) = program::start(&Program {
            argv: &spec.argv,
            env: &spec.env,
            cwd: &spec.cwd,
            user: &spec.user,
            privileges: &spec.privileges,
            tty: terminal.is_some(),
            stdio: &stdio,
            entrances: &birth.entrances,
            rights: birth.rights,
            resources: birth.resources.clone(),
            peer: None,
            filtered: false,
            go: Some(go.as_fd()),
        })
        .or_refuse(machine, || "forking the program".to_owned())?;
        // The program, which takes what it may have from what the init has, begins after this.
        let filtered = confine::init(&spec.user, &spec.privileges, birth.rights)?;
        rustix::io::write(&gate, &[0]).or_refuse(machine, step)?;
        Ok(Self {
            control: birth.control,
            signals,
            proc,
            entrances: birth.entrances,
            rights: birth.rights,
            resources: birth.resources,
            first: birth.first,
            filtered,
            user: spec.user.clone(),
            terminals,
            peer: RustixPid::from_raw(pid)
                .and_then(|pid| pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()),
            programs: vec![Running { pid, exec: None, report: Some(report), terminal }],
        })
    }

    /// Serves until the container's own program has ended.
    fn attend(mut self) -> Result<(), Refusal> {
        let mut idle = Idle::new();
        loop {
            let (orders, children, reports) = self.wait(&mut idle)?;
            for pid in reports {
                self.hear_start(pid)?;
            }
            if orders && !self.obey() {
                self.end_all();
                return Ok(());
            }
            if children && self.reap()? {
                return Ok(());
            }
        }
    }

    /// Which of orders, ended children and starts there is something of.
    fn wait(&self, idle: &mut Idle) -> Result<(bool, bool, Vec<Pid>), Refusal> {
        let waiting = self.programs.iter().filter_map(|p| Some((p.pid, p.report.as_ref()?)));
        let waiting: Vec<_> = waiting.collect();
        let mut sources = vec![
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        sources.extend(waiting.iter().map(|(_, report)| PollFd::new(*report, PollFlags::IN)));
        match idle.poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(error)
                    .or_refuse(RefusalKind::Machine, || "waiting for the container".to_owned());
            }
        }
        let ready: Vec<bool> = sources.iter().map(|s| !s.revents().is_empty()).collect();
        let reports = waiting.iter().zip(&ready[2..]).filter(|(_, ready)| **ready);
        Ok((ready[0], ready[1], reports.map(|((pid, _), _)| *pid).collect()))
    }

    fn tell(&self, report: &Report) {
        self.hand_on(report, None);
    }

    fn hand_on(&self, report: &Report, terminal: Option<&OwnedFd>) {
        let descriptors: Vec<_> = terminal.map(AsFd::as_fd).into_iter().collect();
        // A holder that is gone is noticed by the end of its orders.
        drop(wire::send(&self.control, report, &descriptors));
    }

    /// Hears whether a program could be started, and tells the holder. That the container's own
    /// could not is the error, since then the init ends.
    fn hear_start(&mut self, pid: Pid) -> Result<(), Refusal> {
        let Some(running) = self.programs.iter_mut().find(|running| running.pid == pid) else {
            return Ok(());
        };
        let Some(report) = running.report.take() else { return Ok(()) };
        let (exec, terminal) = (running.exec.clone(), running.terminal.take());
        match program::outcome(report) {
            Ok(()) => self.hand_on(&Report::Started { exec }, terminal.as_ref()),
            Err(refusal) if exec.is_none() => return Err(refusal),
            Err(refusal) => {
                // It is waited for like any other, but nobody knows it.
                self.programs.retain(|running| running.pid != pid);
                self.tell(&Report::Refused { exec, refusal });
            }
        }
        Ok(())
    }

    /// Takes one order. False: to end.
    fn obey(&mut self) -> bool {
        let Ok(Some(frame)) = wire::receive(&self.control) else { return false };
        match serde_json::from_slice(&frame.payload) {
            Ok(Order::Exec(spec)) => {
                if let Err(refusal) = self.exec(&spec, frame.descriptors) {
                    self.tell(&Report::Refused { exec: Some(spec.exec), refusal });
                }
            }
            Ok(Order::Signal { exec, signal, reach }) => {
                self.signal(exec.as_deref(), signal, reach);
            }
            Ok(Order::End) | Err(_) => return false,
        }
        true
    }

    fn exec(&mut self, spec: &ExecSpec, descriptors: Vec<OwnedFd>) -> Result<(), Refusal> {
        let given = if spec.tty { None } else { Some(three(descriptors)?) };
        let (stdio, terminal) = connected(given, &self.terminals, &spec.user)?;
        let same = (spec.user.uid, spec.user.gid) == (self.user.uid, self.user.gid);
        let (pid, report) = program::start(&Program {
            argv: &spec.argv,
            env: &spec.env,
            cwd: &spec.cwd,
            user: &spec.user,
            privileges: &spec.privileges,
            tty: terminal.is_some(),
            stdio: &stdio,
            entrances: &self.entrances,
            rights: self.rights,
            resources: self.resources.clone(),
            peer: self.peer.as_ref().filter(|_| same).map(AsFd::as_fd),
            filtered: self.filtered,
            go: None,
        })
        .or_refuse(RefusalKind::Machine, || "forking the program".to_owned())?;
        let (exec, report) = (Some(spec.exec.clone()), Some(report));
        self.programs.push(Running { pid, exec, report, terminal });
        Ok(())
    }

    fn signal(&self, exec: Option<&str>, signal: i32, reach: Reach) {
        let target = self.programs.iter().find(|running| running.exec.as_deref() == exec);
        let Some(target) = target else { return };
        // Whoever ended meanwhile needs no signal.
        match (reach, exec) {
            (Reach::First, _) => drop(sys::kill(target.pid, signal)),
            // A program of `Exec` leads a session of its own.
            (Reach::All, Some(_)) => drop(sys::kill(-target.pid, signal)),
            (Reach::All, None) if self.first => drop(sys::kill(-1, signal)),
            (Reach::All, None) => {
                let all = self.proc.processes().unwrap_or_default();
                for process in tree::below(&all, std::process::id().cast_signed()) {
                    drop(sys::kill(process.pid, signal));
                }
            }
        }
    }

    /// Takes ended children. True: the container's own program was among them, and nothing is left.
    fn reap(&mut self) -> Result<bool, Refusal> {
        let mut notice = [0; 128];
        while rustix::io::read(&self.signals, &mut notice).is_ok() {}
        while let Ok(Some(ended)) = sys::reap(false) {
            if self.note(ended)? {
                self.end_all();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells of one ended child, if it is known. True: it was the container's own program.
    fn note(&mut self, ended: Ended) -> Result<bool, Refusal> {
        self.hear_start(ended.pid)?;
        let known = self.programs.iter().position(|running| running.pid == ended.pid);
        let Some(index) = known else { return Ok(false) };
        let exec = self.programs.remove(index).exec;
        let own = exec.is_none();
        self.tell(&Report::Ended { exec, ending: ended.ending });
        Ok(own)
    }

    fn end_all(&mut self) {
        let ended = if self.first { kill_namespace() } else { tree::end_descendants(&self.proc) };
        for one in ended {
            // A start that failed just now is as good as ended.
            drop(self.note(one));
        }
    }
}

/// What a program is given as input, output and errors.
pub(crate) fn three(descriptors: Vec<OwnedFd>) -> Result<[OwnedFd; 3], Refusal> {
    descriptors.try_into().map_err(|_| {
        refusal(RefusalKind::BadRequest, "running a program", "three descriptors are needed")
    })
}

/// A program's input, output and errors: those given, or a new terminal, whose other side comes along.
fn connected(
    given: Option<[OwnedFd; 3]>,
    terminals: &Terminals,
    user: &User,
) -> Result<([OwnedFd; 3], Option<OwnedFd>), Refusal> {
    if let Some(given) = given {
        return Ok((given, None));
    }
    let made = terminals.open(user.uid).and_then(|terminal| Ok((terminal.stdio()?, terminal.ours)));
    let (stdio, ours) = made.or_refuse(RefusalKind::Machine, || "making a terminal".to_owned())?;
    Ok((stdio, Some(ours)))
}

/// Kills everything in this PID namespace and waits for it.
fn kill_namespace() -> Vec<Ended> {
    let mut ended = Vec::new();
    // Nobody left is no error.
    drop(sys::kill(-1, libc::SIGKILL));
    while let Ok(Some(one)) = sys::reap(true) {
        ended.push(one);
    }
    ended
}

fn enter_root(birth: &Birth<'_>) -> Result<OwnedFd, Refusal> {
    let spec = birth.spec;
    let Some(shm) = birth.shm else {
        return Err(refusal(RefusalKind::Machine, "making /dev/shm", "the pod has none"));
    };
    let no_suid = spec.privileges.no_new_privileges;
    root::enter(&Plan {
        scratch: &spec.scratch,
        base: birth.base,
        begins_with: &spec.base,
        mounts: &spec.mounts,
        devices: &spec.devices,
        shm,
        cwd: &spec.cwd,
        read_only: spec.privileges.read_only_root,
        manner: Manner { no_suid, overlay: birth.overlay },
    })
}

/// Without namespaces only what is already where it shall be can be had.
fn plain_mounts<'a>(mounts: impl Iterator<Item = &'a Mount>) -> Result<(), Refusal> {
    for mount in mounts {
        let (target, there) = match mount {
            Mount::Bind { source, target, .. } | Mount::Copy { source, target, .. } => {
                (target, source == target)
            }
            Mount::Overlay { lower, target, .. } => (target, lower == target),
            Mount::Volume { place, part, target, .. } => {
                (target, place == target && part.as_os_str().is_empty())
            }
            Mount::Directory { target, .. } | Mount::Tmpfs { target, .. } => {
                (target, target.is_dir())
            }
            Mount::Symlink { target, to } => {
                (target, std::fs::read_link(target).is_ok_and(|found| found == *to))
            }
            Mount::File { target, content, .. } | Mount::MemoryFile { target, content, .. } => {
                let same = std::fs::read(target).is_ok_and(|found| found == content.as_bytes());
                (target, same)
            }
        };
        if !there {
            return Err(refusal(
                RefusalKind::Mount,
                format!("mounting {}", target.display()),
                "this node runs pods as plain processes and can mount nothing",
            ));
        }
    }
    Ok(())
}

/// The init of a PID namespace that several containers share: it only waits for orphans. A byte from
/// `go` says that the holder has looked into it, which nobody can afterwards; one to `told` that it has
/// nothing left that anybody could gain by it.
pub(crate) fn pause(go: &OwnedFd, told: &OwnedFd) -> i32 {
    let waited = || -> io::Result<()> {
        sys::close_all_but(&[0, 1, 2, go.as_raw_fd(), told.as_raw_fd()])?;
        let signals = sys::child_signals()?;
        memory::forget_code();
        rustix::io::read(go, &mut [0])?;
        // What the pod's containers could reach by this process's root is the machine's otherwise.
        root::leave_host()?;
        confine::pause().map_err(io::Error::other)?;
        rustix::io::write(told, &[0])?;
        loop {
            match poll(&mut [PollFd::new(&signals, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut notice = [0; 128];
            while rustix::io::read(&signals, &mut notice).is_ok() {}
            while let Ok(Some(_)) = sys::reap(false) {}
        }
    };
    drop(waited());
    1
}
