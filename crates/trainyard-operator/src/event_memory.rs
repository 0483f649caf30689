//! Which events were told before.
//!
//! The same event again is not a new object: within a few seconds it is only counted, later the
//! count of the first one is raised. Bounded. Must not know how events are written.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use trainyard_core::Event;

/// How many events are remembered.
const REMEMBERED_MAX: usize = 4096;
/// The same event within this time is only counted.
const QUIET: Duration = Duration::from_secs(5);

/// What to do with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Write it; the number makes its name unique.
    New(u64),
    /// It was written before under that number; raise its count to this.
    Before(u64, u32),
    /// It was written just now.
    JustNow,
}

#[derive(Debug)]
struct Remembered {
    number: u64,
    count: u32,
    written: Timestamp,
    used: u64,
}

/// Events told before, the oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    events: BTreeMap<u64, Remembered>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

impl Memory {
    /// What to do with an event about the object of that UID.
    pub(crate) fn tell(&mut self, uid: &str, event: &Event, now: Timestamp) -> Told {
        let key = hash(&(uid, event.kind.as_str(), &event.reason, &event.message));
        self.uses += 1;
        if let Some(before) = self.events.get_mut(&key) {
            self.by_use.remove(&before.used);
            self.by_use.insert(self.uses, key);
            before.used = self.uses;
            before.count = before.count.saturating_add(1);
            let quiet = SignedDuration::try_from(QUIET).unwrap_or_default();
            if now.duration_since(before.written) < quiet {
                return Told::JustNow;
            }
            before.written = now;
            return Told::Before(before.number, before.count);
        }
        if self.events.len() >= REMEMBERED_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.events.remove(&oldest);
        }
        let number = hash(&(key, now.as_nanosecond(), self.uses));
        self.by_use.insert(self.uses, key);
        self.events.insert(key, Remembered { number, count: 1, written: now, used: self.uses });
        Told::New(number)
    }
}

/// The same for the same input in every process, so that runs can be repeated.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn the_same_again_is_counted_and_told_later() {
        let mut memory = Memory::default();
        let event = Event::warning("FailedCreatePod", "Error creating: quota");
        let Told::New(number) = memory.tell("uid", &event, at(0)) else { panic!("new") };
        assert_eq!(memory.tell("uid", &event, at(1)), Told::JustNow);
        assert_eq!(memory.tell("uid", &event, at(4)), Told::JustNow);
        assert_eq!(memory.tell("uid", &event, at(6)), Told::Before(number, 4));
        assert_eq!(memory.tell("uid", &event, at(7)), Told::JustNow);
        assert_eq!(memory.tell("uid", &event, at(20)), Told::Before(number, 6));
    }

    #[test]
    fn another_object_reason_type_or_message_is_another_event() {
        let mut memory = Memory::default();
        let mut numbers = std::collections::BTreeSet::new();
        for (uid, event) in [
            ("a", Event::normal("R", "m")),
            ("b", Event::normal("R", "m")),
            ("a", Event::normal("S", "m")),
            ("a", Event::normal("R", "n")),
            ("a", Event::warning("R", "m")),
        ] {
            let Told::New(number) = memory.tell(uid, &event, at(0)) else { panic!("new") };
            numbers.insert(number);
        }
        assert_eq!(numbers.len(), 5);
    }

    #[test]
    fn it_forgets_the_one_not_used_longest() {
        let mut memory = Memory::default();
        let event = |n: usize| Event::normal("R", n.to_string());
        for n in 0..REMEMBERED_MAX {
            memory.tell("uid", &event(n), at(0));
        }
        memory.tell("uid", &event(0), at(1));
        memory.tell("uid", &event(REMEMBERED_MAX), at(1));
        assert_eq!(memory.tell("uid", &event(0), at(2)), Told::JustNow);
        assert!(matches!(memory.tell("uid", &event(1), at(2)), Told::New(_)));
        assert_eq!(memory.events.len(), REMEMBERED_MAX);
        assert_eq!(memory.by_use.len(), REMEMBERED_MAX);
    }
}
