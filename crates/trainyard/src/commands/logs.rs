//! The log of a command that runs for long: lines on standard error, as text or JSON.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{
    EnvFilter, Layer as _, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::yard::residents::Lines;

/// The client warns of an unchecked certificate at every connection; we say it once.
const QUIET: &str = "kube_client::client::tls=error";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    #[value(alias = "console")]
    Text,
    /// One JSON object per line.
    Json,
}

fn filter(level: Option<&str>) -> EnvFilter {
    match level {
        Some(level) => EnvFilter::new(format!("{level},{QUIET}")),
        None if std::env::var_os("RUST_LOG").is_none_or(|filter| filter.is_empty()) => {
            EnvFilter::new(format!("info,{QUIET}"))
        }
        None => EnvFilter::builder()
            .with_default_directive(tracing::level_filters::LevelFilter::INFO.into())
            .from_env_lossy(),
    }
}

/// Starts the log of this process in a file, for a command whose terminal belongs to others. What a part
/// of the program says is kept as well.
pub(super) fn start_in_file(file: std::fs::File, level: &str, kept: (&'static str, Lines)) {
    let (part, lines) = kept;
    let only = Targets::new().with_target(part, LevelFilter::INFO);
    let kept = fmt::layer().with_writer(lines).with_ansi(false).with_filter(only);
    let lines = fmt::layer().with_writer(std::sync::Mutex::new(file)).with_ansi(false);
    let registry = tracing_subscriber::registry().with(kept);
    // It fails only where somebody has started a log before: that one serves as well.
    let _ = registry.with(lines.with_filter(filter(Some(level)))).try_init();
}

/// Starts the log of this process, at this level or at what `RUST_LOG` says.
pub(super) fn start(format: Format, level: Option<&str>) {
    start_with(format, level, None);
}

/// The same; what a part of the program says is kept as well, whatever the level.
pub(super) fn start_with(format: Format, level: Option<&str>, kept: Option<(&'static str, Lines)>) {
    let kept = kept.map(|(part, lines)| {
        let only = Targets::new().with_target(part, LevelFilter::INFO);
        fmt::layer().with_writer(lines).with_ansi(false).with_filter(only)
    });
    let registry = tracing_subscriber::registry().with(kept);
    let lines = fmt::layer().with_writer(io::stderr);
    let started = match format {
        Format::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false);
            registry.with(lines.with_filter(filter(level))).try_init()
        }
        Format::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            registry.with(lines.with_filter(filter(level))).try_init()
        }
    };
    // It fails only where somebody has started a log before: that one serves as well.
    let _ = started;
}

/// Reads the name or number of a level.
pub(super) fn level(text: &str) -> Result<&'static str, String> {
    const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];
    let lower = text.to_ascii_lowercase();
    match (lower.as_str(), lower.parse::<u32>()) {
        (_, Ok(verbosity)) => Ok(match verbosity {
            0 => "info",
            1..=4 => "debug",
            _ => "trace",
        }),
        ("panic" | "dpanic" | "fatal", _) => Ok("error"),
        (name, _) => LEVELS
            .into_iter()
            .find(|level| *level == name)
            .ok_or_else(|| format!("write one of {}", LEVELS.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_name_and_number() {
        assert_eq!(level("INFO"), Ok("info"));
        assert_eq!(level("2"), Ok("debug"));
        assert_eq!(level("10"), Ok("trace"));
        assert_eq!(level("panic"), Ok("error"));
        assert!(level("loud").is_err());
    }
}
