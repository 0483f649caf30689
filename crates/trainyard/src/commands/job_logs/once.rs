//! All there is, merged in the order of time.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use trainyard_node::KeptRun;

use super::Logs;
use super::find::Found;
use super::gone;
use super::missing::{Missing, refused};
use super::pods::{self, Run};
use super::source::{Line, Source};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;

/// How many logs are read side by side; the more there are, the more connections are open.
const MOST: usize = 64;

/// Why there is no run before the present one, where there was one.
const REPLACED: &str = "its pod was replaced: the one before is gone and its log with it; \
    `trainyard describe` and `trainyard events` show how it ended";

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

    /// Goes on to the next line. A log that breaks off ends there, and the others go on.
    async fn advance_or_note(&mut self, missing: &mut Missing) {
        if let Err(failure) = self.advance().await {
            missing.add(&self.label, &format!("its log broke off: {}", failure.words()));
        }
    }
}

/// Prints the logs of what was found, and says which of them cannot be had.
pub(super) async fn run(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    kept: Option<&Path>,
    mut painter: Painter,
) -> Result<(), Failure> {
    let pods = pods::list(cluster, found).await?;
    let mut missing = Missing::default();
    let mut parts = Vec::new();
    let on_disk = match kept.filter(|_| logs.all || logs.previous || pods.is_empty()) {
        Some(state) => kept_runs(logs, state, found)?,
        None => Vec::new(),
    };
    if on_disk.is_empty() {
        for run in pods.iter().flat_map(|pod| logs.runs(pod)) {
            parts.extend(of_server(logs, cluster, found, &run, &mut missing).await?);
        }
        if !logs.previous {
            for (label, why) in pods.iter().flat_map(|pod| logs.unstarted(pod)) {
                missing.add(&label, &why);
            }
        }
        let of_gone = if logs.previous { None } else { found.job.as_ref() };
        for (replica, why) in of_gone.map_or_else(Vec::new, |(_, job)| gone::replicas(job, &pods)) {
            if !logs.wants(&replica) {
                continue;
            }
            match last_kept(logs, kept, found, &replica)? {
                Some(run) => parts.push(of_file(logs, replica, &run).await?),
                None => {
                    missing.add(&replica, &why);
                }
            }
        }
    }
    for (label, run) in on_disk {
        parts.push(of_file(logs, label, &run).await?);
    }
    if parts.is_empty() {
        return nothing(logs, found, &pods, missing);
    }
    painter.expect(parts.iter().map(|part| part.label.as_str()));
    if !missing.is_empty() {
        // What is there must not look like all there is.
        painter.expect_several();
    }
    let at_once = if parts.len() > MOST { 1 } else { MOST };
    while !parts.is_empty() {
        let rest = parts.split_off(at_once.min(parts.len()));
        merge(std::mem::replace(&mut parts, rest), &painter, &mut missing).await?;
    }
    missing.tell()
}

/// Why there is nothing to show.
fn nothing(
    logs: &Logs,
    found: &Found,
    pods: &[serde_json::Value],
    missing: Missing,
) -> Result<(), Failure> {
    if let Some(container) = &logs.container
        && !pods.is_empty()
        && !pods.iter().any(|pod| pods::has_container(pod, container))
    {
        return Err(Failure::plain(format!(
            "no pod of {:?} has a container {container:?}",
            found.name
        )));
    }
    if !missing.is_empty() {
        // Where no pod is left, the status is all there is.
        if let Some((_, job)) = found.job.as_ref().filter(|_| pods.is_empty()) {
            output::say(&gone::what_is_known(&found.name, job, Timestamp::now()));
        }
        return missing.tell();
    }
    if logs.previous {
        let why = format!("no replica of {:?} was restarted within its present pod", found.name);
        return Err(Failure::plain(why));
    }
    let why = if pods.is_empty() { "it has no pods" } else { "no replica is meant" };
    output::say(&format!("nothing was printed yet by {}: {why}\n", found.name));
    Ok(())
}

/// The last run of a replica that the folder holds.
fn last_kept(
    logs: &Logs,
    kept: Option<&Path>,
    found: &Found,
    replica: &str,
) -> Result<Option<KeptRun>, Failure> {
    let Some(state) = kept else { return Ok(None) };
    let runs = trainyard_node::kept_runs(state, &found.namespace, &found.name)
        .map_err(|error| Failure::other("looking for kept logs", &error))?;
    let wanted = logs.container.as_deref().unwrap_or(trainyard_api::names::CONTAINER);
    let own = |run: &&KeptRun| run.replica == replica;
    let of_container = runs.iter().filter(own).rfind(|run| run.container == wanted);
    Ok(of_container.or_else(|| runs.iter().rfind(own)).cloned())
}

/// A log that was kept in a file.
async fn of_file(logs: &Logs, label: String, run: &KeptRun) -> Result<Part, Failure> {
    let lines = run.lines().map_err(|error| Failure::other("reading a kept log", &error))?;
    let source = Source::Kept(lines, logs.begin()).tailed(logs.tail_lines()).await?;
    Ok(Part { label, source, next: None, time: run.begins })
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
    missing: &mut Missing,
) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    let earlier = (logs.previous || logs.all) && run.restart > 0;
    if logs.previous && !earlier && is_replaced(found, &run.label) {
        missing.add(&run.label, REPLACED);
    }
    let wanted = [(earlier, true), (!logs.previous, false)];
    for (_, previous) in wanted.into_iter().filter(|(wanted, _)| *wanted) {
        let mut query = logs.query(&run.container);
        if previous {
            query = query.with("previous", "true");
        }
        let number = if previous { run.restart } else { run.restart + 1 };
        let label =
            if logs.all && earlier { format!("{}#{number}", run.label) } else { run.label.clone() };
        let lines = match cluster.log(&found.pods, &found.namespace, &run.pod, &query).await {
            Ok(lines) => lines,
            Err(error) => match refused(&error, &run.node) {
                Some(why) => {
                    missing.add(&label, &why);
                    continue;
                }
                None => return Err(error.into()),
            },
        };
        parts.push(Part {
            label,
            source: Source::Stamped(Box::new(lines)),
            next: None,
            time: None,
        });
    }
    Ok(parts)
}

/// Whether the job's status tells of a pod before the present one. `label` may name a container too.
fn is_replaced(found: &Found, label: &str) -> bool {
    let replica = label.split('/').next().unwrap_or(label);
    found.job.as_ref().is_some_and(|(_, job)| gone::was_replaced(job, replica))
}

/// Prints the lines of all parts, the earliest first.
async fn merge(
    mut parts: Vec<Part>,
    painter: &Painter,
    missing: &mut Missing,
) -> Result<(), Failure> {
    for part in &mut parts {
        part.advance_or_note(missing).await;
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
        part.advance_or_note(missing).await;
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
