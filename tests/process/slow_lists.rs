//! Lists filtered by `updated_after` are slow at worst; no other request waits for one.

use std::time::{Duration, Instant};

use blackbox::World;
use testkit::{Fault, Statement, StatementProxy};
use tokio::task::JoinSet;

use crate::PROGRAM;

/// More requests than a process has connections for slow lists.
const REQUESTS: usize = 6;

#[tokio::test]
async fn a_slow_list_delays_no_page_and_no_list_of_another_seller() {
    let one_thread = |options: testkit::ServerOptions| {
        let options = options.set("SELLER_API__SERVER__WORKERS", "none");
        options.set("SELLER_API__SERVER__THREADS", 1)
    };
    let (world, link) = World::over_a_link(PROGRAM, one_thread).await;
    let (slow, other) = (world.trader().await, world.trader().await);
    for resource in ["/v1/offers", "/v1/orders"] {
        let changed = format!("{resource}?updated_after=2026-01-01T00:00:00Z");
        let reading = reading(&world, &link, &slow.token, &changed).await;
        let slow_list = || world.at("GET", &changed).bearer(&slow.token).send();
        for tries in 1.. {
            let began = Instant::now();
            link.arm(&reading, Fault::Waits);
            let waiting: JoinSet<_> = (0..REQUESTS).map(|_| slow_list()).collect();
            link.reached().await;
            for path in ["/v1/offers", "/v1/orders", "/v1/offers?status=draft", &changed] {
                world.get(&other.token, path).await.expect(200);
            }
            link.resume();
            let answers = waiting.join_all().await;
            if answers.iter().all(|answer| answer.status == 200) {
                break;
            }
            // The machine made them wait for longer than the program waits.
            let is_slow = began.elapsed() > Duration::from_secs(2);
            assert!(is_slow && tries < 5, "{answers:?}");
        }
        // Who waits in vain behind the seller's own lists is told to send fewer; only the one that is read fails.
        link.arm(&reading, Fault::Waits);
        let answers = (0..3)
            .map(|_| slow_list())
            .collect::<JoinSet<_>>()
            .join_all()
            .await;
        link.resume();
        let refused = answers.iter().filter(|answer| answer.status != 500);
        let said: Vec<_> = refused
            .map(|answer| (answer.status, answer.code(), answer.header("retry-after")))
            .collect();
        assert_eq!(said, vec![(429, "rate_limited".to_owned(), Some("1")); 2]);
    }
}

/// The statement that reads a filtered list, as the next one of its text.
async fn reading(world: &World, link: &StatementProxy, token: &str, path: &str) -> Statement {
    link.record();
    world.get(token, path).await.expect(200);
    let mut recorded = link.recorded().into_iter();
    let statement = recorded.find(|statement| statement.sql.contains("updated_at > "));
    link.record();
    statement.unwrap()
}
