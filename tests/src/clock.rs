//! Controls a world's database: its time, and locks that others wait for.

use testkit::{TestClock, lock_waits};

use crate::{World, until};

/// An open transaction of a test, for which others wait.
#[derive(Debug)]
pub struct OpenTransaction(tokio_postgres::Client);

impl OpenTransaction {
    /// Ends the transaction with `how`: `commit` or `rollback`.
    pub async fn end(self, how: &str) {
        self.0.batch_execute(how).await.expect("the transaction ends");
    }
}

impl World {
    /// Freezes the database's clock at an instant in RFC 3339 format.
    pub async fn stop_clock(&self, at: &str) -> TestClock {
        let clock = self.database.control_clock().await;
        clock.freeze(at.parse().expect("an instant")).await;
        clock
    }

    pub async fn execute(&self, statements: &str) {
        let client = self.database.connect().await;
        let done = client.batch_execute(statements).await;
        done.expect("the statements are fine");
    }

    /// Executes a statement in a transaction and leaves the transaction open.
    pub async fn open_transaction(&self, statement: &str) -> OpenTransaction {
        let client = self.database.connect().await;
        let statements = format!("begin; {statement}");
        let done = client.batch_execute(&statements).await;
        done.expect("the statement is fine");
        OpenTransaction(client)
    }

    /// Waits until this number of statements on this database wait for a lock.
    pub async fn waiters(&self, count: i64) {
        let client = self.database.connect().await;
        until("those who wait for a lock", async || {
            let waiting = client.query_one(lock_waits(), &[]).await;
            waiting.expect("they are counted").get::<_, i64>(0) >= count
        })
        .await;
    }
}
