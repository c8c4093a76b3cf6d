//! A run from its seed to its judgement.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::TimeDelta;
use futures_util::future::join_all;
use usecases::deliver_webhooks::Slots;
use webhooks::Lanes;

use super::{
    carriers::Carriers,
    checks,
    client::Client,
    disturber::{Trouble, disturb},
    fleet::Fleet,
    follower::Follower,
    history::{History, Seen},
    process::Process,
    receivers::Receivers,
    trade::{Market, buy, change_stock, subscribe_for_a_while},
    worker::Delivering,
};
use crate::{Chance, Database, Flaw, Link, Place, Simulator, Weather};

/// What a run begins with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    /// Decides everything.
    pub seed: u64,
    /// What is wrong with the database; nothing in an honest run.
    pub flaw: Option<Flaw>,
    /// Whether what happens is written down.
    pub traced: bool,
}

/// What a run has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Steps that tasks have taken.
    pub steps: u64,
    /// Requests with a key of their own.
    pub requests: usize,
    /// Processes that have died.
    pub deaths: usize,
    /// Attempts of deliveries.
    pub attempts: usize,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.requests += other.requests;
        self.deaths += other.deaths;
        self.attempts += other.attempts;
    }
}

/// What a run has shown to be wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "seed {seed}: {}\n{}\nagain: SIMULATION_SEED={seed} cargo test -p simulation",
    wrongs.join("\n"),
    trace.join("\n")
)]
pub struct Violation {
    /// The run that shows it again.
    pub seed: u64,
    /// Each invariant that does not hold.
    pub wrongs: Vec<String>,
    /// What happened, where it was written down.
    pub trace: Vec<String>,
}

/// How long, and how often, a delivery may be waited for once all is calm.
const PATIENCE: usize = 3_000;

/// The marketplace of a seed: trade under faults, then calm, then the judgement.
pub fn trade(setup: Setup) -> Result<Outcome, Violation> {
    let simulator = Simulator::new(setup.seed);
    let history = History::default();
    history.seen().trace = setup.traced.then(Vec::new);
    let database = Database::new(&simulator).flawed(setup.flaw);
    let market = Market::open(&simulator, &database);
    let run = Run::new(&simulator, &database, &history, &market);
    let ended = simulator.run(run.play());
    let mut wrongs = Vec::new();
    if let Err(stuck) = ended {
        wrongs.push(stuck.to_string());
    }
    let seen = history.seen();
    wrongs.extend(seen.wrongs.iter().cloned());
    if wrongs.is_empty() {
        wrongs.extend(checks::trade(&seen, &database, &market));
    }
    judged(&setup, &simulator, &seen, wrongs)
}

fn judged(
    setup: &Setup,
    simulator: &Simulator,
    seen: &Seen,
    wrongs: Vec<String>,
) -> Result<Outcome, Violation> {
    if wrongs.is_empty() {
        return Ok(Outcome {
            steps: simulator.steps(),
            requests: seen.stories.len(),
            deaths: seen.deaths,
            attempts: seen.attempts,
        });
    }
    Err(Violation {
        seed: setup.seed,
        wrongs,
        trace: seen.trace.clone().unwrap_or_default(),
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
    processes: usize,
}

impl Run {
    fn new(simulator: &Simulator, database: &Database, history: &History, market: &Market) -> Self {
        let (weather, calm) = (Weather::default(), Arc::new(AtomicBool::new(false)));
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
        let fleet = Fleet {
            simulator: simulator.clone(),
            history: history.clone(),
            process,
            delivering,
            living: Arc::new(Mutex::new(vec![false; processes])),
            calm,
        };
        Self {
            simulator: simulator.clone(),
            database: database.clone(),
            weather,
            fleet,
            market: market.clone(),
            trouble,
            processes,
        }
    }

    async fn play(self) {
        self.fleet.start_all();
        disturb(&self.fleet, &self.weather, self.trouble, self.processes);
        let mut follower = Follower {
            simulator: self.simulator.clone(),
            history: self.fleet.history.clone(),
            link: self.fleet.process.link.clone(),
            place: None,
        };
        let fleet = self.fleet.clone();
        let following = self.simulator.spawn(Place::World, async move {
            while !fleet.is_calm() {
                follower.read().await;
                fleet.simulator.pause(10, 1_500).await;
            }
            follower
        });
        self.trade().await;
        self.fleet.calm.store(true, Ordering::Relaxed);
        self.weather.set(0);
        self.fleet.start_all();
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
            begin(futures_util::FutureExt::boxed(buy(
                client.clone(),
                self.market.clone(),
                number,
            )));
        }
        begin(Box::pin(change_stock(
            client.clone(),
            self.market.clone(),
            changes,
        )));
        begin(Box::pin(subscribe_for_a_while(
            client.clone(),
            self.market.clone(),
        )));
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
