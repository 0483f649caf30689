//! What has been shown of a job that is followed, and what has not. Knows neither connections nor time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use trainyard_core::{PodState, PodView};

use super::News;
use crate::commands::job_logs::Logs;
use crate::commands::job_logs::find::{Found, replica};
use crate::commands::job_logs::gone;
use crate::commands::job_logs::missing::{self, Missing};
use crate::commands::job_logs::pods::Run;
use crate::commands::job_logs::wait::waits_for;
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;
use crate::present::text;

/// Replicas of which the same is said one by one.
const SAME: usize = 5;
const WITH_OTHERS: usize = SAME + 1;

/// Containers of a replica that have not started.
struct Unstarted {
    /// The pod that was seen so.
    uid: String,
    /// Each container with the reason.
    containers: Vec<(String, String)>,
}

/// What is shown and what is not, so far.
pub(super) struct Follower<'a> {
    logs: &'a Logs,
    name: &'a str,
    painter: Painter,
    job: Option<Value>,
    /// The pods that are there, by identity.
    pods: BTreeMap<String, Value>,
    /// Logs that are read or were read: pod, container, run.
    seen: BTreeSet<(String, String, u64)>,
    /// Replicas of which a log was read, or tried to be.
    shown: BTreeSet<String>,
    /// What was said once of replicas that wait.
    told: BTreeSet<(String, String)>,
    /// Of how many replicas the same was said.
    same: BTreeMap<String, usize>,
    /// Replicas of which a container has not started.
    unstarted: BTreeMap<String, Unstarted>,
    /// Logs that are asked for again and again.
    away: BTreeMap<String, String>,
    missing: Missing,
    /// Logs that are read now.
    open: usize,
    is_suspended: bool,
    /// The server does not answer at present, which has been said.
    is_silent: bool,
    finished: Option<String>,
}

/// Whether a pod prints nothing any more.
pub(super) fn is_over(pod: &Value) -> bool {
    state(pod).is_some_and(PodState::is_over)
}

fn state(pod: &Value) -> Option<PodState> {
    PodView::of_json(pod).map(|view| view.state())
}

impl<'a> Follower<'a> {
    /// `shown` are replicas of which something has been shown before.
    pub(super) fn new(
        logs: &'a Logs,
        found: &'a Found,
        painter: Painter,
        shown: Vec<String>,
    ) -> Self {
        Self {
            logs,
            name: &found.name,
            painter,
            job: found.job.as_ref().map(|(_, job)| job.clone()),
            pods: BTreeMap::new(),
            seen: BTreeSet::new(),
            shown: shown.into_iter().collect(),
            told: BTreeSet::new(),
            same: BTreeMap::new(),
            unstarted: BTreeMap::new(),
            away: BTreeMap::new(),
            missing: Missing::default(),
            open: 0,
            is_suspended: false,
            is_silent: false,
            finished: None,
        }
    }

    pub(super) const fn is_reading(&self) -> bool {
        self.open > 0
    }

    pub(super) const fn has_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Takes one piece of news in; answers with the logs that are to be read from now on.
    pub(super) fn hear(&mut self, news: News) -> Result<Vec<Run>, Failure> {
        match news {
            News::Line(label, line) => {
                self.away.remove(&label);
                output::print_bytes(&self.painter.line(&label, line.time, &line.text))?;
            }
            News::End(label) => {
                self.away.remove(&label);
                self.open = self.open.saturating_sub(1);
            }
            News::Away(label, why) => {
                output::say(&format!("{label}: {why}; it is asked again and again\n"));
                self.away.insert(label, why);
            }
            News::Missing(label, why) => {
                self.away.remove(&label);
                if self.missing.add(&label, &why) {
                    output::say(&missing::line(&label, &why));
                }
            }
            News::Silence(why) => {
                if !self.is_silent {
                    output::say(&format!("{why}; it is asked again\n"));
                }
                self.is_silent = true;
            }
            News::Failed(failure) => return Err(failure),
            News::Job(job) => self.see_job(job),
            News::JobGone => self.finish("the job is gone".to_owned()),
            News::Pods(pods) => {
                self.is_silent = false;
                self.pods.clear();
                let new = pods.into_iter().flat_map(|pod| self.see(pod)).collect();
                self.end_with_pods();
                return Ok(new);
            }
            News::Pod(pod) => {
                let new = self.see(pod);
                self.end_with_pods();
                return Ok(new);
            }
            News::Gone(pod) => {
                self.pods.remove(text(&pod, &["metadata", "uid"]));
                if self.job.is_none() && self.pods.is_empty() {
                    self.finish("the pod is gone".to_owned());
                }
            }
        }
        Ok(Vec::new())
    }

    fn finish(&mut self, how: String) {
        self.finished.get_or_insert(how);
    }

    fn see_job(&mut self, job: Value) {
        if let Some(how) = gone::finished(&job) {
            self.finish(how);
        }
        let is_suspended = gone::is_suspended(&job, self.has_finished());
        if is_suspended && !self.is_suspended && !self.has_finished() {
            output::say(&format!(
                "{}: it is suspended; its lines come when it goes on\n",
                self.name
            ));
        }
        self.is_suspended = is_suspended;
        self.job = Some(job);
    }

    /// Pods of no job, or of one that is not there, are all that can finish.
    fn end_with_pods(&mut self) {
        if self.job.is_none() && !self.pods.is_empty() && self.pods.values().all(is_over) {
            self.finish(String::new());
        }
    }

    /// A pod as it is now; answers with its logs that are not read yet.
    fn see(&mut self, pod: Value) -> Vec<Run> {
        self.tell_waiting(&pod);
        let replica = replica(&pod);
        let uid = text(&pod, &["metadata", "uid"]).to_owned();
        let containers = self.logs.unstarted(&pod);
        // A pod that takes another's place has its own reasons.
        self.unstarted.insert(replica, Unstarted { uid: uid.clone(), containers });
        let mut new = self.logs.runs(&pod);
        new.retain(|run| self.seen.insert((run.uid.clone(), run.container.clone(), run.restart)));
        for run in &new {
            self.painter.expect([run.label.as_str()]);
            self.shown.insert(run.replica.clone());
            self.open += 1;
        }
        self.pods.insert(uid, pod);
        new
    }

    /// Says once why a pod does not print, where that is not just a matter of moments.
    fn tell_waiting(&mut self, pod: &Value) {
        let replica = replica(pod);
        let wait = match state(pod) {
            Some(PodState::Waiting) => waits_for(pod),
            Some(PodState::Lost) => {
                let node = text(pod, &["spec", "nodeName"]);
                let words = format!("the cluster does not reach its node {node}");
                if self.told.insert((replica.clone(), words.clone())) && self.logs.wants(&replica) {
                    output::say(&format!("{replica}: {words}; its lines come when it is back\n"));
                }
                return;
            }
            Some(PodState::Leaving) => return self.tell_leaving(&replica),
            _ => {
                // What holds the next run back is told anew.
                self.told.retain(|(one, _)| *one != replica);
                return;
            }
        };
        if wait.passes() || !self.logs.wants(&replica) {
            return;
        }
        // A kubelet counts up how long it waits: the reason is told once.
        let what = match wait.reason.as_str() {
            "" | "Unschedulable" => &wait.message,
            reason => reason,
        };
        if !self.told.insert((replica.clone(), what.to_owned())) {
            return;
        }
        let same = self.same.entry(what.to_owned()).or_default();
        *same += 1;
        match *same {
            0..=SAME => output::say(&format!("{replica} waits: {}\n", wait.words())),
            // The others are named at the end if they never start.
            WITH_OTHERS => output::say(&format!("{replica} and others wait: {}\n", wait.words())),
            _ => {}
        }
    }

    /// Says once that a pod is deleted, which ends its lines. At the end of a job that is nothing new.
    fn tell_leaving(&mut self, replica: &str) {
        const WORDS: &str = "its pod is being deleted";
        if self.has_finished() || !self.logs.wants(replica) {
            return;
        }
        if self.told.insert((replica.to_owned(), WORDS.to_owned())) {
            output::say(&format!("{replica}: {WORDS}\n"));
        }
    }

    /// Says how the job stands where it has no pods yet.
    pub(super) fn tell_why_nothing_comes(&self, now: Timestamp) {
        if !self.pods.is_empty() || self.has_finished() || self.is_suspended {
            return;
        }
        let state = self.job.as_ref().map(|job| gone::what_is_known(self.name, job, now));
        let state = state.unwrap_or_default();
        output::say(&format!("{state}{}: it has no pods yet; they are waited for\n", self.name));
    }

    /// Says how it ended and what never came; a failure if anything was not shown.
    pub(super) fn end(mut self, now: Timestamp) -> Result<(), Failure> {
        if let Some(how) = self.finished.take().filter(|how| !how.is_empty()) {
            output::say(&format!("{}: {how}\n", self.name));
        }
        let mut never = Missing::default();
        for (label, why) in self.never(now) {
            if self.missing.add(&label, &why) {
                never.add(&label, &why);
            }
        }
        output::say(&never.text());
        self.missing.result()
    }

    /// Logs that have not been shown, or not to their end, each with the reason.
    fn never(&self, now: Timestamp) -> Vec<(String, String)> {
        let mut never: Vec<(String, String)> = self.away.clone().into_iter().collect();
        let known = self.job.as_ref().map_or_else(Vec::new, gone::known);
        let mut told = BTreeSet::new();
        for (replica, unstarted) in &self.unstarted {
            let is_there = self.pods.contains_key(&unstarted.uid);
            // Pods without a place in the job come and go.
            if unstarted.containers.is_empty() || !(is_there || known.contains(replica)) {
                continue;
            }
            told.insert(replica);
            for (label, why) in &unstarted.containers {
                let gone = if is_there { "" } else { "; its pod is gone" };
                never.push((label.clone(), format!("{why}{gone}")));
            }
        }
        if let Some(job) = &self.job {
            let absent = gone::replicas(job, self.pods.values(), now);
            never.extend(absent.into_iter().filter(|(replica, _)| {
                self.logs.wants(replica) && !self.shown.contains(replica) && !told.contains(replica)
            }));
        }
        never
    }
}

#[cfg(test)]
mod tests;
