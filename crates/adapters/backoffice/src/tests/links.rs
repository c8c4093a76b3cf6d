//! Invitations, and links that sign sellers in.

use chrono::TimeDelta;
use oauth::LinkKind;
use serde_json::json;

use super::fixture::{Office, uuid};
use super::rows::now;

#[actix_web::test]
async fn who_comes_without_a_password_is_invited() {
    let (office, seller) = Office::with_seller().await;
    let rows = office.store.rows();
    let [mail] = rows.account_mails.as_slice() else {
        panic!("{} mails", rows.account_mails.len());
    };
    assert_eq!(
        (mail.kind, mail.to.as_str()),
        (LinkKind::Invitation, "shop@example.com")
    );
    assert_eq!(mail.seller.to_string(), seller);
    assert!(
        mail.url
            .starts_with("https://api.example/panel/invitation/ps_ln_")
    );
    assert_eq!(mail.expires_at, now() + TimeDelta::days(7));
    assert_eq!(rows.links.len(), 1);
}

#[actix_web::test]
async fn who_has_a_password_is_not_invited() {
    let office = Office::new();
    let body = r#"{"name": "Kettles", "email": "shop@example.com", "password": "correct horse"}"#;
    let id = office.post("/sellers", body).await.json()["id"].clone();
    let path = format!("/sellers/{}/invitations", id.as_str().unwrap());
    assert_eq!(office.post(&path, "").await.errors(), "409 conflict");
    assert!(office.store.rows().account_mails.is_empty());
}

#[actix_web::test]
async fn an_invitation_sent_again_replaces_the_first() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/invitations");
    let again = office.post(&path, "").await;
    assert_eq!(again.status, 202);
    assert_eq!(
        again.json(),
        json!({ "expires_at": "2023-11-21T22:13:20.000000Z" })
    );
    let rows = office.store.rows();
    assert_eq!((rows.account_mails.len(), rows.links.len()), (2, 1));
    assert_ne!(rows.account_mails[0].url, rows.account_mails[1].url);
}

#[actix_web::test]
async fn a_sign_in_link_lasts_a_minute_and_its_replay_is_the_same() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/sign-in-links");
    let made = office.post_once("k-1", &path, "{}").await;
    assert_eq!(made.status, 201);
    let body = made.json();
    let url = body["url"].as_str().unwrap();
    assert!(
        url.starts_with("https://api.example/panel/sign-in/ps_ln_"),
        "{url}"
    );
    assert_eq!(body["expires_at"], "2023-11-14T22:14:20.000000Z");
    let replayed = office.post_once("k-1", &path, "{}").await;
    assert_eq!(replayed.header("idempotent-replayed"), "true");
    assert_eq!(replayed.body, made.body);
    let other = office.post(&path, "").await.json();
    assert_ne!(other["url"], body["url"]);
    let links = office.store.rows().links.clone();
    assert_eq!(
        links.iter().filter(|link| link.kind == LinkKind::SignIn).count(),
        1
    );
}

#[actix_web::test]
async fn who_is_not_there_or_has_left_gets_no_link() {
    let (office, seller) = Office::with_seller().await;
    office.post(&format!("/sellers/{seller}/closure"), "").await;
    for call in ["sign-in-links", "invitations"] {
        let nobody = office.post(&format!("/sellers/{}/{call}", uuid(99)), "").await;
        assert_eq!(nobody.errors(), "404 not_found", "{call}");
        let left = office.post(&format!("/sellers/{seller}/{call}"), "").await;
        assert_eq!(left.errors(), "409 conflict", "{call}");
        let wrong = office
            .post(&format!("/sellers/{seller}/{call}"), r#"{"x": 1}"#)
            .await;
        assert_eq!(wrong.errors(), "400 validation_error x", "{call}");
    }
}

#[actix_web::test]
async fn a_password_is_one_that_the_panel_would_take() {
    let office = Office::new();
    for (password, taken) in [
        ("short", false),
        ("shop@example.com", false),
        ("Password123", false),
        ("correct horse", true),
    ] {
        let body = json!({ "name": "Kettles", "email": "Shop@example.com", "password": password });
        let answer = office.post("/sellers", &body.to_string()).await;
        if taken {
            assert_eq!(answer.status, 201);
        } else {
            assert_eq!(answer.errors(), "400 validation_error password", "{password}");
        }
    }
}
