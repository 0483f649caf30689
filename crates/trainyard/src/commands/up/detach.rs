//! A yard in the background: started by a process that returns when it is ready, ended by another.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::flags::{Down, Flags};
use super::notice::Notice;
use crate::failure::Failure;
use crate::output;

/// How long a yard may take to end its pods.
const ENDING: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(50);

/// Starts this program again without `--detach`, in a session of its own, and waits until it is
/// ready.
pub(super) fn start(flags: &Flags) -> Result<(), Failure> {
    let (folder, _temporary) = flags.folder()?;
    if let Some(running) = running(Notice::read(&folder)) {
        return Err(Failure::usage(format!(
            "a yard runs in {} already: process {}, {}",
            folder.path().display(),
            running.pid,
            running.url
        ))
        .hint("use it, end it with `trainyard down`, or choose another folder with --data-dir"));
    }
    let failed =
        |error: std::io::Error| Failure::other("starting the yard in the background", &error);
    let log =
        std::fs::OpenOptions::new().create(true).append(true).open(folder.log()).map_err(failed)?;
    let own = std::env::current_exe().map_err(failed)?;
    let words = std::env::args_os().skip(1).filter(|word| word != "--detach");
    let mut command = Command::new(own);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let Some(stdout) = child.stdout.take() else { return Ok(()) };
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    if line.starts_with("ready ") {
        return output::print(&line);
    }
    let status = child.wait().map_err(failed)?;
    let said = std::fs::read_to_string(folder.log()).unwrap_or_default();
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(Failure::usage(format!("the yard ended at once ({status}): {}", last.join("\n"))))
}

/// The yard that a notice tells of, if its process lives.
fn running(notice: Option<Notice>) -> Option<Notice> {
    notice.filter(|notice| process(notice).is_some_and(lives))
}

/// Whether a process runs. One that has ended stays in the table until whoever started it looks.
fn lives(pid: Pid) -> bool {
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let ended = std::fs::read_to_string(stat).is_ok_and(|text| {
        // The name before the state may hold anything, parentheses included.
        text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    });
    !ended && test_kill_process(pid).is_ok()
}

fn process(notice: &Notice) -> Option<Pid> {
    i32::try_from(notice.pid).ok().and_then(Pid::from_raw)
}

/// Ends the yard of a folder and waits until it is gone.
pub(super) fn stop(down: &Down) -> Result<(), Failure> {
    let folder = down.folder()?;
    let Some(notice) = running(Notice::read(&folder)) else {
        Notice::remove(&folder);
        output::say(&format!("no yard runs in {}\n", folder.path().display()));
        return Ok(());
    };
    let Some(pid) = process(&notice) else { return Ok(()) };
    kill_process(pid, Signal::TERM).map_err(|error| {
        Failure::other(format!("ending process {}", notice.pid), &std::io::Error::from(error))
    })?;
    let until = Instant::now() + ENDING;
    while lives(pid) {
        if Instant::now() > until {
            return Err(Failure::usage(format!(
                "process {} is still ending its pods after {} s",
                notice.pid,
                ENDING.as_secs()
            ))
            .hint(format!("wait, or end it by force: kill -9 {}", notice.pid)));
        }
        std::thread::sleep(POLL);
    }
    output::say(&format!("the yard at {} has ended\n", notice.url));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_has_looked_after_does_not_live() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while lives(pid) && Instant::now() < until {
            std::thread::sleep(POLL);
        }
        assert!(!lives(pid), "it has ended");
        assert!(test_kill_process(pid).is_ok(), "and is still in the table");
        child.wait().unwrap();
        assert!(lives(Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap()));
    }
}
