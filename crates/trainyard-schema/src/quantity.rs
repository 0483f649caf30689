//! Amounts of resources as Kubernetes writes them: `500m`, `1.5Gi`, `2e3`.
//!
//! Owns reading, comparing and writing them, exactly: no floating point anywhere. Must not know what
//! is counted (cores, bytes, devices).

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

const NANO_DIGITS: i64 = 9;
const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number with an optional suffix.
    #[error(
        "{text:?} is no quantity: write a number with an optional suffix, as 500m, 2, 1.5Gi or 1e3"
    )]
    Format {
        /// What was read.
        text: String,
    },
    /// A number with a suffix that means nothing.
    #[error(
        "unknown suffix {suffix:?} of quantity {text:?}: use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent as e3"
    )]
    Suffix {
        /// What was read.
        text: String,
        /// Its end.
        suffix: String,
    },
}

impl QuantityError {
    /// A short name for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Format { .. } => "quantity_format",
            Self::Suffix { .. } => "quantity_suffix",
        }
    }
}

/// How a quantity was written, and so how it is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notation {
    /// Powers of ten by letter: `m`, `k`, `M` …
    #[default]
    Decimal,
    /// Powers of 1024: `Ki`, `Mi` …
    Binary,
    /// Powers of ten by number: `e3`.
    Exponent,
}

/// An amount, exact to a billionth; what is finer is rounded away from zero when it is read.
///
/// Two quantities are equal when their amounts are, however they are written. Amounts beyond what
/// fits (about 10²⁹) are cut to that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
}

/// Reads a quantity.
pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let wrong = || QuantityError::Format { text: text.to_owned() };
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let split = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let (whole, rest) = unsigned.split_at(split(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(split(after)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(wrong());
    }
    if !suffix_is_plausible(suffix) {
        return Err(wrong());
    }
    let scale = Scale::of(suffix).ok_or_else(|| QuantityError::Suffix {
        text: text.to_owned(),
        suffix: suffix.to_owned(),
    })?;
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    for _ in 0..scale.kibis {
        digits = times_1024(&digits);
    }
    let fraction_digits = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let shift = scale.tens.saturating_sub(fraction_digits).saturating_add(NANO_DIGITS);
    let magnitude = shifted(&digits, shift);
    let mut quantity =
        Quantity { nanos: if negative { -magnitude } else { magnitude }, notation: scale.notation };
    if quantity.notation == Notation::Binary && magnitude > 0 && magnitude < NANOS_PER_UNIT {
        quantity.notation = Notation::Decimal;
    }
    Ok(quantity)
}

/// What a suffix multiplies by.
struct Scale {
    /// A power of ten.
    tens: i64,
    /// A power of 1024.
    kibis: u32,
    notation: Notation,
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        let decimal = |tens| Some(Self { tens, kibis: 0, notation: Notation::Decimal });
        let binary = |kibis| Some(Self { tens: 0, kibis, notation: Notation::Binary });
        match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(1),
            "Mi" => binary(2),
            "Gi" => binary(3),
            "Ti" => binary(4),
            "Pi" => binary(5),
            "Ei" => binary(6),
            _ => {
                let tens = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                Some(Self { tens, kibis: 0, notation: Notation::Exponent })
            }
        }
    }
}

/// Letters of suffixes, then perhaps a signed number: everything else is not even a wrong suffix.
fn suffix_is_plausible(suffix: &str) -> bool {
    let number = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    number.bytes().all(|b| b.is_ascii_digit())
}

/// Decimal digits, most significant first, multiplied by 1024.
fn times_1024(digits: &[u8]) -> Vec<u8> {
    let mut product = Vec::with_capacity(digits.len() + 4);
    let mut carry = 0_u32;
    for digit in digits.iter().rev() {
        let sum = u32::from(*digit) * 1024 + carry;
        product.push(last_digit(sum));
        carry = sum / 10;
    }
    while carry > 0 {
        product.push(last_digit(carry));
        carry /= 10;
    }
    product.reverse();
    product
}

fn last_digit(number: u32) -> u8 {
    u8::try_from(number % 10).unwrap_or_default()
}

/// The number written by the digits times a power of ten; rounded up, cut to what fits.
fn shifted(digits: &[u8], tens: i64) -> i128 {
    let significant = digits.iter().position(|d| *d != 0).map_or(&[][..], |first| &digits[first..]);
    if significant.is_empty() {
        return 0;
    }
    let dropped = usize::try_from(tens.saturating_neg()).unwrap_or(0);
    let kept = significant.len().saturating_sub(dropped);
    let (kept, dropped) = significant.split_at(kept);
    let mut number: i128 = 0;
    for digit in kept {
        number = number.saturating_mul(10).saturating_add(i128::from(*digit));
    }
    if dropped.iter().any(|d| *d != 0) {
        number = number.saturating_add(1);
    }
    // Forty factors of ten are more than fit; what is cut stays cut.
    for _ in 0..tens.clamp(0, 40) {
        number = number.saturating_mul(10);
    }
    number
}

impl Quantity {
    /// None.
    pub const ZERO: Self = Self { nanos: 0, notation: Notation::Decimal };

    /// So many whole units, written in powers of ten.
    #[must_use]
    pub fn from_value(value: i64) -> Self {
        Self { nanos: i128::from(value) * NANOS_PER_UNIT, notation: Notation::Decimal }
    }

    /// So many bytes, written in powers of 1024.
    #[must_use]
    pub fn from_bytes(bytes: i64) -> Self {
        Self { notation: Notation::Binary, ..Self::from_value(bytes) }
    }

    /// So many thousandths.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self { nanos: i128::from(millis) * NANOS_PER_MILLI, notation: Notation::Decimal }
    }

    /// Whole units (bytes, devices), rounded away from zero.
    #[must_use]
    pub fn value(self) -> i64 {
        rounded_up(self.nanos, NANOS_PER_UNIT)
    }

    /// Thousandths, rounded away from zero.
    #[must_use]
    pub fn millis(self) -> i64 {
        rounded_up(self.nanos, NANOS_PER_MILLI)
    }

    /// Exactly nothing.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// How it was written.
    #[must_use]
    pub fn notation(self) -> Notation {
        self.notation
    }
}

fn rounded_up(nanos: i128, unit: i128) -> i64 {
    let whole = nanos / unit;
    let rounded = if nanos % unit == 0 { whole } else { whole + nanos.signum() };
    i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The notation of a sum is that of its first part that is not zero.
fn joined(left: Quantity, right: Quantity) -> Notation {
    if left.is_zero() && !right.is_zero() { right.notation } else { left.notation }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), notation: joined(self, other) }
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos), notation: joined(self, other) }
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANOS_PER_UNIT == 0;
        let units = self.nanos / NANOS_PER_UNIT;
        if self.notation == Notation::Binary && whole && units.abs() >= 1024 {
            let (number, times) = reduced(units, 1024, 6);
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][times];
            return write!(f, "{number}{suffix}");
        }
        let (number, times) = reduced(self.nanos, 1000, 9);
        if self.notation == Notation::Exponent {
            return match times {
                0..3 => write!(f, "{number}e-{}", 9 - times * 3),
                3 => write!(f, "{number}"),
                _ => write!(f, "{number}e{}", times * 3 - 9),
            };
        }
        let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][times];
        write!(f, "{number}{suffix}")
    }
}

/// Divides by `factor` as long as nothing is left over, at most so often.
fn reduced(mut number: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut times = 0;
    while times < most && number % factor == 0 {
        number /= factor;
        times += 1;
    }
    (number, times)
}

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
