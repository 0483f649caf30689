//! Hostile and broken clients against the embedded server in a process of its own: after each attack it
//! answers as before, its memory is bounded and nothing in it has panicked. And loss of power under
//! load, again and again.
//!
//! Owns the attacks. Must not know how the server defends itself.

mod bodies;
mod bytes;
mod crowd;
mod ground;
mod power;
mod slow;
mod strangers;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::LocalBoxFuture;

use crate::counts::Counts;
use crate::suite::report::Report;
use ground::Ground;

/// No attack takes longer.
const LONGEST: Duration = Duration::from_mins(3);
/// How much more memory than at the start a server may have after an attack, in MB. What one large
/// object takes while it is looked at stays with the allocator; it must not add up.
const MORE: f64 = 512.0;

/// One attack.
struct Attack {
    name: &'static str,
    play: for<'g> fn(&'g Ground) -> LocalBoxFuture<'g, Result<()>>,
}

/// Writes an attack down under the name of its function.
macro_rules! attacks {
    ($group:literal: $($name:ident),* $(,)?) => {
        vec![$($crate::attack::Attack {
            name: concat!($group, "/", stringify!($name)),
            play: |ground| Box::pin($name(ground)),
        }),*]
    };
}
use attacks;

/// Plays the attacks whose names contain `filter`.
pub async fn run(filter: Option<&str>) -> Result<Counts> {
    let report = Report::in_real_time();
    let wants = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    let all = [bodies::all(), bytes::all(), crowd::all(), slow::all(), strangers::all()];
    let mut ground = Ground::open().await?;
    let base = ground.lone.memory()?;
    for attack in all.into_iter().flatten().filter(|attack| wants(attack.name)) {
        let name = format!("attack/{}", attack.name);
        report.play(&name, LONGEST, async |_| (attack.play)(&ground).await).await;
        let stands = stands(&mut ground, base).await;
        if stands.is_err() {
            report.tell(&format!("{name}/the_server_stands"), &stands, Duration::ZERO);
            ground = Ground::open().await?;
        }
    }
    let name = "power/lost_two_hundred_times";
    if wants(name) {
        let begun = Instant::now();
        report.tell(&format!("attack/{name}"), &power::lost().await, begun.elapsed());
    }
    Ok(report.finish())
}

/// The server goes on after an attack.
async fn stands(ground: &mut Ground, base: f64) -> Result<()> {
    ground.lone.check()?;
    ground.door().must_answer().await.context("after the attack")?;
    let memory = ground.lone.memory()?;
    ensure!(memory < base + MORE, "the server has grown from {base:.0} MB to {memory:.0} MB");
    Ok(())
}
