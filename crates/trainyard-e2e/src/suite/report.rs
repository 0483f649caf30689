//! One line per scenario as it ends, and the count at the end.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;

use crate::counts::Counts;

/// What has been told so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    counts: Mutex<Counts>,
}

impl Report {
    /// Tells how a scenario ended.
    pub(crate) fn tell(&self, name: &str, result: &Result<()>, took: Duration) {
        let line = match result {
            Ok(()) => format!("ok      {name} ({} ms)", took.as_millis()),
            Err(error) => format!("FAILED  {name} ({} ms): {error:#}", took.as_millis()),
        };
        say(&line);
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) += Counts::one(result.is_ok());
    }

    /// The last line.
    pub(crate) fn finish(&self) -> Counts {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        say(&format!("{} scenarios passed, {} failed", counts.passed, counts.failed));
        counts
    }
}

/// Writes a line for the developer.
pub(crate) fn say(line: &str) {
    // A closed terminal is no reason to stop.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
