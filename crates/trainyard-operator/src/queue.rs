//! The work queue: waits for the next job whose turn has come.
//!
//! The rules are in `schedule`; this only adds waiting. Must not know what a pass does.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    Metrics, Options,
    schedule::{Cause, Next, Schedule, Uid, Verdict},
};

/// Jobs that wait for a pass.
#[derive(Debug)]
pub(crate) struct Queue {
    schedule: Mutex<Schedule>,
    news: Notify,
    /// How many jobs waited when it was last counted.
    depth: AtomicUsize,
    metrics: Arc<Metrics>,
}

impl Queue {
    pub(crate) fn new(options: &Options, metrics: Arc<Metrics>) -> Self {
        let schedule = Schedule::new(options.retry_min, options.retry_max);
        Self {
            schedule: Mutex::new(schedule),
            news: Notify::new(),
            depth: AtomicUsize::new(0),
            metrics,
        }
    }

    /// Something happened to a job.
    pub(crate) fn wake(&self, uid: &str, cause: Cause) {
        self.lock().wake(uid, cause, Instant::now());
        self.news.notify_one();
    }

    /// A job does not exist any more.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().forget(uid);
    }

    /// Waits for the next job. Only one task may wait at a time.
    pub(crate) async fn next(self: &Arc<Self>) -> Turn {
        loop {
            let next = {
                let mut schedule = self.lock();
                let next = schedule.next(Instant::now());
                let waiting = schedule.waiting();
                let before = self.depth.swap(waiting, Ordering::Relaxed);
                self.metrics.queue_depth(before, waiting);
                next
            };
            match next {
                Next::Job(uid) => return Turn { queue: Arc::clone(self), uid, verdict: None },
                Next::Never => self.news.notified().await,
                Next::At(at) => {
                    tokio::select! {
                        () = self.news.notified() => {}
                        () = sleep_until(at) => {}
                    }
                }
            }
        }
    }

    fn finish(&self, uid: &Uid, verdict: Verdict) {
        self.lock().finish(uid, verdict, Instant::now());
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's turn. When it is dropped the pass has ended; without a verdict it counts as failed.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: Arc<Queue>,
    pub(crate) uid: Uid,
    verdict: Option<Verdict>,
}

impl Turn {
    /// The pass has ended.
    pub(crate) fn finish(mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let verdict = self.verdict.unwrap_or(Verdict::Retry(std::time::Duration::ZERO));
        self.queue.finish(&self.uid, verdict);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timer_wakes_at_its_time_and_news_before_it() {
        let queue = Arc::new(Queue::new(&Options::default(), Arc::default()));
        let begin = Instant::now();
        queue.wake("a", Cause::Job(1));
        let turn = queue.next().await;
        turn.finish(Verdict::Wait(Some(begin + Duration::from_hours(1))));
        let turn = queue.next().await;
        assert_eq!(begin.elapsed(), Duration::from_hours(1));
        turn.finish(Verdict::Wait(Some(begin + Duration::from_hours(2))));
        let waker = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            queue.wake("a", Cause::Child);
        };
        let (turn, ()) = tokio::join!(queue.next(), waker);
        assert_eq!(&*turn.uid, "a");
        assert_eq!(begin.elapsed().as_secs(), 3610);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_is_dropped_is_made_again() {
        let queue = Arc::new(Queue::new(&Options::default(), Arc::default()));
        queue.wake("a", Cause::Job(1));
        drop(queue.next().await);
        let begin = Instant::now();
        assert_eq!(&*queue.next().await.uid, "a");
        assert_eq!(begin.elapsed(), Duration::from_millis(5));
    }
}
