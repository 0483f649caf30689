//! Pods: making their sandbox, and taking it apart until nothing is left.
//!
//! Must not know what runs in them beyond that something does.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::spaces::Spaces;
use super::{AGAIN, Yard, checked_name};
use crate::cgroup::Group;
use crate::container::init;
use crate::protocol::{
    Answer, Ending, Isolation, MemoryVolume, Network, PodSpec, Refusal, RefusalKind,
};
use crate::refuse::{OrRefuse, refusal};
use crate::sys::{self, Pid};
use crate::{net, root, sweep};

/// The folder of a pod's shared memory.
const SHM: &str = ".shm";
/// How often the removal of cgroups is tried before they are left to the end of the yard.
const MOST_TRIES: u32 = 200;
/// So many of them follow each other at once.
const QUICK_TRIES: u32 = 10;
const AT_ONCE: Duration = Duration::from_millis(1);

/// A pod.
pub(super) struct Pod {
    pub(super) node: String,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) spaces: Option<Spaces>,
    pub(super) pause: Option<Pause>,
    pub(super) group: Option<Group>,
    pub(super) shm: Option<PathBuf>,
    ephemeral: PathBuf,
    /// Where memory is mounted.
    mounted: Vec<PathBuf>,
    /// Groups of ended containers that could not be removed yet.
    pub(super) dead_groups: Vec<Group>,
    tries: u32,
    stage: Stage,
    /// Calls to answer when it is gone.
    waiting: Vec<u64>,
    /// What went wrong with the removal.
    trouble: Option<Refusal>,
}

/// The first process of the PID namespace that a pod's containers share.
pub(super) struct Pause {
    pid: Pid,
    pub(super) pids: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Standing,
    /// Its processes are being killed.
    Ending,
    /// Its folder is being removed.
    Sweeping,
    /// Only its cgroups are left.
    Swept,
}

impl Pod {
    pub(super) fn is_leaving(&self) -> bool {
        self.stage != Stage::Standing
    }

    /// Of the PID namespace that its containers share.
    pub(super) fn first_process(&self) -> Option<Pid> {
        self.pause.as_ref().map(|pause| pause.pid)
    }

    /// How soon to try again to remove groups that were not empty yet; most are after a moment.
    pub(super) fn tries_again(&self) -> Option<Duration> {
        let waits =
            self.stage == Stage::Swept || (!self.dead_groups.is_empty() && self.tries < MOST_TRIES);
        waits.then_some(if self.tries < QUICK_TRIES { AT_ONCE } else { AGAIN })
    }

    /// Tries to remove the groups of ended containers. True: none is left, or it is given up.
    fn remove_dead_groups(&mut self) -> bool {
        self.dead_groups.retain(|group| !group.remove());
        self.tries += 1;
        self.dead_groups.is_empty() || self.tries > MOST_TRIES
    }
}

fn bad(step: impl Into<String>, reason: impl Into<String>) -> Refusal {
    refusal(RefusalKind::BadRequest, step, reason)
}

impl Yard {
    pub(super) fn add_pod(&mut self, spec: PodSpec) -> Result<(), Refusal> {
        self.check_pod(&spec)?;
        let mut pod = Pod {
            node: spec.node.clone(),
            address: None,
            spaces: None,
            pause: None,
            group: None,
            shm: None,
            ephemeral: spec.ephemeral.clone(),
            mounted: Vec::new(),
            dead_groups: Vec::new(),
            tries: 0,
            stage: Stage::Standing,
            waiting: Vec::new(),
            trouble: None,
        };
        let step = || format!("taking the folder {}", spec.ephemeral.display());
        made(&spec.ephemeral)
            .and_then(|()| self.ledger.add(&spec.ephemeral))
            .or_refuse(RefusalKind::Machine, step)?;
        let furnished = self.furnish(&mut pod, &spec);
        if furnished.is_err() {
            Self::dismantle(&mut pod);
            if let Some(address) = pod.address {
                drop(net::leave(address));
            }
            // The folder stays its maker's.
            drop(self.ledger.strike(&spec.ephemeral));
            if let Some(pause) = &pod.pause {
                drop(sys::kill(pause.pid, libc::SIGKILL));
            }
            if let Some(group) = pod.group.take() {
                group.remove();
            }
        } else {
            self.pods.insert(spec.pod, pod);
        }
        furnished
    }

    fn check_pod(&self, spec: &PodSpec) -> Result<(), Refusal> {
        checked_name("pod", &spec.pod)?;
        let step = || format!("adding pod {}", spec.pod);
        if self.pods.contains_key(&spec.pod) {
            return Err(bad(step(), "there is one of this name"));
        }
        if !spec.ephemeral.is_absolute() || spec.ephemeral.file_name().is_none() {
            return Err(bad(step(), "its folder must be an absolute path"));
        }
        if spec.hostname.is_empty() || spec.hostname.len() > 64 {
            return Err(bad(step(), "a host name has 1 to 64 characters"));
        }
        for MemoryVolume { path, .. } in &spec.memory_volumes {
            let goes_up = path.components().any(|part| part == Component::ParentDir);
            if goes_up || !path.starts_with(&spec.ephemeral) || *path == spec.ephemeral {
                let reason = format!("the volume {} is not in its folder", path.display());
                return Err(bad(step(), reason));
            }
        }
        let Some(bridge) = &self.bridge else { return Ok(()) };
        let Some(address) = spec.address else {
            return if self.nodes.contains_key(&spec.node) {
                Ok(())
            } else {
                Err(bad(step(), format!("there is no node {}", spec.node)))
            };
        };
        bridge
            .check(address)
            .map_err(|reason| bad(format!("giving pod {} {address}", spec.pod), reason))?;
        if let Some((other, _)) = self.pods.iter().find(|(_, p)| p.address == Some(address)) {
            return Err(bad(step(), format!("pod {other} has the address {address}")));
        }
        Ok(())
    }

    /// Makes everything the pod needs; what was made before a failure is in `pod`.
    fn furnish(&mut self, pod: &mut Pod, spec: &PodSpec) -> Result<(), Refusal> {
        let machine = RefusalKind::Machine;
        if let Some(group) = &self.group {
            let made = group.child(&spec.pod, &spec.limits, false);
            pod.group = Some(made.or_refuse(machine, || "making the pod's cgroup".to_owned())?);
        }
        if self.rights.isolation == Isolation::Processes {
            return match spec.memory_volumes.first() {
                None => Ok(()),
                Some(volume) => Err(refusal(
                    RefusalKind::Mount,
                    format!("mounting memory at {}", volume.path.display()),
                    "this node runs pods as plain processes and can mount nothing",
                )),
            };
        }
        for volume in &spec.memory_volumes {
            mount_memory(pod, &volume.path, volume.size, 0o777)?;
        }
        let shm = match &self.bases {
            // In memory: a folder less on the disk.
            Some(bases) => bases.mount_point(&format!("{SHM}-{}", spec.pod)),
            None => made(&spec.ephemeral.join(SHM)).map(|()| spec.ephemeral.join(SHM)),
        };
        let shm = shm.or_refuse(machine, || "making the pod's shared memory".to_owned())?;
        pod.shm = Some(shm.clone());
        mount_memory(pod, &shm, Some(spec.shared_memory), 0o1777)?;
        self.separate(pod, spec)
    }

    /// Makes the pod's namespaces and its place on the bridge.
    fn separate(&mut self, pod: &mut Pod, spec: &PodSpec) -> Result<(), Refusal> {
        let machine = RefusalKind::Machine;
        let Some(home) = &self.home else { return Ok(()) };
        let address = spec.address.filter(|_| self.network == Network::Bridge);
        let step = || "making the pod's namespaces".to_owned();
        let mut spaces = home
            .new_spaces(&self.proc, &spec.hostname, address.is_some())
            .or_refuse(machine, step)?;
        if let (Some(bridge), Some(address), Some(space)) =
            (&mut self.bridge, address, &mut spaces.net)
        {
            bridge
                .join(space, address)
                .or_refuse(machine, || format!("connecting the pod as {address}"))?;
            pod.address = Some(address);
        }
        pod.spaces = Some(spaces);
        if spec.share_processes {
            pod.pause = Some(self.pause().or_refuse(machine, step)?);
        }
        Ok(())
    }

    /// Starts the first process of a PID namespace, and waits until it has given up what it was born
    /// with: whoever comes into that namespace finds nothing of the machine by it.
    fn pause(&self) -> io::Result<Pause> {
        let (go, gate) = std::io::pipe()?;
        let (done, told) = std::io::pipe()?;
        let (go, told) = (OwnedFd::from(go), OwnedFd::from(told));
        let pause = || init::pause(&go, &told);
        let pid = sys::fork(libc::CLONE_NEWPID | libc::CLONE_NEWNS, pause)?;
        drop(told);
        let looked = self.proc.of_process(pid, "ns/pid").and_then(|pids| {
            rustix::io::write(&gate, &[0])?;
            if rustix::io::read(&done, &mut [0])? == 0 {
                return Err(io::Error::other("its first process could not be confined"));
            }
            Ok(pids)
        });
        let pids = looked.inspect_err(|_| drop(sys::kill(pid, libc::SIGKILL)))?;
        Ok(Pause { pid, pids })
    }

    /// An unknown pod is gone already.
    pub(super) fn remove_pod(&mut self, id: u64, name: &str) -> Option<Answer> {
        let Some(pod) = self.pods.get_mut(name) else { return Some(Answer::Done) };
        pod.waiting.push(id);
        self.begin_removal(name);
        None
    }

    /// Kills all of a pod; the rest follows when it is dead.
    pub(super) fn begin_removal(&mut self, name: &str) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        if pod.stage != Stage::Standing {
            return;
        }
        pod.stage = Stage::Ending;
        pod.tries = 0;
        if let Some(pause) = &pod.pause {
            drop(sys::kill(pause.pid, libc::SIGKILL));
        }
        self.kill_containers(name);
    }

    /// Whether this ended child was the first process of a pod's shared PID namespace. All in it are
    /// dead with it; so is the pod, whoever killed it.
    pub(super) fn pause_gone(&mut self, pid: Pid) -> bool {
        let of = |pod: &Pod| pod.pause.as_ref().is_some_and(|pause| pause.pid == pid);
        let Some((_, pod)) = self.pods.iter_mut().find(|(_, pod)| of(pod)) else { return false };
        pod.pause = None;
        true
    }

    /// Takes every leaving pod one step further, if it can be.
    pub(super) fn advance_all(&mut self) {
        let names: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.is_leaving() || !pod.dead_groups.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.advance(&name);
        }
    }

    fn advance(&mut self, name: &str) {
        let Some(mut pod) = self.pods.remove(name) else { return };
        let groups_gone = pod.remove_dead_groups();
        let inhabited =
            pod.pause.is_some() || self.containers.values().any(|container| container.pod == name);
        if pod.stage == Stage::Ending && !inhabited {
            Self::dismantle(&mut pod);
            pod.stage = Stage::Sweeping;
            // Both take their time.
            let link = pod.address.filter(|_| self.bridge.is_some());
            match sys::fork(0, || swept_by(&pod.ephemeral, link)) {
                Ok(pid) => drop(self.sweepers.insert(pid, name.to_owned())),
                // Without a process of its own it is done here.
                Err(_) => pod.swept(swept_by(&pod.ephemeral, link)),
            }
        }
        if pod.stage == Stage::Swept
            && groups_gone
            && (pod.tries > MOST_TRIES || pod.group.as_ref().is_none_or(Group::remove))
        {
            drop(self.ledger.strike(&pod.ephemeral));
            for id in pod.waiting {
                self.answer(id, pod.trouble.clone().map_or(Ok(Answer::Done), Err));
            }
            return;
        }
        self.pods.insert(name.to_owned(), pod);
    }

    /// Takes away mounts and namespaces.
    fn dismantle(pod: &mut Pod) {
        for folder in pod.mounted.drain(..) {
            // What cannot be unmounted vanishes with the holder's mount namespace.
            drop(root::unmount_memory(&folder));
        }
        if let Some(shm) = pod.shm.take() {
            drop(fs::remove_dir(shm));
        }
        pod.spaces = None;
    }

    /// The folder of a pod is removed, or could not be.
    pub(super) fn swept(&mut self, name: &str, ending: Ending) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        pod.swept(match ending {
            Ending::Code(code) => code,
            Ending::Signal(_) => libc::EINTR,
        });
    }
}

impl Pod {
    fn swept(&mut self, errno: i32) {
        self.stage = Stage::Swept;
        if errno != 0 {
            let error: Result<(), _> = Err(io::Error::from_raw_os_error(errno));
            let step = || format!("removing {}", self.ephemeral.display());
            self.trouble = error.or_refuse(RefusalKind::Machine, step).err();
        }
    }
}

/// Makes a folder that may be there.
pub(super) fn made(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Takes away a pod's link and its folder. Zero, or the error number.
fn swept_by(folder: &Path, link: Option<Ipv4Addr>) -> i32 {
    if let Some(address) = link {
        // It went with its namespace, if that was quicker.
        drop(net::leave(address));
    }
    match sweep::sweep(folder) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

fn mount_memory(pod: &mut Pod, folder: &Path, size: Option<u64>, mode: u32) -> Result<(), Refusal> {
    root::mount_memory(folder, size, mode)
        .or_refuse(RefusalKind::Mount, || format!("mounting memory at {}", folder.display()))?;
    pod.mounted.push(folder.to_owned());
    Ok(())
}
