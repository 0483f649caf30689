//! Bounds of numbers, and numbers as the API server prints them.
//!
//! Owns the arithmetic of `minimum`, `maximum` and `multipleOf`, which is exact for integers and in
//! floating point for everything else.

use serde_json::{Number, Value};

use super::{
    node::{Marks, More, Node, Type},
    problems::{Findings, Problem},
};
use crate::{Fault, golang};

/// A number as Go holds it.
#[derive(Clone, Copy)]
pub(super) enum Numeral {
    Whole(i64),
    Float(f64),
}

impl Numeral {
    pub(super) fn of(number: &Number) -> Self {
        number
            .as_i64()
            .map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Whole)
    }

    fn value(self) -> Value {
        match self {
            Self::Whole(number) => number.into(),
            Self::Float(number) => number.into(),
        }
    }
}

/// Checks a number against a node.
pub(super) fn check(node: &Node, more: &More, path: &str, number: &Number) -> Findings {
    let mut findings = Findings::default();
    let numeral = Numeral::of(number);
    let mut fits = |numeral: Numeral, what: &str| {
        let wrong = range_fault(node, more, numeral, what, path);
        let fits = wrong.is_none();
        if let Some(wrong) = wrong {
            findings.add(Problem::general(wrong));
        }
        fits
    };
    fits(numeral, "Checked");
    let multiple =
        more.multiple_of.map(|factor| (factor, fits(Numeral::Float(factor), "MultipleOf")));
    let minimum =
        more.minimum.map(|least| (least, fits(Numeral::Float(least), "Minimum boundary")));
    let maximum = more.maximum.map(|most| (most, fits(Numeral::Float(most), "Maximum boundary")));
    if let Some((factor, exact)) = multiple {
        findings_of_multiple(&mut findings, path, numeral, factor, exact);
    }
    if let Some((least, exact)) = minimum {
        let exclusive = node.has(Marks::ABOVE_MINIMUM);
        let words =
            if exclusive { "should be greater than" } else { "should be greater than or equal to" };
        let holds = match (numeral, exact) {
            (Numeral::Whole(number), true) => {
                let least = whole(least);
                number > least || (number == least && !exclusive)
            }
            (numeral, _) => {
                let number = float(numeral);
                number > least || (same(number, least) && !exclusive)
            }
        };
        bound(&mut findings, holds, path, numeral, (least, exact), words);
    }
    if let Some((most, exact)) = maximum {
        let exclusive = node.has(Marks::BELOW_MAXIMUM);
        let words =
            if exclusive { "should be less than" } else { "should be less than or equal to" };
        let holds = match (numeral, exact) {
            (Numeral::Whole(number), true) => {
                let most = whole(most);
                number < most || (number == most && !exclusive)
            }
            (numeral, _) => {
                let number = float(numeral);
                number < most || (same(number, most) && !exclusive)
            }
        };
        bound(&mut findings, holds, path, numeral, (most, exact), words);
    }
    findings.matches += 1;
    findings
}

fn bound(
    findings: &mut Findings,
    holds: bool,
    path: &str,
    numeral: Numeral,
    (limit, exact): (f64, bool),
    words: &str,
) {
    if holds {
        return;
    }
    let (value, limit) = match (numeral, exact) {
        (Numeral::Whole(_), true) => (numeral.value(), whole(limit).to_string()),
        (numeral, _) => (float(numeral).into(), shown(limit)),
    };
    findings.add(Problem::of_field(Fault::Invalid, path, value, &format!("{words} {limit}")));
}

fn findings_of_multiple(
    findings: &mut Findings,
    path: &str,
    numeral: Numeral,
    factor: f64,
    exact: bool,
) {
    let positive = match (numeral, exact) {
        (Numeral::Whole(_), true) => whole(factor) > 0,
        _ => factor > 0.0,
    };
    if !positive {
        let (value, factor) = match (numeral, exact) {
            (Numeral::Whole(_), true) => (whole(factor).into(), whole(factor).to_string()),
            _ => (Value::from(factor), shown(factor)),
        };
        let text = format!("factor MultipleOf declared for {path} must be positive: {factor}");
        let error = crate::FieldError::invalid(super::problems::field(path), value, text.clone());
        findings.add(Problem::with(error, path, &text));
        return;
    }
    let (holds, value, factor) = match (numeral, exact) {
        (Numeral::Whole(number), true) => {
            let factor = whole(factor);
            (number % factor == 0, numeral.value(), factor.to_string())
        }
        (numeral, _) => {
            let number = float(numeral);
            let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
            (is_whole(quotient), number.into(), shown(factor))
        }
    };
    if !holds {
        let words = format!("should be a multiple of {factor}");
        findings.add(Problem::of_field(Fault::Invalid, path, value, &words));
    }
}

/// Whether a number can be one of the node's type and format at all.
fn range_fault(
    node: &Node,
    more: &More,
    numeral: Numeral,
    what: &str,
    path: &str,
) -> Option<String> {
    let only = if node.has(Marks::INT_OR_STRING) { None } else { node.kind };
    let format = &*more.format;
    let fits = match (only, format) {
        (Some(Type::Integer), "int32") => {
            exact(numeral).is_some_and(|number| i32::try_from(number).is_ok())
        }
        (Some(Type::Integer), _) => exact(numeral).is_some(),
        (Some(Type::Number), "float") => float(numeral).abs() <= f64::from(f32::MAX),
        _ => true,
    };
    let name = only.map_or("", Type::name);
    (!fits).then(|| {
        if format.is_empty() {
            format!("{what} value must be of type {name} (default format) in {path}")
        } else {
            format!("{what} value must be of type {name} with format {format} in {path}")
        }
    })
}

/// The integer that a number is, if it is one of 64 bits.
fn exact(numeral: Numeral) -> Option<i64> {
    match numeral {
        Numeral::Whole(number) => Some(number),
        Numeral::Float(number) => {
            let range = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
            (same(number.fract(), 0.0) && range.contains(&number)).then(|| whole(number))
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "cut off as the API server does")]
const fn whole(number: f64) -> i64 {
    number as i64
}

#[expect(clippy::cast_precision_loss, reason = "rounded as the API server does")]
const fn float(numeral: Numeral) -> f64 {
    match numeral {
        Numeral::Whole(number) => number as f64,
        Numeral::Float(number) => number,
    }
}

#[expect(clippy::float_cmp, reason = "bounds are compared exactly")]
fn same(one: f64, other: f64) -> bool {
    one == other
}

/// Whether a floating-point number stands for an integer, nearly.
pub(super) fn is_whole(number: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > MOST {
        return false;
    }
    let cut = number.trunc();
    if same(number, cut) {
        return true;
    }
    // Only what is just above an integer counts, and no negative numbers: they have no cut there.
    let near = if number < 0.0 { 0.0 } else { cut };
    !same(near, 0.0) && (number - near).abs() / (number.abs() + near.abs()) < 1e-9
}

/// A number as Go prints it.
fn shown(number: f64) -> String {
    Number::from_f64(number).map_or_else(|| number.to_string(), |number| golang::number(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_an_integer_is_one() {
        assert!(is_whole(3.0) && is_whole(-3.0) && is_whole(1.0 / 0.1 * 0.3 + 0.000_000_000_1));
        assert!(!is_whole(3.5) && !is_whole(f64::NAN) && !is_whole(1e300) && !is_whole(0.1));
    }
}
