//! What the audit log says of operators: their moves once each, and nothing else.

use std::net::SocketAddr;

use actix_web::http::Method;
use oauth::Actor;
use serde_json::json;

use super::fixture::{OPERATOR, Office, authorized, uuid};

/// The words of the log so far, and their subjects.
fn log(office: &Office) -> Vec<(&'static str, String)> {
    let rows = office.store.rows();
    assert!(
        rows.notes
            .iter()
            .all(|note| note.actor == Actor::Operator(OPERATOR))
    );
    let entries = rows.notes.iter();
    entries
        .map(|note| (note.action.as_str(), note.subject.clone()))
        .collect()
}

fn words(office: &Office) -> Vec<&'static str> {
    log(office).into_iter().map(|(word, _)| word).collect()
}

#[actix_web::test]
async fn moves_over_accounts_and_tokens_are_noted_and_their_repeats_are_not() {
    let (office, seller) = Office::with_seller().await;
    let at = |path: &str| format!("/sellers/{seller}/{path}");
    office.post(&at("sign-in-links"), "").await;
    office.post(&at("invitations"), "").await;
    let token = r#"{"name": "script", "scopes": ["offers:read"]}"#;
    let issued = office.post(&at("personal-tokens"), token).await.json();
    let token = issued["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        office
            .call(Method::DELETE, &at(&format!("personal-tokens/{token}")), "")
            .await;
        office.post(&at("closure"), "").await;
    }
    let expected = [
        ("seller.registered", &seller),
        ("sign_in_link.made", &seller),
        ("invitation.sent", &seller),
        ("personal_token.made", &token),
        ("personal_token.revoked", &token),
        ("seller.closed", &seller),
    ];
    assert_eq!(
        log(&office),
        expected.map(|(word, subject)| (word, subject.clone()))
    );
}

#[actix_web::test]
async fn moves_over_applications_are_noted_and_their_repeats_are_not() {
    let (office, seller) = Office::with_seller().await;
    let registration = json!({
        "name": "Stock Sync", "documentation_url": "https://docs.example", "purpose": "for_other_sellers",
        "client_type": "confidential", "redirect_uris": ["https://app.example/cb"],
        "scopes": ["offers:read"], "accept_terms": true,
    });
    let registered = office
        .post(
            &format!("/sellers/{seller}/applications"),
            &registration.to_string(),
        )
        .await
        .json();
    let client = registered["client_id"].as_str().unwrap().to_owned();
    let path = format!("/applications/{client}");
    for step in ["suspension", "acceptance", "suspension", "reinstatement"] {
        for _ in 0..2 {
            office.post(&format!("{path}/{step}"), "").await;
        }
    }
    for _ in 0..2 {
        office.call(Method::PATCH, &path, r#"{"rate_limit": 7}"#).await;
    }
    for _ in 0..2 {
        office.call(Method::DELETE, &path, "").await;
    }
    let mut log = log(&office);
    assert_eq!(log.remove(0), ("seller.registered", seller));
    assert!(log.iter().all(|(_, subject)| *subject == client));
    let words: Vec<_> = log.into_iter().map(|(word, _)| word).collect();
    let expected = [
        "application.registered",
        "application.accepted",
        "application.suspended",
        "application.reinstated",
        "application.changed",
        "application.deleted",
    ];
    assert_eq!(words, expected);
}

#[actix_web::test]
async fn of_orders_only_an_erasure_is_noted_and_feeding_is_not() {
    let (office, seller) = Office::with_seller().await;
    let offer = office.with_offer(&seller, 70, Some(4990), Some(3)).await;
    let order = json!({
        "buyer": { "name": "Jan", "email": "jan@example.com", "phone": null },
        "items": [{ "seller_id": seller, "offer_id": offer, "quantity": 1 }],
    });
    let placed = office.post("/orders", &order.to_string()).await.json();
    let id = placed["order_id"].as_str().unwrap().to_owned();
    office.post(&format!("/orders/{id}/payment"), "").await;
    for _ in 0..2 {
        office.post(&format!("/orders/{id}/buyer-erasure"), "").await;
    }
    assert_eq!(words(&office), ["seller.registered", "buyer.erased"]);
    assert_eq!(log(&office)[1].1, id);
}

#[actix_web::test]
async fn what_is_refused_is_not_noted() {
    let office = Office::new();
    let nobody = uuid(99);
    for path in ["closure", "sign-in-links", "invitations"] {
        office.post(&format!("/sellers/{nobody}/{path}"), "").await;
    }
    office.post("/sellers", "{}").await;
    assert!(log(&office).is_empty());
}

#[actix_web::test]
async fn a_note_says_from_where_and_believes_trusted_proxies_alone() {
    let mut office = Office::new();
    let peer: SocketAddr = "192.0.2.7:4711".parse().unwrap();
    let register = |n: u8| {
        authorized(Method::POST, "/sellers")
            .peer_addr(peer)
            .insert_header(("content-type", "application/json"))
            .insert_header(("x-forwarded-for", "198.51.100.9"))
            .set_payload(format!(r#"{{"name": "n", "email": "{n}@example.com"}}"#))
    };
    office.send(register(1)).await;
    let trusted = web::client_ip::TrustedProxies::new(["192.0.2.0/24".parse().unwrap()]);
    let settings = crate::BackOfficeSettings {
        trusted_proxies: trusted,
        ..(*office.back_office.settings).clone()
    };
    office.back_office.settings = settings.into();
    office.send(register(2)).await;
    let addresses: Vec<_> = office
        .store
        .rows()
        .notes
        .iter()
        .map(|note| note.address.unwrap().to_string())
        .collect();
    assert_eq!(addresses, ["192.0.2.7", "198.51.100.9"]);
}
