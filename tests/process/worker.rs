//! `seller-api worker` beside `serve --workers none`: who sends mails and follows parcels, and that no two do the same.

use std::path::Path;

use blackbox::{CarrierStub, Says, World, eventually};
use serde_json::{Value, json};
use testkit::{ServerOptions, TestWorker};

use crate::PROGRAM;

fn settings(options: ServerOptions, carrier: &CarrierStub, mail: &Path) -> ServerOptions {
    options
        .set("SELLER_API__SERVER__WORKERS", "none")
        .set("SELLER_API__CARRIERS__INPOST__ENABLED", true)
        .set("SELLER_API__CARRIERS__INPOST__BASE_URL", &carrier.url)
        .set("SELLER_API__TRACKING__POLL_INTERVAL", "100ms")
        .set("SELLER_API__MAIL__FOLDER", mail.display())
        .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
        .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
}

/// How many mails to the buyer lie in the folder; the seller's invitation is there too.
fn mails(folder: &Path) -> usize {
    let Ok(files) = std::fs::read_dir(folder) else {
        return 0;
    };
    let texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
    texts.filter(|text| text.contains("ewa@buyer.example")).count()
}

fn inpost(number: &str) -> Value {
    json!({"carrier": "inpost", "tracking_number": number})
}

#[tokio::test]
async fn the_server_leaves_the_work_to_workers_who_share_it() {
    let carrier = CarrierStub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("mail");
    let world = World::with(PROGRAM, |options| settings(options, &carrier, &mail)).await;
    let trader = world.trader().await;
    let mut orders = Vec::new();
    for n in 0..6 {
        let number = format!("PARCEL-{n}");
        carrier.says(&number, Says::State("adopted_at_source_branch"));
        let order = world.paid_order(&trader).await;
        world
            .ship(&trader.token, &order.id, &inpost(&number))
            .await
            .expect(201);
        carrier.says(&number, Says::Delivered("2015-09-17T11:28:00.000+02:00"));
        orders.push((order, number));
    }
    let waiting = "select count(*) from mails where due_at is not null and $1 = ''";
    assert_eq!(
        (world.count(waiting, "").await, mails(&mail)),
        (6, 0),
        "nobody has sent anything"
    );
    let mut first = TestWorker::start(&world.options, &world.database);
    let _second = TestWorker::start(&world.options, &world.database);
    for (order, number) in &orders {
        let arrived =
            async || (world.order(&trader.token, &order.id).await["status"] == "delivered").then_some(());
        eventually("the delivery", arrived).await;
        assert_eq!(carrier.asked(number), 2, "at the report and once by a worker");
        eventually("the feed", async || {
            (world.told("order.delivered", &order.id).await > 0).then_some(())
        })
        .await;
        assert_eq!(world.told("order.delivered", &order.id).await, 1);
    }
    eventually("the mails", async || (mails(&mail) == 6).then_some(())).await;
    eventually("the notes of it", async || {
        (world.count(waiting, "").await == 0).then_some(())
    })
    .await;
    // One of them dies, and the other goes on.
    first.kill();
    let order = world.paid_order(&trader).await;
    world
        .ship(&trader.token, &order.id, &inpost("PARCEL-9"))
        .await
        .expect(201);
    eventually("the last mail", async || (mails(&mail) == 7).then_some(())).await;
}
