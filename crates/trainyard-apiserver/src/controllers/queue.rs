//! Work that is to be done, by key: each key at most once at a time, now or later, again after a
//! failure.
//!
//! Must not know what the work is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::error::Error;

const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Work that is not finished, but did not fail, waits no longer for its next turn.
const AGAIN_MAX: Duration = Duration::from_secs(2);

/// How a piece of work went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing more until something changes.
    Rest,
    /// Once more after this time, whatever changes.
    After(Duration),
    /// Not finished: once more soon, later each time.
    Again,
}

#[derive(Debug)]
struct Inner<K> {
    due: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
    busy: BTreeSet<K>,
    tries: BTreeMap<K, u32>,
}

/// The keys to work on.
#[derive(Debug)]
pub(super) struct Queue<K> {
    inner: Mutex<Inner<K>>,
    wake: Notify,
}

impl<K: Ord + Clone + Debug> Queue<K> {
    pub(super) fn new() -> Self {
        let inner = Inner {
            due: BTreeMap::new(),
            order: BTreeSet::new(),
            busy: BTreeSet::new(),
            tries: BTreeMap::new(),
        };
        Self { inner: Mutex::new(inner), wake: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now.
    pub(super) fn add(&self, key: K) {
        self.add_at(key, Instant::now());
    }

    /// All of them, now.
    pub(super) fn add_all(&self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.add(key);
        }
    }

    /// In a while; an earlier time that is set already stands.
    pub(super) fn add_after(&self, key: K, after: Duration) {
        self.add_at(key, Instant::now() + after);
    }

    fn add_at(&self, key: K, time: Instant) {
        let mut inner = self.lock();
        match inner.due.get(&key).copied() {
            Some(set) if set <= time => return,
            Some(set) => {
                inner.order.remove(&(set, key.clone()));
            }
            None => {}
        }
        inner.due.insert(key.clone(), time);
        inner.order.insert((time, key));
        drop(inner);
        self.wake.notify_one();
    }

    /// Takes a key whose time has come, or says when the next one's comes.
    fn take(&self) -> Result<K, Option<Instant>> {
        let mut inner = self.lock();
        let now = Instant::now();
        let first = inner.order.iter().find(|(_, key)| !inner.busy.contains(key)).cloned();
        match first {
            Some((time, key)) if time <= now => {
                inner.order.remove(&(time, key.clone()));
                inner.due.remove(&key);
                inner.busy.insert(key.clone());
                Ok(key)
            }
            other => Err(other.map(|(time, _)| time)),
        }
    }

    async fn next(&self) -> K {
        loop {
            let woken = self.wake.notified();
            match self.take() {
                Ok(key) => return key,
                Err(Some(time)) => {
                    tokio::select! {
                        () = sleep_until(time) => {}
                        () = woken => {}
                    }
                }
                Err(None) => woken.await,
            }
        }
    }

    fn finish(&self, key: &K, result: Result<Next, Error>) {
        let longest = if result.is_ok() { AGAIN_MAX } else { RETRY_MAX };
        let next = result.unwrap_or_else(|error| {
            if error.is_conflict() {
                tracing::debug!(?key, %error, "trying again");
            } else {
                tracing::warn!(?key, %error, "trying again");
            }
            Next::Again
        });
        let again = {
            let mut inner = self.lock();
            inner.busy.remove(key);
            if next == Next::Again {
                let tries = inner.tries.entry(key.clone()).or_default();
                *tries = tries.saturating_add(1);
                Some(pause(*tries).min(longest))
            } else {
                inner.tries.remove(key);
                None
            }
        };
        match (next, again) {
            (_, Some(after)) | (Next::After(after), None) => self.add_after(key.clone(), after),
            // A key that was added while it was busy waits for this.
            _ => self.wake.notify_one(),
        }
    }

    /// Works for ever on at most `width` keys at a time.
    pub(super) async fn work<F, W>(&self, width: usize, mut work: F)
    where
        F: FnMut(K) -> W,
        W: Future<Output = Result<Next, Error>>,
    {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                key = self.next(), if running.len() < width => {
                    let job = work(key.clone());
                    running.push(async move { (key, job.await) });
                }
                Some((key, result)) = running.next(), if !running.is_empty() => {
                    self.finish(&key, result);
                }
            }
        }
    }
}

/// How long to wait before the next try.
fn pause(tries: u32) -> Duration {
    let factor = 2_u32.saturating_pow(tries.saturating_sub(1).min(16));
    RETRY_MIN.saturating_mul(factor).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_key_is_worked_on_once_at_a_time() {
        let queue = Queue::new();
        let (running, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for key in [1, 2, 1] {
            queue.add(key);
        }
        let work = queue.work(8, async |key| {
            assert!(running.fetch_add(1, Ordering::SeqCst) < 2);
            if key == 1 && done.load(Ordering::SeqCst) == 0 {
                // Added while it is busy: comes once more afterwards.
                queue.add(1);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            done.fetch_add(1, Ordering::SeqCst);
            Ok(Next::Rest)
        });
        let _ = tokio::time::timeout(Duration::from_secs(10), work).await;
        assert_eq!(done.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn later_means_later_and_the_earlier_time_stands() {
        let queue = Queue::new();
        let begin = Instant::now();
        queue.add_after("a", Duration::from_mins(1));
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(30));
        assert_eq!(queue.next().await, "a");
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_finished_comes_again_ever_later() {
        let queue = Queue::new();
        let tries = AtomicUsize::new(0);
        queue.add(());
        let work = queue.work(1, async |()| {
            tries.fetch_add(1, Ordering::SeqCst);
            Ok(Next::Again)
        });
        let _ = tokio::time::timeout(Duration::from_secs(10), work).await;
        let tries = tries.load(Ordering::SeqCst);
        assert!((9..=11).contains(&tries), "{tries}");
        assert_eq!(pause(1), RETRY_MIN);
        assert_eq!(pause(u32::MAX), RETRY_MAX);
    }
}
