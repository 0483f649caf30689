//! The flags about the operator's log, those of the reference operator included.

use clap::Args;

use super::{
    super::logs::{Format, level},
    go_syntax,
};

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
    pub(crate) fn format(&self) -> Format {
        let json = |yes: bool| if yes { Format::Json } else { Format::Text };
        self.log_format
            .or(self.zap_encoder)
            .or(self.json_log_format.map(json))
            .or(self.zap_devel.map(|devel| json(!devel)))
            .unwrap_or(Format::Text)
    }

    /// The level asked for, if one was.
    pub(crate) fn level(&self) -> Option<&'static str> {
        self.log_level.or(self.zap_log_level)
    }
}
