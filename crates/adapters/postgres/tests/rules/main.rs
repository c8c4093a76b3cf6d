//! PostgreSQL keeps to what every store has to keep to: the rules that the database in memory is held to as well, so that
//! what the simulation shows there is true here.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use adapter_postgres::{Database, DatabaseSettings};
use async_trait::async_trait;
use changes::ChangeReader;
use chrono::TimeDelta;
use kernel::{IdempotencyClaims, Purpose, SealError, Sealer};
use oauth::Gate;
use simulation::{
    contract::{LIMIT, Stand},
    every_rule,
};
use testkit::{TestClock, TestDatabase};
use tokio::time::sleep;
use usecases::UnitOfWork;
use webhooks::Lanes;

/// Seals nothing: what is sealed, and how, is tested elsewhere.
struct Plain;

impl Sealer for Plain {
    fn seal(&self, _purpose: Purpose, _bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        plain.to_vec()
    }

    fn open(&self, _purpose: Purpose, _bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        Ok(sealed.to_vec())
    }
}

struct Postgres {
    place: TestDatabase,
    clock: TestClock,
    database: Database,
}

impl Postgres {
    async fn new() -> Self {
        let place = TestDatabase::create().await;
        let settings = DatabaseSettings {
            url: place.url().to_owned(),
            pool_size: 12,
            connect_timeout: Duration::from_secs(5),
            acquire_timeout: Duration::from_secs(20),
            statement_timeout: Duration::from_secs(5),
            default_rate_limit: NonZeroU32::new(LIMIT).unwrap(),
        };
        let clock = place.control_clock().await;
        clock.freeze("2026-03-01T10:00:00.123456Z".parse().unwrap()).await;
        Self {
            place,
            clock,
            database: Database::new(settings).unwrap().with_sealer(Arc::new(Plain)),
        }
    }
}

#[async_trait]
impl Stand for Postgres {
    fn units(&self) -> Arc<dyn UnitOfWork> {
        self.database.units()
    }

    fn claims(&self) -> Arc<dyn IdempotencyClaims> {
        self.database.claims()
    }

    fn lanes(&self) -> Arc<dyn Lanes> {
        self.database.lanes()
    }

    fn gate(&self) -> Arc<dyn Gate> {
        self.database.gate()
    }

    fn feed(&self) -> Arc<dyn ChangeReader> {
        self.database.change_reader()
    }

    async fn quiet(&self) {
        let server = self.place.connect().await;
        let begun: String = server
            .query_one("select pg_snapshot_xmax(pg_current_snapshot())::text", &[])
            .await
            .unwrap()
            .get(0);
        let running = "select pg_snapshot_xmin(pg_current_snapshot()) < $1::text::xid8";
        let end = Instant::now() + Duration::from_mins(1);
        while server.query_one(running, &[&begun]).await.unwrap().get(0) {
            assert!(Instant::now() < end, "a transaction has been open for a minute");
            sleep(Duration::from_millis(1)).await;
        }
    }

    async fn advance(&self, by: TimeDelta) {
        self.clock.advance(by).await;
    }
}

macro_rules! rules {
    ($($port:ident: $($rule:ident),*;)*) => {
        $(mod $port {
            $(#[tokio::test]
            async fn $rule() {
                simulation::contract::$port::$rule(&super::Postgres::new().await).await;
            })*
        })*
    };
}

every_rule!(rules);
