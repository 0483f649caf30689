//! Text from strangers (names, reasons, messages, lines of logs) as a terminal may have it: nothing in it
//! is obeyed, apart from the colours of a log.
//!
//! Owns which characters are orders. Pure; every way to the terminal goes through here.

use std::fmt::Write as _;

/// Whether a terminal may take a character for an order, or an eye be led astray by it: control characters
/// of both sets, and what turns the direction of reading.
fn is_order(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What stands for an order where it is shown.
const fn shown(order: char) -> &'static str {
    if order == '\u{1b}' { "^[" } else { "\u{fffd}" }
}

/// A text of one line: control characters are shown, not obeyed.
pub(crate) fn harmless(text: &str) -> String {
    filtered(text, |out, rest, order| {
        out.push_str(if order == '\t' { " " } else { shown(order) });
        &rest[order.len_utf8()..]
    })
}

/// The same of several lines: their ends and tabs stay.
pub(crate) fn harmless_lines(text: &str) -> String {
    filtered(text, |out, rest, order| {
        match order {
            '\n' | '\t' => out.push(order),
            '\r' if rest.starts_with("\r\n") => {}
            other => out.push_str(shown(other)),
        }
        &rest[order.len_utf8()..]
    })
}

/// Text with colours of its own, or what a program has printed: colours (SGR) are kept or left out, so is
/// what clears the rest of a line; anything else that is an order is shown. What is no UTF-8 is shown as
/// such, for some terminals take single bytes from 0x80 on for orders.
pub(crate) fn coloured(text: &[u8], colours: bool) -> Vec<u8> {
    painted(text, colours, &['\n', '\t'])
}

/// The same of a line that nothing stands before: a progress bar may go back to its start.
pub(crate) fn lone_line(text: &[u8], colours: bool) -> Vec<u8> {
    painted(text, colours, &['\t', '\r', '\u{8}'])
}

/// JSON with the same meaning: an order can only stand in a string, where it can be written as a number.
pub(crate) fn harmless_json(text: &str) -> String {
    filtered(text, |out, rest, order| {
        match order {
            // Between members; in a string they are written as numbers already.
            '\n' | '\t' | '\r' => out.push(order),
            other => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
        }
        &rest[order.len_utf8()..]
    })
}

fn painted(text: &[u8], colours: bool, kept: &[char]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let out = filtered(&text, |out, rest, order| {
        if let Some((sequence, after)) = sequence(rest) {
            if colours && sequence.ends_with('m') {
                out.push_str(sequence);
            }
            return after;
        }
        if kept.contains(&order) {
            out.push(order);
        } else {
            out.push_str(shown(order));
        }
        &rest[order.len_utf8()..]
    });
    out.into_bytes()
}

/// The order that a text begins with and that is not worth showing, and what follows it: a colour, or the
/// clearing of the rest of a line that compilers print beside their colours.
fn sequence(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let length = inner.bytes().take_while(|b| b.is_ascii_digit() || b";:".contains(b)).count();
    let is_known = match inner.as_bytes().get(length)? {
        b'm' => true,
        b'K' => matches!(&inner[..length], "" | "0"),
        _ => false,
    };
    is_known.then(|| text.split_at(text.len() - inner.len() + length + 1))
}

/// A text whose orders are dealt with one by one: `deal` is given what begins with one, and returns what
/// is left.
fn filtered(text: &str, deal: impl for<'a> Fn(&mut String, &'a str, char) -> &'a str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, order)) = rest.char_indices().find(|(_, letter)| is_order(*letter)) {
        out.push_str(&rest[..at]);
        rest = deal(&mut out, &rest[at..], order);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clipboard, title, clear, both sets of control characters, as text and as bytes, and a text that is
    /// read backwards.
    const ATTACKS: [&str; 9] = [
        "\u{1b}]52;c;ZXZpbA==\u{7}",
        "\u{1b}]0;title\u{1b}\\",
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}c",
        "\u{1b}P1$r\u{1b}\\",
        "\u{9b}31m\u{9d}52;c;x\u{9c}",
        "a\u{202e}b\u{2066}c\u{2069}",
        "\u{0}\u{5}\u{7f}",
        "\u{1b}[31\u{1b}[;5A\u{1b}[?1049h\u{1b}[",
    ];

    fn is_safe(text: &str, may_stay: &[char]) -> bool {
        !text.chars().any(|letter| is_order(letter) && !may_stay.contains(&letter))
    }

    #[test]
    fn nothing_is_obeyed() {
        for attack in ATTACKS {
            assert!(is_safe(&harmless(attack), &[]), "{attack:?}");
            assert!(is_safe(&harmless_lines(attack), &['\n', '\t']), "{attack:?}");
            for colours in [true, false] {
                let line = String::from_utf8(coloured(attack.as_bytes(), colours)).unwrap();
                assert!(is_safe(&line, &['\n', '\t']), "{attack:?}: {line:?}");
                let line = String::from_utf8(lone_line(attack.as_bytes(), colours)).unwrap();
                assert!(is_safe(&line, &['\t', '\r', '\u{8}']), "{attack:?}: {line:?}");
            }
        }
        for byte in 0x80..=0x9f {
            let line = lone_line(&[b'a', byte, b'b'], true);
            assert_eq!(String::from_utf8(line).unwrap(), "a\u{fffd}b");
        }
    }

    #[test]
    fn what_was_hidden_can_be_seen() {
        assert_eq!(harmless("a\tb\u{1b}[31mc\u{7}"), "a b^[[31mc\u{fffd}");
        assert_eq!(harmless("a\nb"), "a\u{fffd}b");
        assert_eq!(harmless_lines("a\tb\r\nc\rd"), "a\tb\nc\u{fffd}d");
        assert_eq!(coloured(b"\x1b]0;x\x07", true), "^[]0;x\u{fffd}".as_bytes());
    }

    #[test]
    fn colours_of_a_log_are_kept_or_left_out() {
        let line = b"\x1b[01;31m\x1b[Kerror\x1b[m\x1b[K \x1b[38:5:1mx\x1b[0m\ty";
        assert_eq!(coloured(line, true), b"\x1b[01;31merror\x1b[m \x1b[38:5:1mx\x1b[0m\ty");
        assert_eq!(coloured(line, false), b"error x\ty");
        assert_eq!(coloured("grün".as_bytes(), true), "grün".as_bytes());
    }

    #[test]
    fn a_lone_line_may_go_back_to_its_start() {
        assert_eq!(lone_line(b"1/2\r2/2\x08", false), b"1/2\r2/2\x08");
        assert_eq!(coloured(b"1/2\r2/2", false), "1/2\u{fffd}2/2".as_bytes());
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a": "\u{1b}\u{9b}\u{202e}\u{7f}\n", "b": "ü\t"});
        let text = harmless_json(&format!("{value:#}\n"));
        assert!(is_safe(&text, &['\n']), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
