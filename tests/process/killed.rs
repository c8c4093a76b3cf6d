//! The program, or a backend of the database, is killed under keyed changes that go in batches: the repeat under the same key runs at once,
//! and its effect happens once.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use blackbox::{Trader, World, at_once, until};
use serde_json::json;
use testkit::Request;
use tokio::time::sleep;

use crate::{PROGRAM, set};

/// Names the number of rounds: a thousand take some minutes.
const ROUNDS: &str = "SELLER_API_TEST_KILLS";
const OFFERS: usize = 24;
/// The most that a kill comes after the requests, in microseconds: a little longer than they take.
const LATEST: u64 = 40_000;

/// Ends the connections that read or save changes. One of them may be at work.
const END_BACKENDS: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and (query like '%locked as materialized%' or query like '%idempotency i%')";
/// Counts: stocks with several changes, changes, and their transactions.
const TOLD: [&str; 3] = [
    "select count(*) from (select from changes group by stock having count(*) > 1) more",
    "select count(*) from changes",
    "select count(distinct xid) from changes",
];

pub(crate) fn rounds(usual: usize) -> usize {
    std::env::var(ROUNDS).map_or(usual, |rounds| rounds.parse().unwrap())
}

/// A while in which some requests are answered and others are not.
pub(crate) async fn a_while() {
    let chance = RandomState::new().hash_one(0);
    sleep(Duration::from_micros(chance % LATEST)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_program_or_backend_is_killed_is_made_once() {
    let rounds = rounds(8);
    let unlimited = [("RATE_LIMIT__DEFAULT", "1000000"), ("SERVER__WORKERS", "none")];
    let mut world = World::with(PROGRAM, |options| set(options, &unlimited)).await;
    let mut offers = Vec::new();
    for _ in 0..OFFERS {
        let trader = world.trader().await;
        let offer = world.any_offer(&trader.seller, json!({"stock": 0})).await;
        offers.push((trader, offer));
    }
    let patching = |world: &World, round: usize, n: usize| -> Request {
        let (Trader { token, .. }, offer) = &offers[n];
        let stock = 1 + round * OFFERS + n;
        let request = world.patching(token, offer, &json!({"stock": stock}));
        request.header("idempotency-key", &stock.to_string())
    };
    let (mut round, mut lost) = (0, 0);
    // A kill may come when everything has been answered.
    while round < rounds || lost == 0 && round < 20 * rounds {
        let asking = (0..OFFERS).map(|n| tokio::spawn(patching(&world, round, n).try_send()));
        let asking = asking.collect::<Vec<_>>();
        a_while().await;
        if round % 2 == 0 {
            world.server.kill();
            world.server = world.another().await;
        } else {
            world.count(END_BACKENDS, &[]).await;
        }
        for asking in asking {
            let answer = asking.await.unwrap();
            let done = answer.is_ok_and(|answer| answer.status == 200);
            lost += usize::from(!done);
        }
        let repeats = at_once((0..OFFERS).map(|n| patching(&world, round, n))).await;
        for (n, answer) in repeats
            .iter()
            .enumerate()
            .filter(|(_, answer)| answer.status != 200)
        {
            // That an idle connection was ended may be noticed by the request that uses it.
            assert!(
                round % 2 == 1 && answer.status == 500,
                "round {round}: {answer:?}"
            );
            let again = async || patching(&world, round, n).send().await.status == 200;
            until("the repeat", again).await;
        }
        assert_eq!(world.count(TOLD[0], &[]).await, 0, "round {round}");
        round += 1;
    }
    let all = i64::try_from(round * OFFERS).unwrap();
    assert_eq!(world.count(TOLD[1], &[]).await, all);
    let made = world.count(TOLD[2], &[]).await;
    assert!(made < all, "no batch had several members");
    assert!(lost > 0, "every request was answered");
}
