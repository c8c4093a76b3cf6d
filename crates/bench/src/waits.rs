//! What writes wait for: in the server, by its own metrics, and in PostgreSQL, by looking at its backends again and again.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::MissedTickBehavior;
use tokio_postgres::{Client, NoTls, Statement};

use crate::cluster::Cluster;
use crate::figures::real;
use crate::metrics::Metrics;

/// From one look at the backends to the next.
const EVERY: Duration = Duration::from_millis(10);

/// What each backend of clients that has a statement or a transaction open waits for; an empty text where it waits for nothing.
const LOOK: &str = "select coalesce(wait_event_type || ' ' || wait_event, ''), count(*) from pg_stat_activity \
    where datname = current_database() and backend_type = 'client backend' \
    and state in ('active', 'idle in transaction') and pid <> pg_backend_pid() group by 1";

/// Where the server's requests have spent their time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Waits {
    /// Waiting for a connection of the pool, for whatever purpose.
    pub(crate) pool: f64,
    /// Claiming a key.
    pub(crate) claim: f64,
    /// Beginning a transaction.
    pub(crate) begin: f64,
    /// Statements of a transaction, what it locks along with its begin included.
    pub(crate) within: f64,
    /// Committing.
    pub(crate) commit: f64,
}

impl Waits {
    /// All since the server's start.
    pub(crate) fn so_far(metrics: &Metrics) -> Self {
        let statement = |name: &str| {
            let sum = format!("database_statement_duration_seconds_sum{{statement=\"{name}\"}}");
            metrics.sum(&sum) * 1e3
        };
        Self {
            pool: metrics.sum("database_pool_wait_seconds_sum") * 1e3,
            claim: statement("claims"),
            begin: statement("begin"),
            within: statement("transaction"),
            commit: statement("commit"),
        }
    }

    /// What was spent since `earlier`, for each of so many requests.
    pub(crate) fn each(self, earlier: Self, requests: u64) -> Self {
        let each = |of: fn(&Self) -> f64| (of(&self) - of(&earlier)) / real(requests);
        Self {
            pool: each(|waits| waits.pool),
            claim: each(|waits| waits.claim),
            begin: each(|waits| waits.begin),
            within: each(|waits| waits.within),
            commit: each(|waits| waits.commit),
        }
    }
}

/// How many backends were found doing what, in all looks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backends {
    looks: u64,
    /// Those that wait for nothing. One whose wait is over waits on, as told, until it has a core.
    pub(crate) run: u64,
    /// For the write-ahead log to come to disk, or for another backend that brings it there.
    pub(crate) log: u64,
    /// For a lock that another transaction holds: on a row, on a transaction, on a table.
    pub(crate) locks: u64,
    /// For their client's next message, in the middle of a transaction.
    pub(crate) client: u64,
    /// For anything else.
    pub(crate) other: u64,
}

impl Backends {
    /// How many there were in one look, on average of those that found any.
    pub(crate) fn mean(&self) -> f64 {
        real(self.all()) / real(self.looks.max(1))
    }

    /// The share of a figure in all of them, in per cent.
    pub(crate) fn percent(&self, of: impl Fn(&Self) -> u64) -> f64 {
        100.0 * real(of(self)) / real(self.all().max(1))
    }

    const fn all(&self) -> u64 {
        self.run + self.log + self.locks + self.client + self.other
    }

    /// Adds so many that wait for this event.
    fn add(&mut self, event: &str, count: u64) {
        // PostgreSQL 17 writes the events of its input and output in another case.
        let place = match event.to_ascii_lowercase().as_str() {
            "" => &mut self.run,
            "io walsync" | "io walwrite" | "lwlock walwrite" => &mut self.log,
            event if event.starts_with("lock ") => &mut self.locks,
            event if event.starts_with("client ") => &mut self.client,
            _ => &mut self.other,
        };
        *place += count;
    }

    async fn look(&mut self, client: &Client, statement: &Statement) -> anyhow::Result<()> {
        let rows = client.query(statement, &[]).await?;
        self.looks += u64::from(!rows.is_empty());
        for row in rows {
            self.add(row.try_get(0)?, u64::try_from(row.try_get::<_, i64>(1)?)?);
        }
        Ok(())
    }

    async fn look_on(&mut self, client: &Client, statement: &Statement) -> anyhow::Result<Infallible> {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(client, statement).await?;
        }
    }
}

/// Looks at a database's backends for as long as some work takes.
pub(crate) async fn during<T>(
    cluster: &Cluster,
    database: &str,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(T, Backends)> {
    let (client, connection) = tokio_postgres::connect(&cluster.url(database), NoTls).await?;
    let connection = tokio::spawn(connection);
    let statement = client.prepare(LOOK).await?;
    let mut backends = Backends::default();
    let done = tokio::select! {
        done = work => done?,
        failed = backends.look_on(&client, &statement) => match failed.context("the backends cannot be looked at")? {},
    };
    drop((statement, client));
    connection.await??;
    Ok((done, backends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_for_each_request() {
        let told = |pool, claim, begin, within, commit| {
            let statement = |name, sum| {
                format!(
                    "database_statement_duration_seconds_sum{{statement=\"{name}\"}} {sum}\n\
                     database_statement_duration_seconds_count{{statement=\"{name}\"}} 99\n"
                )
            };
            let statements = [
                ("claims", claim),
                ("begin", begin),
                ("transaction", within),
                ("commit", commit),
            ];
            let mut text =
                format!("database_pool_wait_seconds_sum {pool}\ndatabase_pool_wait_seconds_count 7\n");
            text.extend(statements.map(|(name, sum)| statement(name, sum)));
            Waits::so_far(&Metrics::told(&text))
        };
        let each = told(3.0, 2.0, 1.5, 0.5, 8.0).each(told(1.0, 1.0, 1.0, 0.5, 0.0), 1_000);
        let expected = Waits {
            pool: 2.0,
            claim: 1.0,
            begin: 0.5,
            within: 0.0,
            commit: 8.0,
        };
        assert_eq!(each, expected);
    }

    #[test]
    fn events_are_told_apart() {
        let mut backends = Backends::default();
        let events = [
            ("", 8),
            ("IO WALSync", 1),
            ("IO WalSync", 1),
            ("LWLock WALWrite", 4),
            ("Lock transactionid", 2),
            ("Client ClientRead", 1),
            ("LWLock WALInsert", 2),
            ("LWLock LockManager", 1),
        ];
        for (event, count) in events {
            backends.add(event, count);
        }
        backends.looks = 5;
        let found = Backends {
            looks: 5,
            run: 8,
            log: 6,
            locks: 2,
            client: 1,
            other: 3,
        };
        assert_eq!(backends, found);
        assert_eq!((backends.mean(), backends.percent(|of| of.log)), (4.0, 30.0));
        let none = Backends::default();
        assert_eq!((none.mean(), none.percent(|of| of.log)), (0.0, 0.0));
    }

    #[tokio::test]
    async fn who_waits_for_a_row_is_seen() {
        const DATABASE: &str = "postgres";
        let cluster = Cluster::start("16MB", None).await.unwrap();
        let sql = |text| cluster.sql(DATABASE, text);
        sql("create table t as select 1 as n").await.unwrap();
        let work = async {
            let held = sql("begin; update t set n = 2; select pg_sleep(0.5); commit");
            let waiting = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                sql("update t set n = 3").await
            };
            tokio::try_join!(held, waiting)
        };
        let (_, backends) = during(&cluster, DATABASE, Box::pin(work)).await.unwrap();
        // One sleeps, which is none of the named waits, and one waits for it.
        assert!(
            backends.locks > 0 && backends.other > backends.locks,
            "{backends:?}"
        );
        assert!((1.0..=2.0).contains(&backends.mean()), "{backends:?}");
        // What fails in the work is told.
        assert!(during(&cluster, DATABASE, sql("select 1 / 0")).await.is_err());
    }
}
