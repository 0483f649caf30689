//! Who is connected: strangers, who have shown no credentials yet, and acquaintances, who have. Strangers
//! have places of their own, so that no number of them keeps an acquaintance out.
//!
//! Owns the counting and who has to go. Must not know sockets nor what is asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a stranger may do nothing: a head that comes slowly is nothing, too.
pub(super) const IDLE: Duration = Duration::from_secs(5);
/// For so long a newcomer is not sent away: time for a handshake and to say who it is.
const FRESH: Duration = Duration::from_secs(1);
/// There are places for so many strangers, at least.
const STRANGERS: usize = 64;

/// The places of a server.
pub(super) struct Lobby {
    /// Places of strangers.
    strangers: usize,
    /// Places of acquaintances.
    acquaintances: usize,
    guests: Mutex<Guests>,
    /// Somebody has left.
    left: Notify,
}

#[derive(Default)]
struct Guests {
    next: u64,
    strangers: BTreeMap<u64, Stranger>,
    acquaintances: usize,
}

#[derive(Debug)]
struct Stranger {
    /// When it came, or was last answered.
    since: Instant,
    leave: CancellationToken,
}

/// Whether there is room for a newcomer.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    Free,
    /// When this one has gone, who has done nothing for longest.
    Without(u64),
    /// Nobody has been here for long enough before then.
    At(Instant),
}

/// Decides who has to go for a newcomer.
fn room(strangers: &BTreeMap<u64, Stranger>, places: usize, now: Instant) -> Room {
    if strangers.len() < places {
        return Room::Free;
    }
    match strangers.iter().min_by_key(|(_, one)| one.since) {
        Some((number, one)) if one.since + FRESH <= now => Room::Without(*number),
        Some((_, one)) => Room::At(one.since + FRESH),
        None => Room::Free,
    }
}

impl Lobby {
    /// Room for so many acquaintances, and a quarter of it for strangers.
    pub(super) fn new(connections: usize) -> Self {
        Self {
            strangers: (connections / 4).max(STRANGERS),
            acquaintances: connections,
            guests: Mutex::default(),
            left: Notify::new(),
        }
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is a place for one more stranger, and sends another away for it.
    pub(super) async fn make_room(&self) {
        loop {
            let left = self.left.notified();
            let wait = {
                let mut guests = self.guests();
                match room(&guests.strangers, self.strangers, Instant::now()) {
                    Room::Free => return,
                    Room::Without(number) => {
                        if let Some(stranger) = guests.strangers.remove(&number) {
                            stranger.leave.cancel();
                        }
                        return;
                    }
                    Room::At(then) => then,
                }
            };
            tokio::select! {
                () = left => {}
                () = tokio::time::sleep_until(wait) => {}
            }
        }
    }

    /// The place of one who has just come.
    pub(super) fn enter(self: &Arc<Self>) -> Seat {
        let leave = CancellationToken::new();
        let mut guests = self.guests();
        let number = guests.next;
        guests.next += 1;
        guests.strangers.insert(number, Stranger { since: Instant::now(), leave: leave.clone() });
        Seat { lobby: Arc::clone(self), number, leave, is_known: Mutex::new(false) }
    }
}

/// The place of a connection, free again when it is dropped.
pub(crate) struct Seat {
    lobby: Arc<Lobby>,
    number: u64,
    leave: CancellationToken,
    is_known: Mutex<bool>,
}

impl Seat {
    fn is_known(&self) -> MutexGuard<'_, bool> {
        self.is_known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has shown who it is. Whether there is a place for it among acquaintances.
    pub(super) fn welcome(&self) -> bool {
        let mut is_known = self.is_known();
        if *is_known {
            return true;
        }
        let mut guests = self.lobby.guests();
        if guests.acquaintances >= self.lobby.acquaintances {
            return false;
        }
        guests.acquaintances += 1;
        guests.strangers.remove(&self.number);
        *is_known = true;
        drop(guests);
        self.lobby.left.notify_one();
        true
    }

    /// It was answered: what it has not done before counts no more.
    pub(super) fn answered(&self) {
        if let Some(stranger) = self.lobby.guests().strangers.get_mut(&self.number) {
            stranger.since = Instant::now();
        }
    }

    /// Returns when it has to go: sent away for a newcomer, or a stranger that does nothing.
    pub(super) async fn must_leave(&self) {
        let idle = async {
            loop {
                let until = {
                    let guests = self.lobby.guests();
                    guests.strangers.get(&self.number).map(|stranger| stranger.since + IDLE)
                };
                match until {
                    Some(until) if until <= Instant::now() => return,
                    Some(until) => tokio::time::sleep_until(until).await,
                    // An acquaintance, who is bound by other times; or one who is being sent away.
                    None => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = self.leave.cancelled() => {}
            () = idle => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let is_known = *self.is_known();
        let mut guests = self.lobby.guests();
        if is_known {
            guests.acquaintances = guests.acquaintances.saturating_sub(1);
        } else {
            guests.strangers.remove(&self.number);
        }
        drop(guests);
        self.lobby.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(times: &[Instant]) -> BTreeMap<u64, Stranger> {
        let stranger =
            |since: &Instant| Stranger { since: *since, leave: CancellationToken::new() };
        (0..).zip(times.iter().map(stranger)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_stranger_that_did_nothing_for_longest_goes() {
        let now = Instant::now() + FRESH * 10;
        let [long, short, fresh] = [now - FRESH * 3, now - FRESH * 2, now - FRESH / 2];
        assert_eq!(room(&since(&[fresh, long, short]), 4, now), Room::Free);
        assert_eq!(room(&since(&[fresh, long, short]), 3, now), Room::Without(1));
        assert_eq!(room(&since(&[fresh, now]), 2, now), Room::At(fresh + FRESH));
        assert_eq!(room(&since(&[]), 0, now), Room::Free);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_make_room_for_each_other_and_never_take_that_of_acquaintances() {
        let lobby = Arc::new(Lobby::new(4));
        let known = lobby.enter();
        assert!(known.welcome() && known.welcome());
        let mut strangers = Vec::new();
        for _ in 0..STRANGERS * 3 {
            lobby.make_room().await;
            strangers.push(lobby.enter());
        }
        let present = lobby.guests().strangers.len();
        assert_eq!(present, STRANGERS);
        let gone = strangers.iter().filter(|seat| seat.leave.is_cancelled()).count();
        assert_eq!(gone, STRANGERS * 2);
        assert!(!known.leave.is_cancelled());
        assert!(strangers.pop().unwrap().welcome());
        drop(strangers);
        assert!(lobby.guests().strangers.is_empty());
        assert_eq!(lobby.guests().acquaintances, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn acquaintances_have_a_bound_too() {
        let lobby = Arc::new(Lobby::new(2));
        let seats = [lobby.enter(), lobby.enter(), lobby.enter()];
        assert_eq!(seats.each_ref().map(Seat::welcome), [true, true, false]);
        let [first, _second, third] = seats;
        drop(first);
        assert!(third.welcome());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_may_not_stay_for_nothing_and_an_acquaintance_may() {
        let lobby = Arc::new(Lobby::new(4));
        let (stranger, known) = (lobby.enter(), lobby.enter());
        assert!(known.welcome());
        let begin = Instant::now();
        tokio::select! {
            () = stranger.must_leave() => {}
            () = async {
                tokio::time::sleep(IDLE / 2).await;
                stranger.answered();
                std::future::pending::<()>().await;
            } => {}
        }
        assert_eq!(begin.elapsed(), IDLE + IDLE / 2);
        let stays = tokio::time::timeout(IDLE * 10, known.must_leave()).await;
        assert!(stays.is_err());
    }
}
