//! Changes: each runs in one transaction, as a task that goes on to its end whether or not the browser waits.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use usecases::{Failure, Transaction, Work, transact};

use crate::Panel;
use crate::refusal::Refusal;

/// How a use case ends.
type Ended<'t, T, R> = BoxFuture<'t, Result<T, Failure<R>>>;

/// A use case with what it is given.
struct Deed<I, F, T, R> {
    panel: Arc<Panel>,
    input: I,
    run: F,
    outcome: PhantomData<fn() -> (T, R)>,
}

#[async_trait]
impl<I, F, T, R> Work for Deed<I, F, T, R>
where
    I: Send + Sync,
    T: Send,
    R: Send,
    F: for<'t> Fn(&'t dyn Transaction, &'t Panel, &'t I) -> Ended<'t, T, R> + Send + Sync,
{
    type Done = T;
    type Error = Failure<R>;

    async fn run(&self, transaction: &dyn Transaction) -> Result<T, Failure<R>> {
        (self.run)(transaction, &self.panel, &self.input).await
    }
}

/// Runs a use case in a transaction. The outer error is a failure of the store, the inner one the use case's own refusal.
///
/// It begins at once, also when the returned future is dropped.
pub(crate) fn change<I, T, R, F>(
    panel: &Arc<Panel>,
    input: I,
    run: F,
) -> impl Future<Output = Result<Result<T, R>, Refusal>> + use<I, T, R, F>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    R: Send + 'static,
    F: for<'t> Fn(&'t dyn Transaction, &'t Panel, &'t I) -> Ended<'t, T, R> + Send + Sync + 'static,
{
    let deed = Deed {
        panel: Arc::clone(panel),
        input,
        run,
        outcome: PhantomData,
    };
    let units = Arc::clone(&panel.units);
    let running = panel
        .tasks
        .run(async move { transact(units.as_ref(), &deed).await });
    async {
        match running.await? {
            Ok(done) => Ok(Ok(done)),
            Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
            Err(Failure::Store(error)) => Err(error.into()),
        }
    }
}
