//! How far every replica of a run is: its state, its ends, its last words, what it uses.
//!
//! Told of pods, lines and readings; answers with what is worth saying. Pure: the time is passed in.

mod pod;
mod replica;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::kinds::{End, JobKind};
pub(crate) use replica::{Ended, Replica, State, TAIL};

/// Reasons of containers that wait for what only another manifest can bring: in the yard of a run nobody
/// adds what is missing.
const FINAL: [&str; 3] = ["CreateContainerConfigError", "InvalidImageName", "ErrImageNeverPull"];

/// Something worth saying that no replica has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Which job it is about, by number; none when it is about the run.
    pub(crate) job: Option<usize>,
    /// Which replica.
    pub(crate) replica: Option<String>,
    pub(crate) weight: Weight,
    /// One word, for programs.
    pub(crate) reason: String,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Normal,
    Warning,
}

impl Notice {
    pub(crate) fn new(weight: Weight, reason: &str, text: impl Into<String>) -> Self {
        Self { job: None, replica: None, weight, reason: reason.to_owned(), text: text.into() }
    }

    pub(crate) fn about(mut self, job: usize, replica: Option<&str>) -> Self {
        self.job = Some(job);
        self.replica = replica.map(str::to_owned);
        self
    }
}

/// A job on the board.
#[derive(Debug)]
pub(crate) struct OnBoard {
    pub(crate) row: &'static JobKind,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) end: Option<End>,
    /// The replica that failed too often for the run to go on.
    pub(crate) gave_up_on: Option<String>,
    /// When its end was seen, since the run began.
    pub(crate) ended: Option<Duration>,
    pub(crate) replicas: BTreeMap<String, Replica>,
}

/// All jobs of a run.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) jobs: Vec<OnBoard>,
}

impl Board {
    pub(crate) fn add(
        &mut self,
        row: &'static JobKind,
        (namespace, name, uid): (&str, &str, &str),
        replicas: impl IntoIterator<Item = String>,
    ) {
        let replicas = replicas.into_iter().map(|name| (name, Replica::default())).collect();
        self.jobs.push(OnBoard {
            row,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            uid: uid.to_owned(),
            end: None,
            gave_up_on: None,
            ended: None,
            replicas,
        });
    }

    /// How a replica is called: with its job's name where there are several.
    pub(crate) fn label(&self, job: usize, replica: &str) -> String {
        match self.jobs.get(job) {
            Some(on_board) if self.jobs.len() > 1 => format!("{}/{replica}", on_board.name),
            _ => replica.to_owned(),
        }
    }

    /// Every label, in order.
    pub(crate) fn labels(&self) -> Vec<String> {
        let all = self.jobs.iter().enumerate();
        all.flat_map(|(at, job)| job.replicas.keys().map(move |name| self.label(at, name)))
            .collect()
    }

    /// A pod as it is now.
    pub(crate) fn see_pod(&mut self, job: usize, pod: &Value, is_gone: bool) -> Vec<Notice> {
        let Some(on_board) = self.jobs.get_mut(job) else { return Vec::new() };
        let name = (on_board.row.replica)(pod);
        let replica = on_board.replicas.entry(name.clone()).or_default();
        let notices = replica.see(pod, is_gone);
        notices.into_iter().map(|notice| notice.about(job, Some(&name))).collect()
    }

    /// A replica is in another state than before.
    pub(crate) fn see_change(&mut self, job: usize, replica: &str, now: Duration) {
        let on_board = self.jobs.get_mut(job);
        if let Some(replica) = on_board.and_then(|job| job.replicas.get_mut(replica)) {
            replica.stir(now);
        }
    }

    /// A job as it is now. True when it has just ended.
    pub(crate) fn see_job(&mut self, job: usize, object: &Value, now: Duration) -> bool {
        let Some(on_board) = self.jobs.get_mut(job) else { return false };
        if on_board.end.is_some() {
            return false;
        }
        on_board.end = (on_board.row.end)(object);
        if on_board.end.is_some() {
            on_board.ended = Some(now);
        }
        on_board.end.is_some()
    }

    pub(crate) fn see_line(
        &mut self,
        job: usize,
        replica: &str,
        line: &str,
        noise: bool,
        now: Duration,
    ) {
        if let Some(on_board) = self.jobs.get_mut(job) {
            on_board.replicas.entry(replica.to_owned()).or_default().hear(line, noise, now);
        }
    }

    /// What a pod uses, by its identity.
    pub(crate) fn see_use(&mut self, uid: &str, cpu_usec: u64, memory: u64, now: Duration) {
        let mut all = self.jobs.iter_mut().flat_map(|job| job.replicas.values_mut());
        if let Some(replica) = all.find(|replica| replica.uid == uid) {
            replica.measure(cpu_usec, memory, now);
        }
    }

    /// Replicas that wait for what will never come.
    pub(crate) fn hopeless(&self) -> Vec<String> {
        let all = self.jobs.iter().enumerate().flat_map(|(at, job)| {
            let training = job.replicas.iter().filter(|(name, _)| !(job.row.stays)(name));
            training.map(move |(name, replica)| (at, name, replica))
        });
        all.filter(|(_, _, replica)| {
            matches!(replica.state, State::Waiting(_)) && FINAL.contains(&replica.waits_by.as_str())
        })
        .map(|(at, name, _)| self.label(at, name))
        .collect()
    }

    /// Whether replicas wait for a node and none runs or starts whose end would make room: the nodes of a
    /// run stay as they are.
    pub(crate) fn is_at_a_standstill(&self) -> bool {
        let training = || {
            let open = self.jobs.iter().filter(|job| job.end.is_none());
            open.flat_map(|job| {
                let all = job.replicas.iter().filter(|(name, _)| !(job.row.stays)(name));
                all.map(|(_, replica)| replica).filter(|replica| replica.has_pod)
            })
        };
        let waits = |replica: &Replica| replica.is_unplaced && !replica.state.is_over();
        training().any(waits) && training().all(|replica| waits(replica) || replica.state.is_over())
    }

    /// The first replica that has failed more often, one time soon after the other, than the bound of its
    /// job allows: job, name, failures. A job without a bound has none.
    pub(crate) fn looping(&self, bounds: &[Option<u64>]) -> Option<(usize, String, u64)> {
        let jobs = self.jobs.iter().enumerate().filter(|(_, job)| job.end.is_none());
        jobs.zip(bounds).find_map(|((at, job), bound)| {
            let bound = (*bound)?;
            let mut all = job.replicas.iter();
            let (name, replica) = all.find(|(_, replica)| replica.failures > bound)?;
            Some((at, name.clone(), replica.failures))
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.jobs.iter().all(|job| job.end.is_some())
    }

    /// Replicas whose pods still do something and will not stay by design.
    pub(crate) fn alive(&self) -> usize {
        let all = self.jobs.iter().flat_map(|job| {
            job.replicas.iter().filter(|(name, _)| !(job.row.stays)(name)).map(|(_, one)| one)
        });
        all.filter(|replica| replica.has_pod && !replica.state.is_over()).count()
    }

    /// Pods that are still there, whatever they do.
    pub(crate) fn pods(&self) -> usize {
        let all = self.jobs.iter().flat_map(|job| job.replicas.values());
        all.filter(|replica| replica.has_pod).count()
    }

    /// Replicas that are reached from this machine: job, name, address.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let all = self.jobs.iter().enumerate().flat_map(|(at, job)| {
            job.replicas.iter().map(move |(name, replica)| (at, name.as_str(), replica))
        });
        all.filter(|(_, _, replica)| replica.has_pod && !replica.address.is_empty())
            .map(|(at, name, replica)| (at, name, replica.address.as_str()))
    }

    /// Restarts of all replicas of a job.
    pub(crate) fn restarts(&self, job: usize) -> u64 {
        let on_board = self.jobs.get(job);
        on_board.map_or(0, |job| job.replicas.values().map(|replica| replica.restarts).sum())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;
    use trainyard_api::names;

    use super::*;

    pub(crate) fn board(replicas: &[&str]) -> Board {
        let object = json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob"});
        let row = super::super::kinds::of(&object).unwrap();
        let mut board = Board::default();
        board.add(row, ("default", "mnist", "u"), replicas.iter().map(|name| (*name).to_owned()));
        board
    }

    pub(crate) fn pod(replica: &str, uid: &str, phase: &str, status: &Value) -> Value {
        let (kind, index) = replica.rsplit_once('-').unwrap();
        json!({
            "metadata": {"name": format!("mnist-{replica}"), "uid": uid,
                "labels": {names::LABEL_TYPE: kind, names::LABEL_INDEX: index}},
            "spec": {"containers": [{"name": "tensorflow"}]},
            "status": {"phase": phase, "containerStatuses": [status]},
        })
    }

    pub(crate) fn ended(code: i64, at: &str, restarts: u64) -> Value {
        json!({"name": "tensorflow", "restartCount": restarts, "state": {"terminated":
            {"exitCode": code, "reason": "Error", "finishedAt": at}}})
    }

    fn running(restarts: u64, last: &Value) -> Value {
        json!({"name": "tensorflow", "restartCount": restarts, "state": {"running": {}},
            "lastState": {"terminated": last}})
    }

    #[test]
    fn restarts_are_told_with_their_cause() {
        let mut board = board(&["worker-0"]);
        let first = running(0, &Value::Null);
        assert_eq!(board.see_pod(0, &pod("worker-0", "a", "Running", &first), false), []);
        let again = running(1, &json!({"exitCode": 137, "reason": "OOMKilled"}));
        let told = board.see_pod(0, &pod("worker-0", "a", "Running", &again), false);
        assert_eq!(told[0].reason, "Restarted");
        assert_eq!(
            told[0].text,
            "restarts: exit code 137 (SIGKILL, OOMKilled), it used more memory than its limit and was killed"
        );
        assert_eq!(board.see_pod(0, &pod("worker-0", "a", "Running", &again), false), []);
        let failed = ended(1, "2026-01-01T00:00:00Z", 1);
        board.see_pod(0, &pod("worker-0", "a", "Failed", &failed), false);
        let told = board.see_pod(0, &pod("worker-0", "b", "Pending", &Value::Null), false);
        assert!(told[0].text.starts_with("restarts: exit code 1"), "{told:?}");
        assert_eq!(board.restarts(0), 2);
    }

    #[test]
    fn waiting_is_told_once_and_only_where_it_means_something() {
        let mut board = board(&["worker-0"]);
        let waits = |reason: &str, message: &str| {
            json!({"name": "tensorflow", "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": message}}})
        };
        let creating = pod("worker-0", "a", "Pending", &waits("ContainerCreating", ""));
        assert_eq!(board.see_pod(0, &creating, false), []);
        let image = pod("worker-0", "a", "Pending", &waits("ErrImagePull", "no image my/x here"));
        let told = board.see_pod(0, &image, false);
        assert_eq!(told[0].text, "waits: no image my/x here");
        assert_eq!(board.see_pod(0, &image, false), []);
        let words = "Back-off: no image my/x here";
        let again = pod("worker-0", "a", "Pending", &waits("ImagePullBackOff", words));
        assert_eq!(board.see_pod(0, &again, false), [], "the same in other words");
        assert_eq!(board.hopeless(), [""; 0]);
        let wrong = waits("CreateContainerConfigError", "configmap \"x\" not found");
        board.see_pod(0, &pod("worker-0", "a", "Pending", &wrong), false);
        assert_eq!(board.hopeless(), ["worker-0"]);
        board.see_pod(0, &pod("tensorboard-0", "t", "Pending", &wrong), false);
        assert_eq!(board.hopeless(), ["worker-0"], "nobody waits for a TensorBoard");
    }

    #[test]
    fn who_waits_for_a_node_while_nobody_runs_waits_for_ever() {
        let mut board = board(&["worker-0", "worker-1"]);
        let unplaced = |name: &str| {
            let mut pod = pod(name, name, "Pending", &json!({"name": "tensorflow"}));
            pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "no node matches the selector"}]);
            pod
        };
        assert!(!board.is_at_a_standstill());
        board.see_pod(0, &unplaced("worker-0"), false);
        assert!(board.is_at_a_standstill());
        let runs = pod("worker-1", "b", "Running", &running(0, &Value::Null));
        board.see_pod(0, &runs, false);
        assert!(!board.is_at_a_standstill(), "it makes room when it ends");
        let over = pod("worker-1", "b", "Succeeded", &ended(0, "2026-01-01T00:00:00Z", 0));
        board.see_pod(0, &over, false);
        assert!(board.is_at_a_standstill());
    }

    #[test]
    fn a_crash_loop_is_told_in_one_line_for_each_step_and_has_a_bound() {
        let mut board = board(&["worker-0"]);
        let crashing = |restarts: u64, minute: u32| {
            json!({"name": "tensorflow", "restartCount": restarts,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message":
                    "back-off 20s restarting failed container=tensorflow pod=mnist-worker-0_default(uid)"}},
                "lastState": {"terminated": {"exitCode": 3, "reason": "Error",
                    "finishedAt": format!("2026-01-01T00:{minute:02}:00Z")}}})
        };
        let mut see = |status: &Value| {
            let told = board.see_pod(0, &pod("worker-0", "a", "Running", status), false);
            told.into_iter().map(|notice| notice.text).collect::<Vec<_>>()
        };
        let said = "failed: exit code 3, the program ended with an error; starts again in 20s";
        assert_eq!(see(&crashing(1, 1)), [said]);
        assert_eq!(see(&crashing(1, 1)), [""; 0], "once");
        let again = running(
            2,
            &json!({"exitCode": 3, "reason": "Error",
            "finishedAt": "2026-01-01T00:01:00Z"}),
        );
        assert_eq!(see(&again), [""; 0], "its restart was announced");
        assert_eq!(see(&crashing(2, 2)), [said]);
        assert_eq!(board.looping(&[Some(2)]), None);
        assert_eq!(board.looping(&[Some(1)]), Some((0, "worker-0".to_owned(), 2)));
        assert_eq!(board.looping(&[None]), None);
        // It ran well for a while: that is no loop.
        board.see_pod(0, &pod("worker-0", "a", "Running", &crashing(3, 40)), false);
        assert_eq!(board.looping(&[Some(1)]), None);
        assert_eq!(board.restarts(0), 3);
    }

    #[test]
    fn a_program_that_cannot_be_started_says_why() {
        let mut board = board(&["worker-0"]);
        let mut status = ended(127, "2026-01-01T00:00:00Z", 0);
        status["state"]["terminated"]["reason"] = json!("StartError");
        status["state"]["terminated"]["message"] = json!("exec: \"x\": not found in $PATH (/bin)");
        board.see_pod(0, &pod("worker-0", "a", "Failed", &status), false);
        let words = board.jobs[0].replicas["worker-0"].ends[0].words();
        let said = "exit code 127 (StartError), its command was not found: exec: \"x\": not found in \
            $PATH (/bin)";
        assert_eq!(words, said);
    }

    #[test]
    fn a_pod_that_is_told_to_end_has_not_failed() {
        let mut board = board(&["ps-0"]);
        let mut stops = pod("ps-0", "a", "Running", &running(0, &Value::Null));
        stops["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        board.see_pod(0, &stops, false);
        assert_eq!(board.jobs[0].replicas["ps-0"].state.word(), "stopping");
        assert_eq!(board.alive(), 1, "it has not ended");
        let mut leaving = pod("ps-0", "a", "Failed", &ended(143, "2026-01-01T00:00:00Z", 0));
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        board.see_pod(0, &leaving, false);
        assert_eq!(board.alive(), 0);
        board.see_pod(0, &leaving, true);
        let replica = &board.jobs[0].replicas["ps-0"];
        assert_eq!(replica.state, State::Stopped);
        assert!(replica.ends[0].stopped);
        assert_eq!(board.pods(), 0);
    }

    #[test]
    fn an_address_is_told_once() {
        let mut board = board(&["ps-0"]);
        let mut pod = pod("tensorboard-0", "t", "Running", &running(0, &Value::Null));
        pod["metadata"]["annotations"] = json!({"trainyard.dev/address": "http://127.0.0.1:6006"});
        let told = board.see_pod(0, &pod, false);
        assert_eq!(told[0].text, "is at http://127.0.0.1:6006");
        assert_eq!(board.see_pod(0, &pod, false), []);
        assert_eq!(board.alive(), 0, "a TensorBoard stays, and nobody waits for it");
    }

    #[test]
    fn the_peak_of_memory_is_kept() {
        let mut board = board(&["ps-0"]);
        board.see_pod(0, &pod("ps-0", "a", "Running", &running(0, &Value::Null)), false);
        for (second, memory) in [(1, 10), (2, 30), (3, 20)] {
            board.see_use("a", second * 500_000, memory, Duration::from_secs(second));
        }
        let replica = &board.jobs[0].replicas["ps-0"];
        assert_eq!((replica.memory, replica.peak, replica.cpu_millis), (20, 30, 500));
    }
}
