//! `test`: chooses tiers, starts them side by side as far as they go together, times them and sums them up.
//! What a tier is is in `tiers`, what goes together in `schedule`.

mod build;
mod harness;
mod play;
mod report;
mod schedule;
mod tiers;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::builder::FalseyValueParser;
use tokio::task::JoinSet;
use trainyard_testbed::cluster::{Cluster, image};
use trainyard_testbed::control_plane::{Binaries, Program};

use crate::output::Output;
use play::Run;
use report::{Report, Verdict};
use tiers::{Tier, selected};

#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a yes or no of its own")]
pub(crate) struct Arguments {
    /// Run only this tier; may be given several times.
    #[arg(long = "tier", value_name = "NAME", conflicts_with = "quick")]
    tiers: Vec<Tier>,
    /// Run only what belongs between two edits: fmt, tidy, unit and embedded.
    #[arg(long)]
    quick: bool,
    /// A tier that cannot run here is a failure. Set in CI.
    #[arg(long, env = "CI", value_parser = FalseyValueParser::new())]
    ci: bool,
    /// Build the binary as it is shipped; that takes minutes.
    #[arg(long, env = "TRAINYARD_DIST", value_parser = FalseyValueParser::new())]
    dist: bool,
    /// Write `docs/kubectl.md` from what the tier `yard` gives.
    #[arg(long)]
    write_docs: bool,
    /// Run only the tests whose names contain this, in the tiers that have tests with names.
    filter: Option<String>,
}

/// Something that went on beside others.
enum Ended {
    Tier(Tier, Verdict, Output, Duration),
    /// These programs of Kubernetes are there, or cannot be had.
    Programs(Vec<Program>),
    /// The image of TensorFlow is there, or cannot be had.
    Image,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let named: &[Tier] = if arguments.quick { &Tier::QUICK } else { &arguments.tiers };
    let run = Run {
        tiers: selected(named, arguments.filter.is_some()),
        filter: arguments.filter,
        ci: arguments.ci,
        dist: arguments.dist,
        write_docs: arguments.write_docs,
        programs: OnceLock::new(),
    };
    let report = play_all(Arc::new(run)).await?;
    println!("\n{report}");
    Ok(if report.good(arguments.ci) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn play_all(run: Arc<Run>) -> Result<Report> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    let mut to_build = batches(&run.tiers).into_iter();
    let mut there = Vec::new();
    to_build.next().map(|wanted| tasks.spawn(provide(wanted)));
    if run.tiers.contains(&Tier::Kubelet) && run.filter.is_none() {
        tasks.spawn(make_image());
    }
    let mut waiting = in_line(&run.tiers);
    // Alone, it is followed at the terminal; beside others, its words would be torn.
    let alone = waiting.iter().filter(|tier| **tier != Tier::Build).count() == 1;
    let mut running: Vec<Tier> = Vec::new();
    let mut report = Report::default();
    loop {
        let built = !waiting.contains(&Tier::Build) && !running.contains(&Tier::Build);
        while let Some(tier) = take_next(&mut waiting, &running, built, &there) {
            println!("=== {tier}: {}", tier.purpose());
            running.push(tier);
            tasks.spawn(play_one(Arc::clone(&run), tier, alone));
        }
        if running.is_empty() && waiting.is_empty() {
            break;
        }
        match tasks.join_next().await {
            Some(Ok(Ended::Programs(built))) => {
                there.extend(built);
                to_build.next().map(|wanted| tasks.spawn(provide(wanted)));
            }
            Some(Ok(Ended::Image)) => {}
            Some(Ok(Ended::Tier(tier, verdict, output, took))) => {
                running.retain(|other| *other != tier);
                show(tier, &verdict, &output, took);
                report.add(tier, verdict, took);
            }
            Some(Err(error)) => return Err(error.into()),
            None => break,
        }
    }
    report.end(started.elapsed());
    Ok(report)
}

/// The programs that these tiers need, in the order in which they are built: what only the last tier needs comes
/// last.
fn batches(tiers: &[Tier]) -> Vec<Vec<Program>> {
    let wanted = |program: &Program| tiers.iter().any(|tier| tier.programs().contains(program));
    let (first, then): (Vec<_>, Vec<_>) = Program::ALL
        .into_iter()
        .filter(wanted)
        .partition(|program| Program::CONTROL_PLANE.contains(program));
    [first, then].into_iter().filter(|batch| !batch.is_empty()).collect()
}

/// Those with pods as processes come before all others of their price: there is one of them at a time, and the
/// others run beside them.
fn in_line(tiers: &[Tier]) -> Vec<Tier> {
    let mut line = tiers.to_vec();
    line.sort_by_key(|tier| tier.runs_tests() && *tier != Tier::Unit && !tier.demand().node);
    line
}

fn take_next(
    waiting: &mut Vec<Tier>,
    running: &[Tier],
    built: bool,
    there: &[Program],
) -> Option<Tier> {
    let ready = |tier: &Tier| {
        (built || !tier.runs_tests()) && tier.programs().iter().all(|name| there.contains(name))
    };
    let line: Vec<_> = waiting.iter().map(|tier| (tier.demand(), ready(tier))).collect();
    let demands: Vec<_> = running.iter().map(|tier| tier.demand()).collect();
    schedule::next(&line, &demands).map(|place| waiting.remove(place))
}

async fn play_one(run: Arc<Run>, tier: Tier, alone: bool) -> Ended {
    let started = Instant::now();
    let mut output = if alone { Output::Shown } else { Output::Kept(String::new()) };
    let verdict = run.play(tier, &mut output).await;
    Ended::Tier(tier, verdict, output, started.elapsed())
}

/// Builds programs of Kubernetes in what time the first tiers leave. What goes wrong is told by the tiers that
/// need them.
async fn provide(wanted: Vec<Program>) -> Ended {
    if let Ok(None) = Binaries::obstacle(&wanted).await
        && let Err(error) = Binaries::provide(&wanted).await
    {
        eprintln!("error: {error:#}");
    }
    Ended::Programs(wanted)
}

/// Makes the image of TensorFlow, which is waited for by those who need it. What goes wrong is told by the tier.
async fn make_image() -> Ended {
    if let Ok(None) = Cluster::obstacle().await
        && let Err(error) = image::tensorflow().await
    {
        eprintln!("error: {error:#}");
    }
    Ended::Image
}

fn show(tier: Tier, verdict: &Verdict, output: &Output, took: Duration) {
    if let Output::Kept(text) = output {
        println!("\n=== {tier} ended after {:.0} s\n{text}", took.as_secs_f64());
    }
    if let Verdict::Skipped(reason) = verdict {
        eprintln!("\n*** SKIPPED {tier}: {reason}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tiers that run at the same time, each time that one has ended: always the first.
    fn played(tiers: &[Tier]) -> Vec<Vec<Tier>> {
        let (mut waiting, mut running) = (in_line(tiers), Vec::new());
        let mut steps = Vec::new();
        loop {
            let built = !waiting.contains(&Tier::Build) && !running.contains(&Tier::Build);
            while let Some(tier) = take_next(&mut waiting, &running, built, &Program::ALL) {
                running.push(tier);
            }
            if running.is_empty() {
                assert_eq!(waiting, [], "nothing runs and nothing can start");
                return steps;
            }
            steps.push(running.clone());
            running.remove(0);
        }
    }

    #[test]
    fn everything_runs_and_the_dear_ones_beside_others() {
        let steps = played(&selected(&[], false));
        assert_eq!(steps[0], [Tier::Fmt, Tier::Tidy]);
        assert!(steps.contains(&vec![Tier::Node, Tier::Render]), "{steps:?}");
        let nodes = |step: &Vec<Tier>| step.iter().filter(|tier| tier.demand().node).count();
        assert!(steps.iter().all(|step| nodes(step) <= 1), "{steps:?}");
    }

    #[test]
    fn nothing_is_run_before_it_is_built() {
        let (tiers, mut steps) = (selected(&Tier::QUICK, false), Vec::new());
        steps.extend(played(&tiers));
        let of = |tier| steps.iter().position(|step| step.contains(&tier)).unwrap();
        assert!(of(Tier::Build) < of(Tier::Unit) && of(Tier::Unit) < of(Tier::Embedded));
    }

    #[test]
    fn what_needs_the_control_plane_waits_for_it() {
        let mut waiting = vec![Tier::Kubelet, Tier::Cluster, Tier::Attack];
        let [control_plane, rest] = &batches(&waiting)[..] else { panic!("two batches") };
        assert_eq!(*control_plane, Program::CONTROL_PLANE);
        assert_eq!(rest.first(), Some(&Program::Kubelet));
        let mut next = |there: &[Program]| take_next(&mut waiting, &[], true, there);
        assert_eq!(next(&[]), Some(Tier::Attack));
        assert_eq!(next(&[]), None);
        assert_eq!(next(control_plane), Some(Tier::Cluster));
        assert_eq!(next(control_plane), None);
        assert_eq!(next(&Program::ALL), Some(Tier::Kubelet));
        assert!(batches(&[Tier::Fmt]).is_empty());
    }
}
