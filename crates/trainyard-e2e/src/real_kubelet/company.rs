//! Stories that live through the same outage: it begins when all of them are ready for it, and ends when all of
//! them have seen enough. One that fails, or is played by itself, holds up nobody.
//!
//! Must not know what an outage is.

use anyhow::{Result, anyhow};
use tokio::sync::watch;

/// Those who meet. The one that comes last does what all wait for.
#[derive(Debug, Default)]
pub(super) struct Company {
    state: watch::Sender<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    members: usize,
    /// Those that have come to the next meeting.
    waiting: usize,
    /// Meetings that are over.
    meetings: u64,
    /// They have met, so that nobody can join any more.
    closed: bool,
    /// One of them does what all wait for.
    busy: bool,
    /// The error of what was done last.
    error: Option<String>,
}

impl State {
    fn is_complete(&self) -> bool {
        self.waiting >= self.members && !self.busy
    }
}

/// A place in a company, until it is dropped.
#[derive(Debug)]
pub(super) struct Member<'a>(&'a Company);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.members -= 1;
            state.closed &= state.members > 0;
        });
    }
}

/// Somebody at a meeting, who may be called away.
struct Waiting<'a>(&'a Company, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Self(company, meeting) = *self;
        company.state.send_if_modified(|state| {
            let is_left = state.meetings == meeting;
            state.waiting -= usize::from(is_left);
            is_left
        });
    }
}

/// Somebody who does what all wait for, and may be called away too.
struct Busy<'a>(&'a Company);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.busy = false);
    }
}

impl Company {
    /// Joins those that have not met yet; waits for the end of a company that has.
    pub(super) async fn join(&self) -> Member<'_> {
        let mut states = self.state.subscribe();
        loop {
            let joined = self.state.send_if_modified(|state| {
                state.members += usize::from(!state.closed);
                !state.closed
            });
            if joined {
                return Member(self);
            }
            // The sender is ours: there is no error.
            let _ = states.wait_for(|state| !state.closed).await;
        }
    }

    /// Is there nobody?
    pub(super) fn is_empty(&self) -> bool {
        self.state.borrow().members == 0
    }

    /// Waits for all others; one of them does the deed, and all learn how it went.
    pub(super) async fn meet(&self, deed: impl AsyncFn() -> Result<()>) -> Result<()> {
        let mut meeting = 0;
        self.state.send_modify(|state| {
            state.waiting += 1;
            meeting = state.meetings;
        });
        let _waiting = Waiting(self, meeting);
        let mut states = self.state.subscribe();
        loop {
            let is_over = |state: &State| state.meetings != meeting;
            let now = states.wait_for(|state| is_over(state) || state.is_complete()).await?.clone();
            if is_over(&now) {
                return now.error.map_or(Ok(()), |error| Err(anyhow!("{error}")));
            }
            let is_mine = self.state.send_if_modified(|state| {
                let is_mine = !is_over(state) && state.is_complete();
                state.busy |= is_mine;
                is_mine
            });
            if is_mine {
                let busy = Busy(self);
                let done = deed().await;
                self.state.send_modify(|state| {
                    state.meetings += 1;
                    state.waiting = 0;
                    state.closed = state.members > 0;
                    state.error = done.as_ref().err().map(|error| format!("{error:#}"));
                });
                drop(busy);
                return done;
            }
        }
    }

    /// Returns when all others wait for a meeting. Only one of them may ask.
    pub(super) async fn all_others_wait(&self) -> Result<()> {
        let mut states = self.state.subscribe();
        states.wait_for(|state| state.waiting + 1 >= state.members && !state.busy).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use anyhow::bail;

    use super::*;

    async fn after(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_all_wait_for_is_done_once_by_the_last() {
        let (company, log) = (Company::default(), RefCell::new(Vec::new()));
        let told = |line: String| -> Result<()> {
            log.borrow_mut().push(line);
            Ok(())
        };
        let one = async |name: &'static str, seconds| {
            let _member = company.join().await;
            after(seconds).await;
            company.meet(async || told(format!("{name} begins"))).await.unwrap();
            log.borrow_mut().push(format!("{name} sees"));
            after(10 - seconds).await;
            company.meet(async || told(format!("{name} ends"))).await.unwrap();
        };
        tokio::join!(one("a", 1), one("b", 3), one("c", 2));
        let told = log.borrow();
        assert_eq!(told[0], "b begins");
        assert_eq!(told.last().unwrap(), "a ends");
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(company.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_fails_or_is_called_away_holds_up_nobody() {
        let company = Company::default();
        let goes_on = async {
            let _member = company.join().await;
            company.meet(async || Ok(())).await
        };
        let fails = async {
            let _member = company.join().await;
            after(5).await;
        };
        let is_called_away = async {
            let _member = company.join().await;
            let never = company.meet(async || std::future::pending().await);
            assert!(tokio::time::timeout(Duration::from_secs(2), never).await.is_err());
        };
        let (gone_on, (), ()) = tokio::join!(goes_on, fails, is_called_away);
        gone_on.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_deed_that_fails_is_told_to_all() {
        let company = Company::default();
        let one = async || {
            let _member = company.join().await;
            company.meet(async || bail!("no power")).await.unwrap_err().to_string()
        };
        assert_eq!(tokio::join!(one(), one()), ("no power".to_owned(), "no power".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_late_is_of_the_next_company() {
        let (company, log) = (Company::default(), RefCell::new(Vec::new()));
        let told = |name: &'static str| -> Result<()> {
            log.borrow_mut().push(name);
            Ok(())
        };
        let one = async |name: &'static str, late| {
            after(late).await;
            let _member = company.join().await;
            company.meet(async || told(name)).await.unwrap();
            after(10).await;
            log.borrow_mut().push(name);
        };
        tokio::join!(one("first", 0), one("late", 5));
        assert_eq!(*log.borrow(), ["first", "first", "late", "late"]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_s_company_is_complete() {
        let company = Company::default();
        company.meet(async || Ok(())).await.unwrap();
        company.all_others_wait().await.unwrap();
        assert!(company.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_can_see_that_all_others_wait() {
        let company = Company::default();
        let waits = async |seconds| {
            let _member = company.join().await;
            after(seconds).await;
            company.meet(async || Ok(())).await.unwrap();
        };
        let last = async {
            let _member = company.join().await;
            let asked = tokio::time::Instant::now();
            company.all_others_wait().await.unwrap();
            assert_eq!(asked.elapsed(), Duration::from_secs(7));
            company.meet(async || Ok(())).await.unwrap();
        };
        tokio::join!(waits(3), waits(7), last);
    }
}
