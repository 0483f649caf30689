//! Text and characters in quotes.

use super::Form;

pub(super) fn write(out: &mut String, text: &str, form: Form) {
    if form.sharp && fits_back_quotes(text) {
        form.pad(out, &format!("`{text}`"), true);
        return;
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    text.chars().for_each(|sign| escape(&mut quoted, sign, '"', form.plus));
    quoted.push('"');
    form.pad(out, &quoted, true);
}

pub(super) fn character(sign: char, ascii: bool) -> String {
    let mut quoted = String::from("'");
    escape(&mut quoted, sign, '\'', ascii);
    quoted.push('\'');
    quoted
}

fn fits_back_quotes(text: &str) -> bool {
    let unfit =
        |sign| matches!(sign, '\0'..='\u{8}' | '\n'..='\u{1f}' | '\u{7f}' | '`' | '\u{feff}');
    !text.contains(unfit)
}

fn escape(out: &mut String, sign: char, quote: char, ascii: bool) {
    match sign {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        sign if sign == quote || sign == '\\' => {
            out.push('\\');
            out.push(sign);
        }
        ' '..='~' => out.push(sign),
        sign if !ascii && is_printable(sign) => out.push(sign),
        sign => {
            let code = u32::from(sign);
            let escaped = match code {
                0..0x80 => format!("\\x{code:02x}"),
                0x80..0x1_0000 => format!("\\u{code:04x}"),
                _ => format!("\\U{code:08x}"),
            };
            out.push_str(&escaped);
        }
    }
}

/// Letters, marks, numbers, punctuation, symbols and the plain space.
pub(super) fn is_printable(sign: char) -> bool {
    if matches!(sign, '"' | '\'' | '\\') {
        return true;
    }
    // The library escapes exactly what is not printable; a mark is printable behind a letter.
    ['a', sign].iter().collect::<String>().escape_debug().count() == 2
}
