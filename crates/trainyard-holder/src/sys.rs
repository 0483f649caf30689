//! The system calls that need `unsafe`, each behind a function that does not: forking, executing,
//! signals, waiting, and the few calls that `rustix` does not have.
//!
//! Every process of this crate has one thread, so a forked child may run any code. Must not know
//! what the calls are made for.
#![allow(unsafe_code, reason = "system calls without a safe wrapper elsewhere")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::mount::MountAttrFlags;
use rustix::thread::UnshareFlags;

use crate::protocol::Ending;

/// A process by its number in the caller's PID namespace.
pub(crate) type Pid = libc::pid_t;

/// What a child ends with when its code panicked.
const PANICKED: i32 = 70;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Forks; the child runs `child` and ends with the code it returns. `namespaces` are new ones for
/// the child (`CLONE_NEWPID`, `CLONE_NEWNS`).
pub(crate) fn fork(namespaces: i32, child: impl FnOnce() -> i32) -> io::Result<Pid> {
    let pid = if namespaces == 0 {
        // SAFETY: the process has one thread, so the child's copy of memory is consistent.
        check(libc::c_long::from(unsafe { libc::fork() }))?
    } else {
        let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
        // SAFETY: without CLONE_VM and with a null stack this is a fork; one thread, as above.
        check(unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) })?
    };
    forked(pid, child)
}

/// Forks a child that begins in a cgroup of version 2, whose folder this is.
pub(crate) fn fork_into_group(group: impl AsFd, child: impl FnOnce() -> i32) -> io::Result<Pid> {
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        unused: [u64; 3],
        exit_signal: u64,
        unused_too: [u64; 5],
        cgroup: u64,
    }
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let arguments = Arguments {
        flags: INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        cgroup: u64::from(group.as_fd().as_raw_fd().unsigned_abs()),
        ..Arguments::default()
    };
    let size = size_of::<Arguments>();
    // SAFETY: as in `fork`; the structure has the size that is told.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) })?;
    forked(pid, child)
}

fn forked(pid: libc::c_long, child: impl FnOnce() -> i32) -> io::Result<Pid> {
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
        // SAFETY: ends this process; nothing of it is used afterwards.
        unsafe { libc::_exit(code) };
    }
    Pid::try_from(pid).map_err(io::Error::other)
}

/// Replaces this process by a program. Comes back only with an error.
pub(crate) fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer, and their strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Leaves namespaces for new ones.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: the table of descriptors is never among the flags.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Sends a signal. `-1` reaches every process that this one may signal and sees, itself excepted.
pub(crate) fn kill(pid: Pid, signal: i32) -> io::Result<()> {
    // SAFETY: takes only numbers.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// Blocks all signals; they are read from [`child_signals`] or not at all.
pub(crate) fn block_signals() -> io::Result<()> {
    // SAFETY: the set is initialised by sigfillset before it is used.
    let result = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut())
    };
    check(libc::c_long::from(result)).map(drop)
}

/// A descriptor that becomes readable when a child has ended.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset; the descriptor returned is new and owned here.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(libc::c_long::from(fd))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Gives all signals their default action and lets them through, as a program expects at its start.
pub(crate) fn reset_signals() {
    // Handler, flags, restorer, mask: all zero is the default action. The kernel is asked itself,
    // since libc keeps some numbers back, which may have been ignored by whoever started us.
    let default = [0_u64; 8];
    for signal in 1_usize..=64 {
        let (new, old) = (default.as_ptr(), std::ptr::null_mut::<u64>());
        // SAFETY: the structure is shorter than the zeroes; nothing is written.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, 8_usize) };
    }
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// A child that ended, with what it and the children it waited for used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) pid: Pid,
    pub(crate) ending: Ending,
    pub(crate) cpu_usec: u64,
    pub(crate) peak_memory: u64,
}

/// Takes one ended child. `Ok(None)`: there are children, but none has ended (never when `wait`).
/// The error is `ECHILD` when there is no child.
pub(crate) fn reap(wait: bool) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = libc::__WALL | if wait { 0 } else { libc::WNOHANG };
    let pid = loop {
        // SAFETY: both pointers are to live values of the right type.
        let result = unsafe { libc::wait4(-1, &raw mut status, flags, &raw mut usage) };
        match check(libc::c_long::from(result)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => break result,
        }
    };
    if pid == 0 {
        return Ok(None);
    }
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Signal(libc::WTERMSIG(status))
    } else {
        Ending::Code(libc::WEXITSTATUS(status))
    };
    let microseconds = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    Ok(Some(Ended {
        pid,
        ending,
        cpu_usec: microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
        peak_memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

fn close_range(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: the callers close only descriptors that nothing of this process uses any more.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Closes every descriptor but these. For a freshly forked child, which never drops what its parent
/// owned.
pub(crate) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().filter_map(|&fd| u32::try_from(fd).ok()).collect();
    keep.sort_unstable();
    let mut first = 0;
    for fd in keep {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = first.max(fd + 1);
    }
    close_range(first, u32::MAX, 0)
}

/// Marks every descriptor from `first` on to be closed by `execute`.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Makes `from` also the descriptor `to`, which stays open over `execute`.
pub(crate) fn duplicate_onto(from: impl AsFd, to: RawFd) -> io::Result<()> {
    // SAFETY: `to` is one of the three standard descriptors, which no owner here holds.
    check(libc::c_long::from(unsafe { libc::dup2(from.as_fd().as_raw_fd(), to) })).map(drop)
}

/// Installs a seccomp filter for this thread and its children.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the pointer is to `len` instructions, which the kernel copies during the call and does
    // not write.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_usize, &raw const program)
    };
    check(result).map(drop)
}

/// Adds attributes to the mount that `fd` is the root of, and to all below it when `recursive`.
pub(crate) fn add_mount_attributes(
    fd: impl AsFd,
    attributes: MountAttrFlags,
    recursive: bool,
) -> io::Result<()> {
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let wanted = Attributes { set: u64::from(attributes.bits()), ..Attributes::default() };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a string, and the structure has the size that is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<Attributes>(),
        )
    };
    check(result).map(drop)
}

/// Bytes of a page of memory.
pub(crate) fn page_size() -> u64 {
    // SAFETY: takes only a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
