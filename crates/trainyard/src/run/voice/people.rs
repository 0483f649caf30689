//! A run for people: one stream of lines, each with its replica's colour, and on a terminal a live line
//! at the foot.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use super::{Header, Manner, Who, status};
use crate::commands::job_logs::source::Line;
use crate::failure::Failure;
use crate::output;
use crate::present::harmless::coloured;
use crate::present::paint::{Painter, When};
use crate::present::{harmless, lines, one_line};
use crate::run::board::{Board, Notice, Weight};
use crate::run::finish::Outcome;
use crate::run::names;
use crate::run::summary::{Row, Summary};
use crate::run::words::{amount, bytes, counted, length, listed};

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";

#[derive(Debug)]
pub(crate) struct People {
    manner: Manner,
    colour: bool,
    painter: Painter,
    /// Whether there is a terminal with room for a live line.
    live: bool,
    /// Whether the live line is shown now.
    shown: bool,
    doing: String,
    status: String,
    folded: u64,
}

impl People {
    pub(super) fn new(manner: Manner) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let mut painter = Painter::new(manner.colour, When::Always, manner.timestamps);
        painter.expect_several();
        Self {
            manner,
            colour: manner.colour.for_terminal(),
            painter,
            live: std::io::stdout().is_terminal() && !is_dumb,
            shown: false,
            doing: String::new(),
            status: String::new(),
            folded: 0,
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Writes lines above the live one.
    fn put(&mut self, text: &[u8]) -> Result<(), Failure> {
        let mut out = Vec::with_capacity(text.len() + 16);
        if std::mem::take(&mut self.shown) {
            out.extend_from_slice(b"\r\x1b[K");
        }
        // Whatever a pod or an object has said in it: no order but our own colours.
        out.extend_from_slice(&coloured(text, self.colour));
        if self.live && !self.status.is_empty() {
            out.extend_from_slice(self.status.as_bytes());
            self.shown = true;
        }
        output::print_bytes(&out)
    }

    pub(super) fn clear(&mut self) -> Result<(), Failure> {
        self.status.clear();
        if self.shown { self.put(b"") } else { Ok(()) }
    }

    pub(super) fn expect(&mut self, labels: &[String]) {
        self.painter.expect(labels.iter().map(String::as_str));
    }

    /// A bar on a terminal, drawn at once, for the next step may follow before time is told again; a
    /// line in a pipe.
    pub(super) fn progress(
        &mut self,
        board: &Board,
        notice: &Notice,
        now: Duration,
    ) -> Result<(), Failure> {
        notice.text.clone_into(&mut self.doing);
        let is_shown =
            self.live && status::percent(&notice.text).is_some_and(|(done, _)| done < 100);
        if is_shown && !self.manner.quiet {
            self.tick(board, now)
        } else {
            self.notice(board, notice)
        }
    }

    pub(super) fn progress_ends(&mut self) {
        self.doing.clear();
    }

    pub(super) fn header(&mut self, header: &Header) -> Result<(), Failure> {
        if self.manner.quiet {
            return Ok(());
        }
        let mut parts = vec![header.kind.to_owned()];
        parts.extend(header.replicas.iter().map(|(role, count)| counted(*count, role)));
        parts.extend(header.beside.iter().cloned());
        let pods = header.replicas.iter().map(|(_, count)| count).sum();
        let asks = header.room.iter().any(|(_, asked, _)| *asked > 0);
        let room: Vec<String> = header
            .room
            .iter()
            .filter(|(_, asked, _)| !asks || *asked > 0)
            .map(|(name, asked, has)| {
                let unit = if name == "memory" { "" } else { name };
                let of = if asks { format!("{} of ", amount(name, *asked)) } else { String::new() };
                format!("{of}{} {unit}", amount(name, *has)).trim_end().to_owned()
            })
            .collect();
        let fit = counted(pods, "pod") + if pods == 1 { " fits" } else { " fit" };
        let here = if asks { "" } else { " here" };
        parts.push(format!("{fit} ({}{here})", room.join(", ")));
        let name = self.paint(BOLD, &header.job);
        self.put(format!("{name}  {}\n", parts.join(" · ")).as_bytes())
    }

    pub(super) fn line(&mut self, who: Who<'_>, line: &Line, noise: bool) -> Result<(), Failure> {
        if self.manner.quiet {
            return Ok(());
        }
        if noise && !self.manner.verbose {
            self.folded += 1;
            return Ok(());
        }
        let shown = self.painter.line(who.label, line.time, &line.text);
        self.put(&shown)
    }

    pub(super) fn notice(&mut self, board: &Board, notice: &Notice) -> Result<(), Failure> {
        if self.manner.quiet && notice.weight == Weight::Normal {
            return Ok(());
        }
        let whom = match (notice.job, &notice.replica) {
            (Some(job), Some(replica)) => format!("{} ", board.label(job, replica)),
            (Some(job), None) => match board.jobs.get(job) {
                Some(on_board) => format!("{}: ", on_board.name),
                None => String::new(),
            },
            _ => String::new(),
        };
        let colour = if notice.weight == Weight::Warning { YELLOW } else { DIM };
        let text = format!("* {whom}{}", one_line(&notice.text));
        let text = self.paint(colour, &text);
        self.put(format!("{text}\n").as_bytes())
    }

    pub(super) fn tick(&mut self, board: &Board, now: Duration) -> Result<(), Failure> {
        if !self.live {
            return Ok(());
        }
        let width = rustix::termios::tcgetwinsize(std::io::stdout())
            .map_or(80, |size| usize::from(size.ws_col));
        let width = if width == 0 { 80 } else { width };
        let text = harmless(&status::line(board, &self.doing, now, width));
        let status = self.paint(DIM, &text);
        if status == self.status && self.shown {
            return Ok(());
        }
        self.status = status;
        self.put(b"")
    }

    pub(super) fn summary(&mut self, summary: &Summary) -> Result<(), Failure> {
        self.status.clear();
        let mut text = format!("{}\n", self.verdict(summary));
        if let Some(blame) = &summary.blame {
            if !blame.last_words.is_empty() {
                let _ = writeln!(text, "  last lines of {}:", blame.replica);
            }
            for line in &blame.last_words {
                let line = coloured(line.as_bytes(), false);
                let _ = writeln!(text, "    {}", harmless(&String::from_utf8_lossy(&line)));
            }
            if !blame.because.is_empty() {
                let _ = writeln!(text, "  because of it: {} ended too", listed(&blame.because));
            }
            if !blame.also.is_empty() {
                let _ = writeln!(text, "  failed as well: {}", listed(&blame.also));
            }
            if let Some(hint) = &blame.hint {
                let _ = writeln!(text, "  {} {hint}", self.paint(BOLD, "hint:"));
            }
        } else if !summary.message.is_empty() {
            for line in lines(&summary.message).lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        let width = summary.replicas.iter().map(|row| row.name.len()).max().unwrap_or(0);
        for row in &summary.replicas {
            let _ = writeln!(text, "  {}", replica(row, width));
        }
        if self.folded > 0 {
            let lines = usize::try_from(std::mem::take(&mut self.folded)).unwrap_or(usize::MAX);
            let words =
                format!("  {} of TensorFlow's own are not shown; -v does", counted(lines, "line"));
            let _ = writeln!(text, "{}", self.paint(DIM, &words));
        }
        let _ = writeln!(text, "  logs:   {}", summary.logs.display());
        if let Some(claims) = &summary.claims {
            let _ = writeln!(text, "  claims: {}", claims.display());
        }
        self.put(text.as_bytes())
    }

    fn verdict(&self, summary: &Summary) -> String {
        let took = length(summary.took);
        let restarts = match summary.restarts {
            0 => String::new(),
            number => {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                format!(" · {}", counted(number, "restart"))
            }
        };
        let peak = summary.replicas.iter().map(|row| row.peak).max().unwrap_or(0);
        let peak = if peak > 0 { format!(" · peak {}", bytes(peak)) } else { String::new() };
        let (colour, said) = match summary.outcome {
            Outcome::Succeeded => (GREEN, format!("succeeded in {took}")),
            Outcome::Failed => (RED, format!("failed after {took}")),
            Outcome::Deadline => (RED, format!("ran out of time after {took}")),
            Outcome::Invalid => (RED, "cannot be run".to_owned()),
            Outcome::Impossible => (RED, "cannot be run on this machine".to_owned()),
            Outcome::Interrupted => (YELLOW, format!("interrupted after {took}")),
        };
        let why = summary.blame.as_ref().map_or(String::new(), |blame| {
            format!(": {} ended with {}", blame.replica, blame.end.words())
        });
        let name = self.paint(BOLD, &summary.job);
        format!("{name}  {}{restarts}{peak}{why}", self.paint(colour, &said))
    }
}

fn replica(row: &Row, width: usize) -> String {
    let mut text = format!("{:width$}  {:9}", row.name, row.state);
    if let Some(code) = row.code.filter(|_| row.state == "failed") {
        let _ = write!(text, "  {}", names::code(code, &row.reason));
    }
    if row.restarts > 0 {
        let restarts = usize::try_from(row.restarts).unwrap_or(usize::MAX);
        let _ = write!(text, "  {}", counted(restarts, "restart"));
    }
    if row.peak > 0 {
        let _ = write!(text, "  peak {}", bytes(row.peak));
    }
    text.trim_end().to_owned()
}
