//! What may differ, line by line, each with its reason.
//!
//! A line covers one value at one place of one step, exactly; it must be needed.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::compare::Difference;

/// The lines, and which of them were needed.
pub(super) struct Allowed {
    lines: Vec<(Line, AtomicBool)>,
}

/// One line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    story: String,
    /// Which of its steps, counted from 0.
    step: usize,
    /// A JSON pointer into the answer.
    at: String,
    /// What the real server says; left out where it says nothing.
    #[serde(default)]
    real: Option<Value>,
    /// What the embedded one says.
    #[serde(default)]
    ours: Option<Value>,
    because: String,
}

/// Null cannot be told from nothing in these lines.
fn there(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

impl Allowed {
    /// Reads `allowed.yaml`.
    pub(super) fn read() -> Result<Self> {
        let text = include_str!("allowed.yaml");
        let lines: Vec<Line> = serde_saphyr::from_str_with_options(text, super::story::options())
            .context("allowed.yaml")?;
        if let Some(line) = lines.iter().find(|line| line.because.trim().is_empty()) {
            bail!("allowed.yaml: {} step {}: say why in `because`", line.story, line.step);
        }
        Ok(Self { lines: lines.into_iter().map(|line| (line, AtomicBool::new(false))).collect() })
    }

    /// Whether a difference may be.
    pub(super) fn covers(&self, story: &str, step: usize, found: &Difference) -> bool {
        let is_it = |line: &Line| {
            (line.story.as_str(), line.step, line.at.as_str()) == (story, step, found.at.as_str())
                && line.real.as_ref() == there(found.real.as_ref())
                && line.ours.as_ref() == there(found.ours.as_ref())
        };
        let covering: Vec<_> = self.lines.iter().filter(|(line, _)| is_it(line)).collect();
        for (_, needed) in &covering {
            needed.store(true, Ordering::Relaxed);
        }
        !covering.is_empty()
    }

    /// Fails when a line covers nothing any more.
    pub(super) fn all_needed(&self) -> Result<()> {
        let idle = self.lines.iter().filter(|(_, needed)| !needed.load(Ordering::Relaxed));
        let idle: Vec<String> = idle
            .map(|(line, _)| format!("\n    {} step {} {}", line.story, line.step, line.at))
            .collect();
        if idle.is_empty() {
            return Ok(());
        }
        bail!("these differences are gone, so take their lines out:{}", idle.concat())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_covers_exactly_what_it_says_and_must_be_needed() {
        let line = Line {
            story: "a/b".to_owned(),
            step: 1,
            at: "/code".to_owned(),
            real: Some(json!(200)),
            ours: Some(json!(415)),
            because: "so".to_owned(),
        };
        let allowed = Allowed { lines: vec![(line, AtomicBool::new(false))] };
        let found = |ours: u16| Difference {
            at: "/code".to_owned(),
            real: Some(json!(200)),
            ours: Some(json!(ours)),
        };
        assert!(!allowed.covers("a/b", 1, &found(400)));
        assert!(!allowed.covers("a/b", 2, &found(415)));
        assert!(allowed.all_needed().is_err());
        assert!(allowed.covers("a/b", 1, &found(415)));
        assert!(allowed.all_needed().is_ok());
    }
}
