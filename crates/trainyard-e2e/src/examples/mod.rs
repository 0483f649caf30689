//! The tier of the examples: each as its README tells it, on a yard of its own flags, with the real
//! kubectl and real TensorFlow; one yard at a time.
//!
//! Must not know how a yard is made.

mod board;
mod browser;
mod digits;
mod multiworker;
mod sdk;
mod seeds;
mod volcano;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::future::BoxFuture;

use crate::counts::Counts;
use crate::suite::report::Report;
use crate::yard::Bed;

/// Several replicas import TensorFlow on two cores; once, an environment is made.
const PATIENCE: Duration = Duration::from_mins(12);

/// One example on a running yard.
struct Example {
    name: &'static str,
    play: for<'a> fn(&'a Bed) -> BoxFuture<'a, Result<()>>,
}

/// Examples that share a yard.
struct Group {
    /// Where its `trainyard.toml` lies, below `examples`.
    config: Option<&'static str>,
    flags: &'static [&'static str],
    examples: Vec<Example>,
}

/// Makes an [`Example`] of a function.
macro_rules! example {
    ($name:literal, $play:path) => {
        $crate::examples::Example { name: $name, play: |bed| Box::pin($play(bed)) }
    };
}
use example;

const GPUS: &str = "--resource=nvidia.com/gpu=2";

fn groups() -> Vec<Group> {
    vec![
        Group {
            config: None,
            flags: &[],
            examples: vec![
                example!("digits", digits::play),
                example!("multiworker", multiworker::play),
            ],
        },
        Group {
            config: Some("seeds/000"),
            flags: &[GPUS],
            examples: vec![
                example!("seeds/000/distributed_mnist", seeds::distributed::play),
                example!("seeds/000/module6_ex1_gpu", seeds::master::of_the_first),
            ],
        },
        Group { config: Some("seeds/003"), flags: &[GPUS], examples: seeds::worker::all() },
        Group {
            config: Some("seeds/003"),
            flags: &[],
            examples: vec![example!("seeds/003/without_a_gpu", seeds::worker::without_a_gpu)],
        },
        Group {
            config: Some("seeds/004"),
            flags: &[GPUS],
            examples: vec![
                example!("seeds/004/example_tfjob", seeds::master::alone),
                example!("seeds/004/module6_ex1_gpu", seeds::master::of_the_second),
                example!("seeds/004/module6_ex2_gpu", seeds::master::on_a_share),
            ],
        },
        Group {
            config: Some("volcano"),
            flags: &[],
            examples: vec![example!("volcano", volcano::play)],
        },
        Group { config: Some("sdk"), flags: &[], examples: vec![example!("sdk", sdk::play)] },
    ]
}

/// Runs every example, or those with this in their name.
pub async fn run(binary: &Path, filter: Option<&str>) -> Result<Counts> {
    let report = Report::default();
    for mut group in groups() {
        group.examples.retain(|example| filter.is_none_or(|part| example.name.contains(part)));
        if let Some(first) = group.examples.first() {
            let name = format!("{}/yard", first.name);
            let (started, played) = (Instant::now(), played(binary, &group, &report).await);
            report.tell(&name, &played, started.elapsed());
        }
    }
    Ok(report.finish())
}

/// Plays the examples of a group; its yard must leave nothing behind.
async fn played(binary: &Path, group: &Group, report: &Report) -> Result<()> {
    let config = group.config.map(|folder| {
        let file = folder_of(folder).join("trainyard.toml");
        format!("--config={}", file.display())
    });
    let mut flags = vec!["--nodes=1"];
    flags.extend(group.flags);
    flags.extend(config.as_deref());
    let mut bed = Bed::start(binary, &flags).await?;
    bed.kubectl = bed.kubectl.clone().with_patience(PATIENCE);
    for example in &group.examples {
        let started = Instant::now();
        let result = (example.play)(&bed).await;
        report.tell(example.name, &result, started.elapsed());
    }
    bed.check()?;
    bed.stop().await
}

/// A folder of the examples.
fn folder_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// A file of the examples, as kubectl is given it.
fn file(name: &str) -> String {
    folder_of(name).display().to_string()
}

/// Waits for the end of a job; unless it is success, tells what is known of it.
async fn succeeds(bed: &Bed, namespace: &str, job: &str) -> Result<()> {
    let ended = ends(bed, namespace, job).await?;
    if ended != "Succeeded" {
        let about = bed.kubectl.run(&["-n", namespace, "describe", "tfjob", job]).await?.stdout;
        let selector = format!("--selector=training.kubeflow.org/job-name={job}");
        let words = ["-n", namespace, "logs", "--prefix", "--tail=15", &selector];
        let logs = bed.kubectl.run(&words).await?.stdout;
        bail!("{job} is {ended}:\n{about}\n{logs}");
    }
    Ok(())
}

/// How a job ended: `Succeeded`, `Failed`, or the state that it stayed in.
async fn ends(bed: &Bed, namespace: &str, job: &str) -> Result<String> {
    let path = "-o=jsonpath={.status.conditions[?(@.status==\"True\")].type}";
    let words = ["-n", namespace, "get", "tfjob", job, path];
    let started = Instant::now();
    loop {
        let states = bed.ok(&words).await?;
        let last = states.split_whitespace().last().unwrap_or_default();
        if matches!(last, "Succeeded" | "Failed") || started.elapsed() > PATIENCE {
            return Ok(last.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// The folder of a claim on this machine.
fn claim(bed: &Bed, namespace: &str, name: &str) -> Result<PathBuf> {
    let folder = bed.data().join("claims");
    let start = format!("{namespace}_{name}_");
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&start) {
            return Ok(entry.path());
        }
    }
    bail!("there is no claim {name} in {}", folder.display())
}

/// The number behind these words, in the last line that has them.
fn number_after(text: &str, words: &str) -> Result<f64> {
    let rest = text.rsplit_once(words).with_context(|| format!("no {words:?} in:\n{text}"))?.1;
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("no number after {words:?} in:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_counts() {
        let text = "accuracy 0.5\nfinal accuracy 0.9596\nend";
        assert!((number_after(text, "accuracy ").unwrap() - 0.9596).abs() < 1e-9);
        assert!(number_after(text, "loss ").is_err());
        assert!(number_after("accuracy ", "accuracy ").is_err());
    }

    #[test]
    fn every_example_has_its_files() {
        for group in groups() {
            let folder = group.config.unwrap_or("digits");
            assert!(folder_of(folder).is_dir(), "{folder}");
            let config = group.config.map(|name| folder_of(name).join("trainyard.toml"));
            assert!(config.is_none_or(|file| file.is_file()), "{folder}");
        }
    }
}
