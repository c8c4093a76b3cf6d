//! `admin sellers` and `admin connections`.

use serde_json::{Value, json};

use crate::{
    admin::{admin, newest_note, told},
    world,
};

#[tokio::test]
async fn sellers_are_listed_page_by_page_and_found_by_every_name() {
    let world = world().await;
    let sellers = [world.seller().await, world.seller().await, world.seller().await];
    let numbers = |listed: &[Value]| -> Vec<_> {
        listed
            .iter()
            .map(|seller| seller["seller_no"].as_i64().unwrap())
            .collect()
    };
    let list = ["sellers", "list"];
    assert_eq!(numbers(&told(&world, &list).await), [1, 2, 3]);
    let second = told(&world, &["sellers", "list", "--limit", "1", "--after", "1"]).await;
    assert_eq!(numbers(&second), [2]);
    let page = admin(&world, &["sellers", "list", "--limit", "2"])
        .await
        .success();
    assert!(page.stderr.contains("--after 2"), "{}", page.stderr);
    let lines: Vec<_> = page.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", page.stdout);
    let column = lines[0].find("NAME").unwrap();
    assert_eq!(&lines[1][column..], "Kettles & Co");

    let seller = &sellers[1];
    world.application(seller, &["offers:read"]).await;
    for name in [&seller.id, &seller.seller_no.to_string(), &seller.email] {
        let shown = told(&world, &["sellers", "show", name]).await.remove(0);
        let kept = json!({
            "id": seller.id, "seller_no": 2, "name": "Kettles & Co", "email": seller.email,
            "created_at": shown["created_at"], "closed_at": null,
            "applications": 1, "connections": 0, "subscriptions": 0,
        });
        assert_eq!(shown, kept);
    }
    let people = admin(&world, &["sellers", "show", "2"]).await.success();
    assert!(people.stdout.contains(&seller.email), "{}", people.stdout);
    for nobody in ["9", "nobody@shop.example", &blackbox::offer_id(1)] {
        let refused = admin(&world, &["sellers", "show", nobody]).await.ended(3);
        assert!(refused.stderr.contains("sellers list"), "{}", refused.stderr);
    }
    admin(&world, &["sellers", "show", "Kettles"]).await.ended(2);
}

#[tokio::test]
async fn a_closed_sellers_tokens_are_rejected_at_once() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    world.get(&token, "/v1/me").await.expect(200);
    let unsaid = admin(&world, &["sellers", "close", &seller.id]).await.ended(2);
    assert!(unsaid.stderr.contains("--yes"), "{}", unsaid.stderr);
    world.get(&token, "/v1/me").await.expect(200);

    let close = ["sellers", "close", "1", "--yes"];
    let closed = told(&world, &close).await.remove(0);
    assert!(closed["closed_at"].is_string(), "{closed}");
    world.get(&token, "/v1/me").await.expect(401);
    let note = (json!("command_line"), json!("seller.closed"));
    assert_eq!(newest_note(&world, &seller.id).await, note);
    assert_eq!(told(&world, &close).await, [closed], "again changes nothing");
}

#[tokio::test]
async fn connections_are_listed_with_who_runs_them() {
    let world = world().await;
    let partner = world.partner(&world.seller().await, &["offers:read"]).await;
    let mut member = world.member().await;
    world.pair(&mut member.browser, &partner, "offers:read").await;
    let listed = told(&world, &["connections", "list", &member.seller.id]).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["client_id"], partner.client_id);
    assert_eq!(listed[0]["scopes"], json!(["offers:read"]));
    assert_eq!(listed[0]["owner_name"], "Kettles & Co");
    let table = admin(&world, &["connections", "list", &member.seller.email])
        .await
        .success();
    assert_eq!(table.stdout.lines().count(), 2, "{}", table.stdout);
}
