//! Real TensorFlow training in two replicas of one run, against the same two programs started by hand.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::errand::{Errand, job};
use crate::bench::sample::{Sample, round};
use crate::bench::trained::{
    IMAGE, PROGRAM, STEPS, Said, Seconds, alike, by_hand, environment, said,
};

/// From the first program's start to the last one's end, and what they say.
struct Pair {
    whole_s: f64,
    said: Vec<Said>,
}

#[derive(Default)]
struct Side {
    whole: Sample,
    seconds: Seconds,
}

impl Side {
    fn add(&mut self, pair: &Pair) {
        self.whole.add(pair.whole_s);
        pair.said.iter().for_each(|said| self.seconds.add(said));
    }

    fn shown(&self) -> Value {
        let mut shown = self.seconds.shown();
        shown["whole_s"] = json!(round(self.whole.median()));
        shown
    }
}

pub(super) async fn measure(errand: &Errand, rounds: usize) -> Result<Value> {
    // The first has the environment made, and brings its files into memory.
    let first = errand.write("first.yaml", &train("first", "1"))?;
    let python = by_run(errand, &first).await?.said.remove(0).python;
    hands(&python, "1").await?;
    let file = errand.write("train.yaml", &train("train", STEPS))?;
    let (mut runs, mut bare) = <(Side, Side)>::default();
    for round in 0..rounds {
        let (run, hand) = if round % 2 == 0 {
            let run = by_run(errand, &file).await?;
            (run, hands(&python, STEPS).await?)
        } else {
            let hand = hands(&python, STEPS).await?;
            (by_run(errand, &file).await?, hand)
        };
        for (one, other) in run.said.iter().zip(&hand.said) {
            alike(one, other)?;
        }
        runs.add(&run);
        bare.add(&hand);
    }
    let ratio = |of: fn(&Side) -> &Sample| round(of(&runs).median() / of(&bare).median());
    Ok(json!({
        "replicas": 2,
        "wall_over_bare": ratio(|side| &side.whole),
        "cpu_over_bare": ratio(|side| &side.seconds.cpu),
        "loop_wall_over_bare": ratio(|side| &side.seconds.wall),
        "run": runs.shown(),
        "bare": bare.shown(),
    }))
}

fn train(name: &str, steps: &str) -> Value {
    let container = json!({
        "name": "tensorflow", "image": IMAGE, "env": environment(),
        "command": ["python", "-c", PROGRAM, steps],
    });
    job(name, &[("Worker", 2)], &container)
}

async fn by_run(errand: &Errand, file: &Path) -> Result<Pair> {
    let done = errand.run(file, &["-o", "json"]).await?;
    let objects = done.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines = objects.filter_map(|object| object["line"].as_str().map(str::to_owned));
    let told = lines.filter(|line| line.starts_with('{'));
    let said = told.map(|line| said(&line)).collect::<Result<Vec<_>>>()?;
    ensure!(said.len() == 2, "{} of 2 replicas said what they took: {}", said.len(), done.stdout);
    Ok(Pair { whole_s: done.whole.as_secs_f64(), said })
}

async fn hands(python: &str, steps: &str) -> Result<Pair> {
    let begin = Instant::now();
    let (one, two) = tokio::try_join!(by_hand(python, steps), by_hand(python, steps))?;
    Ok(Pair { whole_s: begin.elapsed().as_secs_f64(), said: vec![one, two] })
}
