//! Logs that were asked for and cannot be shown, each with its reason.

use std::fmt::Write as _;

use jiff::Timestamp;

use trainyard_core::view::Unreachable;

use super::pods::Place;
use crate::cluster::Error;
use crate::failure::{Failure, OTHER};
use crate::output;
use crate::present::one_line;
use crate::present::time::since;
use crate::run::words::some;

/// Replicas that are named for one reason; more are counted.
const NAMED: usize = 6;

/// Logs of which details are told, one by one.
const DETAILED: usize = 10;

/// What is missing of what was asked for.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Each reason once, with the logs that it keeps away.
    reasons: Vec<(String, Vec<String>)>,
    /// What else is known of some of these logs.
    details: Vec<(String, String)>,
}

impl Missing {
    /// Notes that a log is not shown. False where that was noted before.
    pub(super) fn add(&mut self, label: &str, why: &str) -> bool {
        let at = self.reasons.iter().position(|(reason, _)| reason == why).unwrap_or_else(|| {
            self.reasons.push((why.to_owned(), Vec::new()));
            self.reasons.len() - 1
        });
        let Some((_, labels)) = self.reasons.get_mut(at) else { return false };
        let is_new = labels.iter().all(|one| one != label);
        if is_new {
            labels.push(label.to_owned());
        }
        is_new
    }

    /// Notes what else is known of a log that is not shown.
    pub(super) fn detail(&mut self, label: &str, words: String) {
        self.details.push((label.to_owned(), words));
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Says what is missing, a line for each reason, then a line for each detail.
    pub(super) fn text(&self) -> String {
        let lines = self.reasons.iter().map(|(why, labels)| line(&some(labels, NAMED), why));
        let mut text: String = lines.collect();
        for (label, words) in self.details.iter().take(DETAILED) {
            text.extend(["  ", label, ": ", words, "\n"]);
        }
        let more = self.details.len().saturating_sub(DETAILED);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more; --replica names those that are meant");
        }
        text
    }

    /// Says what is missing; a failure if anything is.
    pub(super) fn tell(self) -> Result<(), Failure> {
        output::say(&self.text());
        self.result()
    }

    /// A failure if anything is missing, which has been said before.
    pub(super) fn result(self) -> Result<(), Failure> {
        if self.reasons.is_empty() { Ok(()) } else { Err(Failure::told(OTHER)) }
    }
}

/// How it is said that a log is not shown.
pub(super) fn line(who: &str, why: &str) -> String {
    format!("not shown: {who}: {why}\n")
}

/// Why the server does not give a log; none where that says nothing about this log alone.
pub(super) fn refused(error: &Error, place: &Place, now: Timestamp) -> Option<String> {
    let said = error.to_string();
    let words =
        one_line(said.split_once(" is forbidden: ").map_or(said.as_str(), |(_, rest)| rest));
    match error {
        Error::Unreachable { .. } => None,
        Error::Broken { .. } => Some(format!("its log broke off: {words}")),
        _ => match error.code() {
            401 => None,
            403 => Some(format!("forbidden: {words}")),
            404 => Some(not_found(&words, &place.node)),
            400 if words.contains("previous terminated container") => {
                Some("its node no longer keeps the log of the run before".to_owned())
            }
            400 => match words.split_once(" is waiting to start: ") {
                Some((_, why)) => Some(format!("it has not started: {why}")),
                None => Some(words),
            },
            500.. => Some(format!("{} cannot be asked: {words}", place.words(now))),
            _ => Some(words),
        },
    }
}

/// What is not there: the server says it of pods, of nodes, and a kubelet of what it does not know.
fn not_found(words: &str, node: &str) -> String {
    if words.starts_with("pods ") {
        "its pod is gone".to_owned()
    } else if words.starts_with("nodes ") {
        format!("its node {node} is gone, and the log with it")
    } else {
        format!("its node {node} does not have it: {words}")
    }
}

impl Place {
    /// The node, and since when it is lost if it is.
    pub(super) fn words(&self, now: Timestamp) -> String {
        let node = &self.node;
        match self.lost {
            None => format!("its node {node}"),
            Some(Unreachable { since: None }) => {
                format!("its node {node}, which the cluster does not reach,")
            }
            Some(Unreachable { since: Some(from) }) => {
                format!(
                    "its node {node}, which the cluster has not reached for {},",
                    since(from, now)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refusal(code: u16, message: &str) -> Option<String> {
        let status = Status::failure(message, "x").with_code(code);
        let place = Place { node: "b".to_owned(), lost: None };
        refused(&Error::Refused(status.boxed()), &place, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn each_reason_is_told_once_and_fails_the_command() {
        let mut missing = Missing::default();
        assert!(missing.add("worker-0", "its pod is gone"));
        assert!(missing.add("worker-1", "its pod is gone"));
        assert!(!missing.add("worker-1", "its pod is gone"));
        assert!(missing.add("ps-0", "it has not started: ErrImagePull"));
        assert_eq!(
            missing.text(),
            "not shown: worker-0 and worker-1: its pod is gone\n\
             not shown: ps-0: it has not started: ErrImagePull\n"
        );
        assert_eq!(missing.result().unwrap_err().exit_code(), 1);
        assert!(Missing::default().result().is_ok());
    }

    #[test]
    fn details_stand_below_and_many_are_counted() {
        let mut missing = Missing::default();
        for index in 0..12 {
            missing.add(&format!("worker-{index}"), "gone");
            missing.detail(&format!("worker-{index}"), format!("deleted {index}s ago"));
        }
        let text = missing.text();
        assert!(text.contains("not shown: worker-0, "), "{text}");
        assert!(text.contains("\n  worker-9: deleted 9s ago\n  and 2 more; --replica"), "{text}");
    }

    #[test]
    fn refusals_say_what_keeps_a_log_away() {
        for (code, message, said) in [
            (
                403,
                "pods \"w\" is forbidden: User \"ann\" cannot get resource \"pods/log\"",
                "forbidden: User \"ann\" cannot get resource \"pods/log\"",
            ),
            (404, "pods \"w\" not found", "its pod is gone"),
            (404, "nodes \"b\" not found", "its node b is gone, and the log with it"),
            (
                404,
                "the server could not find the requested resource ( pods/log w)",
                "its node b does not have it: the server could not find the requested resource \
                 ( pods/log w)",
            ),
            (
                400,
                "container \"tensorflow\" in pod \"w\" is waiting to start: ContainerCreating",
                "it has not started: ContainerCreating",
            ),
            (
                400,
                "previous terminated container \"tensorflow\" in pod \"w\" not found",
                "its node no longer keeps the log of the run before",
            ),
            (
                500,
                "Get \"https://10.0.0.3:10250/containerLogs/a\": dial tcp: no route to host",
                "its node b cannot be asked: Get \"https://10.0.0.3:10250/containerLogs/a\": \
                 dial tcp: no route to host",
            ),
        ] {
            assert_eq!(refusal(code, message).as_deref(), Some(said), "{message}");
        }
        let lost = Place {
            node: "b".to_owned(),
            lost: Some(Unreachable { since: Some(Timestamp::UNIX_EPOCH) }),
        };
        let later = Timestamp::from_second(90).unwrap();
        assert_eq!(lost.words(later), "its node b, which the cluster has not reached for 90s,");
        // Nothing else can be asked either: that is the command's own failure.
        assert_eq!(refusal(401, "Unauthorized"), None);
    }
}
