//! Deliveries at the stop of their worker, and the logs of a start.

use std::time::Duration;

use blackbox::{Reply, World, local_receivers};
use serde_json::json;
use testkit::{ServerOptions, TestDatabase};

use crate::{PROGRAM, set, stop, take_server};

pub(crate) fn without_workers(options: ServerOptions) -> ServerOptions {
    local_receivers(options).set("SELLER_API__SERVER__WORKERS", "none")
}

#[tokio::test]
async fn a_stop_lets_what_is_under_way_arrive_and_records_it() {
    let mut world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver, hook) = world.subscribed().await;
    receiver.answers(Reply::Late(200, Duration::from_secs(1)));
    world.any_order(&own.seller).await;
    receiver.has(1).await;
    world.options = world.options.clone().set("SELLER_API__SERVER__WORKERS", "none");
    stop(take_server(&mut world).await).await;
    let delivery = world.delivery(&own.token, &hook.id).await;
    assert_eq!(
        (&delivery["attempt"], &delivery["response_status"]),
        (&json!(1), &json!(200))
    );
    assert!(delivery["delivered_at"].is_string());
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn dangerous_settings_are_logged_as_warnings_and_are_not_the_default() {
    let anywhere = "webhooks may go to ANY address";
    let anybody = "ANY client is trusted";
    let database = TestDatabase::create().await;
    for (settings, told) in [
        (ServerOptions::new(PROGRAM), [false, false]),
        (local_receivers(ServerOptions::new(PROGRAM)), [true, false]),
        (trusting("10.0.0.0/8,fd00::/8"), [false, false]),
        (trusting("::/0"), [false, true]),
        (trusting("10.0.0.1,0.0.0.0/0"), [false, true]),
    ] {
        let log = blackbox::listen(&settings, database.url()).await.log();
        let loud = [anywhere, anybody].map(|words| {
            log.lines()
                .any(|line| line.contains(words) && line.contains("WARN"))
        });
        assert_eq!(loud, told, "{log}");
    }
}

const PUBLIC_URL: (&str, &str) = ("SERVER__PUBLIC_URL", "http://a");

fn trusting(networks: &str) -> ServerOptions {
    let settings = [("SERVER__TRUSTED_PROXIES", networks), PUBLIC_URL];
    set(ServerOptions::new(PROGRAM), &settings)
}
