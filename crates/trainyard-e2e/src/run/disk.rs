//! What runs leave on disk, shown and freed.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::desk::{Desk, job, with_claim};
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/disk": shown_and_freed]
}

async fn shown_and_freed(desk: &Desk) -> Result<()> {
    let script = "head -c 300000 /dev/zero > /claim/model";
    let job = with_claim(job("mnist", &[("Worker", 1, script, "Never")]), "model");
    let file = desk.write("job.yaml", &[job])?;
    desk.run(&[&file]).await?.with_code(0)?;
    let table = desk.other(&["ls"]).await?.with_code(0)?.stdout;
    let row = table.lines().find(|line| line.starts_with("run ")).unwrap_or_default();
    contains("ls", row, &["mnist", "296 Ki", "ago"])?;
    desk.other(&["clean"]).await?.with_code(2)?;
    let told = desk.other(&["clean", "--dry-run", "mnist"]).await?.with_code(0)?.stdout;
    contains("a rehearsal", &told, &["run mnist would be removed"])?;
    desk.other(&["clean", "mnist"]).await?.with_code(0)?;
    ensure!(!desk.path("data/trainyard/runs/mnist").exists(), "it is still there");
    Ok(())
}
