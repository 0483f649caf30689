//! Real TensorFlow training in a pod against the same program started by hand, in turns.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Ground, NODE};
use crate::bench::sample::{Sample, round};
use crate::bench::trained::{
    IMAGE, PROGRAM, STEPS, Said, Seconds, alike, by_hand, environment, said,
};
use crate::node::Stage;

pub(super) async fn measure(stage: &Stage, rounds: usize) -> Result<Value> {
    let ground = Ground::open(stage, "training").await?;
    // The first pod has its environment made, and brings its files into memory.
    let first = in_pod(&ground, "first", "1").await?;
    by_hand(&first.python, "1").await?;
    let (mut pods, mut bare) = <(Seconds, Seconds)>::default();
    for round in 0..rounds {
        let name = format!("round-{round}");
        // Whatever drifts on the machine falls on both alike.
        let (pod, hand) = if round % 2 == 0 {
            let pod = in_pod(&ground, &name, STEPS).await?;
            (pod, by_hand(&first.python, STEPS).await?)
        } else {
            let hand = by_hand(&first.python, STEPS).await?;
            (in_pod(&ground, &name, STEPS).await?, hand)
        };
        alike(&pod, &hand)?;
        pods.add(&pod);
        bare.add(&hand);
    }
    let ratio = |of: fn(&Seconds) -> &Sample| round(of(&pods).median() / of(&bare).median());
    Ok(json!({
        "cpu_over_bare": ratio(|kind| &kind.cpu),
        "wall_over_bare": ratio(|kind| &kind.wall),
        "import_cpu_over_bare": ratio(|kind| &kind.import_cpu),
        "pod": pods.shown(),
        "bare": bare.shown(),
    }))
}

async fn in_pod(ground: &Ground, name: &str, steps: &str) -> Result<Said> {
    let container = json!({
        "name": "main", "image": IMAGE, "env": environment(),
        "command": ["python", "-c", PROGRAM, steps],
    });
    ground.pod(name, &container, &json!({"nodeName": NODE})).await?;
    let ended = ground.phases.until(&[name.to_owned()], "Succeeded").await;
    let log = ground.log(name).await.unwrap_or_default();
    ended.with_context(|| format!("its log: {log}"))?;
    said(&log)
}
