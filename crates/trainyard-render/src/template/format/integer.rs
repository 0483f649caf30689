//! Whole numbers, bytes and characters.

use gotmpl::Value;

use super::{Form, quote};

pub(super) fn write(out: &mut String, value: &Value, verb: char, form: Form) {
    let (negative, magnitude, raw) = match value {
        Value::Int(number) => {
            (*number < 0, number.unsigned_abs(), u64::from_ne_bytes(number.to_ne_bytes()))
        }
        Value::Uint(number) => (false, *number, *number),
        _ => return,
    };
    match verb {
        'c' => form.pad(out, character(raw).encode_utf8(&mut [0; 4]), true),
        'q' => form.pad(out, &quote::character(character(raw), form.plus), true),
        'U' => unicode(out, raw, form),
        'v' if form.source && matches!(value, Value::Uint(_)) => {
            digits(out, negative, &format!("{magnitude:x}"), 'x', Form { sharp: true, ..form });
        }
        'b' => digits(out, negative, &format!("{magnitude:b}"), verb, form),
        'o' | 'O' => digits(out, negative, &format!("{magnitude:o}"), verb, form),
        'x' => digits(out, negative, &format!("{magnitude:x}"), verb, form),
        'X' => digits(out, negative, &format!("{magnitude:X}"), verb, form),
        _ => digits(out, negative, &magnitude.to_string(), verb, form),
    }
}

fn character(number: u64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Digits with what belongs before them.
fn digits(out: &mut String, negative: bool, digits: &str, verb: char, form: Form) {
    if form.precision == Some(0) && digits == "0" {
        form.fill(out, form.width.unwrap_or(0), false);
        return;
    }
    let signed = negative || form.plus || form.space;
    let least = form.precision.unwrap_or_else(|| match form.width {
        // Zeros stand between the sign and the digits, and only on the left.
        Some(width) if form.zero && !form.minus => width.saturating_sub(usize::from(signed)),
        _ => 0,
    });
    let mut text = String::new();
    text.push_str(match (negative, form.plus, form.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    });
    let zeros = least.saturating_sub(digits.len());
    text.push_str(match verb {
        'O' if form.sharp && zeros == 0 && !digits.starts_with('0') => "0o0",
        'O' => "0o",
        'b' if form.sharp => "0b",
        'o' if form.sharp && zeros == 0 && !digits.starts_with('0') => "0",
        'x' if form.sharp => "0x",
        'X' if form.sharp => "0X",
        _ => "",
    });
    text.extend(std::iter::repeat_n('0', zeros));
    text += digits;
    form.pad(out, &text, false);
}

fn unicode(out: &mut String, number: u64, form: Form) {
    let least = form.precision.unwrap_or(0).max(4);
    let digits = format!("{number:X}");
    let zeros = "0".repeat(least.saturating_sub(digits.len()));
    let mut text = format!("U+{zeros}{digits}");
    let sign = u32::try_from(number).ok().and_then(char::from_u32);
    if let Some(sign) = sign.filter(|sign| form.sharp && quote::is_printable(*sign)) {
        text.extend([" '", sign.encode_utf8(&mut [0; 4]), "'"]);
    }
    form.pad(out, &text, false);
}
