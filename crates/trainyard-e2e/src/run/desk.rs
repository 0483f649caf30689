//! Where somebody sits who types `trainyard run`: a folder of their own, manifests, and what came of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

const POLL: Duration = Duration::from_millis(50);
/// How long something may take to be printed, on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// One person's desk.
pub(super) struct Desk {
    binary: PathBuf,
    dir: TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Outcome {
    /// Standard output of a run that ended with this code.
    pub(super) fn with_code(self, wanted: i32) -> Result<Self> {
        ensure!(
            self.code == Some(wanted),
            "exit code {:?}, not {wanted}\n{}\n{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }
}

/// A run under way, whose output goes to files.
pub(super) struct Running {
    pub(super) child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// Replicas of one type: role, how many, shell script, restart policy.
pub(super) type Role<'a> = (&'a str, u32, &'a str, &'a str);

/// A TFJob whose replicas are shell scripts on this machine.
pub(super) fn job(name: &str, roles: &[Role<'_>]) -> Value {
    let replicas: Value = roles
        .iter()
        .map(|(role, count, script, policy)| {
            let spec = json!({
                "replicas": count, "restartPolicy": policy,
                "template": {"spec": {"terminationGracePeriodSeconds": 5, "containers": [{
                    "name": "tensorflow", "image": "test", "command": ["sh", "-c", script]}]}},
            });
            ((*role).to_owned(), spec)
        })
        .collect();
    json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": replicas}})
}

/// Mounts a claim at `/claim` in every replica.
pub(super) fn with_claim(mut job: Value, claim: &str) -> Value {
    for spec in job["spec"]["tfReplicaSpecs"].as_object_mut().into_iter().flatten() {
        let pod = &mut spec.1["template"]["spec"];
        pod["volumes"] = json!([{"name": "c", "persistentVolumeClaim": {"claimName": claim}}]);
        pod["containers"][0]["volumeMounts"] = json!([{"name": "c", "mountPath": "/claim"}]);
    }
    job
}

impl Desk {
    pub(super) fn new(binary: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("trainyard-run-").tempdir()?;
        Ok(Self { binary: binary.to_owned(), dir })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes objects into one file.
    pub(super) fn write(&self, name: &str, objects: &[Value]) -> Result<String> {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        let path = self.path(name);
        fs::write(&path, text.join("\n---\n"))?;
        Ok(path.display().to_string())
    }

    /// The binary with these words, in the desk's folder.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        self.furnish(&mut command);
        command.args(words);
        command
    }

    /// The binary.
    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(super) fn furnish(&self, command: &mut Command) {
        command
            .current_dir(self.dir.path())
            .env("XDG_DATA_HOME", self.path("data"))
            .env_remove("NO_COLOR")
            .kill_on_drop(true);
    }

    /// Runs to the end, with images named `test` being this machine.
    pub(super) async fn run(&self, words: &[&str]) -> Result<Outcome> {
        self.feed(words, "").await
    }

    /// The same with something on standard input.
    pub(super) async fn feed(&self, words: &[&str], input: &str) -> Result<Outcome> {
        let mut command = self.command(&["run", "--image=test=host"]);
        command.args(words);
        finish(command, input).await
    }

    /// The same with variables in its environment.
    pub(super) async fn run_with(
        &self,
        words: &[&str],
        variables: &[(&str, PathBuf)],
    ) -> Result<Outcome> {
        let mut command = self.command(&["run", "--image=test=host"]);
        command.args(words).envs(variables.iter().map(|(name, value)| (name, value)));
        finish(command, "").await
    }

    /// Another command of the binary, to its end.
    pub(super) async fn other(&self, words: &[&str]) -> Result<Outcome> {
        finish(self.command(words), "").await
    }

    /// Starts a run and leaves it running.
    pub(super) fn start(&self, words: &[&str]) -> Result<Running> {
        let (stdout, stderr) = (self.path("stdout"), self.path("stderr"));
        let mut command = self.command(&["run", "--image=test=host"]);
        command.args(words).stdin(Stdio::null());
        command.stdout(fs::File::create(&stdout)?).stderr(fs::File::create(&stderr)?);
        let child = command.spawn().context("starting `trainyard run`")?;
        Ok(Running { child, stdout, stderr })
    }

    /// No process, no mount and no pod's folder may outlive a run.
    pub(super) async fn nothing_is_left(&self) -> Result<()> {
        let folder = self.dir.path().display().to_string();
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        ensure!(!mounts.contains(&folder), "a mount is left in {folder}");
        for _ in 0..100 {
            if crate::yard::processes_about(&folder)?.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        let left = crate::yard::processes_about(&folder)?;
        ensure!(left.is_empty(), "processes are left: {left:?}");
        Ok(())
    }
}

pub(super) async fn finish(mut command: Command, input: &str) -> Result<Outcome> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("starting the binary")?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may have ended before it has read all.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    Ok(Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

impl Running {
    /// Waits until it has printed something.
    pub(super) async fn until(&mut self, text: &str) -> Result<()> {
        let began = std::time::Instant::now();
        loop {
            let said = fs::read_to_string(&self.stdout)?;
            if said.contains(text) {
                return Ok(());
            }
            let status = self.child.try_wait()?;
            ensure!(
                status.is_none(),
                "it ended with {status:?} before {text:?}: {said}{}",
                self.errors()
            );
            ensure!(began.elapsed() < PATIENCE, "{text:?} has not come: {said}{}", self.errors());
            tokio::time::sleep(POLL).await;
        }
    }

    fn errors(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw).context("it has ended")?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Waits for its end.
    pub(super) async fn end(mut self) -> Result<Outcome> {
        let status = self.child.wait().await?;
        Ok(Outcome {
            code: status.code(),
            stdout: fs::read_to_string(&self.stdout)?,
            stderr: self.errors(),
        })
    }
}
