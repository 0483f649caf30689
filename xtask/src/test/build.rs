//! Compiles what the tiers run, each thing once: the tests' programs with the whole workspace's features,
//! the binary with its own, as it is shipped. Knows Cargo's words, not the tiers' tests.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;

use super::report::Verdict;
use super::tiers::{TestProgram, Tier, Work};
use crate::cargo::{Built, build};
use crate::counts::Counts;
use crate::output::Output;

/// What was compiled.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    tests: Vec<Built>,
    /// The binary with the features it is shipped with.
    pub(crate) binary: Option<PathBuf>,
}

impl Programs {
    /// The program of a test target and the folder of its package.
    pub(crate) fn test(&self, wanted: TestProgram) -> Option<(&Path, &Path)> {
        let found = self.tests.iter().find(|built| {
            built.test && built.name == wanted.test && built.folder.ends_with(wanted.package)
        })?;
        Some((&found.path, &found.folder))
    }
}

/// Compiles what these tiers run; nothing when something does not compile.
pub(crate) async fn compile(
    tiers: &[Tier],
    dist: bool,
    output: &mut Output,
) -> Result<(Verdict, Option<Programs>)> {
    let mut programs = Programs::default();
    for words in commands(tiers, dist) {
        let started = Instant::now();
        let Some(built) = build(&words, output).await? else {
            return Ok((Verdict::failure("it does not compile".to_owned()), None));
        };
        let seconds = started.elapsed().as_secs_f64();
        output.line(&format!("`cargo {}`: {seconds:.0} s", words.join(" ")));
        for program in built {
            if program.name == "trainyard" && !program.test && words[0] == "build" {
                programs.binary = Some(program.path);
            } else {
                programs.tests.push(program);
            }
        }
    }
    Ok((Verdict::Ran(Counts::one(true)), Some(programs)))
}

/// The words of Cargo that compile it. The tests are chosen out of the whole workspace: a package by itself
/// has fewer features, and all it depends on would be compiled once more.
fn commands(tiers: &[Tier], dist: bool) -> Vec<Vec<&'static str>> {
    let mut commands = Vec::new();
    if tiers.contains(&Tier::Unit) {
        commands.push(vec!["test", "--workspace", "--no-run"]);
    }
    let mut tests: Vec<_> = tiers
        .iter()
        .filter_map(|tier| match tier.work() {
            Work::Program(program) => Some(program.test),
            _ => None,
        })
        .collect();
    tests.sort_unstable();
    tests.dedup();
    if !tests.is_empty() {
        let mut words = vec!["test", "--workspace", "--no-run"];
        words.extend(tests.into_iter().flat_map(|test| ["--test", test]));
        commands.push(words);
    }
    if tiers.iter().any(|tier| tier.runs_binary()) {
        let mut words = vec!["build", "--package", "trainyard"];
        if dist {
            words.extend(["--profile", "dist"]);
        }
        commands.push(words);
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_compiled_once() {
        let lines = |tiers: &[Tier]| {
            commands(tiers, false).into_iter().map(|words| words.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(lines(&[Tier::Fmt, Tier::Unit]), ["test --workspace --no-run"]);
        assert_eq!(
            lines(&[Tier::Render, Tier::Embedded, Tier::Differential]),
            ["test --workspace --no-run --test differential --test embedded"]
        );
        assert_eq!(
            lines(&[Tier::Unit, Tier::Node]),
            [
                "test --workspace --no-run",
                "test --workspace --no-run --test node",
                "build --package trainyard"
            ]
        );
        let shipped = commands(&[Tier::Kubelet], true);
        assert_eq!(shipped[1].join(" "), "build --package trainyard --profile dist");
    }

    #[test]
    fn tests_of_one_name_are_told_apart_by_their_package() {
        let built = |package: &str, path: &str| Built {
            folder: Path::new("crates").join(package),
            name: "differential".to_owned(),
            test: true,
            path: path.into(),
        };
        let tests = vec![built("trainyard-render", "a"), built("trainyard-e2e", "b")];
        let programs = Programs { tests, binary: None };
        let of = |tier: Tier| match tier.work() {
            Work::Program(program) => programs.test(program).map(|(path, _)| path.to_owned()),
            _ => None,
        };
        assert_eq!(of(Tier::Render), Some("a".into()));
        assert_eq!(of(Tier::Differential), Some("b".into()));
        assert_eq!(of(Tier::Embedded), None);
    }
}
