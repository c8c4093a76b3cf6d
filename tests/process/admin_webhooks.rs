//! `admin webhooks`.

use blackbox::{Receiver, Reply, World, eventually, soon_again};
use serde_json::json;

use crate::{
    PROGRAM,
    admin::{admin, newest_note, told},
};

#[tokio::test]
async fn what_has_not_arrived_is_listed_and_delivered_again() {
    let world = World::with(PROGRAM, soon_again).await;
    let integration = world.integration().await;
    let (seller, token) = (&integration.seller, &integration.token);
    let receiver = Receiver::start().await;
    receiver.answers(Reply::Status(503));
    let hook = world.hook(token, &receiver).await;
    let subscriptions = told(&world, &["webhooks", "subscriptions", &seller.id]).await;
    assert_eq!(subscriptions.len(), 1, "{subscriptions:?}");
    assert_eq!(subscriptions[0]["id"], json!(hook.id));
    assert_eq!(subscriptions[0]["url"], json!(receiver.url));
    assert_eq!(subscriptions[0]["active"], json!(true));

    let order = world.paid_order(&integration.trader()).await;
    let exhausted = eventually("both deliveries are given up", async || {
        Some(told(&world, &["webhooks", "exhausted"]).await).filter(|listed| listed.len() == 2)
    })
    .await;
    let pending = told(&world, &["webhooks", "pending"]).await;
    assert!(pending.is_empty(), "{pending:?}");
    let newest = &exhausted[0];
    let expected = json!({
        "id": newest["id"], "seller_id": seller.id, "subscription_id": hook.id, "event": newest["event"],
        "created_at": newest["created_at"], "attempts": 6, "next_retry_at": null, "response_status": 503,
        "error": null,
    });
    assert_eq!(*newest, expected);
    let id = newest["id"].as_str().unwrap();
    let before = told(&world, &["webhooks", "exhausted", "--before", id]).await;
    assert_eq!(before, exhausted[1..]);
    let of = ["--seller", "1", "--subscription", &hook.id];
    let narrowed = told(&world, &[&["webhooks", "exhausted"], &of[..]].concat()).await;
    assert_eq!(narrowed, exhausted);
    world.seller().await;
    for kind in ["exhausted", "pending"] {
        let of_nobody = ["webhooks", kind, "--subscription", id];
        let refused = admin(&world, &of_nobody).await.ended(3);
        assert!(refused.stderr.contains(id), "{}", refused.output());
        let of_another = ["webhooks", kind, "--seller", "2", "--subscription", &hook.id];
        admin(&world, &of_another).await.ended(3);
    }

    let seen = receiver.count();
    receiver.answers(Reply::Status(200));
    let again = [&["webhooks", "deliver-again", id], &of[..]].concat();
    let new = told(&world, &again).await.remove(0);
    let new = new["delivery_id"].as_str().unwrap().to_owned();
    let arrived = receiver.has(seen + 1).await.pop().unwrap();
    assert_eq!(arrived.delivery(), new);
    assert_eq!(arrived.json()["event"], newest["event"]);
    assert!(arrived.json().to_string().contains(&order.number));
    let note = (json!("command_line"), json!("delivery.repeated"));
    assert_eq!(newest_note(&world, id).await, note);

    let unknown = ["webhooks", "deliver-again", &hook.id];
    admin(&world, &[&unknown[..], &of[..]].concat()).await.ended(3);
}
