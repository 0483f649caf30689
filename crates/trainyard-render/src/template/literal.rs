//! What the constants of a template mean: numbers, strings and characters, by Go's rules.
//!
//! Pure and small; must not know where a constant may stand.

use gotmpl::parse::Number;

/// Reads a number as a constant of Go: a fraction or exponent makes it a float.
pub(super) fn number(text: &str) -> Result<Number, String> {
    let illegal = || format!("illegal number syntax: {text:?}");
    if text.ends_with('i') && !is_hexadecimal(text) {
        return Err(format!("complex numbers such as {text} are not supported"));
    }
    if !underscores_separate_digits(text) {
        return Err(illegal());
    }
    let plain = text.replace('_', "");
    let looks_like_float = text.contains(['.', 'e', 'E', 'p', 'P']);
    // To Go only a hexadecimal number without a sign is told apart from an exponent.
    let hex_integer = text.len() > 2
        && (text.starts_with("0x") || text.starts_with("0X"))
        && !text.contains(['p', 'P']);
    match integer(&plain) {
        Some(Number::Int(whole)) if looks_like_float && !hex_integer => {
            #[expect(clippy::cast_precision_loss, reason = "as Go converts it")]
            let float = whole as f64;
            return Ok(Number::Float(float));
        }
        Some(number) => return Ok(number),
        None => {}
    }
    let float = if is_hexadecimal(&plain) { hex_float(&plain) } else { plain.parse().ok() };
    match float {
        Some(float) if looks_like_float && float.is_finite() => Ok(Number::Float(float)),
        Some(_) if !looks_like_float => Err(format!("integer overflow: {text:?}")),
        _ => Err(illegal()),
    }
}

fn unsigned(text: &str) -> (&str, bool) {
    let negative = text.starts_with('-');
    (text.strip_prefix(['+', '-']).unwrap_or(text), negative)
}

fn is_hexadecimal(text: &str) -> bool {
    let (text, _) = unsigned(text);
    text.starts_with("0x") || text.starts_with("0X")
}

/// Whole numbers of any base.
fn integer(text: &str) -> Option<Number> {
    let (digits, negative) = unsigned(text);
    let signed = digits.len() != text.len();
    let (digits, base) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some(start) if start.starts_with('0') => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    let sign = if negative { "-" } else { "" };
    if let Ok(whole) = i64::from_str_radix(&format!("{sign}{digits}"), base) {
        return Some(Number::Int(whole));
    }
    u64::from_str_radix(digits, base).ok().filter(|_| !signed).map(Number::Uint)
}

/// Of the form `0x1.8p3`; the exponent must be there.
fn hex_float(text: &str) -> Option<f64> {
    let (text, negative) = unsigned(text);
    let (mantissa, exponent) = text.get(2..)?.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value.mul_add(16.0, f64::from(digit.to_digit(16)?));
    }
    let places = i32::try_from(fraction.len()).ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(places.checked_mul(4)?)?;
    let value = value * 2.0_f64.powi(exponent);
    Some(if negative { -value } else { value })
}

/// An underscore stands between digits, or between a base and the first digit; in decimal
/// integers too.
fn underscores_separate_digits(text: &str) -> bool {
    if !text.contains('_') {
        return true;
    }
    let (mut text, _) = unsigned(text);
    let mut digit_before = false;
    let hex = is_hexadecimal(text);
    if ["0x", "0X", "0o", "0O", "0b", "0B"].iter().any(|base| text.starts_with(base)) {
        text = &text[2..];
        digit_before = true;
    }
    let mut underscore = false;
    for sign in text.chars() {
        if sign == '_' {
            if !digit_before {
                return false;
            }
            underscore = true;
            digit_before = false;
        } else {
            let digit = sign.is_ascii_digit() || (hex && sign.is_ascii_hexdigit());
            if underscore && !digit {
                return false;
            }
            underscore = false;
            digit_before = digit;
        }
    }
    !underscore
}

/// Reads `'x'`.
pub(super) fn character(text: &str) -> Result<i64, String> {
    let malformed = || format!("malformed character constant: {text}");
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inner = inner.filter(|inner| !inner.is_empty()).ok_or_else(malformed)?;
    let mut signs = inner.chars();
    let value = match signs.next() {
        Some('\\') => match escape(&mut signs, '\'').ok_or("invalid syntax")? {
            Escaped::Byte(byte) => u32::from(byte),
            Escaped::Sign(sign) => u32::from(sign),
        },
        Some(sign) => u32::from(sign),
        None => return Err(malformed()),
    };
    if signs.next().is_some() { Err(malformed()) } else { Ok(i64::from(value)) }
}

/// Reads a string in back quotes.
pub(super) fn raw(text: &str) -> String {
    text.trim_matches('`').replace('\r', "")
}

/// Reads a string in double quotes.
pub(super) fn quoted(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut signs = inner.ok_or("invalid syntax")?.chars();
    let mut bytes = Vec::with_capacity(text.len());
    while let Some(sign) = signs.next() {
        let sign = if sign == '\\' {
            match escape(&mut signs, '"').ok_or("invalid syntax")? {
                Escaped::Byte(byte) => {
                    bytes.push(byte);
                    continue;
                }
                Escaped::Sign(sign) => sign,
            }
        } else {
            sign
        };
        bytes.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| format!("the string {text} is not UTF-8 text"))
}

enum Escaped {
    /// Given as a number of eight bits.
    Byte(u8),
    Sign(char),
}

fn escape(signs: &mut std::str::Chars<'_>, quote: char) -> Option<Escaped> {
    let sign = match signs.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        'x' => return u8::try_from(digits(signs, 2, 16, 0)?).ok().map(Escaped::Byte),
        'u' => char::from_u32(digits(signs, 4, 16, 0)?)?,
        'U' => char::from_u32(digits(signs, 8, 16, 0)?)?,
        first @ '0'..='7' => {
            let value = digits(signs, 2, 8, first.to_digit(8)?)?;
            return u8::try_from(value).ok().map(Escaped::Byte);
        }
        sign if sign == quote => sign,
        _ => return None,
    };
    Some(Escaped::Sign(sign))
}

fn digits(signs: &mut std::str::Chars<'_>, count: usize, base: u32, start: u32) -> Option<u32> {
    (0..count).try_fold(start, |value, _| {
        value.checked_mul(base)?.checked_add(signs.next()?.to_digit(base)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_or_an_exponent_makes_a_float() {
        assert_eq!(number("12"), Ok(Number::Int(12)));
        assert_eq!(number("1e3"), Ok(Number::Float(1000.0)));
        assert_eq!(number("0x1E"), Ok(Number::Int(30)));
        assert_eq!(number("0x1.8p3"), Ok(Number::Float(12.0)));
        assert_eq!(number("-0b101"), Ok(Number::Int(-5)));
        assert_eq!(number("0755"), Ok(Number::Int(493)));
        assert_eq!(number("18446744073709551615"), Ok(Number::Uint(u64::MAX)));
        for wrong in ["1__0", "_1", "0x", "089", "18446744073709551616", "3i", "0x1.8"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn escapes_are_those_of_go() {
        assert_eq!(quoted(r#""a\tb\u00e9\x41\101\"""#), Ok("a\tb\u{e9}AA\"".to_owned()));
        assert!(quoted(r#""\q""#).is_err());
        assert!(quoted(r#""\xff""#).is_err());
        assert_eq!(character(r"'\''"), Ok(39));
        assert!(character("'ab'").is_err());
    }
}
