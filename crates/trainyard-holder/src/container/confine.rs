//! What the first processes of containers and pods keep for themselves once there is nothing more to
//! mount: a program that gets hold of one must gain nothing by it.
//!
//! Must not know how a program is started.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::privileges::{self, NOT_PERMITTED, Rights};
use super::seccomp::Filter;
use crate::protocol::{Isolation, Privileges, Refusal, User};
use crate::refuse::OrRefuse;

/// What an init needs for as long as it lives: to start more programs as their user and with their
/// rights, in working directories of that user, to give them terminals and to signal them.
const INIT: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::KILL);

/// Takes from a container's init what neither it nor the container's programs need. Returns whether
/// the filter that programs have is on for the init, and so for all that it starts.
pub(super) fn init(user: &User, privileges: &Privileges, rights: Rights) -> Result<bool, Refusal> {
    if rights.rootless && rights.isolation == Isolation::Processes {
        return Ok(false);
    }
    let kept = privileges::kept(&privileges.capabilities, user.uid == 0)?;
    // Without root another user is a user namespace of the program's own, which the filter of programs
    // denies: they take theirs after it.
    let maps = rights.rootless && (user.uid, user.gid) != (0, 0);
    let filtered = privileges.seccomp && rights.isolation == Isolation::Namespaces;
    if filtered {
        install(&if maps { Filter::entering() } else { Filter::new(kept) })?;
    }
    let mut needed = INIT | kept;
    if rights.rootless {
        // Whoever maps user 0 of the namespace above into a new one must have it.
        needed |= CapabilitySet::SETFCAP;
    }
    keep(needed)?;
    Ok(filtered && !maps)
}

/// Takes everything from the first process of a PID namespace, which only waits.
pub(super) fn pause() -> Result<(), Refusal> {
    let step = || "confining the pod's first process".to_owned();
    set_dumpable_behavior(DumpableBehavior::NotDumpable).or_refuse(NOT_PERMITTED, step)?;
    install(&Filter::new(CapabilitySet::empty()))?;
    keep(CapabilitySet::empty())
}

fn install(filter: &Filter) -> Result<(), Refusal> {
    filter.install().or_refuse(NOT_PERMITTED, || "installing the init's seccomp filter".to_owned())
}

fn keep(needed: CapabilitySet) -> Result<(), Refusal> {
    let step = || "dropping the init's capabilities".to_owned();
    let held = capabilities(None).or_refuse(NOT_PERMITTED, step)?.permitted;
    let kept = needed & held;
    privileges::bound(kept).or_refuse(NOT_PERMITTED, step)?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).or_refuse(NOT_PERMITTED, step)
}
