//! `test`: runs the tiers one after the other, from cheap to dear, times them and sums them up.
//! What a tier does is in `tiers`.

mod deny;
mod packages;
mod report;
mod tiers;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::builder::FalseyValueParser;

use report::{Report, Verdict};
use tiers::Tier;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run only this tier; may be given several times.
    #[arg(long = "tier", value_name = "NAME")]
    tiers: Vec<Tier>,
    /// A tier that cannot run here is a failure. Set in CI.
    #[arg(long, env = "CI", value_parser = FalseyValueParser::new())]
    ci: bool,
    /// Write `docs/kubectl.md` from what the tier `yard` gives.
    #[arg(long)]
    write_docs: bool,
    /// Run only the tests whose names contain this (tiers `unit`, `render`, `embedded`,
    /// `attack`, `cluster`, `controllers`, `differential`, `image`, `node`, `run`, `yard`,
    /// `examples` and `referee`).
    filter: Option<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let filter = arguments.filter.as_deref();
    let mut report = Report::default();
    for tier in selected(&arguments.tiers, filter.is_some()) {
        println!("\n=== {tier}: {}", tier.purpose());
        let started = Instant::now();
        let verdict = tier.run(filter, arguments.write_docs).await.unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Verdict::failure(format!("{error:#}"))
        });
        if let Verdict::Skipped(reason) = &verdict {
            eprintln!("\n*** SKIPPED {tier}: {reason}\n");
        }
        report.add(tier.to_string(), verdict, started.elapsed());
    }
    println!("\n{report}");
    Ok(if report.good(arguments.ci) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Without names every tier that need not be named; with a filter only those that have tests to filter.
fn selected(named: &[Tier], filtered: bool) -> Vec<Tier> {
    let wanted = |tier: &Tier| {
        if named.is_empty() {
            !tier.only_by_name() && (!filtered || tier.takes_filter())
        } else {
            named.contains(tier)
        }
    };
    Tier::ALL.into_iter().filter(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_run_from_cheap_to_dear_whatever_the_order_of_names() {
        let unnamed: Vec<_> = Tier::ALL.into_iter().filter(|tier| *tier != Tier::Referee).collect();
        assert_eq!(selected(&[], false), unnamed);
        assert_eq!(selected(&[Tier::Referee], false), [Tier::Referee]);
        assert_eq!(selected(&[Tier::Unit, Tier::Fmt], false), [Tier::Fmt, Tier::Unit]);
    }

    #[test]
    fn a_filter_leaves_the_tiers_that_have_named_tests() {
        let named = [
            Tier::Unit,
            Tier::Render,
            Tier::Embedded,
            Tier::Attack,
            Tier::Cluster,
            Tier::Controllers,
            Tier::Differential,
            Tier::Image,
            Tier::Node,
            Tier::Run,
            Tier::Yard,
            Tier::Examples,
        ];
        assert_eq!(selected(&[], true), named);
        assert_eq!(selected(&[Tier::Cluster], true), [Tier::Cluster]);
    }
}
