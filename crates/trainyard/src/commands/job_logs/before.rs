//! The pod that played a replica before its present one: when it went and why, as far as the job and
//! events still tell. Pure.
//!
//! Nobody keeps a record of pods that are deleted. What is left are the counts and times in the job's
//! status and, for about an hour on most clusters, events.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use trainyard_api::{names, volcano};

use crate::present::time::{ago, since, time};
use crate::present::{events, items, one_line, text};

/// Events of a pod that tell nothing of its end.
const ROUTINE: [&str; 8] = [
    "Scheduled",
    "Pulling",
    "Pulled",
    "Created",
    "Started",
    "FailedScheduling",
    "SuccessfulAttachVolume",
    "NotTriggerScaleUp",
];
/// Events of a TFJob that tell of the end of one of its pods.
const ENDS: [&str; 2] = ["TFJobRestarting", "ExitedWithCode"];
/// The kinds of job whose operator tells events.
const JOBS: [&str; 2] = [names::KIND, volcano::names::KIND];
/// What the operator says of a pod whose going it did not see.
const ANEW: &str = "has been made anew";
/// How long after a new pod it may say so.
const LATE: SignedDuration = SignedDuration::from_secs(5);

/// What is left of pods that are gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traces<'a> {
    pub(super) job: Option<&'a Value>,
    /// The events of the namespace, in their order.
    pub(super) events: &'a [Value],
    pub(super) now: Timestamp,
}

impl Traces<'_> {
    /// What is known of the pods that a replica had before this one, or before it had none; empty where
    /// nothing tells of any.
    pub(super) fn of(&self, replica: &str, pod: Option<&Value>) -> Vec<String> {
        let name = match (pod, self.job) {
            (Some(pod), _) => text(pod, &["metadata", "name"]).to_owned(),
            (None, Some(job)) => format!("{}-{replica}", text(job, &["metadata", "name"])),
            (None, None) => replica.to_owned(),
        };
        let made = pod.and_then(|pod| time(&pod["metadata"]["creationTimestamp"]));
        let mut facts = Vec::new();
        facts.extend(self.own_event(&name, pod, made));
        facts.extend(self.job_event(&name, replica, made));
        facts.extend(self.job.into_iter().flat_map(|job| self.status(job, replica, made)));
        if facts.is_empty() {
            facts.extend(self.made_again(&name));
        }
        if facts.is_empty() {
            facts.extend(self.younger_than_the_job(made));
        } else if let Some(made) = made {
            facts.insert(0, format!("its present pod was made {} ago", since(made, self.now)));
        }
        facts
    }

    /// The events since the job was made: one of the same name may have been there before.
    fn events(&self) -> impl DoubleEndedIterator<Item = (&Value, Timestamp)> {
        let timed = self.events.iter().filter_map(|event| Some((event, events::last(event)?)));
        timed.filter(|(event, _)| !self.job.is_some_and(|job| events::precedes(event, job)))
    }

    /// The last that was told of a pod of that name with another identity.
    fn own_event(
        &self,
        name: &str,
        pod: Option<&Value>,
        made: Option<Timestamp>,
    ) -> Option<String> {
        let present = pod.map(|pod| text(pod, &["metadata", "uid"]));
        let is_earlier = |event: &Value, at: Timestamp| match identity(event) {
            // The eviction from a lost node names no identity.
            "" => made.is_none_or(|made| at < made),
            uid => present != Some(uid),
        };
        let mut own: Vec<&Value> = self
            .events()
            .filter(|(event, at)| is_about(event, "Pod", name) && is_earlier(event, *at))
            .map(|(event, _)| event)
            .collect();
        let last = own.iter().rev().map(|event| identity(event)).find(|uid| !uid.is_empty());
        let last = last.unwrap_or_default().to_owned();
        own.retain(|event| ["", last.as_str()].contains(&identity(event)));
        let telling = |event: &&&Value| !ROUTINE.contains(&text(event, &["reason"]));
        match own.iter().rfind(telling) {
            Some(event) => Some(self.told(event)),
            None => own.last().map(|event| {
                let when = events::when(event, self.now);
                format!("it was last heard of {when} ({})", text(event, &["reason"]))
            }),
        }
    }

    /// The last that the job's own events told of the replica before its present pod was made: why it ended,
    /// or else that it was deleted.
    fn job_event(&self, name: &str, replica: &str, made: Option<Timestamp>) -> Option<String> {
        let job = text(self.job?, &["metadata", "name"]);
        let own = || {
            self.events()
                .rev()
                .filter(|(event, _)| JOBS.iter().any(|kind| is_about(event, kind, job)))
        };
        let ended = own().find(|(event, at)| {
            let message = text(event, &["message"]);
            let late = if message.contains(ANEW) { LATE } else { SignedDuration::ZERO };
            ENDS.contains(&text(event, &["reason"]))
                && made.is_none_or(|made| at.duration_since(made) <= late)
                && names_one_of(message, [name, replica])
        });
        let words = format!("Deleted pod: {name}");
        let deleted = || {
            own().find(|(event, at)| {
                // The present one may have been deleted already, too.
                text(event, &["message"]) == words && made.is_none_or(|made| *at < made)
            })
        };
        ended.or_else(deleted).map(|(event, _)| self.told(event))
    }

    fn told(&self, event: &Value) -> String {
        let (reason, message) = (text(event, &["reason"]), one_line(text(event, &["message"])));
        format!("{}: {reason}: {message}", events::when(event, self.now))
    }

    /// What the job's status has counted.
    fn status(&self, job: &Value, replica: &str, made: Option<Timestamp>) -> Vec<String> {
        let status = &job["status"];
        let record = |name: &str| {
            items(status, &["replicaRecords"])
                .find(|one| one["replica"] == name && !one["lastRestartTime"].is_null())
        };
        let mut facts = Vec::new();
        if let Some(record) = record(replica) {
            let count = |name: &str| record[name].as_u64().unwrap_or_default();
            facts.push(format!(
                "the operator replaced one {} ago (restarts that count: {}, others: {})",
                ago(&record["lastRestartTime"], self.now),
                count("restarts"),
                count("disruptions")
            ));
        }
        if let Some(record) = record("job").filter(|_| status["attempt"].as_u64() > Some(0)) {
            let when = ago(&record["lastRestartTime"], self.now);
            facts.push(format!("the job was restarted as a whole {when} ago"));
        }
        let is_before = |at: &Value| time(at).is_some_and(|at| made.is_none_or(|made| at < made));
        let away = items(status, &["unavailableReplicas"])
            .find(|one| one["replica"] == replica && is_before(&one["since"]));
        facts.extend(away.map(|away| {
            let message = one_line(text(away, &["message"]));
            format!("it has not run for {}: {message}", ago(&away["since"], self.now))
        }));
        // A Volcano Job says when it was restarted last. Who is older was not.
        let restarted = items(status, &["conditions"])
            .find(|one| one["status"] == "Restarting")
            .map(|one| &one["lastTransitionTime"])
            .filter(|at| is_before(at));
        facts.extend(restarted.map(|at| {
            let tries = status["retryCount"].as_u64().unwrap_or_default();
            format!("the job was restarted {} ago (retryCount {tries})", ago(at, self.now))
        }));
        facts
    }

    /// That a pod of that name was made more than once.
    fn made_again(&self, name: &str) -> Option<String> {
        let of_job = |event: &Value| JOBS.contains(&text(event, &["involvedObject", "kind"]));
        let words = format!("Created pod: {name}");
        let made =
            self.events().filter(|(event, _)| of_job(event) && text(event, &["message"]) == words);
        let times: i64 = made.map(|(event, _)| events::count(event).unwrap_or(1)).sum();
        (times > 1).then(|| format!("events tell that its pod was made {times} times, and not why"))
    }

    /// That its pod was made after all of the job had run: there may have been another.
    fn younger_than_the_job(&self, made: Option<Timestamp>) -> Option<String> {
        let ran = time(&self.job?["status"]["runningTime"])?;
        let made = made.filter(|made| *made > ran)?;
        Some(format!(
            "its pod was made {} ago, and the job ran {} ago already: of a pod before, if there was one, \
             neither status nor events tell",
            since(made, self.now),
            since(ran, self.now)
        ))
    }
}

fn is_about(event: &Value, kind: &str, name: &str) -> bool {
    let object = &event["involvedObject"];
    object["kind"] == kind && object["name"] == name
}

fn identity(event: &Value) -> &str {
    text(event, &["involvedObject", "uid"])
}

/// Whether a sentence has one of these names as a word: `worker-1` is not in `worker-10`.
fn names_one_of(sentence: &str, names: [&str; 2]) -> bool {
    sentence
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
        .any(|word| names.contains(&word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(status: &Value) -> Value {
        json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": status})
    }

    /// The replica's present pod, made after ten minutes.
    fn pod() -> Value {
        json!({"metadata": {"name": "a-worker-1", "uid": "new",
            "creationTimestamp": "2026-01-01T00:10:00Z"}})
    }

    fn event(kind: &str, name: &str, uid: &str, at: &str, reason: &str, message: &str) -> Value {
        json!({"reason": reason, "message": message,
            "lastTimestamp": format!("2026-01-01T{at}Z"),
            "involvedObject": {"kind": kind, "name": name, "uid": uid}})
    }

    fn told(status: &Value, events: &[Value]) -> Vec<String> {
        let (job, pod) = (job(status), pod());
        let now = "2026-01-01T00:11:00Z".parse().unwrap();
        Traces { job: Some(&job), events, now }.of("worker-1", Some(&pod))
    }

    #[test]
    fn events_of_another_pod_of_that_name_tell_how_it_went() {
        let mine = |uid: &str, at: &str, reason: &str| {
            event("Pod", "a-worker-1", uid, at, reason, "in\nwords")
        };
        let events = [
            mine("old", "00:01:00", "Started"),
            mine("old", "00:09:50", "Killing"),
            mine("new", "00:10:10", "Started"),
            event("Pod", "a-worker-10", "old", "00:09:00", "Evicted", "x"),
        ];
        let made = "its present pod was made 60s ago";
        assert_eq!(told(&Value::Null, &events), [made, "70s ago: Killing: in words"]);
        let routine = "it was last heard of 10m ago (Started)";
        assert_eq!(told(&Value::Null, &events[..1]), [made, routine]);
        assert!(told(&Value::Null, &events[2..]).is_empty());
        // That of a lost node has no identity.
        let lost = [mine("", "00:09:55", "TaintManagerEviction")];
        assert_eq!(told(&Value::Null, &lost).len(), 2);
        let later = [mine("", "00:10:55", "TaintManagerEviction")];
        assert!(told(&Value::Null, &later).is_empty());
    }

    #[test]
    fn what_was_before_the_job_is_about_another() {
        let mut old = event("Pod", "a-worker-1", "old", "00:00:00", "Killing", "x");
        old["lastTimestamp"] = json!("2025-12-31T23:59:59Z");
        assert!(told(&Value::Null, &[old]).is_empty());
    }

    #[test]
    fn the_jobs_events_tell_of_the_replica_before_its_present_pod() {
        let restarting =
            |at: &str, message: &str| event("TFJob", "a", "j", at, "TFJobRestarting", message);
        let drained = "job a is restarting because worker-1 does not run since x: the cluster has \
            deleted pod a-worker-1 (EvictionByEvictionAPI).";
        let events = [
            restarting("00:09:00", drained),
            restarting("00:09:30", "job a is restarting because worker-10 does not run"),
            restarting("00:10:50", "the node of pod a-worker-1 cannot be reached."),
        ];
        let facts = told(&Value::Null, &events);
        assert_eq!(facts[1], format!("2m ago: TFJobRestarting: {drained}"));
        assert_eq!(facts.len(), 2, "{facts:?}");
        // What is told soon after the present pod was made is about that, unless it says otherwise.
        let failed = [restarting("00:10:03", "Pod a-worker-1 exited with code 1.")];
        assert!(told(&Value::Null, &failed).is_empty());
        let anew =
            [restarting("00:10:03", "pod a-worker-1 has been made anew and has not started.")];
        assert_eq!(told(&Value::Null, &anew).len(), 2);
    }

    #[test]
    fn a_deletion_is_told_where_nothing_says_why() {
        let deleted =
            event("TFJob", "a", "j", "00:09:00", "SuccessfulDeletePod", "Deleted pod: a-worker-1");
        let why = event(
            "TFJob",
            "a",
            "j",
            "00:08:00",
            "ExitedWithCode",
            "Pod: ns.a-worker-1 exited with code 1",
        );
        let said = "2m ago: SuccessfulDeletePod: Deleted pod: a-worker-1";
        assert_eq!(told(&Value::Null, std::slice::from_ref(&deleted))[1], said);
        let mut own = deleted.clone();
        own["lastTimestamp"] = json!("2026-01-01T00:10:00Z");
        assert!(told(&Value::Null, &[own]).is_empty(), "the present pod is being deleted");
        let said = "3m ago: ExitedWithCode: Pod: ns.a-worker-1 exited with code 1";
        assert_eq!(told(&Value::Null, &[why, deleted])[1], said);
    }

    #[test]
    fn the_status_tells_of_restarts_by_new_pods() {
        let record = json!({"replicaRecords": [
            {"replica": "worker-0", "restarts": 1, "inPlace": 1},
            {"replica": "worker-1", "restarts": 2, "disruptions": 1,
             "lastRestartTime": "2026-01-01T00:09:00Z"}]});
        let facts = told(&record, &[]);
        let said = "the operator replaced one 2m ago (restarts that count: 2, others: 1)";
        assert_eq!(facts[1], said);
        let in_place =
            json!({"replicaRecords": [{"replica": "worker-1", "restarts": 1, "inPlace": 1}]});
        assert!(told(&in_place, &[]).is_empty(), "a restart in place is no new pod");
        let whole = json!({"attempt": 1, "replicaRecords": [
            {"replica": "job", "lastRestartTime": "2026-01-01T00:09:00Z"}]});
        assert_eq!(told(&whole, &[])[1], "the job was restarted as a whole 2m ago");
        let away = json!({"unavailableReplicas": [{"replica": "worker-1", "reason": "Deleted",
            "since": "2026-01-01T00:09:00Z", "message": "pod a-worker-1 has been deleted."}]});
        assert_eq!(told(&away, &[])[1], "it has not run for 2m: pod a-worker-1 has been deleted.");
    }

    #[test]
    fn a_volcano_job_tells_of_its_last_restart() {
        let restarted = |at: &str| {
            json!({"retryCount": 1, "conditions": [
                {"status": "Restarting", "lastTransitionTime": at}, {"status": "Running"}]})
        };
        let facts = told(&restarted("2026-01-01T00:09:00Z"), &[]);
        assert_eq!(facts[1], "the job was restarted 2m ago (retryCount 1)");
        assert!(told(&restarted("2026-01-01T00:10:30Z"), &[]).is_empty(), "it is older than that");
    }

    #[test]
    fn a_bare_suspicion_is_told_as_such() {
        let mut made =
            event("TFJob", "a", "j", "00:10:00", "SuccessfulCreatePod", "Created pod: a-worker-1");
        made["count"] = json!(2);
        let facts = told(&Value::Null, &[made]);
        assert_eq!(facts[1], "events tell that its pod was made 2 times, and not why");
        let ran = json!({"runningTime": "2026-01-01T00:01:00Z"});
        assert!(
            told(&ran, &[])[0].contains("the job ran 10m ago already: of a pod before, if there")
        );
        assert!(told(&json!({"runningTime": "2026-01-01T00:10:30Z"}), &[]).is_empty());
    }

    #[test]
    fn a_replica_without_a_pod_is_found_by_the_name_of_its_pods() {
        let job = job(&Value::Null);
        let events = [event("Pod", "a-worker-1", "old", "00:09:50", "Killing", "x")];
        let now = "2026-01-01T00:11:00Z".parse().unwrap();
        let facts = Traces { job: Some(&job), events: &events, now }.of("worker-1", None);
        assert_eq!(facts, ["70s ago: Killing: x"]);
    }
}
