//! Keeps commands small that stay: what only their start or a burst needed goes back to the system.
//!
//! Owns how often. Must not know what the command does.

use std::convert::Infallible;
use std::time::Duration;

use trainyard_holder::memory::{forget_code, trim_heap};

/// When the start is over.
const FIRST: Duration = Duration::from_secs(2);
const OFTEN: Duration = Duration::from_mins(1);

/// Gives memory back again and again; never ends by itself.
pub(crate) async fn keep_small() -> Infallible {
    tokio::time::sleep(FIRST).await;
    loop {
        // The heap may be large, and looking through it takes its time.
        let given_back = tokio::task::spawn_blocking(|| {
            forget_code();
            trim_heap();
        });
        let _ = given_back.await;
        tokio::time::sleep(OFTEN).await;
    }
}
