//! The formats of texts and numbers (`format`): which there are and what each admits.
//!
//! Owns what the API server enforces for custom resources; every other format is as if not written.
//! Must not know where a format stands.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;

use super::{
    node::{Marks, Node, Type},
    pattern::Pattern,
};

/// The formats of texts, without dashes.
const TEXTS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether a format means something for a node; others are as if not written.
pub(super) fn is_supported(node: &Node, format: &str) -> bool {
    if format.is_empty() || node.has(Marks::INT_OR_STRING) {
        return false;
    }
    match node.kind {
        None | Some(Type::Text) => TEXTS.contains(&plain(format).as_str()),
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        Some(Type::Object | Type::Array | Type::Boolean) => false,
    }
}

fn plain(format: &str) -> String {
    format.replace('-', "")
}

/// Whether a text has a format that is supported.
pub(super) fn admits(format: &str, text: &str) -> bool {
    match plain(format).as_str() {
        "bsonobjectid" => text.len() == 24 && is_hexadecimal(text),
        "byte" => is_base64(text),
        "cidr" => is_network(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_address(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hexadecimal(digits)
        }
        "hostname" => is_host_name(text),
        "ipv4" => text.contains('.') && is_ip(text),
        "ipv6" => text.contains(':') && is_ip(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb(text),
        "ssn" => text.len() == 11 && fits(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$", text),
        "uri" => is_request_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        _ => true,
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    Pattern::new(pattern).is_match(text).unwrap_or(false)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Leading zeros in addresses are let pass, as the API server does.
fn is_ip(text: &str) -> bool {
    let without_zeros = |address: &str| {
        let parts: Vec<_> = address
            .split('.')
            .map(|part| {
                let short = part.trim_start_matches('0');
                if short.is_empty() && !part.is_empty() { "0" } else { short }.to_owned()
            })
            .collect();
        parts.join(".")
    };
    match text.rsplit_once(':') {
        None => without_zeros(text).parse::<IpAddr>().is_ok(),
        Some((head, tail)) if tail.contains('.') => {
            format!("{head}:{}", without_zeros(tail)).parse::<Ipv6Addr>().is_ok()
        }
        Some(_) => text.parse::<Ipv6Addr>().is_ok(),
    }
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = if address.contains(':') { 128 } else { 32 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    is_ip(address) && digits && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let known = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}\
                 |3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}\
                 |(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0');
            match (at % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled >= 10 => doubled % 10 + 1,
                (_, doubled) => doubled,
            }
        })
        .sum();
    fits(known, &digits) && sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shape && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    let fields: Vec<_> = clock.split(':').collect();
    let within = |text: &str, most: &str| text.len() == 2 && is_decimal(text) && text <= most;
    let clock_fits = matches!(fields.as_slice(), [hour, minute, second]
        if within(hour, "23") && within(minute, "59") && within(second, "59"));
    is_date(date) && clock_fits && is_zone_after_fraction(rest)
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `z`, `.5z`, `+02:00`. The mark before a fraction may be any character, as on the API server.
fn is_zone_after_fraction(text: &str) -> bool {
    let is_zone = |text: &str| {
        let offset = text.strip_prefix(['+', '-']).and_then(|rest| rest.split_once(':'));
        text == "z"
            || offset.is_some_and(|(hours, minutes)| {
                hours.len() == 2 && minutes.len() == 2 && is_decimal(hours) && is_decimal(minutes)
            })
    };
    let fraction = || {
        let mut rest = text.chars();
        rest.next()?;
        let rest = rest.as_str();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest.get(digits..).filter(|_| digits > 0)
    };
    is_zone(text) || fraction().is_some_and(is_zone)
}

/// A duration in Go's syntax, or words as `2 days`.
fn is_duration(text: &str) -> bool {
    let go = r"^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$";
    let words = r"(?i)\d\s*(ns|us|µs|ms|s|m|h|hr|d|w|wk|nano[a-zµ]*|micro[a-zµ]*|milli[a-zµ]*|sec[a-zµ]*|min[a-zµ]*|hour[a-zµ]*|day[a-zµ]*|week[a-zµ]*)([^a-zµ]|$)";
    fits(go, text) || fits(words, text)
}

/// `name@example.com` or `Somebody <name@example.com>`.
fn is_address(text: &str) -> bool {
    let text = text.trim();
    let address = match (text.find('<'), text.strip_suffix('>')) {
        (Some(open), Some(body)) => body.get(open + 1..).unwrap_or_default(),
        (None, None) => text,
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| {
                c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
            })
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || local.split('.').all(atom)) && (literal || domain.split('.').all(atom))
}

/// A letter, digit or symbol of any script.
fn is_host_sign(c: char) -> bool {
    static OTHERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{S}\p{L}]$").ok());
    c.is_ascii_alphanumeric()
        || (c != '-' && c != '_' && c != '.')
            && OTHERS.as_ref().is_some_and(|signs| signs.is_match(c.encode_utf8(&mut [0; 4])))
}

/// One label, with a dash at most behind its first sign, or several with a name of letters at the end.
fn is_host_name(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    if text.len() > 255 || labels.iter().any(|label| label.len() > 63) {
        return false;
    }
    match labels.as_slice() {
        [only] => {
            let mut signs = only.chars();
            let first = signs.next().is_some_and(is_host_sign);
            let rest = signs.as_str();
            first && rest.strip_prefix('-').unwrap_or(rest).chars().all(is_host_sign)
        }
        [labels @ .., last] => {
            let inner = |label: &&str| {
                label.chars().all(|c| c == '-' || is_host_sign(c))
                    && label.chars().next().is_some_and(is_host_sign)
                    && label.chars().last().is_some_and(is_host_sign)
            };
            let letters = |c: char| c.is_ascii_alphabetic() || (!c.is_ascii() && c.is_alphabetic());
            labels.iter().all(inner) && last.chars().count() >= 2 && last.chars().all(letters)
        }
        [] => false,
    }
}

fn without_gaps(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_gaps(text);
    let Some((last, first)) = digits.split_last().filter(|_| digits.len() == 10) else {
        return false;
    };
    let check = match last {
        b'X' => 100,
        digit if digit.is_ascii_digit() => 10 * u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 =
        (1..).zip(first).map(|(factor, digit)| factor * u32::from(digit.wrapping_sub(b'0'))).sum();
    first.iter().all(u8::is_ascii_digit) && (sum + check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_gaps(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = [1, 3]
        .into_iter()
        .cycle()
        .zip(&digits)
        .map(|(factor, digit)| factor * u32::from(digit - b'0'))
        .sum();
    sum.is_multiple_of(10)
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.bytes().next().is_some_and(inner) && text.bytes().last().is_some_and(inner);
    ends && text.bytes().all(|byte| inner(byte) || byte == b'-')
}

fn is_mac(text: &str) -> bool {
    let pairs = |mark: char| {
        let parts: Vec<_> = text.split(mark).collect();
        matches!(parts.len(), 6 | 8 | 20)
            && parts.iter().all(|part| part.len() == 2 && is_hexadecimal(part))
    };
    let fours = || {
        let parts: Vec<_> = text.split('.').collect();
        matches!(parts.len(), 3 | 4 | 10)
            && parts.iter().all(|part| part.len() == 4 && is_hexadecimal(part))
    };
    pairs(':') || pairs('-') || fours()
}

fn is_rgb(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<_> = inside.split(',').map(str::trim_ascii).collect();
    let shade = |part: &&str| {
        let plain = part.bytes().all(|byte| byte.is_ascii_digit());
        plain && (*part == "0" || !part.starts_with('0')) && part.parse::<u8>().is_ok()
    };
    parts.len() == 3 && parts.iter().all(shade)
}

/// What a request line may hold: an absolute URI or a path.
fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control()) {
        return false;
    }
    let escaped = text.split('%').skip(1).all(|rest| rest.get(..2).is_some_and(is_hexadecimal));
    if text == "*" {
        return true;
    }
    if !escaped {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.bytes();
    let named = letters.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !named {
        return false;
    }
    let Some(after) = rest.strip_prefix("//") else {
        // An opaque part, as in `mailto:a@b`.
        return !rest.is_empty() || !scheme.is_empty();
    };
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let authority = after.get(..end).unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    is_host_and_port(host)
}

fn is_host_and_port(host: &str) -> bool {
    let port_fits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(inside) = host.strip_prefix('[') {
        let Some((_, after)) = inside.split_once(']') else {
            return false;
        };
        return after.is_empty() || after.strip_prefix(':').is_some_and(port_fits);
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    port_fits(port) && !name.contains([' ', '<', '>', '"', '^', '`', '{', '|', '}', '\\'])
}

/// Dashes may be left out.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for length in [8, 4, 4, 4, 12] {
        let Some((part, after)) = rest.split_at_checked(length) else {
            return false;
        };
        digits.push_str(part);
        rest = after.strip_prefix('-').filter(|_| digits.len() < 32).unwrap_or(after);
    }
    let sign = |at: usize| digits.chars().nth(at);
    let variant = |c: char| matches!(c.to_ascii_lowercase(), '8' | '9' | 'a' | 'b');
    rest.is_empty()
        && is_hexadecimal(&digits)
        && version.is_none_or(|version| sign(12) == Some(version))
        && (!matches!(version, Some('4' | '5')) || sign(16).is_some_and(variant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_admit_and_refuse() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("byte", &["YWJj", "YQ=="], &["", "YQ=", "a", "====", "Y Q="]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/8", "1.2.3.4/+8"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112", "1"]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-9", "20240229"]),
            (
                "date-time",
                &["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.5+02:00"],
                &["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29T10:00Z", "now"],
            ),
            ("duration", &["1h", "1.5h30m", "0", "2 days", "-3ms"], &["", "1", "h", "one day"]),
            ("email", &["a@b", "A <a@b.c>"], &["a", "@b", "a@", "a b@c"]),
            ("hexcolor", &["#fff", "FFF000"], &["#ff", "#ggg"]),
            (
                "hostname",
                &["a", "a.example.com", "é.example.com"],
                &["", "-a", "a_b", "a..b", "a.c"],
            ),
            ("ipv4", &["1.2.3.4", "01.2.3.4"], &["1.2.3", "::1", "256.1.1.1"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1.2.3.4", ":"]),
            ("isbn10", &["0321751043", "0-321-75104-3"], &["0321751044", "X"]),
            ("isbn13", &["978-0321751041"], &["978-0321751042"]),
            ("k8s-short-name", &["a-b"], &["A", "-a", "a.b", ""]),
            ("k8s-long-name", &["a.b-c"], &["a..b", ""]),
            ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00", "gg:00:5e:00:53:01"]),
            ("rgbcolor", &["rgb(0, 10,255)"], &["rgb(256,0,0)", "rgb(01,0,0)", "rgb(0,0)"]),
            ("ssn", &["111-22-3333"], &["111223333"]),
            (
                "uri",
                &["/a", "http://a:80/b?c", "mailto:a@b"],
                &["", "a", "http://a:x", "1:b", "/%zz"],
            ),
            ("uuid", &["a8098c1a-f86e-11da-bd1a-00112444be1e"], &["x", "a8098c1a"]),
            (
                "uuid4",
                &["f47ac10b-58cc-4372-a567-0e02b2c3d479"],
                &["f47ac10b-58cc-3372-a567-0e02b2c3d479"],
            ),
            ("password", &["", "x"], &[]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
        ];
        for (format, good, bad) in cases {
            for text in *good {
                assert!(admits(format, text), "{format} {text:?}");
            }
            for text in *bad {
                assert!(!admits(format, text), "{format} {text:?}");
            }
        }
    }

    #[test]
    fn a_format_counts_only_for_the_type_it_is_made_for() {
        let of = |kind| Node { kind, ..Node::default() };
        assert!(is_supported(&of(Some(Type::Text)), "date-time"));
        assert!(is_supported(&of(Some(Type::Integer)), "int32"));
        assert!(is_supported(&of(Some(Type::Number)), "float"));
        assert!(!is_supported(&of(Some(Type::Integer)), "date-time"));
        assert!(!is_supported(&of(Some(Type::Text)), "int32"));
        assert!(!is_supported(&of(Some(Type::Text)), "quantity"));
        assert!(!is_supported(&of(Some(Type::Object)), "date"));
    }
}
