//! All there is, merged in the order of time.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use trainyard_node::KeptRun;

use super::Logs;
use super::absent::{nothing, replaced};
use super::find::Found;
use super::gone;
use super::kept;
use super::missing::{Missing, refused};
use super::pods::{self, Run};
use super::source::{Line, Source};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;

/// How many logs are read side by side; each has a connection of its own. Of more than that one is shown
/// after the other.
const MOST: usize = 200;
/// How many of them are asked for at once.
const AT_ONCE: usize = 16;
/// How long a server may take to begin its answer: the node behind it may be away.
const ANSWER: Duration = Duration::from_mins(1);

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

/// A log that is to be shown.
struct Wanted {
    label: String,
    from: Origin,
}

/// Where it is.
enum Origin {
    /// A server has it; the run before the present one, or that one.
    Server {
        run: Run,
        previous: bool,
    },
    File(KeptRun),
}

/// Prints the logs of what was found, and says which of them cannot be had. `how` is said of a job that
/// has finished, where its state is not told anyway.
pub(super) async fn run(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    folder: Option<&Path>,
    mut painter: Painter,
    how: Option<&str>,
) -> Result<(), Failure> {
    let pods = pods::list(cluster, found).await?;
    let mut missing = Missing::default();
    let wanted = wanted(logs, found, folder, &pods, &mut missing)?;
    painter.expect(wanted.iter().map(|one| one.label.as_str()));
    if !missing.is_empty() {
        // What is there must not look like all there is.
        painter.expect_several();
    }
    let shown: BTreeSet<String> = wanted.iter().map(|one| one.replica().to_owned()).collect();
    let is_any = print(logs, cluster, found, wanted, &painter, &mut missing).await?;
    if logs.previous {
        let is_yard = folder.is_some();
        replaced(logs, cluster, found, is_yard, &pods, &shown, &mut missing).await;
    }
    if !is_any {
        return nothing(logs, found, &pods, missing, how);
    }
    if let Some(how) = how {
        output::say(&format!("{}: {how}\n", found.name));
    }
    missing.tell()
}

impl Wanted {
    fn replica(&self) -> &str {
        match &self.from {
            Origin::Server { run, .. } => &run.replica,
            Origin::File(run) => &run.replica,
        }
    }
}

/// The logs that are to be shown. Those of which it is known that they cannot be are noted.
fn wanted(
    logs: &Logs,
    found: &Found,
    folder: Option<&Path>,
    pods: &[Value],
    missing: &mut Missing,
) -> Result<Vec<Wanted>, Failure> {
    let on_disk = match folder.filter(|_| logs.all || logs.previous || pods.is_empty()) {
        Some(state) => kept::runs(logs, state, found)?,
        None => Vec::new(),
    };
    if !on_disk.is_empty() {
        let file = |(label, run)| Wanted { label, from: Origin::File(run) };
        return Ok(on_disk.into_iter().map(file).collect());
    }
    let runs = pods.iter().flat_map(|pod| logs.runs(pod));
    let mut wanted: Vec<Wanted> = runs.flat_map(|run| of_run(logs, &run)).collect();
    if !logs.previous {
        for (label, why) in pods.iter().flat_map(|pod| logs.unstarted(pod)) {
            missing.add(&label, &why);
        }
    }
    let job = found.job.as_ref().map(|(_, job)| job);
    let gone = job.map_or_else(Vec::new, |job| gone::replicas(job, pods, Timestamp::now()));
    for (replica, why) in gone.into_iter().filter(|(replica, _)| logs.wants(replica)) {
        let file = if logs.previous { None } else { kept::last(logs, folder, found, &replica)? };
        match file {
            Some(run) => wanted.push(Wanted { label: replica, from: Origin::File(run) }),
            None => {
                missing.add(&replica, &why);
            }
        }
    }
    Ok(wanted)
}

/// The logs of a container that a server gives: the present one, the one before it, or both.
fn of_run(logs: &Logs, run: &Run) -> Vec<Wanted> {
    let earlier = (logs.previous || logs.all) && run.restart > 0;
    let one = |previous: bool| {
        let number = if previous { run.restart } else { run.restart + 1 };
        let label =
            if logs.all && earlier { format!("{}#{number}", run.label) } else { run.label.clone() };
        Wanted { label, from: Origin::Server { run: run.clone(), previous } }
    };
    let mut all = Vec::new();
    all.extend(earlier.then(|| one(true)));
    all.extend((!logs.previous).then(|| one(false)));
    all
}

/// Opens logs, and prints them. True if there was any.
async fn print(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    wanted: Vec<Wanted>,
    painter: &Painter,
    missing: &mut Missing,
) -> Result<bool, Failure> {
    let mut rest = wanted;
    let at_once = if rest.len() > MOST { 1 } else { MOST };
    let mut is_any = false;
    while !rest.is_empty() {
        let later = rest.split_off(at_once.min(rest.len()));
        let group = std::mem::replace(&mut rest, later);
        let opening = group.into_iter().map(|one| open(logs, cluster, found, one));
        let opened: Vec<_> = futures::stream::iter(opening).buffered(AT_ONCE).collect().await;
        let mut parts = Vec::new();
        for one in opened {
            match one? {
                Ok(part) => parts.push(part),
                Err((label, why)) => {
                    missing.add(&label, &why);
                }
            }
        }
        is_any |= !parts.is_empty();
        merge(parts, painter, missing).await?;
    }
    Ok(is_any)
}

/// Opens a log. One that cannot be had says why.
async fn open(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    wanted: Wanted,
) -> Result<Result<Part, (String, String)>, Failure> {
    let Wanted { label, from } = wanted;
    let (run, previous) = match from {
        Origin::File(run) => return Ok(Ok(of_file(logs, label, &run).await?)),
        Origin::Server { run, previous } => (run, previous),
    };
    let mut query = logs.query(&run.container);
    if previous {
        query = query.with("previous", "true");
    }
    let asked = cluster.log(&found.pods, &found.namespace, &run.pod, &query);
    let why = match tokio::time::timeout(ANSWER, asked).await {
        Ok(Ok(lines)) => {
            let source = Source::Stamped(Box::new(lines));
            return Ok(Ok(Part { label, source, next: None, time: None }));
        }
        Ok(Err(error)) => match refused(&error, &run.place, Timestamp::now()) {
            Some(why) => why,
            None => return Err(error.into()),
        },
        Err(_) => {
            let node = run.place.words(Timestamp::now());
            format!("{node} has not answered within {} s", ANSWER.as_secs())
        }
    };
    Ok(Err((label, why)))
}

/// A log that was kept in a file.
async fn of_file(logs: &Logs, label: String, run: &KeptRun) -> Result<Part, Failure> {
    let lines = run.lines().map_err(|error| Failure::other("reading a kept log", &error))?;
    let source = Source::Kept(lines, logs.begin()).tailed(logs.tail_lines()).await?;
    Ok(Part { label, source, next: None, time: run.begins })
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
