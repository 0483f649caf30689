//! The system calls of a container: an allow list, like that of other container runtimes. A call that
//! is not in it fails with EPERM; one that is newer than the list with ENOSYS, so that libraries fall back to
//! what was before it.
//!
//! Owns the policy. Must not know when the filter is on.

use std::collections::BTreeMap;
use std::io;

use rustix::thread::CapabilitySet;

use crate::sys;

mod calls;
mod program;

use calls::{ALLOWED, Call, GOVERNED, JUDGED};
use program::{Architecture, Values, Verdict, Verdicts, compiled};

/// The newest call that the list knows, by its number on all architectures: `open_tree_attr`.
const NEWEST: u32 = 467;

const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const AF_PACKET: u32 = 17;
/// A socket of any other family has the kernel load a module of its own.
const FAMILIES: Values = Values::Only(&[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK]);
const FAMILIES_WITH_RAW: Values =
    Values::Only(&[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET]);

/// They put words into a terminal, as if its user had written them.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// Plain Linux, 32 bits of it, with old version numbers, with addresses that debuggers can rely on, and
/// the question which it is. None maps the page at zero or makes data executable.
const PERSONALITIES: [u32; 6] = [0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff];

/// The filter of a container or of its init.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    verdicts: Verdicts,
}

impl Filter {
    /// For a container that keeps these capabilities.
    pub(crate) fn new(kept: CapabilitySet) -> Self {
        Self { verdicts: verdicts(kept, Architecture::here()) }
    }

    /// For a process that still has to enter a user namespace: it may make namespaces, and can mount
    /// nothing in them.
    pub(crate) fn entering() -> Self {
        let here = Architecture::here();
        let mut verdicts = verdicts(CapabilitySet::empty(), here);
        let governed = GOVERNED.iter().flat_map(|(_, calls)| calls.iter());
        let entering = ["SYS_unshare", "SYS_setns", "SYS_clone", "SYS_clone3"];
        let calls = governed.chain(JUDGED).filter(|call| entering.contains(&call.name));
        verdicts.each.extend(numbers(calls, here).map(|number| (number, Verdict::Allow)));
        Self { verdicts }
    }

    /// Puts it on, for this process and all that it will start.
    pub(crate) fn install(&self) -> io::Result<()> {
        sys::install_filter(&compiled(&self.verdicts, Architecture::here()))
    }
}

fn numbers<'a>(
    calls: impl Iterator<Item = &'a Call>,
    architecture: Architecture,
) -> impl Iterator<Item = u32> {
    calls.filter_map(move |call| match architecture {
        Architecture::X86_64 => call.x86_64,
        Architecture::Aarch64 => call.aarch64,
    })
}

fn verdicts(kept: CapabilitySet, architecture: Architecture) -> Verdicts {
    let governed = GOVERNED.iter().filter(|(capability, _)| kept.intersects(*capability));
    let allowed = ALLOWED.iter().chain(governed.flat_map(|(_, calls)| calls.iter()));
    let mut each: BTreeMap<u32, Verdict> =
        numbers(allowed, architecture).map(|number| (number, Verdict::Allow)).collect();
    for call in JUDGED {
        let verdict = judged(call, kept);
        each.extend(numbers([call].into_iter(), architecture).map(|number| (number, verdict)));
    }
    Verdicts {
        each,
        others: Verdict::Refuse(libc::EPERM),
        highest: NEWEST,
        // The numbers of the x32 way of calling, which the same kernel may offer, are above it too.
        above: Verdict::Refuse(libc::ENOSYS),
    }
}

fn judged(call: &Call, kept: CapabilitySet) -> Verdict {
    let of = |argument, allowed| Verdict::Judge { argument, allowed };
    let families = if kept.contains(CapabilitySet::NET_RAW) { FAMILIES_WITH_RAW } else { FAMILIES };
    match call.name {
        "SYS_clone" | "SYS_clone3" if kept.contains(CapabilitySet::SYS_ADMIN) => Verdict::Allow,
        "SYS_clone" => of(0, Values::Without(NAMESPACES.cast_unsigned())),
        // Its flags lie in memory, where a filter cannot look; without it, libraries use clone.
        "SYS_clone3" => Verdict::Refuse(libc::ENOSYS),
        "SYS_socket" | "SYS_socketpair" => of(0, families),
        "SYS_ioctl" => of(1, Values::AllBut(&[TIOCSTI, TIOCLINUX])),
        "SYS_personality" => of(0, Values::Only(&PERSONALITIES)),
        _ => Verdict::Refuse(libc::EPERM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::answer;

    const BOTH: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    fn error(number: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | number.cast_unsigned()
    }

    fn number(name: &str, architecture: Architecture) -> Option<u32> {
        let governed = GOVERNED.iter().flat_map(|(_, calls)| calls.iter());
        let all = ALLOWED.iter().chain(governed).chain(JUDGED);
        let found = all.filter(|call| call.name.trim_start_matches("SYS_") == name);
        numbers(found, architecture).next()
    }

    /// The answer to a call by name, where the architecture has it.
    fn asked(
        kept: CapabilitySet,
        architecture: Architecture,
        name: &str,
        first: u64,
        second: u64,
    ) -> Option<u32> {
        let program = compiled(&verdicts(kept, architecture), architecture);
        let number = number(name, architecture)?;
        Some(answer(&program, architecture, number, [first, second, 0, 0, 0, 0]))
    }

    #[test]
    fn capabilities_that_are_kept_lift_what_they_govern() {
        for here in BOTH {
            for (capability, calls) in GOVERNED {
                for call in *calls {
                    let name = call.name.trim_start_matches("SYS_");
                    let strict = asked(CapabilitySet::empty(), here, name, 0, 0);
                    assert!(strict.is_none_or(|answer| answer == error(libc::EPERM)), "{name}");
                    let lifted = asked(*capability, here, name, 0, 0);
                    assert!(lifted.is_none_or(|answer| answer == ALLOW), "{name}");
                }
            }
            let with = |kept| asked(kept, here, "clone3", 0, 0).unwrap();
            assert_eq!(with(CapabilitySet::empty()), error(libc::ENOSYS));
            assert_eq!(with(CapabilitySet::SYS_ADMIN), ALLOW);
        }
    }

    #[test]
    fn arguments_decide_over_namespaces_families_and_personalities() {
        let none = CapabilitySet::empty();
        let raw = CapabilitySet::NET_RAW;
        let thread = u64::from((libc::CLONE_VM | libc::CLONE_THREAD).cast_unsigned());
        for (kept, name, first, second, allowed) in [
            (none, "clone", thread, 0, true),
            (none, "clone", 0x1000_0000, 0, false), // a user namespace
            (none, "clone", 0x2000_0011, 0, false), // a PID namespace
            (CapabilitySet::SYS_ADMIN, "clone", 0x1000_0000, 0, true),
            (none, "socket", 1, 0, true),
            (none, "socket", 10, 0, true),
            (none, "socket", 17, 0, false),
            (raw, "socket", 17, 0, true),
            (none, "socket", 38, 0, false), // AF_ALG
            (none, "socket", 40, 0, false), // AF_VSOCK
            (raw, "socket", 44, 0, false),  // AF_XDP
            (none, "socketpair", 1, 0, true),
            (none, "socketpair", 30, 0, false),
            (none, "ioctl", 0, 0x5401, true),
            (none, "ioctl", 0, 0x5412, false),
            (none, "ioctl", 0, 0x7fff_0000_5412, false),
            (none, "personality", 0xffff_ffff, 0, true),
            (none, "personality", 0x0010_0000, 0, false), // the page at zero
            (none, "personality", 0x0040_0000, 0, false), // executable data
        ] {
            let wanted = if allowed { ALLOW } else { error(libc::EPERM) };
            for here in BOTH {
                let answer = asked(kept, here, name, first, second);
                assert_eq!(answer, Some(wanted), "{name} {first:#x} {second:#x} on {here:?}");
            }
        }
    }

    #[test]
    fn what_is_in_no_list_is_refused_and_what_is_newer_is_not_there() {
        // By their numbers, because the lists do not name them.
        for (here, refused) in [
            // add_key, request_key, keyctl, userfaultfd, io_uring, kcmp, modify_ldt, iopl, _sysctl, nfsservctl.
            (
                Architecture::X86_64,
                &[248, 249, 250, 323, 425, 426, 427, 312, 154, 172, 156, 180][..],
            ),
            // add_key, request_key, keyctl, userfaultfd, io_uring, kcmp, nfsservctl.
            (Architecture::Aarch64, &[217, 218, 219, 282, 425, 426, 427, 272, 42][..]),
        ] {
            let program = compiled(&verdicts(CapabilitySet::all(), here), here);
            for &number in refused {
                let answer = answer(&program, here, number, [0; 6]);
                assert_eq!(answer, error(libc::EPERM), "{number} on {here:?}");
            }
            for newer in [NEWEST + 1, 600, 0x4000_0000, 0x4000_0208, u32::MAX] {
                let answer = answer(&program, here, newer, [0; 6]);
                assert_eq!(answer, error(libc::ENOSYS), "{newer} on {here:?}");
            }
            // The kernel's own bound on the length of a program.
            assert!(program.len() < 4096);
        }
    }

    #[test]
    fn a_process_that_enters_a_user_namespace_can_mount_nothing_in_it() {
        let here = Architecture::here();
        let program = compiled(&Filter::entering().verdicts, here);
        let answered = |name| answer(&program, here, number(name, here).unwrap(), [0; 6]);
        for name in ["unshare", "setns", "clone", "clone3", "read"] {
            assert_eq!(answered(name), ALLOW, "{name}");
        }
        for name in ["mount", "move_mount", "open_tree", "bpf", "open_by_handle_at"] {
            assert_eq!(answered(name), error(libc::EPERM), "{name}");
        }
    }
}
