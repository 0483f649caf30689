//! What cases stand on, started when the first of them needs it.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use futures::future::LocalBoxFuture;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::Case;

/// Something that plays cases over `F`, on the thread that asks.
pub(crate) trait Ground<F>: Send + Sync + 'static {
    /// Plays a case to its end.
    fn play(&self, case: &Case<F>) -> Result<()>;

    /// Whether a case has needed it.
    fn is_started(&self) -> bool;
}

type Start<F> = Box<dyn Fn() -> LocalBoxFuture<'static, Result<F>> + Send + Sync>;

/// A fixture that all cases share, in real time.
pub(crate) struct Fixture<F> {
    start: Start<F>,
    started: OnceCell<Result<F, String>>,
    runtime: Handle,
    interrupted: CancellationToken,
}

impl<F: Clone + Send + Sync + 'static> Fixture<F> {
    /// One that `start` starts.
    pub(super) fn new(
        runtime: Handle,
        interrupted: CancellationToken,
        start: impl AsyncFn() -> Result<F> + Clone + Send + Sync + 'static,
    ) -> Arc<Self> {
        let start: Start<F> = Box::new(move || {
            let start = start.clone();
            Box::pin(async move { start().await })
        });
        Arc::new(Self { start, started: OnceCell::new(), runtime, interrupted })
    }

    /// The fixture. One that did not start is not tried again.
    pub(crate) async fn get(&self) -> Result<F> {
        let start = async || (self.start)().await.map_err(|error| format!("{error:#}"));
        let started = self.started.get_or_init(start).await;
        started.clone().map_err(|error| anyhow!("what it stands on did not start: {error}"))
    }
}

impl<F: Clone + Send + Sync + 'static> Ground<F> for Fixture<F> {
    fn play(&self, case: &Case<F>) -> Result<()> {
        // Not within the case's time: programs may have to be started.
        self.runtime.block_on(async {
            let play = async { case.play(self.get().await?).await };
            tokio::select! {
                biased;
                () = self.interrupted.cancelled() => bail!("interrupted"),
                result = play => result,
            }
        })
    }

    fn is_started(&self) -> bool {
        self.started.initialized()
    }
}
