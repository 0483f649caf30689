//! Which agent process keeps a Node, so that a second one does not fight over it and a restarted one
//! need not wait for the lease of its dead predecessor.

use std::fmt;
use std::fs;
use std::path::Path;

/// A process, as exactly as a machine can name one. Written in the Node's annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentIdentity {
    machine: String,
    boot: String,
    /// Process ids mean something only within one of these.
    pid_namespace: String,
    pid: u32,
    /// When the process began, in ticks since boot: process ids are used again.
    began: u64,
}

/// What is known of another agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Runs,
    Ended,
    /// It is elsewhere; only its lease can tell.
    Unknown,
}

impl AgentIdentity {
    /// This process. What cannot be read is left empty, which makes others unsure of us, no more.
    pub(crate) fn current() -> Self {
        let root = Path::new("/");
        let pid = std::process::id();
        Self {
            machine: word(root, "etc/machine-id"),
            boot: word(root, "proc/sys/kernel/random/boot_id"),
            pid_namespace: pid_namespace(root),
            pid,
            began: began(root, pid).unwrap_or_default(),
        }
    }

    /// Reads what [`fmt::Display`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('/');
        let mut next = || fields.next().map(str::to_owned);
        let (machine, boot, pid_namespace) = (next()?, next()?, next()?);
        let (pid, began) = (next()?.parse().ok()?, next()?.parse().ok()?);
        fields.next().is_none().then_some(Self { machine, boot, pid_namespace, pid, began })
    }

    /// Whether `other` still runs, as far as this process can see.
    pub(super) fn judge(&self, other: &Self, root: &Path) -> Verdict {
        let here = !self.machine.is_empty()
            && !self.boot.is_empty()
            && !self.pid_namespace.is_empty()
            && (&self.machine, &self.boot, &self.pid_namespace)
                == (&other.machine, &other.boot, &other.pid_namespace);
        if !here {
            return Verdict::Unknown;
        }
        if began(root, other.pid) == Some(other.began) { Verdict::Runs } else { Verdict::Ended }
    }

    /// In words, for error messages.
    pub(super) fn words(&self, judge: &Self) -> String {
        if (&self.machine, &self.boot) == (&judge.machine, &judge.boot) {
            format!("process {} on this machine", self.pid)
        } else {
            format!("process {} on machine {}", self.pid, self.machine)
        }
    }
}

impl fmt::Display for AgentIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, boot, pid_namespace, pid, began } = self;
        write!(out, "{machine}/{boot}/{pid_namespace}/{pid}/{began}")
    }
}

fn word(root: &Path, path: &str) -> String {
    let text = fs::read_to_string(root.join(path)).unwrap_or_default();
    text.trim().replace('/', "-")
}

fn pid_namespace(root: &Path) -> String {
    // The link reads `pid:[4026531836]`.
    fs::read_link(root.join("proc/self/ns/pid"))
        .ok()
        .and_then(|link| Some(link.to_str()?.split(['[', ']']).nth(1)?.to_owned()))
        .unwrap_or_default()
}

/// The 22nd field of a process's `stat`; the second may hold spaces and brackets of its own.
fn began(root: &Path, pid: u32) -> Option<u64> {
    let text = fs::read_to_string(root.join(format!("proc/{pid}/stat"))).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn someone(pid: u32, began: u64) -> AgentIdentity {
        AgentIdentity {
            machine: "m".to_owned(),
            boot: "b".to_owned(),
            pid_namespace: "7".to_owned(),
            pid,
            began,
        }
    }

    #[test]
    fn written_and_read_again() {
        let me = AgentIdentity::current();
        assert_eq!(AgentIdentity::parse(&me.to_string()), Some(me));
        for rubbish in ["", "a/b", "a/b/c/d/e", "a/b/c/1/2/3", "a/b/c/-1/2"] {
            assert_eq!(AgentIdentity::parse(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn this_process_runs() {
        let me = AgentIdentity::current();
        if !me.machine.is_empty() {
            assert_eq!(me.judge(&me, Path::new("/")), Verdict::Runs);
        }
        assert!(me.began > 0);
    }

    #[test]
    fn a_process_id_used_again_is_someone_else() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/12")).unwrap();
        let stat = format!("12 (a) b (c) S {}500 9\n", "1 ".repeat(18));
        fs::write(root.path().join("proc/12/stat"), stat).unwrap();
        let judge = |other: &AgentIdentity| someone(1, 1).judge(other, root.path());
        assert_eq!(judge(&someone(12, 500)), Verdict::Runs);
        assert_eq!(judge(&someone(12, 499)), Verdict::Ended);
        assert_eq!(judge(&someone(13, 500)), Verdict::Ended);
        let elsewhere = AgentIdentity { machine: "n".to_owned(), ..someone(12, 500) };
        assert_eq!(judge(&elsewhere), Verdict::Unknown);
    }

    #[test]
    fn nameless_machines_are_never_sure() {
        let nameless = AgentIdentity { machine: String::new(), ..someone(1, 1) };
        assert_eq!(nameless.judge(&nameless.clone(), Path::new("/")), Verdict::Unknown);
    }
}
