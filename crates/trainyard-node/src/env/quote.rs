//! Labels and annotations as one text: `name="value"` lines, quoted as Go quotes strings, because
//! that is what programs that read such files expect.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One line per entry, in order of names, without a line end after the last.
pub(crate) fn lines(map: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, value) in map {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(name);
        text.push('=');
        quote_into(&mut text, value);
    }
    text
}

fn quote_into(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{b}' => text.push_str("\\v"),
            c if is_printable(c) => text.push(c),
            c => push_code(text, u32::from(c)),
        }
    }
    text.push('"');
}

fn push_code(text: &mut String, code: u32) {
    // Writing to a string cannot fail.
    let _ = match code {
        0..0x80 => write!(text, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

/// Letters, marks, numbers, signs and the plain space; not what is invisible.
fn is_printable(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..);
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn written_as_programs_expect() {
        let map = [
            ("b", "say \"hi\" \\ now"),
            ("a", "1"),
            ("c", "line\nend\ttab\u{7f}\u{1}"),
            ("d", "Grüße 火"),
            ("e", "\u{200b}\u{a0}\u{e0001}"),
        ];
        let map = map.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let expected = concat!(
            "a=\"1\"\n",
            "b=\"say \\\"hi\\\" \\\\ now\"\n",
            "c=\"line\\nend\\ttab\\x7f\\x01\"\n",
            "d=\"Grüße 火\"\n",
            "e=\"\\u200b\\u00a0\\U000e0001\"",
        );
        assert_eq!(lines(&map), expected);
        assert_eq!(lines(&std::collections::BTreeMap::new()), "");
    }
}
