//! Floats: shortest form, fixed digits, exponents, hexadecimal and binary.

use super::Form;

/// The longest decimal fraction that a float has; more places are zeros.
const PLACES_MAX: usize = 1100;

pub(super) fn write(out: &mut String, float: f64, verb: char, form: Form) {
    let sign = match (float.is_sign_negative(), form.plus, form.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    let mut text = magnitude(float.abs(), verb, form.precision);
    if form.sharp && verb != 'b' {
        text = with_point(&text, verb, form.precision);
    }
    let length = sign.len() + text.len();
    let zeros = form.width.unwrap_or(0).saturating_sub(length);
    if form.zero && !form.minus && zeros > 0 {
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', zeros));
        out.push_str(&text);
    } else {
        form.pad(out, &format!("{sign}{text}"), true);
    }
}

fn magnitude(float: f64, verb: char, precision: Option<usize>) -> String {
    match verb {
        'f' | 'F' => fixed(float, precision.unwrap_or(6)),
        'e' | 'E' => exponential(float, precision.unwrap_or(6), verb),
        'G' => general(float, precision, 'E'),
        'x' | 'X' => hexadecimal(float, precision, verb == 'X'),
        'b' => binary(float),
        _ => general(float, precision, 'e'),
    }
}

fn fixed(float: f64, places: usize) -> String {
    let exact = places.min(PLACES_MAX);
    let mut text = format!("{float:.exact$}");
    text.extend(std::iter::repeat_n('0', places - exact));
    text
}

fn exponential(float: f64, places: usize, letter: char) -> String {
    let exact = places.min(PLACES_MAX);
    let text = format!("{float:.exact$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(places - exact);
    with_exponent(&format!("{digits}{zeros}"), exponent.parse().unwrap_or(0), letter)
}

fn with_exponent(digits: &str, exponent: i32, letter: char) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{letter}{sign}{:02}", exponent.unsigned_abs())
}

/// Where the shortest form turns to an exponent.
const SHORTEST_LIMIT: i32 = 6;

/// The shorter of fixed and exponential, without zeros at the end.
fn general(float: f64, precision: Option<usize>, letter: char) -> String {
    let precision = precision.map(|digits| digits.max(1));
    let text = match precision {
        Some(digits) => format!("{float:.*e}", digits.min(PLACES_MAX) - 1),
        None => format!("{float:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let limit = match precision.map(|most| i32::try_from(most).unwrap_or(i32::MAX)) {
        None => SHORTEST_LIMIT,
        Some(most) if most > count && count > exponent => count,
        Some(most) => most,
    };
    if exponent < -4 || exponent >= limit {
        let point = if digits.len() > 1 { "." } else { "" };
        return with_exponent(
            &format!("{}{point}{}", &digits[..1], &digits[1..]),
            exponent,
            letter,
        );
    }
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        format!("0.{zeros}{digits}")
    } else if digits.len() <= whole {
        format!("{digits}{}", "0".repeat(whole - digits.len()))
    } else {
        format!("{}.{}", &digits[..whole], &digits[whole..])
    }
}

const FRACTION_BITS: u32 = 52;

/// Fraction with its leading bit, and the exponent that belongs to whole units of it.
fn parts(float: f64) -> (u64, i32) {
    let bits = float.abs().to_bits();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let exponent = i32::try_from(bits >> FRACTION_BITS).unwrap_or(0);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << FRACTION_BITS, exponent - 1075) }
}

fn binary(float: f64) -> String {
    let (fraction, exponent) = parts(float);
    format!("{fraction}p{exponent:+}")
}

fn hexadecimal(float: f64, precision: Option<usize>, capitals: bool) -> String {
    let (mut fraction, mut exponent) = parts(float);
    if fraction == 0 {
        exponent = 0;
    } else {
        // The leading bit goes to place 60: one digit before the point, fifteen behind it.
        let shift = fraction.leading_zeros() - 3;
        fraction <<= shift;
        exponent += 60 - i32::try_from(shift).unwrap_or(0);
    }
    let places = precision.unwrap_or(15).min(15);
    if places < 15 {
        let cut = u32::try_from(60 - 4 * places).unwrap_or(0);
        let (kept, rest) = (fraction >> cut, fraction & ((1 << cut) - 1));
        let half = 1_u64 << (cut - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        fraction = (kept + u64::from(up)) << cut;
        if fraction >> 61 == 1 {
            fraction >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", fraction & ((1 << 60) - 1));
    let digits = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(places) => {
            format!("{digits:0<places$.places$}", places = places.min(15))
                + &"0".repeat(places.saturating_sub(15))
        }
    };
    let point = if digits.is_empty() { "" } else { "." };
    let text = with_exponent(&format!("0x{}{point}{digits}", fraction >> 60), exponent, 'p');
    if capitals { text.to_uppercase() } else { text }
}

/// `#`: always a point, and for the general form no zeros cut off.
fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let marks: &[char] = if matches!(verb, 'x' | 'X') { &['p', 'P'] } else { &['e', 'E'] };
    let (digits, tail) = text.find(marks).map_or((text, ""), |at| text.split_at(at));
    let mut made = digits.to_owned();
    let mut missing = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    // To Go the `x` of a base is a digit too.
    let significant = digits.chars().filter(|sign| *sign != '.');
    let significant = significant.skip_while(|sign| *sign == '0').count();
    missing = missing.saturating_sub(significant);
    if !digits.contains('.') {
        if digits == "0" {
            missing = missing.saturating_sub(1);
        }
        made.push('.');
    }
    made.extend(std::iter::repeat_n('0', missing));
    made + tail
}
