//! What is said about a failure: in the status, in conditions and in events.
//!
//! Names pod, container, exit code, signal, reason and the last words. Must not decide whether a
//! failure ends the job.

use std::fmt::Write as _;

use trainyard_api::{Failure, FailureKind};

use super::{end::Cause, exit_code::signal_name};

/// Longest quotation of last words in the status.
pub(crate) const LAST_WORDS_MAX: usize = 2048;
/// Lines of last words in a condition's message.
const LINES_MAX: usize = 5;

/// The failure of a pod, in detail.
#[must_use]
pub(super) fn detail(kind: FailureKind, pod: &str, cause: &Cause) -> Failure {
    Failure {
        kind,
        pod: pod.to_owned(),
        container: cause.container.clone(),
        exit_code: cause.container_code,
        signal: cause.container_code.and_then(signal_name).unwrap_or_default().to_owned(),
        reason: cause.reason.clone(),
        message: tail(cause.message.trim_end(), LAST_WORDS_MAX).to_owned(),
    }
}

/// A sentence on a failed pod, with its last lines.
#[must_use]
pub(crate) fn sentence(failure: &Failure) -> String {
    let mut text = format!("Pod {}", failure.pod);
    if !failure.container.is_empty() {
        let _ = write!(text, ", container {}", failure.container);
    }
    let mut facts = Vec::new();
    if let Some(code) = failure.exit_code {
        facts.push(format!("exited with code {code}"));
    }
    let words: Vec<&str> =
        [failure.signal.as_str(), &failure.reason].into_iter().filter(|w| !w.is_empty()).collect();
    match (facts.is_empty(), words.is_empty()) {
        (true, true) => facts.push("failed".to_owned()),
        (true, false) => facts.push(format!("failed ({})", words.join(", "))),
        (false, false) => facts.push(format!("({})", words.join(", "))),
        (false, true) => {}
    }
    let _ = write!(text, " {}.", facts.join(" "));
    let lines: Vec<&str> = failure.message.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES_MAX)..).unwrap_or_default();
    if !last.is_empty() {
        text.push_str(" Last words: ");
        text.push_str(&last.join("\n"));
    }
    text
}

/// The end of a text, at most so many bytes, cut at a character.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_everything_that_is_known() {
        let cause = Cause {
            exit_code: Some(137),
            container: "tensorflow".into(),
            container_code: Some(137),
            reason: "OOMKilled".into(),
            message: "step 1\nstep 2\n".into(),
            ..Cause::default()
        };
        let failure = detail(FailureKind::ReplicaFailed, "mnist-worker-0", &cause);
        assert_eq!(failure.signal, "SIGKILL");
        assert_eq!(
            sentence(&failure),
            "Pod mnist-worker-0, container tensorflow exited with code 137 (SIGKILL, OOMKilled). \
             Last words: step 1\nstep 2"
        );
    }

    #[test]
    fn says_what_it_can_without_a_container() {
        let cause = Cause { reason: "Evicted".into(), ..Cause::default() };
        let failure = detail(FailureKind::ReplicaFailed, "p", &cause);
        assert_eq!(sentence(&failure), "Pod p failed (Evicted).");
        let failure = detail(FailureKind::ReplicaFailed, "p", &Cause::default());
        assert_eq!(sentence(&failure), "Pod p failed.");
    }

    #[test]
    fn last_words_are_bounded_and_keep_the_end() {
        let cause = Cause { message: "é\n".repeat(4000) + "the end", ..Cause::default() };
        let failure = detail(FailureKind::ReplicaFailed, "p", &cause);
        assert!(failure.message.len() <= LAST_WORDS_MAX);
        assert!(failure.message.ends_with("the end"));
        assert_eq!(sentence(&failure).lines().count(), LINES_MAX);
    }
}
