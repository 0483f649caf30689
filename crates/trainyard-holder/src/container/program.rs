//! The last steps of a process before it becomes the program: cgroup, session, terminal, limits,
//! privileges, and the program itself.
//!
//! Says what failed on a pipe that the program's start closes. Must not know mounts.

use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, openat2};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, dumpable_behavior, set_dumpable_behavior,
};

use super::privileges::{self, Rights};
use crate::cgroup::Entrances;
use crate::protocol::{Privileges, Refusal, RefusalKind, User};
use crate::refuse::{OrRefuse, refusal, words};
use crate::sys::{self, Pid};

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names that are told of what lies where a program was looked for.
const NAMED: usize = 5;

/// Everything a program starts with.
pub(crate) struct Program<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) cwd: &'a Path,
    pub(crate) user: &'a User,
    pub(crate) privileges: &'a Privileges,
    pub(crate) tty: bool,
    pub(crate) stdio: &'a [OwnedFd; 3],
    /// Ways into the container's cgroups.
    pub(crate) entrances: &'a Entrances,
    pub(crate) rights: Rights,
    pub(crate) resources: Resources,
    /// A process of the container to share the user namespace with.
    pub(crate) peer: Option<BorrowedFd<'a>>,
    /// Whether the init's seccomp filter is the program's too.
    pub(crate) filtered: bool,
    /// A byte is read from it before the program begins.
    pub(crate) go: Option<BorrowedFd<'a>>,
}

/// What the kernel bounds for each process, or each user, without cgroups.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    /// How many descriptors a program may have, as the holder found it.
    pub(crate) descriptors: Rlimit,
    /// How many processes and threads there may be in the holder's user namespace before a program can
    /// start no more; none where they cannot be counted so, or a cgroup does it.
    pub(crate) processes: Option<u64>,
}

/// Forks the program; what failed before it ran can be read from the pipe, by [`outcome`].
pub(crate) fn start(program: &Program<'_>) -> io::Result<(Pid, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = |placed: bool| {
        let Err(refusal) = run(program, placed);
        // Nobody reads it only when the container is ended already.
        let text = serde_json::to_vec(&refusal).unwrap_or_default();
        let _ = rustix::io::write(&writer, &text);
        1
    };
    let placed = program.entrances.folder.as_ref();
    let pid = match placed.map(|folder| sys::fork_into_group(folder, || child(true))) {
        Some(Ok(pid)) => pid,
        // Kernels before 5.7 cannot; it goes there itself.
        _ => sys::fork(0, || child(false))?,
    };
    Ok((pid, reader))
}

/// Reads how a start went; waits until it is known.
pub(crate) fn outcome(report: OwnedFd) -> Result<(), Refusal> {
    let mut text = Vec::new();
    std::fs::File::from(report)
        .read_to_end(&mut text)
        .or_refuse(RefusalKind::Machine, || "hearing how the program started".to_owned())?;
    match serde_json::from_slice(&text) {
        _ if text.is_empty() => Ok(()),
        Ok(refusal) => Err(refusal),
        Err(error) => Err(refusal(RefusalKind::Machine, "starting the program", error.to_string())),
    }
}

/// `placed`: it is in its cgroup already.
fn run(program: &Program<'_>, placed: bool) -> Result<std::convert::Infallible, Refusal> {
    let machine = RefusalKind::Machine;
    for entrance in program.entrances.files.iter().filter(|_| !placed) {
        rustix::io::write(entrance, b"0")
            .or_refuse(machine, || "entering the cgroup".to_owned())?;
    }
    rustix::process::setsid().or_refuse(machine, || "starting a session".to_owned())?;
    let step = || "setting up standard input and output".to_owned();
    for (descriptor, number) in program.stdio.iter().zip(0..) {
        sys::duplicate_onto(descriptor, number).or_refuse(machine, step)?;
    }
    if program.tty {
        rustix::process::ioctl_tiocsctty(&program.stdio[0])
            .or_refuse(machine, || "taking the terminal".to_owned())?;
    }
    limits(&program.resources);
    rustix::process::umask(Mode::from_raw_mode(0o022));
    enter_folder(program.cwd).or_refuse(RefusalKind::NoSuchProgram, || {
        format!("entering the working directory {}", program.cwd.display())
    })?;
    let Program { user, privileges, rights, peer, filtered, .. } = *program;
    privileges::assume(user, privileges, rights, peer, filtered)?;
    // After the change of user, which takes it away.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .or_refuse(machine, || "binding the program to its container".to_owned())?;
    sys::close_on_exec_from(3).or_refuse(machine, step)?;
    sys::reset_signals();
    if let Some(go) = program.go {
        rustix::io::read(go, &mut [0])
            .or_refuse(machine, || "waiting for the container's init".to_owned())?;
    }
    execute(program.argv, program.env)
}

/// Makes a path the working directory. A link that a pod put on it may lead by `/proc` to the root or the
/// working directory of another process, or to a descriptor of this one, which still has all its rights:
/// those are not followed.
fn enter_folder(path: &Path) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        // Kernels that do not have the call can make no root either: the way is the machine's own.
        Err(Errno::NOSYS) => rustix::process::chdir(path),
        folder => rustix::process::fchdir(folder?),
    }
}

/// How much sooner than others a program is ended when the machine's memory runs out: as if it held half
/// of that more.
const SOONER_ENDED: &[u8] = b"500";

/// No core files, as many descriptors as the holder itself was started with, no more processes than there
/// may be, and the first to go where the machine's memory ends. All only lower what it may, and a limit
/// that cannot be lowered is not worth a pod.
fn limits(resources: &Resources) {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(Resource::Core, none);
    let _ = rustix::process::setrlimit(Resource::Nofile, resources.descriptors);
    if let Some(most) = resources.processes {
        let found = rustix::process::getrlimit(Resource::Nproc);
        let least = |found: Option<u64>| Some(found.map_or(most, |found| found.min(most)));
        let lowered = Rlimit { current: least(found.current), maximum: least(found.maximum) };
        let _ = rustix::process::setrlimit(Resource::Nproc, lowered);
    }
    // A process that cannot be looked into cannot write this of itself without root. Whoever has fewer
    // rights still cannot look into this one.
    let behavior = dumpable_behavior();
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    let _ = std::fs::write("/proc/self/oom_score_adj", SOONER_ENDED);
    let _ = behavior.and_then(set_dumpable_behavior);
}

fn execute(argv: &[String], env: &[(String, String)]) -> Result<std::convert::Infallible, Refusal> {
    let step = |name: &str| format!("exec: {name:?}");
    let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
        return Err(refusal(RefusalKind::BadRequest, "exec", "no command specified"));
    };
    let text = |bytes: &[u8]| {
        CString::new(bytes).or_refuse(RefusalKind::BadRequest, || {
            format!("exec: {name:?}: an argument or variable has a zero byte")
        })
    };
    let path = find(name, env).map_err(|(kind, reason)| refusal(kind, step(name), reason))?;
    let arguments =
        argv.iter().map(|argument| text(argument.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let variables = env
        .iter()
        .map(|(key, value)| text(format!("{key}={value}").as_bytes()))
        .collect::<Result<Vec<_>, _>>()?;
    let error = sys::execute(&text(path.as_os_str().as_bytes())?, &arguments, &variables);
    let (kind, reason) = match error.raw_os_error() {
        Some(libc::ENOENT) if path.exists() => {
            (RefusalKind::NotExecutable, "its interpreter or loader is not there".to_owned())
        }
        Some(libc::ENOENT | libc::ENOTDIR) => {
            (RefusalKind::NoSuchProgram, format!("{}{}", words(&error), beside(&path)))
        }
        Some(libc::ENOEXEC) => (
            RefusalKind::NotExecutable,
            format!("{}: a script begins with a line like #!/bin/sh", words(&error)),
        ),
        Some(libc::EACCES | libc::EISDIR | libc::ELOOP | libc::EPERM) => {
            (RefusalKind::NotExecutable, words(&error))
        }
        Some(libc::E2BIG) => (RefusalKind::BadRequest, words(&error)),
        _ => (RefusalKind::Machine, words(&error)),
    };
    Err(refusal(kind, step(name), reason))
}

/// Where a program lies: a name without a slash is looked up in `PATH`.
fn find(name: &str, env: &[(String, String)]) -> Result<PathBuf, (RefusalKind, String)> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let path = env.iter().rev().find(|(key, _)| key == "PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_str());
    let mut forbidden = false;
    for folder in path.split(':') {
        let folder = if folder.is_empty() { "." } else { folder };
        let candidate = Path::new(folder).join(name);
        let runs = accessat(CWD, &candidate, Access::EXEC_OK, AtFlags::EACCESS);
        match (runs, candidate.is_file()) {
            (Ok(()), true) => return Ok(candidate),
            (Err(rustix::io::Errno::ACCESS), true) => forbidden = true,
            _ => {}
        }
    }
    if forbidden {
        return Err((RefusalKind::NotExecutable, "permission denied".to_owned()));
    }
    let near =
        listed(path.split(':').flat_map(|folder| names(Path::new(folder))).filter(|found| {
            found.len() > 2 && (found.starts_with(name) || name.starts_with(found.as_str()))
        }));
    let reason = format!("executable file not found in $PATH ({path}){near}");
    Err((RefusalKind::NoSuchProgram, reason))
}

/// What lies where a program was looked for.
fn beside(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if folder.is_dir() {
        listed(names(folder).into_iter())
    } else {
        format!("; there is no folder {}", folder.display())
    }
}

/// The names in a folder, in order; none where it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Some names in words, and that there are more.
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.take(NAMED + 1).collect();
    let more = if names.len() > NAMED { " and others" } else { "" };
    names.truncate(NAMED);
    if names.is_empty() { String::new() } else { format!("; there is {}{more}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("bin");
        fs::create_dir_all(folder.join("folder")).unwrap();
        for (name, mode) in [("runs", 0o755), ("plain", 0o644)] {
            fs::write(folder.join(name), "").unwrap();
            fs::set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
        }
        let path = format!("/nowhere:{}", folder.display());
        let env = [("PATH".to_owned(), "/ignored".to_owned()), ("PATH".to_owned(), path)];
        assert_eq!(find("runs", &env).unwrap(), folder.join("runs"));
        let denied = (RefusalKind::NotExecutable, "permission denied".to_owned());
        assert_eq!(find("plain", &env).unwrap_err(), denied);
        for (name, near) in
            [("missing", ""), ("plain2", "; there is plain"), ("run", "; there is runs")]
        {
            let said =
                format!("executable file not found in $PATH (/nowhere:{}){near}", folder.display());
            assert_eq!(find(name, &env).unwrap_err(), (RefusalKind::NoSuchProgram, said));
        }
        let (kind, _) = find("folder", &env).unwrap_err();
        assert_eq!(kind, RefusalKind::NoSuchProgram);
        assert_eq!(beside(&folder.join("x")), "; there is folder, plain, runs");
        assert_eq!(beside(Path::new("/nowhere/x")), "; there is no folder /nowhere");
        assert_eq!(find("./a", &[]).unwrap(), PathBuf::from("./a"));
        assert!(find("sh", &[]).is_ok());
    }
}
