//! All there is, merged in the order of time.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use trainyard_node::KeptRun;

use super::Logs;
use super::find::Found;
use super::pods::{self, Run};
use super::source::{Line, Source};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;

/// How many logs are read side by side; the more there are, the more connections are open.
const MOST: usize = 64;

/// A log and what stands before its lines.
struct Part {
    label: String,
    source: Source,
    next: Option<Line>,
    /// When its last line was printed: lines without a time follow the one before.
    time: Option<Timestamp>,
}

impl Part {
    async fn advance(&mut self) -> Result<(), Failure> {
        self.next = self.source.next().await?;
        if let Some(line) = &self.next {
            self.time = line.time.or(self.time);
        }
        Ok(())
    }
}

/// Prints the logs of what was found.
pub(super) async fn run(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    kept: Option<&Path>,
    mut painter: Painter,
) -> Result<(), Failure> {
    let pods = pods::list(cluster, found).await?;
    let mut parts = Vec::new();
    let on_disk = match kept.filter(|_| logs.all || logs.previous || pods.is_empty()) {
        Some(state) => kept_runs(logs, state, found)?,
        None => Vec::new(),
    };
    if on_disk.is_empty() {
        let runs: Vec<Run> = pods.iter().flat_map(|pod| logs.runs(pod)).collect();
        for run in &runs {
            parts.extend(of_server(logs, cluster, found, run).await?);
        }
    }
    for (label, run) in on_disk {
        let lines = run.lines().map_err(|error| Failure::other("reading a kept log", &error))?;
        let source = Source::Kept(lines, logs.begin()).tailed(logs.tail_lines()).await?;
        parts.push(Part { label, source, next: None, time: run.begins });
    }
    if parts.is_empty() {
        return nothing(logs, found, &pods);
    }
    painter.expect(parts.iter().map(|part| part.label.as_str()));
    if parts.len() > MOST {
        for part in parts {
            merge(vec![part], &painter).await?;
        }
        return Ok(());
    }
    merge(parts, &painter).await
}

/// Why there is nothing to show.
fn nothing(logs: &Logs, found: &Found, pods: &[serde_json::Value]) -> Result<(), Failure> {
    if let Some(container) = &logs.container {
        return Err(Failure::plain(format!(
            "no pod of {:?} has a container {container:?} that has started",
            found.name
        )));
    }
    if logs.previous {
        return Err(Failure::plain(format!("{:?} has not been restarted", found.name)));
    }
    let waiting: Vec<String> = pods
        .iter()
        .map(|pod| format!("{}: {}", super::find::replica(pod), pods::waits_for(pod)))
        .collect();
    let why = if waiting.is_empty() { "it has no pods".to_owned() } else { waiting.join("; ") };
    output::say(&format!("nothing was printed yet by {}: {why}\n", found.name));
    Ok(())
}

/// The runs that the folder holds: all of them, or the one before the present one of each replica.
/// Where a replica has several, they are numbered.
fn kept_runs(logs: &Logs, state: &Path, found: &Found) -> Result<Vec<(String, KeptRun)>, Failure> {
    let runs = trainyard_node::kept_runs(state, &found.namespace, &found.name)
        .map_err(|error| Failure::other("looking for kept logs", &error))?;
    let mut by_replica: BTreeMap<(String, String), Vec<KeptRun>> = BTreeMap::new();
    for run in runs {
        let replica = if run.replica == "pod" { run.pod.clone() } else { run.replica.clone() };
        let container = logs.container.as_ref().is_none_or(|name| *name == run.container);
        if logs.wants(&replica) && container {
            by_replica.entry((replica, run.container.clone())).or_default().push(run);
        }
    }
    let mut chosen = Vec::new();
    for ((replica, _), mut runs) in by_replica {
        if logs.previous {
            let before = runs.len().checked_sub(2).map(|at| runs.swap_remove(at));
            chosen.extend(before.map(|run| (replica, run)));
            continue;
        }
        let several = runs.len() > 1;
        for (number, run) in runs.into_iter().enumerate() {
            let label = if several { format!("{replica}#{}", number + 1) } else { replica.clone() };
            chosen.push((label, run));
        }
    }
    Ok(chosen)
}

/// The logs of a container that the server gives: the present one, the one before it, or both.
async fn of_server(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    run: &Run,
) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    let earlier = (logs.previous || logs.all) && run.restart > 0;
    let wanted = [(earlier, true), (!logs.previous, false)];
    for (_, previous) in wanted.into_iter().filter(|(wanted, _)| *wanted) {
        let mut query = logs.query(&run.container);
        if previous {
            query = query.with("previous", "true");
        }
        let lines = match cluster.log(&found.pods, &found.namespace, &run.pod, &query).await {
            Ok(lines) => lines,
            // It has gone meanwhile, or starts again this moment.
            Err(error) if [400, 404].contains(&error.code()) => continue,
            Err(error) => return Err(error.into()),
        };
        let number = if previous { run.restart } else { run.restart + 1 };
        let label =
            if logs.all && earlier { format!("{}#{number}", run.label) } else { run.label.clone() };
        parts.push(Part {
            label,
            source: Source::Stamped(Box::new(lines)),
            next: None,
            time: None,
        });
    }
    Ok(parts)
}

/// Prints the lines of all parts, the earliest first.
async fn merge(mut parts: Vec<Part>, painter: &Painter) -> Result<(), Failure> {
    for part in &mut parts {
        part.advance().await?;
    }
    let mut out = Vec::new();
    loop {
        parts.retain(|part| part.next.is_some());
        let first = (0..parts.len()).min_by_key(|number| parts[*number].time);
        let Some(part) = first.and_then(|number| parts.get_mut(number)) else { break };
        if let Some(line) = part.next.take() {
            out.extend(painter.line(&part.label, part.time, &line.text));
        }
        if out.len() > 64 << 10 {
            output::print_bytes(&out)?;
            out.clear();
        }
        part.advance().await?;
    }
    output::print_bytes(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(label: &str, lines: &[(&str, &str)]) -> Part {
        let lines: Vec<Line> = lines
            .iter()
            .map(|(time, text)| Line { time: time.parse().ok(), text: text.as_bytes().to_vec() })
            .collect();
        Part {
            label: label.into(),
            source: Source::Ready(lines.into_iter()),
            next: None,
            time: None,
        }
    }

    #[tokio::test]
    async fn the_earliest_line_is_next() {
        let mut parts = [
            part("a", &[("2026-01-01T00:00:01Z", "1"), ("", "1b"), ("2026-01-01T00:00:05Z", "5")]),
            part("b", &[("2026-01-01T00:00:03Z", "3")]),
        ];
        for part in &mut parts {
            part.advance().await.unwrap();
        }
        assert!(parts[0].time < parts[1].time);
        parts[0].advance().await.unwrap();
        // No time of its own: it follows the line before.
        assert_eq!(parts[0].next.as_ref().unwrap().text, b"1b");
        assert!(parts[0].time < parts[1].time);
        parts[0].advance().await.unwrap();
        assert!(parts[0].time > parts[1].time);
    }
}
