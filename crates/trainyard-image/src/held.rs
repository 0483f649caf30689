//! The environments that this process uses: nobody removes them while it lives. And the removal of those
//! that nobody uses.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::ImageError;
use crate::store::{Environment, Lock, Store};

/// Those that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Held {
    locks: Mutex<HashMap<String, Lock>>,
}

impl Held {
    /// Holds an environment until this process ends. False: it is being removed.
    pub(crate) fn take(&self, store: &Store, found: &Environment) -> bool {
        let Some(name) = found.dir.file_name().and_then(|name| name.to_str()) else { return true };
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(name) {
            lock.touch();
            return true;
        }
        match store.hold(name) {
            Ok(Some(lock)) => {
                locks.insert(name.to_owned(), lock);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(name, %error, "that an environment is used cannot be noted");
                true
            }
        }
    }

    /// Notes that all of them are still used.
    fn touch(&self) {
        let locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.values().for_each(Lock::touch);
    }

    /// Removes what nobody has used for so long; names what it removed.
    pub(crate) async fn sweep(&self, store: &Store, unused_for: Duration) -> Vec<String> {
        self.touch();
        let mut removed = Vec::new();
        for name in store.names() {
            let Some(_locks) = store.idle(&name, unused_for) else { continue };
            match store.clear(&name).await {
                Ok(()) => removed.push(name),
                Err(error) => tracing::warn!(name, %error, "an old environment is left"),
            }
        }
        removed
    }
}

/// What is said of an environment that goes away again and again.
pub(crate) fn goes_away(found: &Environment) -> ImageError {
    ImageError::Failed {
        doing: format!("using environment {}", found.dir.display()),
        said: "it is being removed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::tests::tensorflow;
    use crate::store::tests::{add, age, empty};

    const DAY: Duration = Duration::from_hours(24);

    #[tokio::test]
    async fn what_a_process_uses_is_left_and_the_rest_goes() {
        let kept = empty();
        let store = &kept.store;
        let (used, idle) =
            (add(store, "2.16.1", 11, &[]).await, add(store, "2.9.1", 10, &[]).await);
        let (mine, other) = (Held::default(), Held::default());
        let found = store.best(&tensorflow("2.16.1", &[])).unwrap();
        assert!(mine.take(store, &found) && mine.take(store, &found));
        assert_eq!(other.sweep(store, DAY).await, Vec::<String>::new(), "first seen just now");
        for name in [&used, &idle] {
            age(store, name, 2 * DAY);
        }
        assert_eq!(other.sweep(store, DAY).await, [idle.as_str()]);
        assert!(!store.dir(&idle).exists() && store.read(&used).is_some());
        // It was used until just now, however long ago it was asked for.
        assert_eq!(mine.sweep(store, DAY).await, Vec::<String>::new());
        drop(mine);
        assert_eq!(other.sweep(store, DAY).await, Vec::<String>::new());
        age(store, &used, 2 * DAY);
        assert_eq!(other.sweep(store, DAY).await, [used]);
        assert!(!other.take(store, &found), "it is gone");
    }
}
