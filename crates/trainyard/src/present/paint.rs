//! How a line is shown: its replica before it, in a colour that is always that replica's.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use clap::ValueEnum;
use jiff::Timestamp;

use super::harmless;
use super::harmless::{coloured, lone_line};

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Where it helps.
    Auto,
    Always,
    Never,
}

/// Colours that are easy to tell apart; red is kept for errors.
const COLOURS: [u8; 10] = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94];

impl When {
    /// Whether colours are wanted on standard output.
    pub(crate) fn for_terminal(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// Shows lines.
#[derive(Debug)]
pub(crate) struct Painter {
    colour: bool,
    prefix: When,
    timestamps: bool,
    /// Whether lines of several replicas come.
    several: bool,
    /// Widest label so far.
    width: usize,
    labels: BTreeMap<String, u8>,
}

impl Painter {
    pub(crate) fn new(colour: When, prefix: When, timestamps: bool) -> Self {
        Self {
            colour: colour.for_terminal(),
            prefix,
            timestamps,
            several: false,
            width: 0,
            labels: BTreeMap::new(),
        }
    }

    /// Says who may print, so that labels have one width from the first line on.
    pub(crate) fn expect<'a>(&mut self, labels: impl IntoIterator<Item = &'a str>) {
        for label in labels {
            self.width = self.width.max(label.chars().count());
            self.labels.insert(label.to_owned(), colour(label));
        }
        self.several = self.several || self.labels.len() > 1;
    }

    /// A job's lines have prefixes even before the second replica comes.
    pub(crate) fn expect_several(&mut self) {
        self.several = true;
    }

    /// One line as it is printed.
    pub(crate) fn line(&self, label: &str, time: Option<Timestamp>, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 32);
        let label = &harmless(label);
        let prefixed = match self.prefix {
            When::Always => true,
            When::Never => false,
            When::Auto => self.several,
        };
        if prefixed {
            let gap = " ".repeat(self.width.saturating_sub(label.chars().count()));
            let shown = if self.colour {
                let colour = self.labels.get(label).copied().unwrap_or_else(|| colour(label));
                format!("\x1b[{colour}m{label}{gap} |\x1b[0m ")
            } else {
                format!("{label}{gap} | ")
            };
            out.extend_from_slice(shown.as_bytes());
        }
        if let Some(time) = time.filter(|_| self.timestamps) {
            out.extend_from_slice(format!("{time:.9} ").as_bytes());
        }
        if prefixed {
            out.extend_from_slice(&coloured(&folded(text), self.colour));
        } else {
            out.extend_from_slice(&lone_line(text, self.colour));
        }
        if self.colour && text.contains(&b'\x1b') {
            // Its colours are not those of the next line.
            out.extend_from_slice(b"\x1b[0m");
        }
        out.push(b'\n');
        out
    }
}

/// The colour of a label: the same in every run, whoever starts first.
fn colour(label: &str) -> u8 {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in label.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    // Neighbours (worker-0, worker-1) differ in the low bits only.
    let place = (hash ^ (hash >> 15)) as usize % COLOURS.len();
    COLOURS[place]
}

/// What a progress bar shows in the end: it goes back to the line's start for every step, and would
/// write over the prefix.
fn folded(text: &[u8]) -> Vec<u8> {
    if !text.iter().any(|byte| *byte == b'\r' || *byte == 8) {
        return text.to_vec();
    }
    let last = text.split(|byte| *byte == b'\r').rfind(|part| part.iter().any(|byte| *byte != 8));
    last.unwrap_or_default().iter().copied().filter(|byte| *byte != 8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(painter: &Painter, label: &str, text: &str) -> String {
        String::from_utf8(painter.line(label, None, text.as_bytes())).unwrap()
    }

    #[test]
    fn several_replicas_have_prefixes_of_one_width() {
        let mut painter = Painter::new(When::Never, When::Auto, false);
        painter.expect(["ps-0"]);
        assert_eq!(shown(&painter, "ps-0", "x"), "x\n");
        painter.expect(["worker-10"]);
        assert_eq!(shown(&painter, "ps-0", "x"), "ps-0      | x\n");
        let never = Painter { prefix: When::Never, ..painter };
        assert_eq!(shown(&never, "ps-0", "x"), "x\n");
    }

    #[test]
    fn colours_belong_to_replicas() {
        let mut one = Painter::new(When::Always, When::Always, false);
        one.expect(["worker-0"]);
        let mut other = Painter::new(When::Always, When::Always, false);
        other.expect(["worker-1", "worker-0"]);
        assert_eq!(shown(&one, "worker-0", "x"), shown(&other, "worker-0", "x"));
        assert_ne!(colour("worker-0"), colour("worker-1"));
        assert!(shown(&one, "worker-0", "x").starts_with("\x1b["));
    }

    #[test]
    fn times_are_shown_when_asked_for() {
        let painter = Painter::new(When::Never, When::Auto, true);
        let time = "2026-01-31T08:00:00.5Z".parse().ok();
        assert_eq!(painter.line("a", time, b"x"), b"2026-01-31T08:00:00.500000000Z x\n");
    }

    #[test]
    fn no_line_gives_orders() {
        let text = "\x1b]52;c;eA==\x07\x1b[31mred\u{9b}2J";
        let plain = Painter::new(When::Never, When::Auto, false);
        assert_eq!(shown(&plain, "a", text), "^[]52;c;eA==\u{fffd}red\u{fffd}2J\n");
        let prefixed = Painter::new(When::Always, When::Always, false);
        let line = shown(&prefixed, "a", text);
        assert!(
            line.ends_with("\x1b[0m ^[]52;c;eA==\u{fffd}\x1b[31mred\u{fffd}2J\x1b[0m\n"),
            "{line:?}"
        );
        assert_eq!(plain.line("a", None, b"a\x9b2J\xff"), "a\u{fffd}2J\u{fffd}\n".as_bytes());
    }

    #[test]
    fn progress_bars_show_their_end() {
        assert_eq!(folded(b"1/3\r2/3\r3/3"), b"3/3");
        assert_eq!(folded(b"1/3\x08\x08\x08\r2/3\r\x08\x08"), b"2/3");
        assert_eq!(folded(b"plain"), b"plain");
        assert_eq!(folded(b"\r\r"), b"");
    }
}
