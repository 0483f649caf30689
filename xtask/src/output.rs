//! What programs and checks say: shown as it comes, or kept until the whole is shown. Knows neither tiers
//! nor what is said.

use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

/// Lines that wait for their reader; more make the program wait.
const WAITING: usize = 64;

/// Where lines go.
#[derive(Debug)]
pub(crate) enum Output {
    /// To the terminal, at once.
    Shown,
    /// Into a text, for later.
    Kept(String),
}

impl Output {
    pub(crate) fn line(&mut self, line: &str) {
        match self {
            Self::Shown => println!("{line}"),
            Self::Kept(text) => text.extend([line, "\n"]),
        }
    }

    /// Runs to the end with its output here; did it succeed?
    pub(crate) async fn of(&mut self, command: &mut Command) -> Result<bool> {
        self.of_reading(command, |_| true).await
    }

    /// The same; each line of standard output is given to `read`, which says whether it is for people.
    pub(crate) async fn of_reading(
        &mut self,
        command: &mut Command,
        mut read: impl FnMut(&str) -> bool,
    ) -> Result<bool> {
        let name = command.as_std().get_program().to_string_lossy().into_owned();
        // On a terminal, programs show on standard error how far they are.
        let shown = matches!(self, Self::Shown);
        command.stdout(Stdio::piped());
        command.stderr(if shown { Stdio::inherit() } else { Stdio::piped() });
        let mut child = command.spawn().with_context(|| format!("cannot run `{name}`"))?;
        let (sender, mut lines) = mpsc::channel(WAITING);
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(forward(stdout, true, sender.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(forward(stderr, false, sender.clone()));
        }
        drop(sender);
        while let Some((standard, line)) = lines.recv().await {
            if !standard || read(&line) {
                self.line(&line);
            }
        }
        Ok(child.wait().await?.success())
    }
}

/// Sends each line until the stream or the interest ends.
async fn forward(
    stream: impl AsyncRead + Unpin,
    standard: bool,
    lines: mpsc::Sender<(bool, String)>,
) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    while matches!(stream.read_until(b'\n', &mut bytes).await, Ok(length) if length > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
        if lines.send((standard, line)).await.is_err() {
            break;
        }
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_streams_are_kept_and_one_is_read() {
        let mut output = Output::Kept(String::new());
        let mut read = Vec::new();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo one; echo two >&2; printf hidden; exit 3"]);
        let succeeded = output.of_reading(&mut command, |line| {
            read.push(line.to_owned());
            line != "hidden"
        });
        assert!(!succeeded.await.unwrap());
        assert_eq!(read, ["one", "hidden"]);
        let Output::Kept(text) = output else { panic!("it was kept") };
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["one", "two"]);
    }
}
