//! Crash points: the operator is stopped before, after and in doubt about every write of a story,
//! and the end must be the same as without.
//!
//! Must not know what stories do.

mod end;
mod layer;
mod stories;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;

use crate::scenarios::Scenario;
use crate::suite::Stage;
use crate::suite::report::say;
use crate::world::World;
use end::End;
use layer::{Fault, Mode, Trap};

/// Runs under way at the same time.
const AT_ONCE: usize = 8;
/// How long the end must stay as it is, in milliseconds.
const STAYS: u64 = 150;

/// Plays every story that is wanted, first without a fault and then with every fault.
pub(crate) async fn run(stage: &Stage) {
    let stories = stories::all();
    let wanted = stories.iter().filter(|story| stage.wants(&story.name));
    let mut runs = 0;
    for story in wanted {
        let started = Instant::now();
        let result = play_with_every_fault(stage, story).await;
        if let Ok(count) = &result {
            runs += count;
        }
        stage.report().tell(&story.name, &result.map(|_| ()), started.elapsed());
    }
    if runs > 0 {
        say(&format!("        {runs} crash points in all"));
    }
}

async fn play_with_every_fault(stage: &Stage, story: &Scenario) -> Result<usize> {
    let (writes, end) = rehearse(stage, story).await.context("without a fault")?;
    let mut faults = Vec::new();
    for at in 1..=writes {
        faults.extend(Mode::ALL.map(|mode| Fault { at, mode }));
    }
    let played = futures::stream::iter(&faults).map(|fault| {
        let end = &end;
        async move {
            let result = perform(stage, story, *fault, end).await;
            result.with_context(|| format!("{:?} write {} of {writes}", fault.mode, fault.at))
        }
    });
    let results: Vec<Result<()>> = played.buffer_unordered(AT_ONCE).collect().await;
    let wrong: Vec<String> =
        results.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if wrong.is_empty() {
        return Ok(faults.len());
    }
    let first = wrong.first().map_or("", String::as_str);
    bail!("{} of {} crash points end differently; the first: {first}", wrong.len(), faults.len())
}

/// Plays a story without a fault: how many writes it takes and how it ends.
async fn rehearse(stage: &Stage, story: &Scenario) -> Result<(usize, End)> {
    let world = stage.open(&story.name).await?;
    let trap = Arc::new(Trap::open());
    let client = layer::client(world.operator_client(), Arc::clone(&trap));
    let operator = world.start_operator_with(client, stories::options).await?;
    story.run(world.clone()).await?;
    // Counts that are held back and the last deletions come within this time.
    let mut end = End::of(&world);
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(2 * STAYS)).await;
        let now = End::of(&world);
        if now == end {
            break;
        }
        end = now;
    }
    operator.stop().await?;
    Ok((trap.writes(), end))
}

/// Plays a story with a fault and compares its end.
async fn perform(stage: &Stage, story: &Scenario, fault: Fault, wanted: &End) -> Result<()> {
    let world = stage.open(&story.name).await?;
    let trap = Arc::new(Trap::new(fault));
    let client = layer::client(world.operator_client(), Arc::clone(&trap));
    let mut operator = Some(world.start_operator_with(client, stories::options).await?);
    let mut play = std::pin::pin!(story.run(world.clone()));
    let mut fatal = std::pin::pin!(trap.crashed());
    let mut crashes = 0;
    let finished = loop {
        tokio::select! {
            result = &mut play => break result,
            () = &mut fatal, if crashes == 0 => {
                crashes += 1;
                if let Some(operator) = operator.take() {
                    operator.crash().await;
                }
                operator = Some(world.start_operator(stories::options).await?);
            }
        }
    };
    finished?;
    if crashes == 0 && trap.is_sprung() && fault.mode.crashes() {
        // It happened with the very last write; the successor has to cope with that as well.
        if let Some(operator) = operator.take() {
            operator.crash().await;
        }
        operator = Some(world.start_operator(stories::options).await?);
    }
    same_end(&world, wanted).await?;
    drop(operator);
    Ok(())
}

async fn same_end(world: &World, wanted: &End) -> Result<()> {
    let reached =
        world.wait_until("the same end as without the fault", |_| End::of(world) == *wanted).await;
    if let Err(error) = reached {
        bail!("{}\n{error:#}", End::of(world).difference(wanted));
    }
    let stays = world.never_within(STAYS, "the end changes", |_| End::of(world) != *wanted).await;
    stays.with_context(|| End::of(world).difference(wanted))
}
