//! Runs the programs that make environments, so that none outlives this process: in a sandbox, or on the
//! machine in a group of its own under a small shell that holds the other end of a pipe, and dies when that
//! pipe is closed. Knows no program in particular.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;

use crate::ground::{Begun, Sandbox, Server, Task};
use crate::image::View;

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

const KEPT_LINES: usize = 200;
const LONGEST_LINE: usize = 8 * 1024;

/// A program to run.
#[derive(Debug)]
pub(crate) struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    cwd: PathBuf,
    limit: Duration,
}

/// Where programs run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// On the machine.
    Machine,
    /// In a sandbox, which shows this and lets these be reached, if any.
    Inside(&'a dyn Sandbox, &'a [View], Option<&'a [Server]>),
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
    /// With nothing in its environment, in the root folder.
    pub(crate) fn new(program: impl Into<PathBuf>, limit: Duration) -> Self {
        let (args, env, cwd) = (Vec::new(), Vec::new(), PathBuf::from("/"));
        Self { program: program.into(), args, env, cwd, limit }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn at(mut self, cwd: &Path) -> Self {
        cwd.clone_into(&mut self.cwd);
        self
    }

    pub(crate) fn args<I: IntoIterator<Item = A>, A: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With one more variable.
    pub(crate) fn env(self, name: &str, value: &str) -> Self {
        self.envs(&[(name.to_owned(), value.to_owned())])
    }

    /// With more variables.
    pub(crate) fn envs(mut self, variables: &[(String, String)]) -> Self {
        self.env.extend_from_slice(variables);
        self
    }

    /// Runs it to its end, telling of every line. Dropping the future ends the program.
    pub(crate) async fn run(
        self,
        place: Place<'_>,
        tell: &mut (dyn FnMut(&str) + Send),
    ) -> std::io::Result<Outcome> {
        match place {
            Place::Machine => self.run_here(tell).await,
            Place::Inside(sandbox, root, servers) => {
                let limit = self.limit;
                let task = self.task(root, servers)?;
                run_inside(sandbox.start(task).await?, limit, tell).await
            }
        }
    }

    fn task(self, root: &[View], servers: Option<&[Server]>) -> std::io::Result<Task> {
        let words = [self.program.into_os_string()].into_iter().chain(self.args);
        let argv: Result<Vec<String>, _> = words.map(OsString::into_string).collect();
        let argv = argv.map_err(|_| std::io::Error::other("a path that is no text"))?;
        let (root, fetches) = (root.to_vec(), servers.map(<[Server]>::to_vec));
        Ok(Task { argv, env: self.env, cwd: self.cwd, root, fetches })
    }

    async fn run_here(self, tell: &mut (dyn FnMut(&str) + Send)) -> std::io::Result<Outcome> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(UNDER_A_LIFELINE).arg("sh").arg(&self.program).args(&self.args);
        command.env_clear().envs(self.env).current_dir(&self.cwd).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let lifeline = child.stdin.take();
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(std::io::Error::other("no pipes to the program"));
        };
        let mut said = Said::begin(stdout, stderr);
        let in_time = tokio::time::timeout(self.limit, async {
            said.hear(tell).await;
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
        Ok(said.end(code))
    }
}

async fn run_inside(
    begun: Begun,
    limit: Duration,
    tell: &mut (dyn FnMut(&str) + Send),
) -> std::io::Result<Outcome> {
    let Begun { stdout, stderr, mut ended, keep } = begun;
    let (stdout, stderr) = (Receiver::from_owned_fd(stdout)?, Receiver::from_owned_fd(stderr)?);
    let mut said = Said::begin(stdout, stderr);
    let in_time = tokio::time::timeout(limit, async {
        said.hear(tell).await;
        (&mut ended).await
    })
    .await;
    drop(keep);
    let broke = || std::io::Error::other("the sandbox ended");
    let code = if let Ok(code) = in_time {
        Some(code.ok_or_else(broke)?)
    } else {
        ended.await;
        None
    };
    Ok(said.end(code))
}

/// What a program says while it runs.
struct Said {
    lines: tokio::sync::mpsc::Receiver<(bool, String)>,
    readers: [tokio::task::JoinHandle<()>; 2],
    kept: [VecDeque<String>; 2],
}

impl Said {
    fn begin(
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stderr: impl AsyncRead + Unpin + Send + 'static,
    ) -> Self {
        let (sender, lines) = tokio::sync::mpsc::channel(64);
        let readers = [
            tokio::spawn(read_lines(stdout, false, sender.clone())),
            tokio::spawn(read_lines(stderr, true, sender)),
        ];
        Self { lines, readers, kept: [VecDeque::new(), VecDeque::new()] }
    }

    /// Tells of every line until there will be none any more.
    async fn hear(&mut self, tell: &mut (dyn FnMut(&str) + Send)) {
        while let Some((is_error, line)) = self.lines.recv().await {
            tell(&line);
            let kept = &mut self.kept[usize::from(is_error)];
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line);
        }
    }

    fn end(self, code: Option<i32>) -> Outcome {
        for reader in self.readers {
            reader.abort();
        }
        let [out, err] = self.kept.map(Vec::from);
        Outcome { code, out, err }
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
        Invocation::new("/bin/sh", limit).env("PATH", "/usr/bin:/bin").args(["-c", script])
    }

    #[tokio::test]
    async fn what_a_program_says_is_kept_and_told() {
        let mut told = Vec::new();
        let outcome = shell("echo one; echo two >&2; exit 3", Duration::from_secs(20))
            .run(Place::Machine, &mut |line| told.push(line.to_owned()))
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
            let outcome = shell(script, Duration::from_secs(20))
                .run(Place::Machine, &mut |_| ())
                .await
                .unwrap();
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
        let outcome = shell(&script, Duration::from_millis(200))
            .run(Place::Machine, &mut |_| ())
            .await
            .unwrap();
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
        let task =
            tokio::spawn(async move { run.run(Place::Machine, &mut |_| ()).await.map(|o| o.code) });
        tokio::time::sleep(Duration::from_millis(300)).await;
        task.abort();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!file.exists(), "the program went on");
    }

    /// Plays a sandbox: plain processes, which it ends when nobody keeps them.
    #[derive(Debug)]
    struct Played;

    impl Sandbox for Played {
        fn start(&self, task: Task) -> crate::ground::Pending<'_, std::io::Result<Begun>> {
            Box::pin(async move {
                let mut command = std::process::Command::new(&task.argv[0]);
                command.args(&task.argv[1..]).env_clear().envs(task.env).current_dir(task.cwd);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = command.spawn()?;
                let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
                let (keep, given_up) = tokio::sync::oneshot::channel();
                let pid = rustix::process::Pid::from_child(&child);
                tokio::spawn(async move {
                    let _ = given_up.await;
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                });
                let wait = tokio::task::spawn_blocking(move || child.wait());
                let ended = Box::pin(async move { wait.await.ok()?.ok()?.code().or(Some(137)) });
                Ok(Begun { stdout: stdout.into(), stderr: stderr.into(), ended, keep })
            })
        }
    }

    #[tokio::test]
    async fn a_program_in_a_sandbox_is_heard_and_ended_likewise() {
        let place = || Place::Inside(&Played, &[], None);
        let mut told = Vec::new();
        let outcome = shell("echo one; echo two >&2; exit 3", Duration::from_secs(20))
            .run(place(), &mut |line| told.push(line.to_owned()))
            .await
            .unwrap();
        assert_eq!((outcome.code, outcome.last_words()), (Some(3), "two".to_owned()));
        told.sort();
        assert_eq!(told, ["one", "two"]);
        let late = shell("exec sleep 60", Duration::from_millis(200));
        let outcome = late.run(place(), &mut |_| ()).await.unwrap();
        assert_eq!(outcome.last_words(), "it took too long");
    }
}
