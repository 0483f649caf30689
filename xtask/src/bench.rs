//! `bench`: measurements, one JSON line each. Only builds what is measured and the program that measures,
//! which has the command line.

use std::convert::Infallible;
use std::process::Command;

use anyhow::Result;

use crate::cargo::{BINARY, become_program, built_program};

/// The agent tells what it took to start a pod's program.
const TOLD: &str = "info,trainyard_node::pod=debug";
/// Serves the embedded API in a process of its own, as the binary does.
const EMBEDDED: &str = "embedded-api-server";
/// Names it to the program that measures.
const EMBEDDED_VARIABLE: &str = "TRAINYARD_EMBEDDED_API_SERVER";
/// Nothing optimised: to try a benchmark itself, never for its numbers.
const TRIED: &str = "--debug-binary";

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// What to measure; `--help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Infallible> {
    let tried = arguments.words.iter().any(|word| word == TRIED);
    let words: Vec<_> = arguments.words.into_iter().filter(|word| word != TRIED).collect();
    let driver = ["--workspace", "--bin", "bench"];
    let mut measure = Command::new(built(&driver, "bench", tried, "driver").await?);
    if words.first().is_some_and(|what| what == "apiserver") {
        // Chosen out of the workspace, it has the features of what is shipped.
        let words = ["--workspace", "--bin", EMBEDDED];
        measure.env(EMBEDDED_VARIABLE, built(&words, EMBEDDED, tried, "dist").await?);
    }
    if measures_the_binary(&words) {
        let binary = built(&["--package", "trainyard"], "trainyard", tried, "dist").await?;
        measure.env(BINARY, binary);
    }
    if words.first().is_some_and(|what| what == "node") && !tried {
        measure.env("RUST_LOG", TOLD);
    }
    become_program(measure.args(words))
}

async fn built(
    words: &[&str],
    name: &str,
    tried: bool,
    profile: &str,
) -> Result<std::path::PathBuf> {
    let profile = if tried { "dev" } else { profile };
    built_program(&[words, &["--profile", profile]].concat(), name).await
}

/// Linked as one, the binary takes minutes: it is built only for what runs it.
fn measures_the_binary(words: &[String]) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let others = words.iter().any(|word| word.starts_with("--operator-cmd"));
    let in_memory = has("--part=memory")
        || words.windows(2).any(|pair| pair[0] == "--part" && pair[1] == "memory");
    let asks = words.is_empty() || has("--help") || has("-h") || has("help");
    !(asks || others || in_memory || has("apiserver"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_built_for_what_runs_it() {
        let measured = |line: &str| {
            measures_the_binary(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        for line in ["operator", "node --pods 3", "run", "scheduler", "scheduler --part cluster"] {
            assert!(measured(line), "{line}");
        }
        let without = ["apiserver", "scheduler --part memory", "scheduler --part=memory"];
        for line in without.into_iter().chain(["", "--help", "operator --operator-cmd other"]) {
            assert!(!measured(line), "{line}");
        }
    }
}
