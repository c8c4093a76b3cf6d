//! Transactions under a deadline.

use async_trait::async_trait;
use kernel::StoreError;
use usecases::{Transaction, UnitOfWork, UnitOfWorkError, Work};

use crate::deadline::Deadline;

/// Steps towards a COMMIT, given up at the deadline: none of them has changed anything by then.
pub(crate) struct InTime<'a, T: ?Sized> {
    pub(crate) inner: &'a T,
    pub(crate) deadline: Deadline,
}

#[async_trait]
impl UnitOfWork for InTime<'_, dyn UnitOfWork> {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        self.deadline.hold(self.inner.begin()).await?
    }
}

#[async_trait]
impl<W: Work> Work for InTime<'_, W> {
    type Done = W::Done;
    type Error = W::Error;

    async fn run(&self, transaction: &dyn Transaction) -> Result<W::Done, W::Error> {
        let run = self.deadline.hold(self.inner.run(transaction)).await;
        run.map_err(|overdue| UnitOfWorkError::from(StoreError::from(overdue)))?
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;
    use usecases::{MockTransaction, Repeatable};

    use super::*;
    use crate::refusal::Refusal;

    struct Silent;

    #[async_trait]
    impl Work for Silent {
        type Done = ();
        type Error = Refusal;

        async fn run(&self, _: &dyn Transaction) -> Result<(), Refusal> {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_that_is_not_answered_ends_the_work_before_its_commit() {
        let work = InTime {
            inner: &Silent,
            deadline: Deadline::of_arrival(Instant::now()),
        };
        let refusal = work.run(&MockTransaction::new()).await.unwrap_err();
        assert!(!refusal.is_unknown() && !refusal.is_repeatable());
        assert_eq!(refusal.into_parts().0, web::Problem::unavailable());
    }
}
