//! Hostile and broken clients against the embedded server in a process of its own: after each attack it
//! answers as before, its memory is bounded and nothing in it has panicked. And loss of power under
//! load, again and again.
//!
//! Owns the attacks. Must not know how the server defends itself.

mod bodies;
mod bytes;
mod crowd;
mod ground;
mod nodes;
mod power;
mod rules;
mod slow;
mod strangers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::Mutex;

use crate::harness::{Case, Phase, Tier, cases};
use ground::Ground;

/// No attack takes longer.
const LONGEST: Duration = Duration::from_mins(3);
/// No series of lost power takes longer.
const POWER: Duration = Duration::from_mins(20);
/// How much more memory than at the start a server may have after an attack, in MB. What one large
/// object takes while it is looked at stays with the allocator; it must not add up.
const MORE: f64 = 512.0;

/// The server under attack, and whether it has stood all attacks. One that has not is replaced.
struct Target {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The server, and its memory at the start in MB.
    ground: Option<(Arc<Ground>, f64)>,
    fallen: Vec<String>,
}

/// Runs the tier. `program` serves the embedded API alone.
#[must_use]
pub fn run(program: &str) -> ExitCode {
    Tier::in_real_time(async { Ok(None) }, |tier, real| {
        let all = [
            bodies::all(),
            bytes::all(),
            crowd::all(),
            rules::all(),
            slow::all(),
            strangers::all(),
            nodes::all(),
        ];
        let target = real.fixture({
            let program = PathBuf::from(program);
            async move || {
                let state = Mutex::default();
                Ok(Arc::new(Target { program: program.clone(), state }))
            }
        });
        let all = all.into_iter().flatten().map(|case| against(case.below("attack"))).collect();
        tier.run(Phase::new(&target, all).one_by_one());
        tier.judge(&target, cases!["attack": the_server_stands]);
        let power = vec![Case::new(power::name(), power_is_lost).within(POWER)];
        tier.run(Phase::new(&target, power).tried_once());
        Ok(())
    })
}

/// An attack, and a look at the server after it.
fn against(attack: Case<Arc<Ground>>) -> Case<Arc<Target>> {
    let (name, attack) = (attack.name.clone(), attack.within(LONGEST));
    let play = move |target| play(target, attack.clone());
    Case::new(name, play).within(LONGEST * 2)
}

async fn play(target: Arc<Target>, attack: Case<Arc<Ground>>) -> Result<()> {
    let mut state = target.state.lock().await;
    let (mut ground, base) = if let Some(standing) = state.ground.take() {
        standing
    } else {
        let ground = Ground::open(&target.program).await?;
        let base = ground.lone.memory()?;
        (Arc::new(ground), base)
    };
    let result = attack.play(Arc::clone(&ground)).await;
    match stands(&mut ground, base).await {
        Ok(()) => state.ground = Some((ground, base)),
        Err(error) => state.fallen.push(format!("{}: {error:#}", attack.name)),
    }
    result
}

async fn the_server_stands(target: &Target) -> Result<()> {
    let fallen = &target.state.lock().await.fallen;
    ensure!(fallen.is_empty(), "it fell:\n{}", fallen.join("\n"));
    Ok(())
}

async fn power_is_lost(target: &Target) -> Result<()> {
    power::lost(&target.program).await
}

/// The server goes on after an attack.
async fn stands(ground: &mut Arc<Ground>, base: f64) -> Result<()> {
    Arc::get_mut(ground).context("an attack goes on after its end")?.lone.check()?;
    ground.door().must_answer().await.context("after the attack")?;
    let memory = ground.lone.memory()?;
    ensure!(memory < base + MORE, "the server has grown from {base:.0} MB to {memory:.0} MB");
    Ok(())
}
