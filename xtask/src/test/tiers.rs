//! What each test tier runs. Knows programs and their output; sums and times are `report`'s.

use std::fmt;

use anyhow::Result;
use trainyard_e2e::control_plane::{Binaries, Program};
use trainyard_e2e::counts::Counts;

use super::deny;
use super::packages;
use super::report::Verdict;
use crate::cargo::{built_binary, cargo, program, succeeds, succeeds_while_reading};
use crate::tidy;

/// A test tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tier {
    Fmt,
    Tidy,
    Clippy,
    Deny,
    Unit,
    Render,
    Embedded,
    Attack,
    Cluster,
    Controllers,
    Differential,
    Image,
    Node,
    Run,
    Yard,
    Examples,
    Referee,
}

impl Tier {
    /// From cheap to dear.
    pub(crate) const ALL: [Self; 17] = [
        Self::Fmt,
        Self::Tidy,
        Self::Clippy,
        Self::Deny,
        Self::Unit,
        Self::Render,
        Self::Embedded,
        Self::Attack,
        Self::Cluster,
        Self::Controllers,
        Self::Differential,
        Self::Image,
        Self::Node,
        Self::Run,
        Self::Yard,
        Self::Examples,
        Self::Referee,
    ];

    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Fmt => "the code is formatted",
            Self::Tidy => "lengths, headers, dependency arrows, left-overs",
            Self::Clippy => "lints, with warnings as errors",
            Self::Deny => "licences, sources and duplicates of dependencies",
            Self::Unit => "everything that needs nothing but Rust",
            Self::Render => "the answers of Go's text/template, asked again",
            Self::Embedded => "the operator on the embedded server, in paused time",
            Self::Attack => "hostile clients and lost power against the embedded server",
            Self::Cluster => "the operator on a real Kubernetes control plane",
            Self::Controllers => "the yard's controllers, on the embedded server and a real one",
            Self::Differential => "the embedded server's answers, against the real one's",
            Self::Image => "Python environments, really made",
            Self::Node => "pods as processes, with real TensorFlow, under a real control plane",
            Self::Run => "`trainyard run` in a pipe and in a terminal, with real TensorFlow",
            Self::Yard => "`trainyard up` with the real kubectl, the Python SDK and TensorFlow",
            Self::Examples => "the examples, as their READMEs tell them, and a browser",
            Self::Referee => "the scenarios of Volcano Jobs, on Volcano itself",
        }
    }

    /// Is it left out unless it is named? It builds another project for minutes to ask it.
    pub(crate) fn only_by_name(self) -> bool {
        self == Self::Referee
    }

    /// Does it consist of tests with names?
    pub(crate) fn takes_filter(self) -> bool {
        matches!(
            self,
            Self::Unit
                | Self::Render
                | Self::Embedded
                | Self::Attack
                | Self::Cluster
                | Self::Controllers
                | Self::Differential
                | Self::Image
                | Self::Node
                | Self::Run
                | Self::Yard
                | Self::Examples
                | Self::Referee
        )
    }

    pub(crate) async fn run(self, filter: Option<&str>, write_docs: bool) -> Result<Verdict> {
        let counts = match self {
            Self::Fmt => Counts::one(succeeds(&mut cargo(&["fmt", "--all", "--check"])).await?),
            Self::Tidy => tidy::run().await?,
            Self::Clippy => {
                let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
                Counts::one(succeeds(&mut cargo(&words)).await?)
            }
            Self::Deny => return deny::run().await,
            Self::Unit => tests(&["--workspace", "--no-fail-fast"], filter, &[]).await?,
            Self::Render => return render(filter).await,
            Self::Embedded => trainyard_e2e::embedded::run(filter).await?,
            Self::Attack => trainyard_e2e::attack::run(filter).await?,
            Self::Cluster => return cluster(filter).await,
            Self::Controllers => return controllers(filter).await,
            Self::Differential => return differential(filter).await,
            Self::Image => return image(filter).await,
            Self::Node => return node(filter).await,
            Self::Run => return run(filter).await,
            Self::Yard => return yard(filter, write_docs).await,
            Self::Examples => return examples(filter).await,
            Self::Referee => return referee(filter).await,
        };
        Ok(Verdict::Ran(counts))
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Clippy => "clippy",
            Self::Deny => "deny",
            Self::Unit => "unit",
            Self::Render => "render",
            Self::Embedded => "embedded",
            Self::Attack => "attack",
            Self::Cluster => "cluster",
            Self::Controllers => "controllers",
            Self::Differential => "differential",
            Self::Image => "image",
            Self::Node => "node",
            Self::Run => "run",
            Self::Yard => "yard",
            Self::Examples => "examples",
            Self::Referee => "referee",
        })
    }
}

/// Cargo's tests of these packages, with these words for the test programs themselves.
async fn tests(packages: &[&str], filter: Option<&str>, harness: &[&str]) -> Result<Counts> {
    let mut command = cargo(&["test"]);
    command.args(packages).args(filter).arg("--").args(harness);
    let mut counts = Counts::default();
    let succeeded = succeeds_while_reading(&mut command, |line| {
        counts += test_result(line).unwrap_or_default();
        if line.starts_with("test ") && line.ends_with(" ... FAILED") {
            counts.remarks.push(line.to_owned());
        }
    })
    .await?;
    if !succeeded && counts.failed == 0 {
        counts.failed = 1;
        counts
            .remarks
            .push("it did not compile, or a test took the whole process with it".to_owned());
    }
    Ok(counts)
}

/// The counts of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn test_result(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number_before = |word: &str| {
        let part = numbers.split(';').find_map(|part| part.trim().strip_suffix(word))?;
        part.trim().parse().ok()
    };
    let passed = number_before("passed")?;
    Some(Counts { passed, failed: number_before("failed")?, ..Counts::default() })
}

async fn cluster(filter: Option<&str>) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&Program::ALL).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    Ok(Verdict::Ran(trainyard_e2e::suite::run(filter).await?))
}

async fn controllers(filter: Option<&str>) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&[Program::Etcd, Program::ApiServer]).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    Ok(Verdict::Ran(trainyard_e2e::controllers::run(filter).await?))
}

async fn differential(filter: Option<&str>) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&[Program::Etcd, Program::ApiServer]).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    Ok(Verdict::Ran(trainyard_e2e::differential::run(filter).await?))
}

async fn referee(filter: Option<&str>) -> Result<Verdict> {
    let obstacle = Binaries::obstacle(&[Program::Etcd, Program::ApiServer]).await?;
    if let Some(obstacle) = obstacle.or(trainyard_e2e::referee::obstacle().await) {
        return Ok(Verdict::Skipped(obstacle));
    }
    Ok(Verdict::Ran(trainyard_e2e::referee::run(filter).await?))
}

async fn render(filter: Option<&str>) -> Result<Verdict> {
    let go = program("go").arg("version").output().await;
    if !go.is_ok_and(|output| output.status.success()) {
        return Ok(Verdict::Skipped("there is no Go".to_owned()));
    }
    let packages = ["--workspace", "--test", "differential", "--no-fail-fast"];
    Ok(Verdict::Ran(tests(&packages, filter, &["--include-ignored"]).await?))
}

async fn image(filter: Option<&str>) -> Result<Verdict> {
    let python = program("python3").arg("--version").output().await;
    if !python.is_ok_and(|output| output.status.success()) {
        return Ok(Verdict::Skipped("there is no python3".to_owned()));
    }
    let harness = ["--ignored", "--test-threads=1"];
    let packages = ["--workspace", "--test", "environments", "--no-fail-fast"];
    Ok(Verdict::Ran(tests(&packages, filter, &harness).await?))
}

async fn node(filter: Option<&str>) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&Program::ALL).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    packages::install(&packages::OUTBOUND).await?;
    let binary = built_binary(false).await?;
    Ok(Verdict::Ran(trainyard_e2e::node::run(&binary, filter).await?))
}

async fn run(filter: Option<&str>) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&[Program::Kubectl]).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    let binary = built_binary(false).await?;
    Ok(Verdict::Ran(trainyard_e2e::run::run(&binary, filter).await?))
}

async fn yard(filter: Option<&str>, write: bool) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&Program::ALL).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    packages::install(&packages::OUTBOUND).await?;
    let binary = built_binary(false).await?;
    let wish = trainyard_e2e::yard::Wish { filter, write };
    Ok(Verdict::Ran(trainyard_e2e::yard::run(&binary, wish).await?))
}

async fn examples(filter: Option<&str>) -> Result<Verdict> {
    if let Some(obstacle) = Binaries::obstacle(&[Program::Kubectl]).await? {
        return Ok(Verdict::Skipped(obstacle));
    }
    packages::install(&packages::BROWSER).await?;
    let binary = built_binary(false).await?;
    Ok(Verdict::Ran(trainyard_e2e::examples::run(&binary, filter).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_of_the_test_harness_are_counted() {
        let line = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; 0 filtered \
                    out; finished in 0.03s";
        let counts = Counts { passed: 12, failed: 2, ..Counts::default() };
        assert_eq!(test_result(line), Some(counts));
        assert_eq!(test_result("test result::parses ... ok"), None);
        assert_eq!(test_result("running 3 tests"), None);
    }

    #[test]
    fn names_on_the_command_line_are_the_names_in_the_report() {
        for tier in Tier::ALL {
            let name = clap::ValueEnum::to_possible_value(&tier).unwrap();
            assert_eq!(name.get_name(), tier.to_string());
        }
    }
}
