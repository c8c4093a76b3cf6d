//! Processes that are paused for longer than any timeout and then continue.

use std::time::{Duration, Instant};

use blackbox::{World, eventually};
use chrono::TimeDelta;
use serde_json::json;
use testkit::OwnPostgres;
use tokio::join;

use crate::deliveries::without_workers;
use crate::ledger::{Ledger, in_time_but_for};
use crate::outage::holds_out;
use crate::{PROGRAM, take_server};

/// Time for looking up a transaction's outcome, plus one last statement.
pub(crate) const OUTCOME_WITHIN: Duration = Duration::from_secs(20);

/// PostgreSQL's timeout for an idle transaction.
const LEFT_OPEN: Duration = Duration::from_secs(10);

/// Maximum time until its locks are free: it may have waited for a lock for two seconds, and the machine is
/// busy.
const FREE_WITHIN: Duration = Duration::from_secs(14);

/// Pauses the database this long after writes have begun.
async fn paused_after(delay: Duration) {
    let postgres = OwnPostgres::start(|options| options).await;
    let (world, seller, token, mut ledger) = Ledger::begun(&postgres).await;
    let (_, ()) = join!(ledger.write(&world, 8), async {
        tokio::time::sleep(delay).await;
        postgres.pause();
    });
    if delay.is_zero() {
        holds_out(&world, &token, &seller.id).await;
    }
    postgres.resume();
    world.server.ready().await;
    ledger.holds(&world).await;
    // A request may wait for a COMMIT's outcome for its maximum time; only keyed changes do.
    in_time_but_for(&world, "PATCH", OUTCOME_WITHIN);
}

#[tokio::test]
async fn a_database_that_was_paused_goes_on_and_nothing_is_done_twice() {
    let [at_once, soon, later] = [0, 30, 100].map(|delay| paused_after(Duration::from_millis(delay)));
    join!(at_once, soon, later);
}

#[tokio::test]
async fn a_server_that_was_paused_in_a_transaction_cannot_end_it_after_others_went_on() {
    let mut world = World::with(PROGRAM, without_workers).await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": 7})).await;
    let clock = world.database.control_clock().await;
    let sleeper = take_server(&mut world).await;
    let awake = &world;
    let mut attempt = 0;
    let patch = |base: &str, attempt: u32| {
        let url = format!("{base}/v1/offers/{offer}");
        let request = awake.client.request(reqwest::Method::PATCH, &url);
        let request = request.bearer(&trader.token).json(&json!({"stock": 3}));
        request.header("idempotency-key", &format!("k{attempt}"))
    };
    // The row is locked, so that the transaction waits in its middle.
    let mut holder = world.database.connect().await;
    let row = "select 1 from offers where id::text = $1 for update";
    let others = "select coalesce(max(state), 'none') from pg_stat_activity where datname = current_database() \
        and pid <> pg_backend_pid() and (state = 'active' or state like 'idle in transaction%')";
    let waiting = "select count(*) from pg_stat_activity where $1 = any(pg_blocking_pids(pid))";
    let pid = holder.query_one("select pg_backend_pid()", &[]).await;
    let pid: i32 = pid.unwrap().get(0);
    let (asleep, paused) = loop {
        let held = holder.transaction().await.unwrap();
        held.execute(row, &[&offer]).await.unwrap();
        let asleep = tokio::spawn(patch(&sleeper.base_url, attempt).send());
        world.until_count("a waiter", waiting, &[&pid], 1).await;
        let paused = Instant::now();
        sleeper.pause().await;
        held.rollback().await.unwrap();
        let state = eventually("the paused server's transaction, or its end", async || {
            let state: String = holder.query_one(others, &[]).await.unwrap().get(0);
            (state != "active").then_some(state)
        });
        if state.await == "idle in transaction" {
            break (asleep, paused);
        }
        // Its wait for the lock had ended before it was paused. It may go on to wait again.
        sleeper.resume();
        let answer = asleep.await.unwrap();
        assert!(matches!(answer.status, 200 | 500), "{answer:?}");
        attempt += 1;
    };
    clock.advance(TimeDelta::seconds(61)).await;
    // The lock is held until the server ends the paused process's transaction.
    let free = async {
        holder.execute(row, &[&offer]).await.unwrap();
        paused.elapsed()
    };
    let repeat = eventually("an answer to the repeat", async || {
        let answer = patch(&world.server.base_url, attempt).send().await;
        (answer.status == 200).then_some(answer)
    });
    let (free, answer) = join!(free, repeat);
    assert!((LEFT_OPEN..FREE_WITHIN).contains(&free), "{free:?}");
    sleeper.resume();
    let late = asleep.await.unwrap();
    assert!(
        late.status == 500 || (late.status, &late.bytes) == (200, &answer.bytes),
        "{late:?}"
    );
    assert_eq!(world.count_in_feed("offer.stock_changed", &offer).await, 1);
}
