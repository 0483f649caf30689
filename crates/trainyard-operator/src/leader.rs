//! Holds the lease that lets one of several operators act.
//!
//! The rules are in `lease`; this sends and waits. Must not know what the operator does with its
//! leadership.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::{
    LeaderOptions,
    calls::{Call, CallError, Calls, Turn, Verb},
    clock::Clock,
    lease::{Lease, Seen, Step},
};

/// How long giving up the lease may take.
const RELEASE: Duration = Duration::from_secs(3);

/// The lease and our share in it.
pub(crate) struct Leader {
    calls: Calls,
    me: LeaderOptions,
    clock: Clock,
    seen: Seen,
    /// The lease as we wrote it last; only while it is ours.
    held: Option<Lease>,
}

impl Leader {
    pub(crate) fn new(calls: &Calls, me: LeaderOptions, clock: Clock) -> Self {
        let calls = calls.with_timeout(me.renew_deadline);
        Self { calls, me, clock, seen: Seen::default(), held: None }
    }

    /// Namespace and name of the lease.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.me.namespace, self.me.lease)
    }

    /// Waits until the lease is ours.
    pub(crate) async fn acquire(&mut self) {
        let mut told = None;
        let mut failures = 0_u32;
        loop {
            match self.try_acquire().await {
                Ok(None) => {
                    tracing::info!(lease = self.name(), identity = self.me.identity, "leading");
                    return;
                }
                Ok(Some(holder)) => {
                    failures = 0;
                    if told.as_ref() != Some(&holder) {
                        tracing::info!(lease = self.name(), holder, "another operator leads");
                        told = Some(holder);
                    }
                }
                Err(error) => {
                    failures += 1;
                    // A lost race is no news.
                    if error.code() != 409 && failures.is_power_of_two() {
                        tracing::warn!(lease = self.name(), %error, "the lease cannot be taken");
                    }
                }
            }
            sleep(self.me.retry_period).await;
        }
    }

    /// Keeps the lease; returns when it is lost.
    pub(crate) async fn keep(&mut self) {
        let mut renewed = Instant::now();
        loop {
            let deadline = renewed + self.me.renew_deadline;
            let attempt = async {
                sleep(self.me.retry_period).await;
                let sent = Instant::now();
                self.renew().await.map(|ours| ours.then_some(sent))
            };
            match timeout_at(deadline, attempt).await {
                Ok(Ok(Some(sent))) => renewed = sent,
                Ok(Ok(None)) => {
                    tracing::error!(lease = self.name(), "another operator has taken the lease");
                    break;
                }
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.name(), %error, "the lease could not be renewed");
                }
                Err(_) => {
                    tracing::error!(lease = self.name(), "the lease was not renewed in time");
                    break;
                }
            }
        }
        self.held = None;
    }

    /// Gives the lease up, so that the next operator need not wait.
    pub(crate) async fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        match timeout(RELEASE, self.give_up(held)).await {
            Ok(Ok(())) => tracing::info!(lease = self.name(), "released"),
            Ok(Err(error)) => tracing::warn!(lease = self.name(), %error, "could not be released"),
            Err(_) => tracing::warn!(lease = self.name(), "could not be released in time"),
        }
    }

    /// A renewal under way when we were told to stop may arrive before or after: then the lease is not as
    /// we wrote it last, but still ours.
    async fn give_up(&self, mut held: Lease) -> Result<(), CallError> {
        loop {
            match self.put(&held.released(self.clock.now())).await {
                Err(error) if error.code() == 409 => {}
                other => return other.map(drop),
            }
            match self.get().await? {
                Some(found) if found.holder() == self.me.identity => held = found,
                _ => return Ok(()),
            }
        }
    }

    /// One attempt; the holder's identity if it is not us.
    async fn try_acquire(&mut self) -> Result<Option<String>, CallError> {
        let found = self.get().await?;
        let now = Instant::now();
        self.seen.look(found.as_ref(), now);
        if let Step::Wait(_) = self.seen.decide(&self.me, now) {
            let holder = found.as_ref().map(Lease::holder).unwrap_or_default();
            return Ok(Some(holder.to_owned()));
        }
        let lease = Lease::held(found.as_ref(), &self.me, self.clock.now());
        let written =
            if found.is_some() { self.put(&lease).await? } else { self.post(&lease).await? };
        self.held = Some(written);
        Ok(None)
    }

    /// Whether the lease is still ours, renewed.
    async fn renew(&mut self) -> Result<bool, CallError> {
        let held = self.held.clone();
        let lease = Lease::held(held.as_ref(), &self.me, self.clock.now());
        match self.put(&lease).await {
            Ok(written) => {
                self.held = Some(written);
                return Ok(true);
            }
            Err(error) if !matches!(error.code(), 404 | 409) => return Err(error),
            Err(_) => {}
        }
        // Somebody touched it: see who has it now.
        let found = self.get().await?;
        if found.as_ref().is_some_and(|lease| lease.holder() != self.me.identity) {
            return Ok(false);
        }
        let lease = Lease::held(found.as_ref(), &self.me, self.clock.now());
        let written =
            if found.is_some() { self.put(&lease).await? } else { self.post(&lease).await? };
        self.held = Some(written);
        Ok(true)
    }

    async fn get(&self) -> Result<Option<Lease>, CallError> {
        match self.send(Verb::Get, &self.me.lease, None).await {
            Ok(lease) => Ok(Some(lease)),
            Err(error) if error.code() == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put(&self, lease: &Lease) -> Result<Lease, CallError> {
        self.send(Verb::Update, &self.me.lease, Some(lease)).await
    }

    async fn post(&self, lease: &Lease) -> Result<Lease, CallError> {
        self.send(Verb::Create, "", Some(lease)).await
    }

    async fn send(&self, verb: Verb, name: &str, body: Option<&Lease>) -> Result<Lease, CallError> {
        let namespace = &self.me.namespace;
        let mut path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        if !name.is_empty() {
            path.push('/');
            path.push_str(name);
        }
        let unreadable = |error: serde_json::Error| CallError::Answer(error.to_string());
        let body = body.map(serde_json::to_vec).transpose().map_err(unreadable)?;
        let body = body.unwrap_or_default();
        let call = Call { verb, resource: "leases", path, body, turn: Turn::Free };
        let answer = self.calls.send(call).await?;
        serde_json::from_slice(&answer).map_err(unreadable)
    }
}

#[cfg(test)]
#[path = "leader_tests.rs"]
mod tests;
