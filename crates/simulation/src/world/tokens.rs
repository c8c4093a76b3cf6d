//! A run of tokens: clients obtain and refresh them, somebody steals one, others end them, and all of them are shown at the
//! gate meanwhile.

mod clients;
mod crew;
mod enders;
mod ending;
mod endpoint;
mod judge;
mod ledger;

use std::sync::{Arc, atomic::AtomicBool};

use chrono::TimeDelta;
use futures_util::{FutureExt, future::join_all};

use super::{
    disturber::{Trouble, disturb},
    history::History,
    ranks::Ranks,
    run::{Outcome, Setup, Violation, judged},
};
use crate::{Database, Place, Simulator, Weather};
use crew::Crew;
use ledger::Ledger;

/// The tokens of a seed.
pub fn tokens(setup: Setup) -> Result<Outcome, Violation> {
    let simulator = Simulator::new(setup.seed);
    let history = History::default();
    let database = Database::new(&simulator).flawed(setup.flaw);
    let (weather, ledger) = (Weather::default(), Ledger::default());
    let processes = simulator.draw(|chance| chance.usize(1..=3));
    let ranks = Ranks::new(
        (&simulator, &history),
        processes,
        &Arc::<AtomicBool>::default(),
        |_, _| {},
    );
    let crew = Crew::gather(&database, &weather, &ledger, &ranks);
    let limit = crew.limit.get();
    let lifetime = crew.endpoint.lifetimes.access;
    judged(&setup, (&simulator, &history), play(crew, weather), |_| {
        judge::wrongs(&ledger.known(), &database, limit, lifetime)
    })
}

async fn play(crew: Crew, weather: Weather) {
    let simulator = crew.endpoint.simulator.clone();
    let trouble = simulator.draw(Trouble::drawn);
    crew.ranks.start_all();
    let codes = crew.consents().await;
    disturb(&crew.ranks, &weather, trouble);
    let mut doing = Vec::new();
    let mut begin = |work| doing.push(simulator.spawn(Place::World, work).ended());
    for (number, code) in codes.into_iter().enumerate() {
        begin(clients::consented(crew.clone(), code, number % 2 == 0).boxed());
    }
    begin(clients::own(crew.clone()).boxed());
    begin(enders::end_some(crew.clone()).boxed());
    let guests = crew.clone();
    let showing = simulator.spawn(Place::World, async move { clients::show_all(guests).await });
    join_all(doing).await;
    weather.set(0);
    crew.ranks.calm_down();
    showing.ended().await;
    // Whatever the server was still asked to do is done by then.
    simulator.sleep(TimeDelta::seconds(15)).await;
    clients::show_each(&crew).await;
}
