//! The tier on `trainyard run` as people run it: the real binary, real processes, in a pipe and in a
//! pseudo-terminal, every exit code, and one real training.
//!
//! Must not know how a run is conducted.

mod batch;
mod desk;
mod disk;
mod ends;
mod making;
mod never;
mod orders;
mod packages;
mod schema;
mod shown;
mod stops;
mod terminal;
mod training;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::control_plane::Program;
use crate::harness::{Case, Phase, Tier, product, within};
use crate::setup;
use desk::Desk;

/// Cases under way at the same time: each has a run of its own, and they share two cores.
const AT_ONCE: usize = 2;
/// No case takes longer, on a loaded machine.
const LONGEST: Duration = Duration::from_mins(4);
/// The training imports TensorFlow five times on two cores, and makes an environment once.
const TRAINING: Duration = Duration::from_mins(15);

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    Tier::in_real_time(setup::programs_and_product(&[Program::Kubectl]), |tier, real| {
        let binary = real.fixture(async || Ok(Arc::<Path>::from(product().await?)));
        let quick = [
            shown::all(),
            ends::all(),
            batch::all(),
            stops::all(),
            terminal::all(),
            making::all(),
            never::all(),
            orders::all(),
            packages::all(),
            disk::all(),
        ];
        let training = at_desks(within(TRAINING, training::all()));
        let quick = at_desks(within(LONGEST, quick.concat()));
        // The longest first: the others end beside it.
        tier.run(Phase::new(&binary, [training, quick].concat()).at_once(AT_ONCE));
        Ok(())
    })
}

/// Each at a desk of its own, where nothing may be left.
fn at_desks(cases: Vec<Case<Arc<Desk>>>) -> Vec<Case<Arc<Path>>> {
    let at_desk = |case: Case<Arc<Desk>>| {
        let (name, longest) = (case.name.clone(), case.timeout);
        Case::new(name, move |binary: Arc<Path>| play(binary, case.clone())).within(longest)
    };
    cases.into_iter().map(at_desk).collect()
}

async fn play(binary: Arc<Path>, case: Case<Arc<Desk>>) -> Result<()> {
    let desk = Arc::new(Desk::new(&binary)?);
    case.play(Arc::clone(&desk)).await?;
    desk.nothing_is_left().await
}
