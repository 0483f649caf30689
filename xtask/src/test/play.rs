//! Runs one tier to its verdict. Knows programs and where their words go; when a tier runs is decided
//! elsewhere.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::build::{self, Programs};
use super::harness::Said;
use super::report::Verdict;
use super::tiers::{TestProgram, Tier, Work};
use crate::cargo::{BINARY, OWN, cargo, program};
use crate::counts::Counts;
use crate::output::Output;
use crate::tidy;

/// Asks tests for more random histories, and for searches of all there is to search.
const LONG: (&str, &str) = ("TRAINYARD_LONG", "1");

/// What all tiers of a run share.
#[derive(Debug)]
pub(crate) struct Run {
    /// All of them.
    pub(crate) tiers: Vec<Tier>,
    /// Only tests whose names contain this.
    pub(crate) filter: Option<String>,
    /// What cannot run is a failure.
    pub(crate) ci: bool,
    /// The binary is built as it is shipped.
    pub(crate) dist: bool,
    /// Documents are written from what the tests find.
    pub(crate) write_docs: bool,
    /// What [`Tier::Build`] compiled.
    pub(crate) programs: OnceLock<Programs>,
}

impl Run {
    /// Runs a tier.
    pub(crate) async fn play(&self, tier: Tier, output: &mut Output) -> Verdict {
        let verdict = self.work(tier, output).await;
        verdict.unwrap_or_else(|error| {
            output.line(&format!("error: {error:#}"));
            Verdict::failure(format!("{error:#}"))
        })
    }

    async fn work(&self, tier: Tier, output: &mut Output) -> Result<Verdict> {
        match tier.work() {
            Work::Cargo(words) => {
                Ok(Verdict::Ran(Counts::one(output.of(&mut cargo(words)).await?)))
            }
            Work::Tidy => Ok(Verdict::Ran(tidy::run(output).await?)),
            Work::Build => {
                let (verdict, programs) = build::compile(&self.tiers, self.dist, output).await?;
                if let Some(programs) = programs {
                    // There is one tier that builds.
                    let _ = self.programs.set(programs);
                }
                Ok(verdict)
            }
            Work::Unit => {
                let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
                command.args(&self.filter);
                if self.ci {
                    command.env(LONG.0, LONG.1);
                }
                self.tests(&mut command, output).await
            }
            Work::Program(wanted) => self.program(wanted, output).await,
        }
    }

    async fn program(&self, wanted: TestProgram, output: &mut Output) -> Result<Verdict> {
        if let Some((tool, word)) = wanted.tool {
            let trial = program(tool).arg(word).output().await;
            if !trial.is_ok_and(|trial| trial.status.success()) {
                return Ok(Verdict::Skipped(format!("there is no {tool}")));
            }
        }
        let programs = self.programs.get().context("what it runs was not compiled")?;
        let (path, folder) = programs
            .test(wanted)
            .with_context(|| format!("{} has no test `{}`", wanted.package, wanted.test))?;
        let mut command = program(path);
        // As `cargo test` runs it.
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        if let Some(binary) = &programs.binary {
            command.env(BINARY, binary);
        }
        if let Ok(own) = std::env::current_exe() {
            command.env(OWN, own);
        }
        if self.ci {
            command.env(LONG.0, LONG.1);
        }
        if self.write_docs {
            command.env("TRAINYARD_WRITE_DOCS", "1");
        }
        command.args(&self.filter).args(wanted.words);
        self.tests(&mut command, output).await
    }

    /// Test programs, whose words are counted.
    async fn tests(&self, command: &mut Command, output: &mut Output) -> Result<Verdict> {
        if self.ci {
            command.env("CI", "true");
        }
        let mut said = Said::default();
        let succeeded = output.of_reading(command, |line| {
            said.line(line);
            true
        });
        let succeeded = succeeded.await?;
        Ok(said.verdict(succeeded))
    }
}
