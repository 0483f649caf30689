//! What the scheduler has heard: its state, shared between those who tell and the one who decides.
//!
//! Must not act.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use trainyard_sched::{Config, Decision, Delta, State};

use super::seen::{Key, Kind, Seen, Told};
use crate::Health;
use crate::watch::News;

/// What is known.
pub(super) struct World {
    known: Mutex<Known>,
    changed: Notify,
    /// For whoever sums up queues.
    sums: Notify,
    /// For whoever looks after plain pods.
    pods: Notify,
    health: Arc<Health>,
}

struct Known {
    state: State,
    /// Where objects are by their identity: a deletion tells only that.
    keys: BTreeMap<Kind, BTreeMap<String, Key>>,
    /// The kinds that have been listed, or that there are none of.
    settled: BTreeSet<Kind>,
    /// The kinds that the API server knows.
    served: BTreeSet<Kind>,
}

/// What was decided, and until when that holds if nothing changes.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) decisions: Vec<Decision>,
    /// In seconds since 1970.
    pub(super) due: Option<i64>,
    /// How many groups wait.
    pub(super) waiting: usize,
}

impl World {
    pub(super) fn new(config: Config, health: Arc<Health>) -> Self {
        let known = Known {
            state: State::with(config),
            keys: BTreeMap::new(),
            settled: BTreeSet::new(),
            served: BTreeSet::new(),
        };
        Self {
            known: Mutex::new(known),
            changed: Notify::new(),
            sums: Notify::new(),
            pods: Notify::new(),
            health,
        }
    }

    fn locked(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear<T: Told>(&self, news: News<Seen<T>>) {
        let mut known = self.locked();
        let is_news = match news {
            News::All { objects, .. } => known.all(objects),
            News::There(Seen(object)) => known.there(object),
            News::Gone { uid, .. } => {
                let key = known.keys.entry(T::KIND).or_default().remove(&uid);
                key.map(|key| known.state.apply(T::gone(key))).is_some()
            }
        };
        let is_settled = known.is_settled();
        drop(known);
        if is_settled {
            self.health.set_synced();
        }
        if is_news {
            self.look_again();
        }
        // Queues compare what their status says, which is no news to a decision.
        if matches!(T::KIND, Kind::Queues) {
            self.sums.notify_one();
        }
    }

    /// There is nothing of a kind, because there is no such kind.
    pub(super) fn absent<T: Told>(&self) {
        let mut known = self.locked();
        known.all::<T>(Vec::new());
        known.served.remove(&T::KIND);
        let is_settled = known.is_settled();
        drop(known);
        if is_settled {
            self.health.set_synced();
        }
        self.look_again();
    }

    /// Whether the API server knows a kind.
    pub(super) fn is_served(&self, kind: Kind) -> bool {
        self.locked().served.contains(&kind)
    }

    /// Tells the state what became of a decision.
    pub(super) fn tell(&self, delta: Delta) {
        self.locked().state.apply(delta);
        self.look_again();
    }

    /// The same where it changes nothing that is to be decided.
    pub(super) fn tell_quietly(&self, delta: Delta) {
        self.locked().state.apply(delta);
    }

    /// Reads the state.
    pub(super) fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.locked().state)
    }

    /// Waits for something new.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits for something that queues may have to tell of.
    pub(super) async fn sums_changed(&self) {
        self.sums.notified().await;
    }

    /// Waits for something that may be a new pod.
    pub(super) async fn pods_changed(&self) {
        self.pods.notified().await;
    }

    /// Has everybody look again.
    pub(super) fn look_again(&self) {
        self.changed.notify_one();
        self.sums.notify_one();
        self.pods.notify_one();
    }

    /// What is to be done now; nothing before everything is known.
    pub(super) fn decide(&self, now: i64) -> Option<Outcome> {
        let mut known = self.locked();
        if !known.is_settled() {
            return None;
        }
        let decisions = known.state.decide(now);
        let due = known.state.next_due(now);
        let waiting = known.state.waiting().count();
        drop(known);
        if !decisions.is_empty() {
            self.sums.notify_one();
        }
        Some(Outcome { decisions, due, waiting })
    }
}

impl Known {
    fn is_settled(&self) -> bool {
        self.settled.len() == Kind::ALL.len()
    }

    /// Everything there is of a kind. Only what is gone is forgotten: bindings under way are still
    /// under way.
    fn all<T: Told>(&mut self, objects: Vec<Seen<T>>) -> bool {
        let before = self.keys.remove(&T::KIND).unwrap_or_default();
        let there: BTreeSet<Key> = objects.iter().map(|Seen(object)| object.key()).collect();
        for key in before.into_values().filter(|key| !there.contains(key)) {
            self.state.apply(T::gone(key));
        }
        for Seen(object) in objects {
            self.there(object);
        }
        self.settled.insert(T::KIND);
        self.served.insert(T::KIND);
        true
    }

    /// An object is there; whether that matters.
    fn there<T: Told>(&mut self, object: T) -> bool {
        let keys = self.keys.entry(T::KIND).or_default();
        if !keys.contains_key(object.uid()) {
            keys.insert(object.uid().to_owned(), object.key());
        }
        let delta = object.there();
        let is_news = self.state.is_news(&delta);
        self.state.apply(delta);
        is_news
    }
}
