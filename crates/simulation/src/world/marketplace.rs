//! A run of trade: who takes part, what is done, and the calm after it.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use chrono::TimeDelta;
use futures_util::{FutureExt, future::join_all};
use usecases::deliver_webhooks::Slots;
use webhooks::Lanes;

use super::{
    carriers::Carriers,
    checks,
    client::Client,
    disturber::{Trouble, disturb},
    fleet::Fleet,
    follower::Follower,
    history::History,
    process::Process,
    ranks::Ranks,
    receivers::Receivers,
    run::{Outcome, Setup, Violation, judged},
    trade::{Market, buy, change_stock, subscribe_for_a_while},
    worker::Delivering,
};
use crate::{Chance, Database, Link, Place, Simulator, Weather};

/// How long, and how often, a delivery may be waited for once all is calm.
const PATIENCE: usize = 3_000;

/// The marketplace of a seed: trade under faults, then calm, then the judgement.
pub fn trade(setup: Setup) -> Result<Outcome, Violation> {
    let simulator = Simulator::new(setup.seed);
    let history = History::default();
    let database = Database::new(&simulator).flawed(setup.flaw);
    let market = Market::open(&simulator, &database);
    let play = Run::new((&simulator, &history), &database, &market).play();
    judged(&setup, (&simulator, &history), play, |seen| {
        checks::trade(seen, &database, &market)
    })
}

/// A run that is ready to be played.
struct Run {
    simulator: Simulator,
    database: Database,
    weather: Weather,
    fleet: Fleet,
    market: Market,
    trouble: Trouble,
}

impl Run {
    fn new((simulator, history): (&Simulator, &History), database: &Database, market: &Market) -> Self {
        let (weather, calm) = (Weather::default(), Arc::<AtomicBool>::default());
        let link = Link::new(database, &weather);
        let (processes, lease, trouble) = simulator.draw(|chance| {
            let lease = *chance.choice(&[2, 2, 10, 60]).unwrap_or(&60);
            (
                chance.usize(1..=3),
                Duration::from_secs(lease),
                Trouble::drawn(chance),
            )
        });
        let receivers = Receivers {
            simulator: simulator.clone(),
            history: history.clone(),
            weather: weather.clone(),
            manners: market.manners.iter().cloned().collect(),
        };
        let delivering = Delivering {
            simulator: simulator.clone(),
            database: database.clone(),
            link: link.clone(),
            receivers,
            calm: Arc::clone(&calm),
            slots: Slots::of(16),
        };
        let process = Process {
            link,
            chance: Chance(simulator.clone()),
            carriers: Carriers(simulator.clone()),
            lease,
        };
        let workers = simulator.clone();
        let ranks = Ranks::new((simulator, history), processes, &calm, move |number, stop| {
            drop(workers.spawn(Place::Process(number), delivering.clone().work(stop)));
        });
        let fleet = Fleet {
            simulator: simulator.clone(),
            history: history.clone(),
            process,
            ranks,
        };
        Self {
            simulator: simulator.clone(),
            database: database.clone(),
            weather,
            fleet,
            market: market.clone(),
            trouble,
        }
    }

    async fn play(self) {
        self.fleet.ranks.start_all();
        disturb(&self.fleet.ranks, &self.weather, self.trouble);
        let mut follower = Follower {
            simulator: self.simulator.clone(),
            history: self.fleet.history.clone(),
            link: self.fleet.process.link.clone(),
            place: None,
        };
        let fleet = self.fleet.clone();
        let following = self.simulator.spawn(Place::World, async move {
            while !fleet.ranks.is_calm() {
                follower.read().await;
                fleet.simulator.pause(10, 1_500).await;
            }
            follower
        });
        self.trade().await;
        self.weather.set(0);
        self.fleet.ranks.calm_down();
        self.settle().await;
        if let Some(mut follower) = following.ended().await {
            while follower.read().await {}
        }
    }

    async fn trade(&self) {
        let client = Client {
            fleet: self.fleet.clone(),
        };
        let (buyers, changes) = self
            .simulator
            .draw(|chance| (chance.usize(2..=4), chance.i64(1..=3)));
        let mut doing = Vec::new();
        let mut begin = |work| doing.push(self.simulator.spawn(Place::World, work).ended());
        for number in 0..buyers {
            begin(buy(client.clone(), self.market.clone(), number).boxed());
        }
        begin(change_stock(client.clone(), self.market.clone(), changes).boxed());
        begin(subscribe_for_a_while(client.clone(), self.market.clone()).boxed());
        join_all(doing).await;
    }

    /// Waits until everything is delivered or given up.
    async fn settle(&self) {
        // Whatever the server was still asked to do is done by then.
        self.simulator.sleep(TimeDelta::seconds(15)).await;
        for _ in 0..PATIENCE {
            let pending = self
                .database
                .deliveries()
                .iter()
                .any(|(_, row)| row.due_at.is_some());
            if !pending {
                break;
            }
            self.simulator.sleep(TimeDelta::seconds(1)).await;
        }
        if !self.database.is_idle() {
            self.fleet.history.wrong("a transaction stays open".to_owned());
        }
        let forgotten = self.fleet.process.link.reconcile().await;
        if !matches!(forgotten, Ok(0)) {
            self.fleet.history.wrong(format!(
                "lanes sleep though something is due in them: {forgotten:?}"
            ));
        }
    }
}
