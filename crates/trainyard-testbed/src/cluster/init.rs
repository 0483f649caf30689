//! The first process of a node's namespaces: everything in them ends with it. Knows how to find and end it, also
//! when another program started it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A node's processes are many, and the kernel ends all of them before the first is gone.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A process, told from others that get its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Init {
    /// Its number, as the machine sees it.
    pub(super) pid: u32,
    started: u64,
}

impl Init {
    /// The only child of `parent`, which is about to start it.
    pub(super) async fn child_of(parent: u32) -> Result<Self> {
        let file = format!("/proc/{parent}/task/{parent}/children");
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let children = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
            if let Some(pid) = children.split_whitespace().next().and_then(|pid| pid.parse().ok())
                && let Some(init) = Self::running(pid)
            {
                return Ok(init);
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("process {parent} has started nothing after {PATIENCE:?}")
    }

    fn running(pid: u32) -> Option<Self> {
        let (state, started) = parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        (!matches!(state, 'Z' | 'X')).then_some(Self { pid, started })
    }

    /// Does it run?
    pub(super) fn runs(self) -> bool {
        Self::running(self.pid) == Some(self)
    }

    /// Kills it, and returns when it and all in its namespaces are gone.
    pub(super) async fn kill(self) -> Result<()> {
        self.signal();
        let started = Instant::now();
        while self.runs() {
            if started.elapsed() > PATIENCE {
                bail!("process {} does not end", self.pid);
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Kills it and does not wait.
    pub(super) fn signal(self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.runs()) {
            // It may end by itself in between.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Writes it down for programs that come later.
    pub(super) fn write(self, file: &Path) -> Result<()> {
        fs::write(file, format!("{} {}\n", self.pid, self.started))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// The one that was written down, if it still runs.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let (pid, started) = text.trim_end().split_once(' ')?;
        let init = Self { pid: pid.parse().ok()?, started: started.parse().ok()? };
        init.runs().then_some(init)
    }
}

/// State and time of start, from the kernel's line about a process. A program's name may hold anything.
fn parse(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_line_is_read_from_its_end() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2 3\n";
        assert_eq!(parse(stat), Some(('S', 4242)));
        assert_eq!(parse("nothing"), None);
    }

    #[tokio::test]
    async fn a_process_is_found_again_until_it_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("init");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let init = Init::running(child.id()).unwrap();
        init.write(&file).unwrap();
        assert_eq!(Init::read(&file), Some(init));
        assert!(!Init { started: init.started + 1, ..init }.runs(), "another of that number");
        init.kill().await.unwrap();
        assert_eq!(Init::read(&file), None);
        child.wait().unwrap();
    }
}
