//! One log, read to its end as it grows.
//!
//! One that breaks off, as when a node or the server starts anew or something in between has had enough of
//! silence, is taken up again where it broke off, for as long as its container runs.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

use super::{AGAIN, News};
use crate::cluster::{Cluster, Error, Query};
use crate::commands::job_logs::Logs;
use crate::commands::job_logs::find::Found;
use crate::commands::job_logs::missing::refused;
use crate::commands::job_logs::pods::{Run, place};
use crate::commands::job_logs::source::Source;
use crate::present::{items, text};

/// How long to wait at most before a log is asked for again.
const SLOWLY: Duration = Duration::from_secs(5);
/// How often a log is asked for in vain before that is said.
const ATTEMPTS: u32 = 3;
/// The same where it ends before its container is known to have ended: a kubelet takes its time to say so.
const ENDS: u32 = 6;
/// Why the rest of a run cannot be shown that was not read to its end.
const PAST: &str =
    "a run of it ended while its log could not be read, and its node keeps the last two only";
/// What has lasted so long was no failure.
const SOUND: Duration = Duration::from_secs(10);

/// How one attempt ended.
#[derive(Debug, PartialEq, Eq)]
enum Round {
    /// Nobody listens any more.
    Unheard,
    /// There is no more.
    Ended,
    /// It ended although its container runs, as far as is known.
    EndedEarly,
    /// It cannot be had now.
    Broken(String),
    /// It cannot be had, or not for long.
    Refused(String),
}

/// Where a run of a container stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is the present one.
    Now,
    /// It is the one before.
    Before,
    /// There have been others since.
    Past,
}

/// A log that is read.
struct Reader<'a> {
    logs: &'a Logs,
    cluster: &'a Cluster,
    found: &'a Found,
    run: &'a Run,
    sender: Sender<News>,
    /// The time of the last line that was read.
    last: Option<Timestamp>,
    /// How often it has broken off, one time soon after the other.
    failures: u32,
    is_again: bool,
}

/// Reads a log to its end.
pub(super) async fn follow(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    run: Run,
    sender: Sender<News>,
) {
    let label = run.label.clone();
    let mut reader = Reader {
        logs,
        cluster,
        found,
        run: &run,
        sender: sender.clone(),
        last: None,
        failures: 0,
        is_again: false,
    };
    loop {
        let (begin, last) = (Instant::now(), reader.last);
        let round = reader.round().await;
        reader.is_again = true;
        if reader.last > last || begin.elapsed() >= SOUND {
            reader.failures = 0;
        }
        reader.failures += 1;
        let failures = reader.failures;
        let told = match round {
            Round::Unheard => return,
            Round::Ended => break,
            Round::Refused(why) => {
                let _ = sender.send(News::Missing(label.clone(), why)).await;
                break;
            }
            Round::Broken(why) => (failures == ATTEMPTS).then_some(why),
            Round::EndedEarly => (failures == ENDS)
                .then(|| "its node gives no more of its log, although it runs".to_owned()),
        };
        if let Some(why) = told
            && sender.send(News::Away(label.clone(), why)).await.is_err()
        {
            return;
        }
        tokio::time::sleep(pause(failures)).await;
    }
    let _ = sender.send(News::End(label)).await;
}

/// How long to wait after so many failures in a row.
fn pause(failures: u32) -> Duration {
    AGAIN.saturating_mul(1 << failures.clamp(1, 8).saturating_sub(1)).min(SLOWLY)
}

impl Reader<'_> {
    /// Reads it once, from where it was left to where it ends.
    async fn round(&mut self) -> Round {
        let stage = if self.is_again { self.stage().await } else { Ok(Stage::Now) };
        let stage = match stage {
            Ok(Stage::Past) => return Round::Refused(PAST.to_owned()),
            Ok(stage) => stage,
            Err(round) => return round,
        };
        let (found, query) = (self.found, self.query(stage));
        let lines = self.cluster.log(&found.pods, &found.namespace, &self.run.pod, &query);
        let lines = match lines.await {
            Ok(lines) => lines,
            Err(error) => return self.refused(&error),
        };
        let mut source = Source::Stamped(Box::new(lines));
        let mut is_known = self.is_again;
        loop {
            match source.next().await {
                Ok(Some(line)) => {
                    // The server gives whole seconds: what was printed in the last one is known.
                    is_known = is_known && (line.time.is_none() || line.time <= self.last);
                    if is_known {
                        continue;
                    }
                    self.last = line.time.or(self.last);
                    let news = News::Line(self.run.label.clone(), line);
                    if self.sender.send(news).await.is_err() {
                        return Round::Unheard;
                    }
                }
                Ok(None) if self.goes_on().await => return Round::EndedEarly,
                Ok(None) => return Round::Ended,
                Err(failure) => {
                    return Round::Broken(format!("its log broke off: {}", failure.words()));
                }
            }
        }
    }

    fn query(&self, stage: Stage) -> Query {
        let query = match self.last {
            None => self.logs.query(&self.run.container),
            Some(last) => Query::default()
                .with("container", &self.run.container)
                .with("timestamps", "true")
                .with("sinceTime", last.to_string()),
        };
        query.with(if stage == Stage::Before { "previous" } else { "follow" }, "true")
    }

    /// Where its run stands now, or why there is no asking.
    async fn stage(&self) -> Result<Stage, Round> {
        let run = self.run;
        match self.cluster.get(&self.found.pods, &self.found.namespace, &run.pod, None).await {
            Ok(pod) => {
                let place = place(&pod);
                if place.lost.is_some() {
                    let node = place.words(Timestamp::now());
                    return Err(Round::Broken(format!("{node} cannot be asked")));
                }
                stage(&pod, run).ok_or_else(|| self.gone())
            }
            Err(error) if error.code() == 404 => Err(self.gone()),
            // Whoever may read logs only is given what is there.
            Err(error) if error.code() == 403 => Ok(Stage::Now),
            Err(error) => Err(Round::Broken(error.to_string())),
        }
    }

    /// All that was printed may have been read before the pod went.
    fn gone(&self) -> Round {
        if self.last.is_some() {
            Round::Ended
        } else {
            Round::Refused("its pod is gone".to_owned())
        }
    }

    fn refused(&self, error: &Error) -> Round {
        let words = error.to_string();
        match error.code() {
            404 if words.starts_with("pods ") => self.gone(),
            code => {
                // A kubelet that has just started does not know its pods yet.
                let is_for_good = match code {
                    401 | 403 => true,
                    404 => words.starts_with("nodes "),
                    400 => self.failures >= ATTEMPTS,
                    _ => false,
                };
                let why = refused(error, &self.run.place, Timestamp::now()).unwrap_or(words);
                if is_for_good { Round::Refused(why) } else { Round::Broken(why) }
            }
        }
    }

    /// Whether the very run goes on whose log has ended, as far as its node has told.
    async fn goes_on(&self) -> bool {
        let run = self.run;
        let pod = self.cluster.get(&self.found.pods, &self.found.namespace, &run.pod, None).await;
        pod.is_ok_and(|pod| runs(&pod, run))
    }
}

/// The status of a run's container in the very pod; none when the pod is another one.
fn status<'p>(pod: &'p Value, run: &Run) -> Option<&'p Value> {
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let mut statuses = statuses.into_iter().flat_map(|list| items(pod, &["status", list]));
    let is_same = text(pod, &["metadata", "uid"]) == run.uid;
    statuses.find(|status| is_same && status["name"] == run.container.as_str())
}

/// Where a run stands; none when its pod is gone.
fn stage(pod: &Value, run: &Run) -> Option<Stage> {
    let restarts = status(pod, run)?["restartCount"].as_u64().unwrap_or_default();
    Some(match restarts.saturating_sub(run.restart) {
        0 => Stage::Now,
        1 => Stage::Before,
        _ => Stage::Past,
    })
}

/// Whether a run goes on.
fn runs(pod: &Value, run: &Run) -> bool {
    stage(pod, run) == Some(Stage::Now)
        && status(pod, run).is_some_and(|status| status["state"]["running"].is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_that_cannot_be_had_is_asked_for_more_and_more_slowly() {
        let pauses: Vec<u128> = (1..=6).map(|failures| pause(failures).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(pause(u32::MAX), SLOWLY);
    }

    fn run() -> Run {
        Run {
            label: "worker-0".to_owned(),
            replica: "worker-0".to_owned(),
            pod: "mnist-worker-0".to_owned(),
            uid: "u".to_owned(),
            container: "tensorflow".to_owned(),
            restart: 1,
            place: crate::commands::job_logs::pods::Place::default(),
        }
    }

    fn pod(uid: &str, restarts: u64, state: &Value) -> Value {
        json!({"metadata": {"uid": uid}, "status": {"containerStatuses": [
            {"name": "tensorflow", "restartCount": restarts, "state": state}]}})
    }

    #[test]
    fn only_the_very_run_of_the_very_pod_goes_on() {
        let running = json!({"running": {}});
        assert!(runs(&pod("u", 1, &running), &run()));
        assert!(!runs(&pod("v", 1, &running), &run()));
        assert!(!runs(&pod("u", 2, &running), &run()));
        assert!(!runs(&pod("u", 1, &json!({"terminated": {}})), &run()));
    }

    #[test]
    fn a_run_is_the_present_one_or_the_one_before_or_past() {
        let at = |uid: &str, restarts: u64| stage(&pod(uid, restarts, &Value::Null), &run());
        assert_eq!(at("u", 1), Some(Stage::Now));
        assert_eq!(at("u", 2), Some(Stage::Before));
        assert_eq!(at("u", 3), Some(Stage::Past));
        assert_eq!(at("v", 1), None);
    }
}
