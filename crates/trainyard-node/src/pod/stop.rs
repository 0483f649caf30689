//! Ending a pod: who has been told to stop, by when, and why.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// An order to end everything in a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop {
    /// What is left then is killed.
    pub(crate) kill_at: Instant,
}

/// Gives the order; a second one may only shorten the time left.
#[derive(Debug)]
pub(crate) struct Stopper(watch::Sender<Option<Stop>>);

/// Hears the order.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<Option<Stop>>);

/// The pod was told to stop while something else was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// A pair of the two.
pub(crate) fn order() -> (Stopper, Stopping) {
    let (sender, receiver) = watch::channel(None);
    (Stopper(sender), Stopping(receiver))
}

impl Stopper {
    /// Everything is to end, and is killed after this time.
    pub(crate) fn stop(&self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        self.0.send_if_modified(|stop| {
            let sooner = stop.is_none_or(|stop| kill_at < stop.kill_at);
            if sooner {
                *stop = Some(Stop { kill_at });
            }
            sooner
        });
    }
}

impl Stopping {
    /// Whether the order was given.
    pub(crate) fn is_given(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits for the order.
    pub(crate) async fn given(&mut self) -> Stop {
        loop {
            if let Some(stop) = *self.0.borrow_and_update() {
                return stop;
            }
            if self.0.changed().await.is_err() {
                // Nobody can give it any more.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the time to kill, which may come nearer meanwhile.
    pub(crate) async fn out_of_time(&mut self) {
        loop {
            let stop = self.given().await;
            tokio::select! {
                () = tokio::time::sleep_until(stop.kill_at) => return,
                changed = self.0.changed() => if changed.is_err() {
                    tokio::time::sleep_until(stop.kill_at).await;
                    return;
                },
            }
        }
    }

    /// Waits for something unless the order comes first.
    pub(crate) async fn or<T>(&self, what: impl Future<Output = T>) -> Result<T, Stopped> {
        let mut stopping = self.clone();
        tokio::select! {
            biased;
            _ = stopping.given() => Err(Stopped),
            result = what => Ok(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_order_only_shortens_the_time() {
        let (stopper, mut stopping) = order();
        assert!(!stopping.is_given());
        stopper.stop(Duration::from_secs(30));
        let begin = Instant::now();
        let mut waiting = stopping.clone();
        let waiter = tokio::spawn(async move {
            waiting.out_of_time().await;
            Instant::now()
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        stopper.stop(Duration::from_mins(1));
        stopper.stop(Duration::from_secs(2));
        assert_eq!((waiter.await.unwrap() - begin).as_secs(), 3);
        assert_eq!((stopping.given().await.kill_at - begin).as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_order() {
        let (stopper, stopping) = order();
        assert_eq!(stopping.or(async { 7 }).await, Ok(7));
        let pending = stopping.or(std::future::pending::<()>());
        stopper.stop(Duration::ZERO);
        assert_eq!(pending.await, Err(Stopped));
    }
}
