//! What a program may do and who it is: user, groups, capabilities, no new privileges, seccomp.
//!
//! Runs in the process that becomes the program. Must not know files or networks.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::{DumpableBehavior, Gid, Uid, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, ThreadNameSpaceType, UnshareFlags, capabilities,
    clear_ambient_capability_set, move_into_thread_name_spaces,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::seccomp::Filter;
use crate::protocol::{Isolation, Privileges, Refusal, RefusalKind, User};
use crate::refuse::{OrRefuse, refusal};
use crate::sys;

/// What the yard has to give.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rights {
    pub(crate) isolation: Isolation,
    pub(crate) rootless: bool,
}

pub(super) const NOT_PERMITTED: RefusalKind = RefusalKind::NotPermitted;

/// Becomes the user and gives up everything else. `peer` is a process of the container whose user
/// namespace is joined instead of making another like it. `filtered`: the seccomp filter is on already.
pub(crate) fn assume(
    user: &User,
    privileges: &Privileges,
    rights: Rights,
    peer: Option<BorrowedFd<'_>>,
    filtered: bool,
) -> Result<(), Refusal> {
    // A plain process without root has nothing to keep or drop, and no right to drop it.
    let powerless = rights.rootless && rights.isolation == Isolation::Processes;
    let kept = kept(&privileges.capabilities, user.uid == 0 && !powerless)?;
    let step = || "dropping privileges".to_owned();
    if rights.rootless {
        map_user(user, rights.isolation, peer)?;
    }
    if privileges.no_new_privileges {
        set_no_new_privs(true).or_refuse(NOT_PERMITTED, step)?;
    }
    if privileges.seccomp && !filtered {
        Filter::new(kept)
            .install()
            .or_refuse(NOT_PERMITTED, || "installing the seccomp filter".to_owned())?;
    }
    if powerless {
        return Ok(());
    }
    bound(kept).or_refuse(NOT_PERMITTED, step)?;
    if !rights.rootless {
        change_user(user)?;
    }
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)
        .or_refuse(NOT_PERMITTED, || "keeping the capabilities asked for".to_owned())
}

/// The capabilities that a list names, which must be ours to give; none when nobody `can_have` any.
pub(super) fn kept(names: &[String], can_have: bool) -> Result<CapabilitySet, Refusal> {
    let held = capabilities(None)
        .or_refuse(NOT_PERMITTED, || "reading capabilities".to_owned())?
        .permitted;
    let mut kept = CapabilitySet::empty();
    for name in names {
        let short = name.strip_prefix("CAP_").unwrap_or(name);
        if short == "ALL" {
            kept |= held;
            continue;
        }
        let Some(one) = CapabilitySet::from_name(short) else {
            return Err(refusal(
                RefusalKind::BadRequest,
                format!("keeping the capability {name}"),
                "there is none of this name",
            ));
        };
        kept |= one;
    }
    if !can_have {
        return Ok(CapabilitySet::empty());
    }
    let missing = kept - held;
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
        return Err(refusal(
            NOT_PERMITTED,
            format!("keeping the capability {}", names.join(", ")),
            "this node does not have it itself",
        ));
    }
    Ok(kept)
}

/// Without root: user 0 is whoever runs the yard; another one is that same user under another
/// number, in a user namespace of the container's own.
fn map_user(
    user: &User,
    isolation: Isolation,
    peer: Option<BorrowedFd<'_>>,
) -> Result<(), Refusal> {
    let step = || format!("becoming user {} and group {}", user.uid, user.gid);
    if user.groups.iter().any(|&group| group != user.gid) {
        return Err(refusal(
            NOT_PERMITTED,
            format!("joining the groups {:?}", user.groups),
            "without root this node has only one group to give",
        ));
    }
    if user.uid == 0 && user.gid == 0 {
        return Ok(());
    }
    if isolation == Isolation::Processes {
        let own = (geteuid().as_raw(), getegid().as_raw());
        return if own == (user.uid, user.gid) {
            Ok(())
        } else {
            let reason = format!(
                "without root and without namespaces this node has only user {} and group {}",
                own.0, own.1
            );
            Err(refusal(NOT_PERMITTED, step(), reason))
        };
    }
    match peer {
        Some(peer) => move_into_thread_name_spaces(peer, ThreadNameSpaceType::USER)
            .or_refuse(NOT_PERMITTED, step),
        None => new_user_namespace(user.uid, user.gid).or_refuse(NOT_PERMITTED, step),
    }
}

/// Enters a new user namespace in which the current user and group have these numbers.
pub(crate) fn new_user_namespace(uid: u32, gid: u32) -> io::Result<()> {
    let outer = (geteuid().as_raw(), getegid().as_raw());
    // A process that cannot be looked into cannot write its own maps. Whoever has fewer rights
    // still cannot look into this one, and the program starts anew.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    sys::unshare(UnshareFlags::NEWUSER)?;
    write_maps((uid, outer.0), (gid, outer.1))
}

/// Gives this process's new user namespace its one user and group: each the number inside and the
/// number outside.
pub(crate) fn write_maps(uid: (u32, u32), gid: (u32, u32)) -> io::Result<()> {
    // Already so in a namespace within one, where it cannot be written again.
    drop(std::fs::write("/proc/self/setgroups", "deny"));
    std::fs::write("/proc/self/uid_map", format!("{} {} 1", uid.0, uid.1))?;
    std::fs::write("/proc/self/gid_map", format!("{} {} 1", gid.0, gid.1))
}

/// With root: the user itself.
fn change_user(user: &User) -> Result<(), Refusal> {
    let step = || format!("becoming user {} and group {}", user.uid, user.gid);
    // The highest number means "unchanged" to the kernel.
    if user.uid == u32::MAX || user.gid == u32::MAX || user.groups.contains(&u32::MAX) {
        return Err(refusal(RefusalKind::BadRequest, step(), "not a number of a user or group"));
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<_> = user.groups.iter().map(|&group| Gid::from_raw(group)).collect();
    set_thread_groups(&groups).or_refuse(NOT_PERMITTED, step)?;
    set_thread_res_gid(gid, gid, gid).or_refuse(NOT_PERMITTED, step)?;
    set_thread_res_uid(uid, uid, uid).or_refuse(NOT_PERMITTED, step)
}

/// Takes all but these from what any program started later could get.
pub(super) fn bound(kept: CapabilitySet) -> io::Result<()> {
    for bit in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            // Beyond the last that the kernel knows.
            Err(rustix::io::Errno::INVAL) => break,
            other => other?,
        }
    }
    Ok(clear_ambient_capability_set()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_kept_only_for_user_0() {
        let unknown = kept(&["CAP_FLY".to_owned()], false).unwrap_err();
        assert_eq!(unknown.kind, RefusalKind::BadRequest);
        assert_eq!(kept(&["CAP_CHOWN".to_owned()], false).unwrap(), CapabilitySet::empty());
        assert_eq!(kept(&[], true).unwrap(), CapabilitySet::empty());
    }
}
