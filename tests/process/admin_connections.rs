//! `admin connections`.

use serde_json::json;

use crate::{
    admin::{admin, told},
    world,
};

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
