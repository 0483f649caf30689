//! A real pseudo-terminal: colours, the live line, Ctrl-C.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::{Child, Command};

use super::desk::{Desk, job};
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/terminal": colours_and_a_live_line, no_colour, control_c]
}

const PATIENCE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(50);
const COLUMNS: u16 = 60;

/// A program in a terminal of its own.
pub(super) struct Screen {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    /// A run.
    pub(super) fn open(desk: &Desk, words: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        Self::start(desk, &[&["run", "--image=test=host"], words].concat(), variables)
    }

    /// Any command of the binary.
    pub(super) fn start(desk: &Desk, words: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size)?;
        let name = ptsname(&master, Vec::new())?;
        let name = name.to_str().context("the terminal's name")?;
        let slave = || File::options().read(true).write(true).open(name);
        // It makes the terminal the program's own, so that Ctrl-C reaches it.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(desk.binary()).args(words);
        desk.furnish(&mut command);
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        command.stdin(Stdio::from(slave()?)).stdout(Stdio::from(slave()?));
        command.stderr(Stdio::from(slave()?));
        let child = command.spawn().context("starting in a terminal")?;
        drop(command);
        let reader: OwnedFd = master.try_clone()?;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut reader = File::from(reader);
            let mut piece = [0; 4096];
            // The other end is gone when the last program has ended.
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..length]);
            }
        });
        Ok(Self { child, keyboard: File::from(master), shown })
    }

    fn bytes(&self) -> Vec<u8> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// All that it has shown, when it has ended.
    pub(super) async fn bytes_at_the_end(mut self) -> Result<Vec<u8>> {
        tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        tokio::time::sleep(POLL).await;
        Ok(self.bytes())
    }

    async fn until(&self, text: &str) -> Result<()> {
        let began = Instant::now();
        while !self.text().contains(text) {
            ensure!(began.elapsed() < PATIENCE, "{text:?} has not come: {}", self.text());
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    pub(super) async fn end(mut self) -> Result<(Option<i32>, String)> {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        tokio::time::sleep(POLL).await;
        Ok((status.code(), self.text()))
    }
}

const STEADY: &str = "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.3; done";

async fn colours_and_a_live_line(desk: &Desk) -> Result<()> {
    let roles = [("Chief", 1, STEADY, "Never"), ("Worker", 2, STEADY, "Never")];
    let file = desk.write("job.yaml", &[job("mnist", &roles)])?;
    let (code, shown) = Screen::open(desk, &[&file], &[])?.end().await?;
    ensure!(code == Some(0), "exit code {code:?}: {shown}");
    contains(
        "colours",
        &shown,
        &["\x1b[1mmnist\x1b[0m", "\x1b[32msucceeded in ", "|\x1b[0m step 6"],
    )?;
    contains("the live line", &shown, &["2 workers running", "\r\x1b[K"])?;
    let live = shown.split("\r\x1b[K").skip(1).map(|rest| rest.lines().next().unwrap_or_default());
    for line in live.filter(|line| line.contains("workers running")) {
        let plain = line.replace("\x1b[2m", "").replace("\x1b[0m", "");
        ensure!(plain.chars().count() < usize::from(COLUMNS), "wider than the terminal: {plain:?}");
    }
    let last = shown.rsplit('\n').find(|line| !line.trim().is_empty()).unwrap_or_default();
    ensure!(!last.contains("running"), "the live line stays at the end: {last:?}");
    Ok(())
}

async fn no_colour(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, STEADY, "Never")])])?;
    let (code, shown) = Screen::open(desk, &[&file], &[("NO_COLOR", "1")])?.end().await?;
    ensure!(code == Some(0), "exit code {code:?}: {shown}");
    for colour in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[36m"] {
        ensure!(!shown.contains(colour), "a colour: {shown:?}");
    }
    contains("the live line stays", &shown, &["\r\x1b[K", "worker running"])?;
    Ok(())
}

async fn control_c(desk: &Desk) -> Result<()> {
    let script = "trap 'echo told to end; exit 0' TERM; echo begins; sleep 100 & wait";
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, script, "Never")])])?;
    let mut screen = Screen::open(desk, &[&file], &[])?;
    screen.until("begins").await?;
    screen.keyboard.write_all(b"\x03")?;
    let (code, shown) = screen.end().await?;
    ensure!(code == Some(130), "exit code {code:?}: {shown}");
    contains("Ctrl-C", &shown, &["stopping (SIGINT)", "told to end", "interrupted after"])
}
