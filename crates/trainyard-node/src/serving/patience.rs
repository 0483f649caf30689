//! Waiting for what may be known elsewhere sooner than here.
//!
//! Must not know what is waited for.

use std::time::Duration;

/// How long something that is asked for may be unknown here.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

/// What is looked for, as soon as it is there; none when it does not come, or will not as far as is known.
pub(super) async fn awaited<T, A: Future<Output = bool>>(
    look: impl Fn() -> Option<T>,
    may_come: impl Fn() -> A,
) -> Option<T> {
    let mut pause = LOOK;
    let seen = async {
        loop {
            if let Some(seen) = look() {
                return Some(seen);
            }
            if !may_come().await {
                return None;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_there_is_not_asked_about() {
        let asked = || async { panic!("nobody is to be asked") };
        assert_eq!(awaited(|| Some(7), asked).await, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_not_come_is_not_waited_for() {
        let begin = Instant::now();
        assert_eq!(awaited(|| None::<u8>, || async { false }).await, None);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_come_is_waited_for_but_not_for_ever() {
        let begin = Instant::now();
        let after_a_second = || (begin.elapsed() >= Duration::from_secs(1)).then_some(7);
        assert_eq!(awaited(after_a_second, || async { true }).await, Some(7));
        assert!(begin.elapsed() < PATIENCE);
        let begin = Instant::now();
        assert_eq!(awaited(|| None::<u8>, || async { true }).await, None);
        assert_eq!(begin.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_takes_too_long_ends_the_wait() {
        let begin = Instant::now();
        let silent = std::future::pending::<bool>;
        assert_eq!(awaited(|| None::<u8>, silent).await, None);
        assert_eq!(begin.elapsed(), PATIENCE);
    }
}
