//! Who descends from whom, read from a `/proc` folder, and ending all that descends from this
//! process where no PID namespace does it.
//!
//! Owns the reading of `/proc/PID/stat`. Must not know containers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};

use crate::sys::{self, Ended, Pid};

/// A `/proc` folder, held open so that no later mount hides it.
#[derive(Debug)]
pub(crate) struct Proc {
    folder: OwnedFd,
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    /// Its own time and that of the children it waited for, in clock ticks.
    pub(crate) ticks: u64,
    pub(crate) threads: u64,
    /// Resident pages.
    pub(crate) pages: u64,
    /// Ended, but not yet waited for.
    pub(crate) zombie: bool,
}

impl Proc {
    /// The one of the current mount namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { folder: openat(CWD, "/proc", flags, Mode::empty())? })
    }

    /// One that is mounted nowhere.
    pub(crate) fn of(folder: OwnedFd) -> Self {
        Self { folder }
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Opens a file of this process, as `ns/net`.
    pub(crate) fn own(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&self.folder, format!("self/{path}"), flags, Mode::empty())?)
    }

    /// Opens a file of another process.
    pub(crate) fn of_process(&self, pid: Pid, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&self.folder, format!("{pid}/{path}"), flags, Mode::empty())?)
    }

    /// All processes. Those that end meanwhile are left out.
    pub(crate) fn processes(&self) -> io::Result<Vec<Process>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.folder, ".", flags, Mode::empty())?;
        let mut processes = Vec::new();
        for entry in Dir::new(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Ok(pid) = name.parse::<Pid>() else { continue };
            let mut text = String::new();
            let Ok(file) = self.of_process(pid, "stat") else { continue };
            if std::fs::File::from(file).read_to_string(&mut text).is_ok() {
                processes.extend(parse(pid, &text));
            }
        }
        Ok(processes)
    }
}

/// The name of a process may hold anything, brackets and blanks too; what follows its last bracket is
/// numbers.
fn parse(pid: Pid, stat: &str) -> Option<Process> {
    let rest = stat.get(stat.rfind(')')? + 1..)?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        ticks: (11..=14).filter_map(number).sum(),
        threads: number(17)?,
        pages: number(21)?,
        zombie: matches!(fields.first(), Some(&("Z" | "X"))),
    })
}

/// Those of `all` that descend from `root`, which is not among them.
pub(crate) fn below(all: &[Process], root: Pid) -> Vec<Process> {
    let mut children: BTreeMap<Pid, Vec<&Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(*child);
            next.push(child.pid);
        }
    }
    found
}

/// Kills everything that descends from this process, a subreaper, until nothing is left, and says
/// which children ended. They are all stopped first, so that none forks away.
pub(crate) fn end_descendants(proc: &Proc) -> Vec<Ended> {
    let me = std::process::id().cast_signed();
    let mut ended = Vec::new();
    let mut stopped = BTreeSet::new();
    for round in 0_u64.. {
        let running: Vec<Pid> = below(&proc.processes().unwrap_or_default(), me)
            .into_iter()
            .filter(|process| !process.zombie)
            .map(|process| process.pid)
            .collect();
        let strangers = running.iter().filter(|&&pid| stopped.insert(pid)).count();
        let signal = if strangers > 0 && round < 20 { libc::SIGSTOP } else { libc::SIGKILL };
        for pid in running {
            // It may have ended by itself, or changed its user; then the next round shows it.
            drop(sys::kill(pid, signal));
        }
        loop {
            match sys::reap(false) {
                Ok(Some(one)) => ended.push(one),
                Ok(None) => break,
                Err(_) => return ended,
            }
        }
        if signal == libc::SIGKILL {
            std::thread::sleep(Duration::from_millis(round.clamp(1, 20)));
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_an_odd_name_is_read() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 0 1 2 3 4 10 20 30 40 20 0 3 0 99 1000 55 0";
        let process =
            Process { pid: 42, parent: 7, ticks: 100, threads: 3, pages: 55, zombie: false };
        assert_eq!(parse(42, line), Some(process));
        assert_eq!(parse(42, "42 (cut"), None);
        assert_eq!(parse(42, "42 (cut) Z 1"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_only_they() {
        let process =
            |pid, parent| Process { pid, parent, ticks: 0, threads: 1, pages: 0, zombie: false };
        let all = [process(1, 0), process(2, 1), process(3, 2), process(4, 1), process(5, 3)];
        let mut pids: Vec<_> = below(&all, 2).iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 5]);
        assert!(below(&all, 5).is_empty());
    }

    #[test]
    fn this_process_is_seen() {
        let all = Proc::open().unwrap().processes().unwrap();
        let me = all.iter().find(|p| p.pid == std::process::id().cast_signed()).unwrap();
        assert!(me.pages > 0 && me.threads > 0);
    }
}
