//! Runs the programs that make environments, so that none outlives this process: each runs in its own
//! group under a small shell that holds the other end of a pipe, and dies when that pipe is closed.
//! Knows no program in particular.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

/// A file mode mask that others can read through (containers may run as another user), the program, and
/// a watcher that kills the whole group at the end of the pipe on standard input.
const UNDER_A_LIFELINE: &str = r#"umask 022
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{ read -r _ <&3; kill -9 0; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$child"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// Variables of the agent's own that would change what is installed where.
const UNWANTED: [&str; 20] = [
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONOPTIMIZE",
    "PYTHONPYCACHEPREFIX",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_QUIET",
    "PIP_NO_COMPILE",
    "PIP_REQUIREMENT",
    "PIP_REQUIRE_VIRTUALENV",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "PYENV_VERSION",
];

const KEPT_LINES: usize = 200;
const LONGEST_LINE: usize = 8 * 1024;

/// A program to run.
#[derive(Debug)]
pub(crate) struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(&'static str, String)>,
    cwd: PathBuf,
    limit: Duration,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The exit code, 128 + the signal's number as a shell says it; none when it ran out of time.
    pub(crate) code: Option<i32>,
    /// The last lines of standard output.
    pub(crate) out: Vec<String>,
    /// The last lines of standard error.
    pub(crate) err: Vec<String>,
}

impl Invocation {
    pub(crate) fn new(program: impl Into<PathBuf>, cwd: &Path, limit: Duration) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.to_owned(),
            limit,
        }
    }

    pub(crate) fn args<I: IntoIterator<Item = A>, A: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// Runs it to its end, telling of every line. Dropping the future ends the program.
    pub(crate) async fn run(self, tell: &mut (dyn FnMut(&str) + Send)) -> std::io::Result<Outcome> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(UNDER_A_LIFELINE).arg("sh").arg(&self.program).args(&self.args);
        for name in UNWANTED {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8").env("NO_COLOR", "1").envs(self.env);
        command.current_dir(&self.cwd).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let lifeline = child.stdin.take();
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(std::io::Error::other("no pipes to the program"));
        };
        let (sender, mut lines) = tokio::sync::mpsc::channel::<(bool, String)>(64);
        let readers = [
            tokio::spawn(read_lines(stdout, false, sender.clone())),
            tokio::spawn(read_lines(stderr, true, sender)),
        ];
        let mut kept = [VecDeque::new(), VecDeque::new()];
        let in_time = tokio::time::timeout(self.limit, async {
            while let Some((is_error, line)) = lines.recv().await {
                tell(&line);
                let lines = &mut kept[usize::from(is_error)];
                if lines.len() == KEPT_LINES {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
            child.wait().await
        })
        .await;
        drop(lifeline);
        let code = if let Ok(status) = in_time {
            Some(status?.code().unwrap_or(128))
        } else {
            child.wait().await?;
            None
        };
        for reader in readers {
            reader.abort();
        }
        let [out, err] = kept.map(Vec::from);
        Ok(Outcome { code, out, err })
    }
}

impl Outcome {
    pub(crate) fn is_good(&self) -> bool {
        self.code == Some(0)
    }

    /// All that was said, for looking up what kind of failure it is.
    pub(crate) fn all(&self) -> String {
        [self.out.join("\n"), self.err.join("\n")].join("\n")
    }

    /// The last useful lines, and how it ended where it said nothing.
    pub(crate) fn last_words(&self) -> String {
        const MOST: usize = 1200;
        let mut lines: Vec<&str> =
            self.err.iter().map(|line| line.trim()).filter(|line| is_useful(line)).collect();
        if lines.is_empty() {
            lines =
                self.out.iter().map(|line| line.trim()).filter(|line| is_useful(line)).collect();
        }
        // What comes before the first error is only what went well.
        let begins =
            |line: &&str| ["error", "ERROR", "×"].iter().any(|word| line.starts_with(word));
        let start = lines.iter().position(begins);
        let tail = lines.split_off(start.unwrap_or(lines.len().saturating_sub(10)));
        let mut words = tail.join("; ");
        if words.len() > MOST {
            let mut start = words.len() - MOST;
            while !words.is_char_boundary(start) {
                start += 1;
            }
            words = format!("…{}", &words[start..]);
        }
        match (self.code, words.is_empty()) {
            (None, true) => "it took too long".to_owned(),
            (None, false) => format!("it took too long; last: {words}"),
            (Some(132), _) => {
                "it used an instruction that this processor does not have (SIGILL)".to_owned()
            }
            (Some(code), true) => format!("exit code {code}"),
            (Some(code @ 129..=192), false) => format!("ended by signal {}: {words}", code - 128),
            (Some(_), false) => words,
        }
    }
}

fn is_useful(line: &str) -> bool {
    const NOISE: [&str; 9] = [
        "Collecting ",
        "Downloading ",
        "Downloaded ",
        "Using cached ",
        "Requirement already ",
        "Obtaining dependency ",
        "[notice]",
        "WARNING: You are using pip",
        "WARNING: Running pip as",
    ];
    !line.is_empty() && !NOISE.iter().any(|noise| line.starts_with(noise))
}

async fn read_lines(
    from: impl AsyncRead + Unpin,
    is_error: bool,
    to: tokio::sync::mpsc::Sender<(bool, String)>,
) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    while let Ok(read) = from.read_until(b'\n', &mut bytes).await {
        if read == 0 {
            break;
        }
        bytes.truncate(LONGEST_LINE);
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        bytes.clear();
        if to.send((is_error, line)).await.is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Invocation {
        Invocation::new("/bin/sh", Path::new("/"), limit).args(["-c", script])
    }

    #[tokio::test]
    async fn what_a_program_says_is_kept_and_told() {
        let mut told = Vec::new();
        let outcome = shell("echo one; echo two >&2; exit 3", Duration::from_secs(20))
            .run(&mut |line| told.push(line.to_owned()))
            .await
            .unwrap();
        assert_eq!(outcome.code, Some(3));
        assert_eq!((outcome.out, outcome.err), (vec!["one".to_owned()], vec!["two".to_owned()]));
        told.sort();
        assert_eq!(told, ["one", "two"]);
    }

    #[tokio::test]
    async fn endings_without_words_are_put_in_words() {
        let run = |script: &'static str| async move {
            let outcome = shell(script, Duration::from_secs(20)).run(&mut |_| ()).await.unwrap();
            outcome.last_words()
        };
        assert_eq!(run("exit 7").await, "exit code 7");
        let words = run("printf 'Prepared 2\\nerror: no\\n  cause: x\\n' >&2; exit 1").await;
        assert_eq!(words, "error: no; cause: x");
        assert!(run("echo no >&2; kill -9 $$").await.starts_with("ended by signal 9: no"));
        assert!(run("kill -4 $$").await.contains("SIGILL"));
        assert_eq!(run("echo 'Collecting x' >&2; echo 'ERROR: y' >&2; exit 1").await, "ERROR: y");
    }

    #[tokio::test]
    async fn programs_that_take_too_long_are_ended_with_their_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("alive");
        let script = format!("(sleep 1; touch {}) & sleep 60", file.display());
        let outcome = shell(&script, Duration::from_millis(200)).run(&mut |_| ()).await.unwrap();
        assert_eq!(outcome.last_words(), "it took too long");
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!file.exists(), "a grandchild went on");
    }

    #[tokio::test]
    async fn a_dropped_run_ends_its_program() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("alive");
        let script = format!("sleep 1; touch {}", file.display());
        let run = shell(&script, Duration::from_mins(1));
        let task = tokio::spawn(async move { run.run(&mut |_| ()).await.map(|o| o.code) });
        tokio::time::sleep(Duration::from_millis(300)).await;
        task.abort();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!file.exists(), "the program went on");
    }
}
