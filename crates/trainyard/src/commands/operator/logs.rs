//! The operator's log: lines on standard error, as text or JSON.
//!
//! Owns the flags about it, those of the reference operator included.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use super::go_syntax;

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

/// Flags about the log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct Logs {
    /// How lines look; text unless something else is said
    #[arg(long, value_enum)]
    log_format: Option<Format>,
    /// What is logged: error, warn, info, debug or trace; `RUST_LOG` says it in more detail
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    log_level: Option<&'static str>,
    /// The reference operator's name for --log-format (`console` is text)
    #[arg(long, value_enum, value_name = "FORMAT")]
    zap_encoder: Option<Format>,
    /// The reference operator's name for --log-level; numbers mean debug and, from 5, trace
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    zap_log_level: Option<&'static str>,
    /// `false` means JSON lines, as in the reference operator
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = go_syntax::boolean, value_name = "BOOL")]
    zap_devel: Option<bool>,
    /// JSON lines, as the older operators named it
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = go_syntax::boolean, value_name = "BOOL")]
    json_log_format: Option<bool>,
}

impl Logs {
    /// Our own flag counts before the others, and the more definite one before the less.
    pub(super) fn format(&self) -> Format {
        let json = |yes: bool| if yes { Format::Json } else { Format::Text };
        self.log_format
            .or(self.zap_encoder)
            .or(self.json_log_format.map(json))
            .or(self.zap_devel.map(|devel| json(!devel)))
            .unwrap_or(Format::Text)
    }

    fn filter(&self) -> EnvFilter {
        match self.log_level.or(self.zap_log_level) {
            Some(level) => EnvFilter::new(format!("{level},{QUIET}")),
            None if std::env::var_os("RUST_LOG").is_none_or(|filter| filter.is_empty()) => {
                EnvFilter::new(format!("info,{QUIET}"))
            }
            None => EnvFilter::builder()
                .with_default_directive(tracing::level_filters::LevelFilter::INFO.into())
                .from_env_lossy(),
        }
    }
}

fn level(text: &str) -> Result<&'static str, String> {
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

/// Starts the log of this process.
pub(super) fn start(logs: &Logs) {
    let registry = tracing_subscriber::registry().with(logs.filter());
    let lines = fmt::layer().with_writer(io::stderr);
    let started = match logs.format() {
        Format::Json => {
            registry.with(lines.json().flatten_event(true).with_current_span(false)).try_init()
        }
        Format::Text => registry.with(lines.with_ansi(io::stderr().is_terminal())).try_init(),
    };
    // It fails only where somebody has started a log before: that one serves as well.
    let _ = started;
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
