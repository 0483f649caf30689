//! Whether the operator lives and is ready, and what somebody should look at.
//!
//! Must not know how it is asked.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// State of an operator as probes see it.
#[derive(Debug, Default)]
pub struct Health {
    ended: AtomicBool,
    synced: AtomicBool,
    acting: AtomicBool,
    warnings: Mutex<Vec<String>>,
}

impl Health {
    /// Whether the operator has not ended.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    /// Whether everything has been read once. An operator that waits for its lease is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.synced.load(Ordering::Relaxed) && self.is_live()
    }

    /// Whether the operator acts: it needs no lease or holds it.
    #[must_use]
    pub fn is_acting(&self) -> bool {
        self.acting.load(Ordering::Relaxed) && self.is_live()
    }

    /// What somebody should look at although the operator works.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_acting(&self) {
        self.acting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn warn(&self, warning: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }
}
