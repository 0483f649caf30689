//! Runs the real kubectl as a person would, with a home of its own. Knows the program and its
//! surroundings, not what its words mean.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_mins(1);

/// The real kubectl, bound to one API server and one user.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    patience: Duration,
}

/// What a run of kubectl gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The words it was given.
    pub command: String,
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Outcome {
    /// Did it end with exit code 0?
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Standard output of a run that must succeed; else an error that quotes standard error.
    pub fn stdout_of_success(self) -> Result<String> {
        if self.success() {
            return Ok(self.stdout);
        }
        bail!("`{}` ended with {:?}: {}", self.command, self.code, self.stderr.trim_end())
    }

    /// Standard error of a run that must fail; else an error that quotes standard output.
    pub fn stderr_of_failure(self) -> Result<String> {
        if !self.success() {
            return Ok(self.stderr);
        }
        bail!("`{}` should have failed but gave: {}", self.command, self.stdout.trim_end())
    }
}

impl Kubectl {
    /// `home` holds its discovery cache, so that it never reads or writes the developer's own.
    #[must_use]
    pub fn new(program: PathBuf, kubeconfig: PathBuf, home: PathBuf) -> Self {
        Self { program, kubeconfig, home, patience: PATIENCE }
    }

    /// The program itself, for those who run it in another way.
    #[must_use]
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Whom it speaks to, and as whom.
    #[must_use]
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// Changes how long one run may take (a minute by default).
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs it with these words. An error means that it could not be run or took too long; a run
    /// that ends badly is an [`Outcome`].
    pub async fn run(&self, words: &[&str]) -> Result<Outcome> {
        self.run_with_input(words, "").await
    }

    /// The same with `input` on standard input.
    pub async fn run_with_input(&self, words: &[&str], input: &str) -> Result<Outcome> {
        let command = format!("kubectl {}", words.join(" "));
        let run = self.run_to_end(words, input, command.clone());
        match tokio::time::timeout(self.patience, run).await {
            Ok(outcome) => outcome.with_context(|| format!("cannot run `{command}`")),
            Err(_) => bail!("`{command}` did not end within {:?}", self.patience),
        }
    }

    /// A kubectl command to be run by the caller (for `get -w` and other endless ones). It is
    /// killed when its handle is dropped.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env_clear()
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .kill_on_drop(true);
        command
    }

    async fn run_to_end(&self, words: &[&str], input: &str, command: String) -> Result<Outcome> {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take();
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A run that ends without reading all its input is judged by its outcome.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), feed);
        let output = output?;
        Ok(Outcome {
            command,
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Kubectl {
        Kubectl::new("/bin/sh".into(), "config".into(), "home".into())
    }

    #[tokio::test]
    async fn an_outcome_tells_streams_and_code() {
        let words = ["-c", "cat; echo $HOME $KUBECONFIG; echo bad >&2; exit 3"];
        let outcome = shell().run_with_input(&words, "in\n").await.unwrap();
        assert_eq!(outcome.code, Some(3));
        assert_eq!(outcome.stdout, "in\nhome config\n");
        assert_eq!(outcome.stderr, "bad\n");
        let error = outcome.clone().stdout_of_success().unwrap_err().to_string();
        assert!(error.contains("Some(3)") && error.ends_with("bad"), "{error}");
        assert_eq!(outcome.stderr_of_failure().unwrap(), "bad\n");
    }

    #[tokio::test]
    async fn a_run_that_hangs_is_ended() {
        let kubectl = shell().with_patience(Duration::from_millis(50));
        let error = kubectl.run(&["-c", "exec sleep 600"]).await.unwrap_err().to_string();
        assert!(error.contains("did not end within 50ms"), "{error}");
    }
}
