//! Values without parts: read, checked and written again as the real server does.
//!
//! Owns the canonical forms of times, quantities and bytes and the words against what is none.

use base64::{
    Engine, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use jiff::Timestamp;
use serde_json::{Number, Value, json};
use trainyard_schema::quantity::{self, QuantityError};

/// A time to the second, in UTC.
pub(super) fn time(text: &str) -> Result<String, String> {
    moment(text, "2006-01-02T15:04:05Z07:00")
        .map(|moment| moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time to the microsecond, in UTC.
pub(super) fn micro_time(text: &str) -> Result<String, String> {
    moment(text, "2006-01-02T15:04:05.000000Z07:00")
        .map(|moment| moment.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

fn moment(text: &str, layout: &str) -> Result<Timestamp, String> {
    let parsed: Option<Timestamp> =
        Some(text).filter(|text| is_plain(text)).and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        let (rest, part) = first_fault(text);
        format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")
    })
}

/// The parts of a time before the zone, with how the language writes them.
const PARTS: [(&str, usize); 11] = [
    ("2006", 4),
    ("-", 1),
    ("01", 2),
    ("-", 1),
    ("02", 2),
    ("T", 1),
    ("15", 2),
    (":", 1),
    ("04", 2),
    (":", 1),
    ("05", 2),
];

/// Whether a text has the form at all: other readers are more lenient.
fn is_plain(text: &str) -> bool {
    first_fault(text).1 == "Z07:00" && text.len() > 19
}

/// What cannot be read, and as what.
fn first_fault(text: &str) -> (&str, &'static str) {
    let mut rest = text;
    for (part, length) in PARTS {
        let fits = rest.get(..length).is_some_and(|word| {
            if length == 1 { word == part } else { word.bytes().all(|b| b.is_ascii_digit()) }
        });
        if !fits {
            return (rest, part);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    (rest, "Z07:00")
}

/// A quantity in its canonical form, from a text or a number.
pub(super) fn quantity(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match quantity::parse(text.trim()) {
        Ok(quantity) => Ok(quantity.to_string()),
        Err(QuantityError::Suffix { .. }) => Err("unable to parse quantity's suffix".to_owned()),
        Err(QuantityError::Format { .. }) => Err(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned(),
        ),
    }
}

/// Bytes in base64; line ends inside are allowed as everywhere in this language.
pub(super) fn bytes(text: &str) -> Result<String, String> {
    let stripped: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let lenient = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let bytes = lenient.decode(&stripped).map_err(|error| {
        use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
        let at = match error {
            InvalidByte(at, _) => at,
            InvalidLastSymbol { .. } | InvalidLength(_) | InvalidPadding => stripped.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })?;
    Ok(STANDARD.encode(bytes))
}

/// Whether a number is a whole one that fits.
pub(super) fn is_integer(number: &Number, least: i64, most: i64) -> bool {
    number.as_i64().is_some_and(|number| (least..=most).contains(&number))
}

/// The zero of a number or text where one must stand.
pub(super) fn zero_number() -> Value {
    json!(0)
}
