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
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::sync::Mutex;
use trainyard_testbed::packages;

use crate::control_plane::Program;
use crate::harness::{Case, Phase, Tier, cases, product, within};
use crate::setup;
use crate::yard::Bed;

/// Several replicas import TensorFlow on two cores; once, an environment is made.
const PATIENCE: Duration = Duration::from_mins(12);
/// No example takes longer; some wait for several things with that patience.
const LONGEST: Duration = Duration::from_mins(30);

/// Examples that share a yard.
struct Group {
    /// Where its `trainyard.toml` lies, below `examples`.
    config: Option<&'static str>,
    flags: &'static [&'static str],
    examples: Vec<Case<Arc<Bed>>>,
}

const GPUS: &str = "--resource=nvidia.com/gpu=2";

fn groups() -> Vec<Group> {
    vec![
        Group {
            config: None,
            flags: &[],
            examples: vec![
                Case::new("digits/in_pieces", digits::in_pieces),
                Case::new("digits/in_one_file", digits::play),
                Case::new("multiworker", multiworker::play),
            ],
        },
        Group {
            config: Some("seeds/000"),
            flags: &[GPUS],
            examples: vec![
                Case::new("seeds/000/distributed_mnist", seeds::distributed::play),
                Case::new("seeds/000/module6_ex1_gpu", seeds::master::of_the_first),
            ],
        },
        Group { config: Some("seeds/003"), flags: &[GPUS], examples: seeds::worker::all() },
        Group {
            config: Some("seeds/003"),
            flags: &[],
            examples: vec![Case::new("seeds/003/without_a_gpu", seeds::worker::without_a_gpu)],
        },
        Group {
            config: Some("seeds/004"),
            flags: &[GPUS],
            examples: vec![
                Case::new("seeds/004/example_tfjob", seeds::master::alone),
                Case::new("seeds/004/module6_ex1_gpu", seeds::master::of_the_second),
                Case::new("seeds/004/module6_ex2_gpu", seeds::master::on_a_share),
            ],
        },
        Group {
            config: Some("volcano"),
            flags: &[],
            examples: vec![Case::new("volcano", volcano::play)],
        },
        Group { config: Some("sdk"), flags: &[], examples: vec![Case::new("sdk", sdk::play)] },
    ]
}

/// Runs the tier: one yard at a time, and one example at a time on it.
#[must_use]
pub fn run() -> ExitCode {
    let needs = setup::programs_product_and_packages(&[Program::Kubectl], &packages::BROWSER);
    Tier::in_real_time(needs, |tier, real| {
        for Group { config, flags, examples } in groups() {
            let first = examples.first().map(|example| example.name.clone()).unwrap_or_default();
            let yard = real.fixture(async move || Yard::start(config, flags).await);
            let open = async |yard: Arc<Yard>, _: &str| yard.bed().await;
            let examples = within(LONGEST, examples).into_iter().map(|case| case.over(open));
            tier.run(Phase::new(&yard, examples.collect()).one_by_one().tried_once());
            let verdicts: Vec<Case<Arc<Yard>>> = cases!["yard": still_runs, down_leaves_nothing];
            tier.judge(&yard, verdicts.into_iter().map(|case| case.below(&first)).collect());
        }
        Ok(())
    })
}

/// The yard of a group.
struct Yard {
    bed: Mutex<Option<Arc<Bed>>>,
}

impl Yard {
    async fn start(config: Option<&str>, flags: &[&str]) -> Result<Arc<Self>> {
        let config = config.map(|folder| {
            let file = folder_of(folder).join("trainyard.toml");
            format!("--config={}", file.display())
        });
        let mut all = vec!["--nodes=1"];
        all.extend(flags);
        all.extend(config.as_deref());
        let mut bed = Bed::start(&product().await?, &all).await?;
        bed.kubectl = bed.kubectl.clone().with_patience(PATIENCE);
        Ok(Arc::new(Self { bed: Mutex::new(Some(Arc::new(bed))) }))
    }

    async fn bed(&self) -> Result<Arc<Bed>> {
        self.bed.lock().await.clone().context("the yard has been stopped")
    }
}

async fn still_runs(yard: &Yard) -> Result<()> {
    let mut bed = yard.bed.lock().await;
    let bed = bed.as_mut().context("the yard has been stopped")?;
    Arc::get_mut(bed).context("an example still uses the yard")?.check()
}

async fn down_leaves_nothing(yard: &Yard) -> Result<()> {
    let bed = yard.bed.lock().await.take().context("the yard has been stopped")?;
    Arc::into_inner(bed).context("an example still uses the yard")?.stop().await
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
