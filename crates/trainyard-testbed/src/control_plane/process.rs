//! One server process: started in a group of its own, its log in a file, ended with its owner unless it is to
//! last. Knows nothing of Kubernetes.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{LazyLock, Mutex};

use anyhow::{Context, Result, bail};

/// How much of a log is quoted when a process dies.
const LAST_BYTES: u64 = 4096;
const LAST_LINES: usize = 20;

/// A running process; dropping it kills it, unless it is to last.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    log: PathBuf,
    child: Child,
    lasting: bool,
}

impl Process {
    /// Starts `program`; both output streams are appended to `log`.
    pub(crate) fn start(program: &Path, arguments: &[String], log: PathBuf) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = dying_with_parent(program);
        command.args(arguments);
        Self::spawn(name, command, log, false)
    }

    /// Starts `program` so that it outlives its owner.
    pub(crate) fn start_lasting(
        program: &Path,
        arguments: &[String],
        log: PathBuf,
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments);
        Self::spawn(name, command, log, true)
    }

    /// Gives it another name, by which errors call it.
    #[must_use]
    pub(crate) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    fn spawn(name: String, mut command: Command, log: PathBuf, lasting: bool) -> Result<Self> {
        let sink = File::options().create(true).append(true).open(&log);
        let sink = sink.with_context(|| format!("cannot open the log {}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(sink.try_clone()?)
            .stderr(sink)
            // Ctrl-C in the terminal goes to the owner alone, which ends its processes in order.
            .process_group(0);
        let child =
            spawn_on_lasting_thread(command).with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, log, child, lasting })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error with the last log lines when the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                bail!(
                    "{} ended with {status}; its last log lines:\n{}",
                    self.name,
                    self.last_lines()
                )
            }
            Err(error) => Err(error).with_context(|| format!("cannot look after {}", self.name)),
        }
    }

    /// The end of the log.
    pub(crate) fn last_lines(&self) -> String {
        match tail(&self.log) {
            Ok(text) if text.is_empty() => "(the log is empty)".to_owned(),
            Ok(text) => text,
            Err(error) => format!("(cannot read {}: {error})", self.log.display()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.lasting {
            return;
        }
        // Killed, not asked: nothing it could still write will be read.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `setpriv` arranges that the kernel kills the process when its starter dies, even by `kill -9`.
/// It replaces itself by the program, so the process id is the program's own.
fn dying_with_parent(program: &Path) -> Command {
    static SETPRIV: LazyLock<bool> = LazyLock::new(|| {
        let trial = Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).output();
        trial.is_ok_and(|output| output.status.success())
    });
    if *SETPRIV {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// "The starter" is, for the kernel, the thread that started the process and not the program; an
/// async runtime's threads come and go. So one thread that never ends starts all of them.
fn spawn_on_lasting_thread(command: Command) -> io::Result<Child> {
    static ORDERS: LazyLock<Mutex<mpsc::Sender<Order>>> = LazyLock::new(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let gone = || io::Error::other("the thread that starts processes is gone");
    let (answer, result) = mpsc::channel();
    ORDERS.lock().map_err(|_| gone())?.send((command, answer)).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"))
}

/// Tells the developer about slow set-up.
pub(super) fn say(line: &str) {
    crate::say(&format!("control plane: {line}"));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn shell(script: &str, log: &Path) -> Process {
        let arguments = ["-c".to_owned(), script.to_owned()];
        Process::start(Path::new("/bin/sh"), &arguments, log.to_owned()).unwrap()
    }

    #[test]
    fn a_dead_process_is_reported_with_its_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell(
            "i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i; done; exit 3",
            &dir.path().join("log"),
        );
        let started = Instant::now();
        let error = loop {
            match process.check() {
                Err(error) => break error.to_string(),
                Ok(()) => assert!(started.elapsed() < Duration::from_secs(10), "never ended"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("line 50"), "{error}");
        assert!(!error.contains("line 30\n"), "{error}");
    }

    #[test]
    fn dropping_kills() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 600", &dir.path().join("log"));
        process.check().unwrap();
        let proc_entry = PathBuf::from(format!("/proc/{}", process.pid()));
        assert!(proc_entry.exists());
        drop(process);
        assert!(!proc_entry.exists());
    }
}
