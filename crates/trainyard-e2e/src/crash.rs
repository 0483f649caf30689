//! Crash points: the operator is stopped before, after and in doubt about every write of a story, or a
//! share of them, and the end must be the same as without.
//!
//! Must not know what stories do.

mod end;
mod layer;
mod share;
mod stories;
mod volcano;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::harness::{Case, note};
use crate::seen::Seen;
use crate::stage::Stage;
use crate::world::World;
use end::End;
use layer::{Fault, Mode, Trap};
pub(crate) use share::Share;

/// How often a story is played without a fault. What the operator writes at once varies with the
/// timing, so one run may take more writes than most.
const REHEARSALS: usize = 3;
/// How often a run is repeated that ended before its fault came.
const AGAIN: usize = 2;
/// No story with all its faults takes longer.
const LONGEST: Duration = Duration::from_mins(15);
/// How long the end must stay as it is, in milliseconds.
const STAYS: u64 = 150;
/// How often it may look like the end before it is.
const TRIES: usize = 5;

/// Every story, played first without a fault and then with this share of all faults.
pub(crate) fn all(share: Share) -> Vec<Case<Arc<Stage>>> {
    let stories = [stories::all(), volcano::all()].concat();
    let with_faults = |story: Case<World>| {
        let (name, story) = (story.name.clone(), story.within(LONGEST));
        let play = move |stage: Arc<Stage>| play_with_faults(stage, story.clone(), share);
        Case::new(name, play).within(LONGEST)
    };
    stories.into_iter().map(with_faults).collect()
}

async fn play_with_faults(stage: Arc<Stage>, story: Case<World>, share: Share) -> Result<()> {
    let (stage, story) = (&*stage, &story);
    let (writes, end) = rehearse_often(stage, story).await.context("without a fault")?;
    let mut faults = Vec::new();
    for at in (1..=writes).filter(|at| share.has(*at)) {
        faults.extend(Mode::ALL.map(|mode| Fault { at, mode }));
    }
    let played = faults.iter().map(async |fault| {
        let mut is_sprung = false;
        for _ in 0..=AGAIN {
            let _place = stage.places.acquire().await?;
            let result = perform(stage, story, *fault, &end).await;
            let at = || format!("{:?} write {} of {writes}", fault.mode, fault.at);
            is_sprung = result.with_context(at)?;
            if is_sprung {
                break;
            }
        }
        Ok(is_sprung)
    });
    ensure!(!faults.is_empty(), "none of its {writes} writes has its turn");
    let results: Vec<Result<bool>> = futures::future::join_all(played).await;
    let reached = results.iter().filter(|result| matches!(result, Ok(true))).count();
    // The number of writes varies with the timing, so the last ones may not come even then.
    let certain = writes - (writes / 10).max(1);
    let missed: Vec<usize> = faults
        .iter()
        .zip(&results)
        .filter(|(fault, result)| fault.at <= certain && matches!(result, Ok(false)))
        .map(|(fault, _)| fault.at)
        .collect();
    let wrong: Vec<String> =
        results.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if let Some(first) = wrong.first() {
        bail!("{} of {} crash points end differently; one: {first}", wrong.len(), faults.len());
    }
    ensure!(missed.is_empty(), "of {writes} writes these never came: {missed:?}");
    let points = writes * Mode::ALL.len();
    note(format_args!("{}: {reached} of {points} crash points", story.name));
    Ok(())
}

/// Plays a story without a fault several times: how many writes it takes at least, and how it ends,
/// which is the same every time.
async fn rehearse_often(stage: &Stage, story: &Case<World>) -> Result<(usize, End)> {
    let rehearsals = (0..REHEARSALS).map(async |_| {
        let _place = stage.places.acquire().await?;
        rehearse(stage, story).await
    });
    let mut rehearsals = futures::future::try_join_all(rehearsals).await?.into_iter();
    let (mut fewest, end) = rehearsals.next().context("no rehearsal")?;
    for (writes, other) in rehearsals {
        ensure!(other == end, "two ends: {}", other.difference(&end));
        fewest = fewest.min(writes);
    }
    Ok((fewest, end))
}

/// A world in which all that a story is about is looked at.
async fn open(stage: &Stage, story: &Case<World>) -> Result<World> {
    let world = stage.open(&story.name).await?;
    if story.name.starts_with(volcano::PREFIX) { world.widened().await } else { Ok(world) }
}

/// Plays a story without a fault: how many writes it takes and how it ends.
async fn rehearse(stage: &Stage, story: &Case<World>) -> Result<(usize, End)> {
    let world = open(stage, story).await?;
    let trap = Arc::new(Trap::open());
    let client = layer::client(world.operator_client(), Arc::clone(&trap));
    let operator = world.start_operator_with(client, stories::options).await?;
    story.play(world.clone()).await?;
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

/// Plays a story with a fault and compares its end; tells whether the fault came.
async fn perform(stage: &Stage, story: &Case<World>, fault: Fault, wanted: &End) -> Result<bool> {
    let world = open(stage, story).await?;
    let trap = Arc::new(Trap::new(fault));
    let client = layer::client(world.operator_client(), Arc::clone(&trap));
    let first = world.start_operator_with(client, stories::options).await?;
    let mut play = std::pin::pin!(async {
        story.play(world.clone()).await?;
        same_end(&world, wanted).await
    });
    // The fault may come with the very last write: the successor has to cope with that as well.
    tokio::select! {
        result = &mut play => result?,
        () = trap.crashed() => {
            first.crash().await;
            let _second = world.start_operator(stories::options).await?;
            play.await?;
        }
    }
    Ok(trap.is_sprung())
}

/// Waits until the end is as wanted and stays so. On the way it may look so already: what a pod
/// leaves behind and its successor restores is the same twice.
async fn same_end(world: &World, wanted: &End) -> Result<()> {
    let what = "the same end as without the fault";
    let mut last = String::new();
    for _ in 0..TRIES {
        if let Err(error) = world.wait_until(what, |_| End::of(world) == *wanted).await {
            bail!("{}\n{error:#}", End::of(world).difference(wanted));
        }
        let changed = |_: &Seen| End::of(world) != *wanted;
        match world.never_within(STAYS, "the end changes", changed).await {
            Ok(()) => return Ok(()),
            Err(error) => last = format!("{}\n{error:#}", End::of(world).difference(wanted)),
        }
    }
    bail!("the end does not last: {last}")
}
