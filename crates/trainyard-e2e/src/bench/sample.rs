//! Measurements of one thing: their middle, and what most stay below.

use std::time::Duration;

use serde_json::{Value, json};

/// Values in whatever unit.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample(Vec<f64>);

impl Sample {
    pub(super) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(super) fn add_ms(&mut self, time: Duration) {
        self.add(time.as_secs_f64() * 1000.0);
    }

    pub(super) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The value that this share of all stays below or at; not a number when there is none.
    pub(super) fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place in a short list"
        )]
        let place = ((sorted.len() as f64 - 1.0).max(0.0) * share).round() as usize;
        sorted.get(place).copied().unwrap_or(f64::NAN)
    }

    /// The least, which other work on the machine disturbed least, the middle, and the upper end.
    pub(super) fn shown(&self) -> Value {
        let (least, median, p95) = (self.at(0.0), self.median(), self.at(0.95));
        json!({"least": round(least), "median": round(median), "p95": round(p95)})
    }
}

/// Three digits are all that these measurements are worth.
pub(super) fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_upper_end() {
        let mut sample = Sample::default();
        assert!(sample.median().is_nan());
        for value in [5.0, 1.0, 3.0, 2.0, 100.0] {
            sample.add(value);
        }
        assert!((sample.median() - 3.0).abs() < f64::EPSILON);
        assert!((sample.at(0.95) - 100.0).abs() < f64::EPSILON);
    }
}
