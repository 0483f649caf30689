//! The system calls a container is denied: those that reach the whole machine, make namespaces or
//! mounts, or have opened kernels before. Everything else, all that TensorFlow asks for included,
//! is allowed.
//!
//! Owns the list. Must not know when the filter is on.

use std::collections::BTreeMap;
use std::io;

use rustix::thread::CapabilitySet;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::sys;

/// Denied unless the capability is kept.
const DENIED: [(CapabilitySet, &[i64]); 8] = [
    (
        CapabilitySet::SYS_ADMIN,
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_open_tree,
            libc::SYS_move_mount,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_fanotify_init,
            libc::SYS_lookup_dcookie,
            libc::SYS_quotactl,
            443, // quotactl_fd
            libc::SYS_swapon,
            libc::SYS_swapoff,
        ],
    ),
    (CapabilitySet::DAC_READ_SEARCH, &[libc::SYS_open_by_handle_at]),
    (
        CapabilitySet::SYS_MODULE,
        &[libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module],
    ),
    (CapabilitySet::SYS_BOOT, &[libc::SYS_reboot, libc::SYS_kexec_load, libc::SYS_kexec_file_load]),
    (
        CapabilitySet::SYS_TIME,
        &[libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime],
    ),
    (CapabilitySet::SYS_PACCT, &[libc::SYS_acct]),
    (CapabilitySet::SYSLOG, &[libc::SYS_syslog]),
    (CapabilitySet::SYS_TTY_CONFIG, &[libc::SYS_vhangup]),
];

/// Denied whoever asks.
const ALWAYS_DENIED: [i64; 9] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_nfsservctl,
    libc::SYS_kcmp,
];

/// Calls of one architecture only.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE_DENIED: [i64; 7] = [
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ARCHITECTURE_DENIED: [i64; 0] = [];

/// Number of a call in the x32 way of calling, which the same kernel may offer beside.
const X32: i64 = 0x4000_0000;
const TIOCSTI: u64 = 0x5412;
const AF_VSOCK: u64 = 40;
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u64;

/// The filters to install, all of them.
#[derive(Debug, Clone)]
pub(crate) struct Filters {
    programs: Vec<BpfProgram>,
}

impl Filters {
    /// For a process that still has to enter a user namespace: it may make namespaces, and can mount
    /// nothing in them.
    pub(crate) fn without_mounts() -> io::Result<Self> {
        let mut denied = BTreeMap::new();
        let entering = [libc::SYS_unshare, libc::SYS_setns];
        let calls = DENIED.iter().flat_map(|(_, calls)| calls.iter().copied());
        for call in calls.chain(ALWAYS_DENIED).chain(ARCHITECTURE_DENIED) {
            if !entering.contains(&call) {
                denied.insert(call, Vec::new());
            }
        }
        with_twins(&mut denied);
        Ok(Self { programs: vec![compiled(denied, libc::EPERM)?] })
    }

    /// For a container that keeps these capabilities.
    pub(crate) fn new(kept: CapabilitySet) -> io::Result<Self> {
        let mut denied: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        let always = ALWAYS_DENIED.iter().chain(&ARCHITECTURE_DENIED).copied();
        let lifted = DENIED.iter().filter(|(lifted_by, _)| !kept.intersects(*lifted_by));
        for call in always.chain(lifted.flat_map(|(_, calls)| calls.iter().copied())) {
            denied.insert(call, Vec::new());
        }
        denied.insert(libc::SYS_ioctl, vec![when_equal(1, TIOCSTI)?]);
        denied.insert(libc::SYS_socket, vec![when_equal(0, AF_VSOCK)?]);
        let mut unknown = BTreeMap::new();
        if !kept.contains(CapabilitySet::SYS_ADMIN) {
            denied.insert(libc::SYS_clone, namespaces_in(0)?);
            // Its flags lie in memory, where a filter cannot look; without it, libraries use clone.
            unknown.insert(libc::SYS_clone3, Vec::new());
        }
        with_twins(&mut denied);
        let mut programs = vec![compiled(denied, libc::EPERM)?];
        if !unknown.is_empty() {
            programs.push(compiled(unknown, libc::ENOSYS)?);
        }
        Ok(Self { programs })
    }

    /// Puts them on, for this process and all that it will start.
    pub(crate) fn install(&self) -> io::Result<()> {
        self.programs.iter().try_for_each(|program| sys::install_filter(program))
    }
}

/// Denies the x32 twins of what is denied, and the calls that only x32 has.
fn with_twins(denied: &mut BTreeMap<i64, Vec<SeccompRule>>) {
    if cfg!(target_arch = "x86_64") {
        let twins: Vec<_> = denied.keys().map(|call| call | X32).collect();
        denied.extend(twins.into_iter().map(|call| (call, Vec::new())));
        denied.extend([520, 521, 528, 545].map(|call| (call | X32, Vec::new())));
    }
}

fn when_equal(argument: u8, value: u64) -> io::Result<SeccompRule> {
    // The kernel takes these as 32 bits.
    let length = SeccompCmpArgLen::Dword;
    let condition = SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}

/// One rule for each flag: any of them is enough.
fn namespaces_in(argument: u8) -> io::Result<Vec<SeccompRule>> {
    let flags = (0..64).map(|bit| 1_u64 << bit).filter(|flag| NAMESPACES & flag != 0);
    let rule = |flag| {
        let operator = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, flag);
        SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
    };
    flags.map(rule).collect()
}

fn compiled(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> io::Result<BpfProgram> {
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, machine)
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_are_kept_lift_what_they_govern() {
        let strict = Filters::new(CapabilitySet::empty()).unwrap();
        let lifted = Filters::new(CapabilitySet::SYS_ADMIN).unwrap();
        assert_eq!((strict.programs.len(), lifted.programs.len()), (2, 1));
        assert!(lifted.programs[0].len() < strict.programs[0].len());
        // The kernel's own bound on the length of a program.
        assert!(strict.programs[0].len() < 4096);
    }
}
