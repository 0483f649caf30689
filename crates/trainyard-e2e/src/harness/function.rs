//! What a case may be written as: an async function that takes its fixture, or borrows it; one of two
//! parts takes them one by one.

use std::sync::Arc;

use anyhow::Result;
use futures::future::LocalBoxFuture;

/// An async function over a fixture. The form says how it takes it, and is inferred.
pub(crate) trait Function<F, Form>: Send + Sync + 'static {
    /// Calls it.
    fn call(&self, fixture: F) -> LocalBoxFuture<'static, Result<()>>;
}

/// Takes the fixture.
pub(crate) enum Taken {}
/// Borrows the fixture.
pub(crate) enum Borrowed {}
/// Takes both parts of it.
pub(crate) enum BothTaken {}
/// Borrows both parts of it.
pub(crate) enum BothBorrowed {}

impl<F, P> Function<F, Taken> for P
where
    F: 'static,
    P: AsyncFn(F) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn call(&self, fixture: F) -> LocalBoxFuture<'static, Result<()>> {
        let play = self.clone();
        Box::pin(async move { play(fixture).await })
    }
}

impl<T, P> Function<Arc<T>, Borrowed> for P
where
    T: ?Sized + 'static,
    P: AsyncFn(&T) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn call(&self, fixture: Arc<T>) -> LocalBoxFuture<'static, Result<()>> {
        let play = self.clone();
        Box::pin(async move { play(&fixture).await })
    }
}

impl<A, B, P> Function<(A, B), BothTaken> for P
where
    A: 'static,
    B: 'static,
    P: AsyncFn(A, B) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn call(&self, (first, second): (A, B)) -> LocalBoxFuture<'static, Result<()>> {
        let play = self.clone();
        Box::pin(async move { play(first, second).await })
    }
}

impl<A, B, P> Function<(Arc<A>, Arc<B>), BothBorrowed> for P
where
    A: ?Sized + 'static,
    B: ?Sized + 'static,
    P: AsyncFn(&A, &B) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn call(&self, (first, second): (Arc<A>, Arc<B>)) -> LocalBoxFuture<'static, Result<()>> {
        let play = self.clone();
        Box::pin(async move { play(&first, &second).await })
    }
}
