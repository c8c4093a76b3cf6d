//! A token becomes invalid with the next request, on every process.

use blackbox::{Application, Expect, Seller, World, text};
use serde_json::json;
use testkit::TestServer;

use crate::{instant, world};

/// Two processes, and an application with a token that both have accepted.
struct Pair {
    world: World,
    second: TestServer,
    seller: Seller,
    app: Application,
    token: String,
}

impl Pair {
    async fn start() -> Self {
        let world = world().await;
        let second = world.another().await;
        let seller = world.seller().await;
        let app = world.application(&seller, &["offers:read", "offers:write"]).await;
        let token = world.token(&app).await;
        let pair = Self {
            world,
            second,
            seller,
            app,
            token,
        };
        for _ in 0..3 {
            pair.expect(&pair.token, 200).await;
        }
        pair
    }

    /// Sends concurrent requests with a token to both processes and asserts the status.
    async fn expect(&self, token: &str, status: u16) {
        let ask = |base: &str| {
            let request = self.world.client.get(&format!("{base}/v1/offers"));
            request.bearer(token).send()
        };
        let (first, second) = tokio::join!(ask(&self.world.server.base_url), ask(&self.second.base_url));
        for answer in [first, second] {
            match status {
                401 => answer.refused(401, "unauthorized"),
                403 => answer.refused(403, "insufficient_scope"),
                status => drop(answer.expect(status)),
            }
        }
    }
}

#[tokio::test]
async fn whatever_becomes_of_a_token_is_seen_at_once_by_every_process() {
    let pair = Pair::start().await;
    let (world, app) = (&pair.world, &pair.app);
    for _ in 0..3 {
        world.moved(app, "suspension").await;
        pair.expect(&pair.token, 401).await;
        world.moved(app, "reinstatement").await;
        pair.expect(&pair.token, 200).await;
    }
    for (scopes, status) in [("offers:write", 403), ("offers:read", 200)] {
        world.set_scopes(app, &[scopes, "messaging"]).await;
        pair.expect(&pair.token, status).await;
    }
    for limit in [1000, 5000, 600] {
        world.set_limit(&pair.token, limit).await;
        for base in [&world.server.base_url, &pair.second.base_url] {
            let request = world.client.get(&format!("{base}/v1/me"));
            let answer = request.bearer(&pair.token).send().await.expect(200);
            assert_eq!(answer.number("x-ratelimit-limit"), limit);
        }
    }
    // A revoked personal token is invalid; the seller's other tokens work.
    let one = world.personal_token(&pair.seller, &["offers:read"]).await;
    let other = world.personal_token(&pair.seller, &["offers:read"]).await;
    pair.expect(&one.token, 200).await;
    world.revoke_personal(&pair.seller, &one).await;
    pair.expect(&one.token, 401).await;
    pair.expect(&other.token, 200).await;
    // Deletion revokes only this application's tokens, permanently.
    let sister = world.application(&pair.seller, &["offers:read"]).await;
    let sister = world.token(&sister).await;
    world.delete_application(app).await;
    pair.expect(&pair.token, 401).await;
    pair.expect(&sister, 200).await;
    world
        .move_application(&app.client_id, "reinstatement")
        .await
        .expect(404);
    pair.expect(&pair.token, 401).await;
    // Closing a seller invalidates all of the seller's tokens, and no others.
    let (_, stranger) = world.reader().await;
    world.close(&pair.seller.id).await;
    pair.expect(&sister, 401).await;
    pair.expect(&other.token, 401).await;
    pair.expect(&stranger, 200).await;
}

#[tokio::test]
async fn tokens_end_at_their_instant_by_the_databases_clock() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    let app = world.application(&seller, &["offers:read"]).await;
    let access = world.token(&app).await;
    let body = json!({"name": "ends", "scopes": ["offers:read"], "expires_at": "2040-01-01T12:00:10Z"});
    let path = format!("/sellers/{}/personal-tokens", seller.id);
    let personal = text(&world.office_made(&path, &body).await, "token");
    for (at, personal_lives, access_lives) in [
        ("2040-01-01T12:00:09.999999Z", 200, 200),
        ("2040-01-01T12:00:10Z", 401, 200),
        ("2040-01-01T23:59:59.999999Z", 401, 200),
        ("2040-01-02T00:00:00Z", 401, 401),
    ] {
        clock.freeze(instant(at)).await;
        world.get(&personal, "/v1/me").await.expect(personal_lives);
        world.get(&access, "/v1/me").await.expect(access_lives);
    }
}
