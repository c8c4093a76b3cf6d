//! Connected applications.

use actix_web::http::StatusCode;
use oauth::{Action, ConnectedApplication, ScopeSet};

use super::browser::Browser;
use super::world::{Shared, client, seller};

fn connect(world: &Shared, account: u128) {
    let connected_at = world.get().now;
    let connection = ConnectedApplication {
        client_id: client(1),
        name: "Stock Sync".to_owned(),
        owner: seller(2),
        owner_name: "Bob's Lamps".to_owned(),
        documentation_url: Some("https://docs.example/sync".to_owned()),
        scopes: ScopeSet::parse("offers:read shipments:write").unwrap(),
        connected_at,
        used_at: None,
    };
    world.get().connections.push((seller(account), connection));
}

#[actix_web::test]
async fn a_connection_says_who_may_do_what_and_can_be_ended() {
    let world = Shared::new();
    connect(&world, 1);
    let browser = Browser::signed_in(&world).await;
    let page = browser.get("/panel/connections").await;
    for text in [
        "Stock Sync",
        "Bob&#39;s Lamps",
        "report shipments (the buyer is notified)",
        "2023-11-14 22:13 UTC",
        "not yet",
        ">Disconnect</button>",
    ] {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
    let path = format!("/panel/connections/{}/disconnect", client(1));
    let ended = browser.submit(&path, &[]).await;
    assert_eq!(ended.location(), "/panel/connections?done=disconnected");
    assert!(world.get().connections.is_empty());
    assert_eq!(world.noted().last(), Some(&Action::Disconnected));
}

#[actix_web::test]
async fn another_sellers_connection_is_neither_seen_nor_ended() {
    let world = Shared::new();
    connect(&world, 2);
    let browser = Browser::signed_in(&world).await;
    let page = browser.get("/panel/connections").await;
    assert!(page.text.contains("No application is connected"), "{}", page.text);
    let path = format!("/panel/connections/{}/disconnect", client(1));
    assert_eq!(browser.submit(&path, &[]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get().connections.len(), 1);
}
