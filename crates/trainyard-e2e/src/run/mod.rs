//! The tier on `trainyard run` as people run it: the real binary, real processes, in a pipe and in a
//! pseudo-terminal, every exit code, and one real training.
//!
//! Must not know how a run is conducted.

mod batch;
mod desk;
mod disk;
mod ends;
mod making;
mod schema;
mod shown;
mod stops;
mod terminal;
mod training;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use crate::counts::Counts;
use crate::suite::report::Report;
use desk::Desk;

/// No case takes longer, on a loaded machine.
const LONGEST: Duration = Duration::from_mins(4);
/// The training imports TensorFlow five times on two cores, and makes an environment once.
const TRAINING: Duration = Duration::from_mins(15);

/// One case.
struct Case {
    name: &'static str,
    play: for<'d> fn(&'d Desk) -> LocalBoxFuture<'d, Result<()>>,
}

/// Writes a case down under the name of its function.
macro_rules! cases {
    ($group:literal: $($name:ident),* $(,)?) => {
        vec![$($crate::run::Case {
            name: concat!($group, "/", stringify!($name)),
            play: |desk| Box::pin($name(desk)),
        }),*]
    };
}
use cases;

/// Runs the cases whose names contain `filter` with this binary.
pub async fn run(binary: &Path, filter: Option<&str>) -> Result<Counts> {
    let report = Report::in_real_time();
    let all = [
        shown::all(),
        ends::all(),
        batch::all(),
        stops::all(),
        terminal::all(),
        making::all(),
        disk::all(),
        training::all(),
    ];
    for case in all.into_iter().flatten() {
        let name = format!("run/{}", case.name);
        if !filter.is_none_or(|filter| name.contains(filter)) {
            continue;
        }
        let patience = if name.contains("training") { TRAINING } else { LONGEST };
        let play = async |_| {
            let desk = Desk::new(binary)?;
            (case.play)(&desk).await?;
            desk.nothing_is_left()
        };
        report.play(&name, patience, play).await;
    }
    Ok(report.finish())
}
