//! Whether the lease may be taken: the rules of leadership.
//!
//! Another holder's lease is judged by when we saw it change, never by the times written in it, so
//! that clocks that disagree harm nobody. Plain functions: must not wait or send.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::LeaderOptions;

/// A lease as the API server has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lease {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    /// Left as it is.
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<u64>,
}

/// What may be done about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make it, or take it over.
    Take,
    /// It is ours: renew it.
    Renew,
    /// Somebody else holds it, until then at least.
    Wait(Instant),
}

/// The last state of a lease and when we saw it change.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    spec: Option<Spec>,
    at: Option<Instant>,
}

impl Seen {
    /// Takes note of a lease.
    pub(crate) fn look(&mut self, lease: Option<&Lease>, now: Instant) {
        let spec = lease.map(|lease| lease.spec.clone());
        if self.at.is_none() || self.spec != spec {
            self.spec = spec;
            self.at = Some(now);
        }
    }

    /// What may be done about the lease that was seen last.
    pub(crate) fn decide(&self, me: &LeaderOptions, now: Instant) -> Step {
        let Some(spec) = &self.spec else { return Step::Take };
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder == me.identity {
            return Step::Renew;
        }
        let lasts = spec.lease_duration_seconds.map_or(me.lease_duration, Duration::from_secs);
        let until = self.at.unwrap_or(now) + lasts.min(crate::clock::FAR);
        if holder.is_empty() || until <= now { Step::Take } else { Step::Wait(until) }
    }
}

impl Lease {
    /// The identity of its holder; empty when nobody holds it.
    pub(crate) fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }

    /// The lease that we write to hold it from now on.
    pub(crate) fn held(found: Option<&Self>, me: &LeaderOptions, now: Timestamp) -> Self {
        let now = micros(now);
        let before = found.map(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = before.holder_identity.as_deref() == Some(&me.identity);
        let transitions = before.lease_transitions.unwrap_or(0);
        let seconds = me.lease_duration.as_secs_f64().ceil().max(1.0);
        Self {
            api_version: "coordination.k8s.io/v1".to_owned(),
            kind: "Lease".to_owned(),
            metadata: found.map_or_else(
                || serde_json::json!({"name": me.lease, "namespace": me.namespace}),
                |lease| lease.metadata.clone(),
            ),
            spec: Spec {
                holder_identity: Some(me.identity.clone()),
                lease_duration_seconds: Some(Duration::from_secs_f64(seconds).as_secs()),
                acquire_time: before.acquire_time.filter(|_| ours).or_else(|| Some(now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(if ours || found.is_none() {
                    transitions
                } else {
                    transitions + 1
                }),
            },
        }
    }

    /// The lease that we write to give it up.
    pub(crate) fn released(&self, now: Timestamp) -> Self {
        let mut lease = self.clone();
        lease.spec.holder_identity = Some(String::new());
        lease.spec.lease_duration_seconds = Some(1);
        lease.spec.renew_time = Some(micros(now));
        lease
    }
}

/// A time as `metav1.MicroTime` is written.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn me() -> LeaderOptions {
        LeaderOptions::new("ns", "lease", "me")
    }

    fn lease(holder: &str, renewed: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"name": "lease", "resourceVersion": "5", "labels": {"a": "b"}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
                "renewTime": renewed, "acquireTime": "then", "leaseTransitions": 3},
        }))
        .unwrap()
    }

    fn seen(lease: Option<&Lease>, at: Instant) -> Seen {
        let mut seen = Seen::default();
        seen.look(lease, at);
        seen
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken() {
        let now = Instant::now();
        assert_eq!(seen(None, now).decide(&me(), now), Step::Take);
        assert_eq!(seen(Some(&lease("", "x")), now).decide(&me(), now), Step::Take);
    }

    #[test]
    fn our_own_lease_is_renewed_even_after_a_restart() {
        let now = Instant::now();
        assert_eq!(seen(Some(&lease("me", "x")), now).decide(&me(), now), Step::Renew);
    }

    #[test]
    fn anothers_lease_is_waited_for_from_when_we_saw_it_change() {
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        // Its times are long past by our clock, which proves nothing.
        let mut seen = seen(Some(&lease("other", "1999-01-01T00:00:00.000000Z")), begin);
        assert_eq!(seen.decide(&me(), begin), Step::Wait(begin + 15 * second));
        seen.look(Some(&lease("other", "1999-01-01T00:00:00.000000Z")), begin + 14 * second);
        assert_eq!(seen.decide(&me(), begin + 14 * second), Step::Wait(begin + 15 * second));
        seen.look(Some(&lease("other", "1999-01-01T00:00:14.000000Z")), begin + 14 * second);
        assert_eq!(seen.decide(&me(), begin + 15 * second), Step::Wait(begin + 29 * second));
        assert_eq!(seen.decide(&me(), begin + 29 * second), Step::Take);
    }

    #[test]
    fn taking_over_counts_and_renewing_does_not() {
        let now: Timestamp = "2024-05-06T07:08:09.123456789Z".parse().unwrap();
        let taken = Lease::held(Some(&lease("other", "x")), &me(), now);
        assert_eq!(
            serde_json::to_value(&taken).unwrap(),
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "lease", "resourceVersion": "5", "labels": {"a": "b"}},
                "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
                    "acquireTime": "2024-05-06T07:08:09.123456Z",
                    "renewTime": "2024-05-06T07:08:09.123456Z", "leaseTransitions": 4},
            })
        );
        let renewed = Lease::held(Some(&lease("me", "x")), &me(), now);
        assert_eq!(renewed.spec.lease_transitions, Some(3));
        assert_eq!(renewed.spec.acquire_time.as_deref(), Some("then"));
        let made = Lease::held(None, &me(), now);
        assert_eq!(made.spec.lease_transitions, Some(0));
        assert_eq!(made.metadata, json!({"name": "lease", "namespace": "ns"}));
        assert_eq!(taken.released(now).holder(), "");
    }
}
