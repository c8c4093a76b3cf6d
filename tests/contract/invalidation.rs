//! What takes a token its force does so for the very next request, on every process.

use blackbox::{Application, Expect, Seller, World};
use reqwest::Method;
use serde_json::json;
use testkit::TestServer;

use crate::{instant, world};

/// Two processes and an application with a token that both have seen work.
struct Pair {
    world: World,
    second: TestServer,
    seller: Seller,
    application: Application,
    token: String,
}

impl Pair {
    async fn start() -> Self {
        let world = world().await;
        let second = world.another().await;
        let seller = world.seller().await;
        let application = world.application(&seller, &["offers:read", "offers:write"]).await;
        let token = world.token(&application).await;
        let pair = Self {
            world,
            second,
            seller,
            application,
            token,
        };
        for _ in 0..3 {
            pair.expect(&pair.token, 200).await;
        }
        pair
    }

    /// Asks both processes at once with a token.
    async fn expect(&self, token: &str, status: u16) {
        let ask = |base: &str| {
            self.world
                .client
                .get(&format!("{base}/v1/offers"))
                .bearer(token)
                .send()
        };
        let (first, second) = tokio::join!(ask(&self.world.server.base_url), ask(&self.second.base_url));
        for answer in [first, second] {
            let answer = answer.expect(status);
            match status {
                200 => {}
                401 => answer.refused(401, "unauthorized"),
                403 => answer.refused(403, "insufficient_scope"),
                other => panic!("{other} is none of the answers of these tests"),
            }
        }
    }
}

#[tokio::test]
async fn suspension_rejects_and_reinstatement_revives() {
    let pair = Pair::start().await;
    let id = &pair.application.client_id;
    for _ in 0..3 {
        pair.world.move_application(id, "suspension").await.expect(200);
        pair.expect(&pair.token, 401).await;
        pair.world.move_application(id, "reinstatement").await.expect(200);
        pair.expect(&pair.token, 200).await;
    }
}

#[tokio::test]
async fn deletion_revokes_the_application_alone() {
    let pair = Pair::start().await;
    let other = pair
        .world
        .token(&pair.world.application(&pair.seller, &["offers:read"]).await)
        .await;
    let path = format!("/applications/{}", pair.application.client_id);
    pair.world.office(Method::DELETE, &path).send().await.expect(204);
    pair.expect(&pair.token, 401).await;
    pair.expect(&other, 200).await;
    pair.world
        .move_application(&pair.application.client_id, "reinstatement")
        .await
        .expect(404);
    pair.expect(&pair.token, 401).await;
}

#[tokio::test]
async fn closing_a_seller_ends_all_its_tokens_and_nobody_elses() {
    let pair = Pair::start().await;
    let personal = pair
        .world
        .personal_token(&pair.seller, &["offers:read"])
        .await
        .token;
    let (_, stranger) = pair.world.reader().await;
    pair.expect(&personal, 200).await;
    pair.world
        .office(Method::POST, &format!("/sellers/{}/closure", pair.seller.id))
        .send()
        .await
        .expect(200);
    pair.expect(&pair.token, 401).await;
    pair.expect(&personal, 401).await;
    pair.expect(&stranger, 200).await;
}

#[tokio::test]
async fn narrowed_scopes_hold_at_once_and_widened_ones_come_back() {
    let pair = Pair::start().await;
    for (scopes, status) in [
        (["offers:write", "messaging"], 403),
        (["offers:read", "messaging"], 200),
    ] {
        pair.world
            .adjust(&pair.application.client_id, &json!({"scopes": scopes}))
            .await
            .expect(200);
        pair.expect(&pair.token, status).await;
    }
}

#[tokio::test]
async fn a_changed_limit_is_seen_by_both_processes() {
    let pair = Pair::start().await;
    for limit in [1000, 5000, 600] {
        pair.world
            .adjust(&pair.application.client_id, &json!({"rate_limit": limit}))
            .await
            .expect(200);
        for base in [&pair.world.server.base_url, &pair.second.base_url] {
            let answer = pair
                .world
                .client
                .get(&format!("{base}/v1/me"))
                .bearer(&pair.token)
                .send()
                .await;
            assert_eq!(answer.expect(200).number("x-ratelimit-limit"), limit);
        }
    }
}

#[tokio::test]
async fn a_revoked_personal_token_is_dead_and_its_sisters_live() {
    let pair = Pair::start().await;
    let (one, other) = (
        pair.world.personal_token(&pair.seller, &["offers:read"]).await,
        pair.world.personal_token(&pair.seller, &["offers:read"]).await,
    );
    pair.expect(&one.token, 200).await;
    let path = format!("/sellers/{}/personal-tokens/{}", pair.seller.id, one.id);
    pair.world.office(Method::DELETE, &path).send().await.expect(204);
    pair.expect(&one.token, 401).await;
    pair.expect(&other.token, 200).await;
}

#[tokio::test]
async fn tokens_end_at_their_instant_by_the_databases_clock() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    let access = world
        .token(&world.application(&seller, &["offers:read"]).await)
        .await;
    let body = json!({"name": "ends", "scopes": ["offers:read"], "expires_at": "2040-01-01T12:00:10Z"});
    let made = world
        .office_post(&format!("/sellers/{}/personal-tokens", seller.id), &body)
        .await
        .expect(201)
        .json();
    let personal = made["token"].as_str().unwrap();
    for (at, personal_lives, access_lives) in [
        ("2040-01-01T12:00:09.999999Z", 200, 200),
        ("2040-01-01T12:00:10Z", 401, 200),
        ("2040-01-01T23:59:59.999999Z", 401, 200),
        ("2040-01-02T00:00:00Z", 401, 401),
    ] {
        clock.freeze(instant(at)).await;
        world.get(personal, "/v1/me").await.expect(personal_lives);
        world.get(&access, "/v1/me").await.expect(access_lives);
    }
}
