//! One making for all who ask for the same environment in this process: each hears all of its progress
//! and the same outcome. It goes on when those who asked go away. Knows nothing of what is made.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::error::ImageError;
use crate::image::Progress;
use crate::store::Environment;

type Outcome = Result<Environment, ImageError>;

#[derive(Debug, Default)]
struct Going {
    told: Vec<Progress>,
    outcome: Option<Outcome>,
}

/// What is being made now, by name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Shared {
    going: Arc<Mutex<HashMap<String, watch::Receiver<Going>>>>,
}

/// Where a making tells of its progress.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    to: Arc<watch::Sender<Going>>,
}

impl Teller {
    pub(crate) fn tell(&self, progress: Progress) {
        self.to.send_modify(|going| going.told.push(progress));
    }
}

impl Shared {
    /// Waits for the making of this name, beginning it if it is not going on.
    pub(crate) async fn get<F>(
        &self,
        name: &str,
        make: impl FnOnce(Teller) -> F,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut going = self.join(name, make);
        let mut heard = 0;
        loop {
            let (news, outcome) = {
                let state = going.borrow_and_update();
                let news: Vec<_> = state.told.get(heard..).unwrap_or_default().to_vec();
                (news, state.outcome.clone())
            };
            heard += news.len();
            news.into_iter().for_each(progress);
            if let Some(outcome) = outcome {
                return outcome;
            }
            if going.changed().await.is_err() && going.borrow().outcome.is_none() {
                return Err(ImageError::Failed {
                    doing: format!("making environment {name}"),
                    said: "it was broken off".to_owned(),
                });
            }
        }
    }

    fn join<F>(&self, name: &str, make: impl FnOnce(Teller) -> F) -> watch::Receiver<Going>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut all = self.going.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose maker vanished without an outcome is begun anew.
        if let Some(going) = all.get(name)
            && going.has_changed().is_ok()
        {
            return going.clone();
        }
        let (sender, receiver) = watch::channel(Going::default());
        all.insert(name.to_owned(), receiver.clone());
        drop(all);
        let teller = Teller { to: Arc::new(sender) };
        let making = make(teller.clone());
        let (others, name) = (self.going.clone(), name.to_owned());
        tokio::spawn(async move {
            let outcome = making.await;
            others.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            teller.to.send_modify(|going| going.outcome = Some(outcome));
        });
        receiver
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::image::Step;

    fn failure() -> Outcome {
        Err(ImageError::NeverPull { reference: "x".to_owned() })
    }

    #[tokio::test]
    async fn two_who_ask_at_once_share_one_making() {
        let shared = Shared::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let make = |teller: Teller| {
            let begun = begun.clone();
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                teller.tell(Progress::new(Step::Making, "one"));
                tokio::time::sleep(Duration::from_millis(50)).await;
                teller.tell(Progress::new(Step::Checking, "two"));
                failure()
            }
        };
        let heard = [Mutex::new(Vec::new()), Mutex::new(Vec::new())];
        let hear = |who: usize| {
            let heard = &heard;
            move |progress: Progress| heard[who].lock().unwrap().push(progress.words)
        };
        let (hear_a, hear_b) = (hear(0), hear(1));
        let (a, b) = tokio::join!(shared.get("n", make, &hear_a), shared.get("n", make, &hear_b));
        assert_eq!((a, b), (failure(), failure()));
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        for words in &heard {
            assert_eq!(*words.lock().unwrap(), ["one", "two"]);
        }
        assert_eq!(shared.get("n", make, &|_| ()).await, failure());
        assert_eq!(
            begun.load(Ordering::SeqCst),
            2,
            "a failed making is tried again when asked again"
        );
    }

    #[tokio::test]
    async fn a_making_goes_on_without_the_one_who_began_it() {
        let shared = Shared::default();
        let done = Arc::new(AtomicUsize::new(0));
        let count = done.clone();
        let make = move |_| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            count.fetch_add(1, Ordering::SeqCst);
            failure()
        };
        let asked = shared.get("n", make, &|_| ());
        assert!(tokio::time::timeout(Duration::from_millis(10), asked).await.is_err());
        let joined = shared.get("n", |_| async { panic!("it is going on already") }, &|_| ());
        assert_eq!(joined.await, failure());
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_making_that_vanishes_is_an_error_for_all() {
        let shared = Shared::default();
        let error = shared.get("n", |_| async { panic!("broken") }, &|_| ()).await.unwrap_err();
        assert!(error.to_string().contains("broken off"), "{error}");
        assert_eq!(shared.get("n", |_| async { failure() }, &|_| ()).await, failure());
    }
}
