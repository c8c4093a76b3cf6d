//! Clocks under a test's control: the database's, and one in memory.

use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};
use tokio_postgres::Client;

/// Parses an instant in RFC 3339 format.
pub fn instant(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant in RFC 3339")
}

/// A clock that only [`ManualClock::advance`] moves.
#[derive(Debug)]
pub struct ManualClock(Mutex<DateTime<Utc>>);

impl ManualClock {
    /// Starts at an instant in RFC 3339.
    pub fn at(start: &str) -> Self {
        Self(Mutex::new(instant(start)))
    }

    pub fn advance(&self, seconds: i64) {
        *self.0.lock().expect("no user of the clock panics") += TimeDelta::seconds(seconds);
    }
}

impl kernel::Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().expect("no user of the clock panics")
    }
}

/// Controls `api_now()` of one database: all processes that use it see the same time.
#[derive(Debug)]
pub struct TestClock {
    client: Client,
}

const TAKE: &str = "
    create table test_clock (frozen timestamptz, shift interval not null default '0');
    insert into test_clock default values;
    create or replace function api_now() returns timestamptz language sql volatile as
        'select coalesce(frozen, clock_timestamp() + shift) from test_clock';";

impl TestClock {
    pub(crate) async fn take(client: Client) -> Self {
        client.batch_execute(TAKE).await.expect("api_now() is replaced");
        Self { client }
    }

    pub async fn freeze(&self, at: DateTime<Utc>) {
        self.client
            .execute("update test_clock set frozen = $1", &[&at])
            .await
            .expect("the clock stops");
    }

    /// Moves the clock forward, whether it runs or is frozen.
    pub async fn advance(&self, by: TimeDelta) {
        let milliseconds = by.num_milliseconds();
        self.client
            .execute(
                "update test_clock set shift = shift + $1 * interval '1 ms', frozen = frozen + $1 * interval '1 ms'",
                &[&f64::from(i32::try_from(milliseconds).expect("a step of less than 24 days"))],
            )
            .await
            .expect("the clock moves");
    }

    pub async fn now(&self) -> DateTime<Utc> {
        self.client
            .query_one("select api_now()", &[])
            .await
            .expect("the clock is read")
            .get(0)
    }
}
