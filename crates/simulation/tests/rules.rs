//! The database in memory keeps to what every store has to keep to.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use changes::ChangeReader;
use chrono::TimeDelta;
use kernel::IdempotencyClaims;
use oauth::Gate;
use simulation::{
    Admittance, Database, Link, Simulator, Weather,
    contract::{LIMIT, Stand},
    every_rule,
};
use usecases::UnitOfWork;
use webhooks::Lanes;

struct Memory {
    simulator: Simulator,
    link: Link,
}

#[async_trait]
impl Stand for Memory {
    fn units(&self) -> Arc<dyn UnitOfWork> {
        Arc::new(self.link.clone())
    }

    fn claims(&self) -> Arc<dyn IdempotencyClaims> {
        Arc::new(self.link.clone())
    }

    fn lanes(&self) -> Arc<dyn Lanes> {
        Arc::new(self.link.clone())
    }

    fn gate(&self) -> Arc<dyn Gate> {
        Arc::new(Admittance::new(&self.link, NonZeroU32::new(LIMIT).unwrap()))
    }

    fn feed(&self) -> Arc<dyn ChangeReader> {
        Arc::new(self.link.clone())
    }

    async fn quiet(&self) {}

    async fn advance(&self, by: TimeDelta) {
        self.simulator.shift(by);
    }
}

/// A clock that stands still but for the rule's own steps, as that of the other stores.
fn memory() -> (Simulator, Memory) {
    let simulator = Simulator::new(0);
    let database = Database::new(&simulator);
    let stand = Memory {
        simulator: simulator.clone(),
        link: Link::new(&database, &Weather::default()).at_hand(),
    };
    (simulator, stand)
}

macro_rules! rules {
    ($($port:ident: $($rule:ident),*;)*) => {
        $(mod $port {
            $(#[test]
            fn $rule() {
                let (simulator, stand) = super::memory();
                let test = async move { simulation::contract::$port::$rule(&stand).await };
                simulator.run(test).unwrap();
            })*
        })*
    };
}

every_rule!(rules);
