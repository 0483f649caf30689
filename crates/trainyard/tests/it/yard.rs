//! A yard of its own for a test, and the command against it.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Ended, command, run, run_with};

/// A running yard, ended with this value.
pub(crate) struct Yard {
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Yard {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Yard {
    /// A yard that runs no pods.
    pub(crate) fn start() -> Self {
        Self::with(&["--nodes=0"])
    }

    /// A yard with these flags, ready.
    pub(crate) fn with(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kubeconfig");
        let data = folder.path().join("yard");
        let mut command = command(&["up", "--listen=127.0.0.1:0"]);
        command.arg("--kubeconfig").arg(&file).arg("--data-dir").arg(&data).args(flags);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the yard starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("standard output is piped");
        BufReader::new(out).read_line(&mut line).expect("the yard says something");
        assert!(line.starts_with("ready https://127.0.0.1:"), "{line:?}");
        Self { child, folder }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let path = self.folder.path().join("kubeconfig");
        format!("--kubeconfig={}", path.to_str().expect("the path is text"))
    }

    /// The same for people who do not know that the server is a yard of this machine, as in front of a
    /// cluster.
    pub(crate) fn foreign_kubeconfig(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("kubeconfig")).expect("a file");
        let path = self.folder.path().join("foreign");
        std::fs::write(&path, text.replace("trainyard.dev/yard", "example.com/other"))
            .expect("a file");
        format!("--kubeconfig={}", path.to_str().expect("the path is text"))
    }

    /// Runs the command against the yard.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        let kubeconfig = self.kubeconfig();
        run(&[args, &[&kubeconfig]].concat())
    }

    /// The same with a text on standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Ended {
        let kubeconfig = self.kubeconfig();
        run_with(&[args, &[&kubeconfig]].concat(), input)
    }

    /// The same; it must succeed. What it printed.
    pub(crate) fn out(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
        ended.out
    }

    /// Applies a manifest; what was said.
    pub(crate) fn apply(&self, manifest: &str) -> String {
        let ended = self.run_with(&["apply", "-f", "-"], manifest);
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.out
    }

    /// The command, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.arg(self.kubeconfig());
        command
    }

    /// The real kubectl against the yard, where the machine has one.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Option<Ended> {
        let mut command = Command::new(kubectl()?);
        command.args(args).arg(self.kubeconfig()).stdin(Stdio::null());
        // Its caches are not for other tests.
        command.arg("--cache-dir").arg(self.folder.path().join("cache"));
        Some(command.output().expect("kubectl ends").into())
    }
}

/// The kubectl that the developer's commands have built.
fn kubectl() -> Option<PathBuf> {
    let home = std::env::home_dir()?;
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or(home.join(".cache"), PathBuf::from);
    let planes = std::fs::read_dir(cache.join("trainyard/control-plane")).ok()?;
    planes
        .filter_map(Result::ok)
        .map(|plane| plane.path().join("bin/kubectl"))
        .find(|path| path.is_file())
}
