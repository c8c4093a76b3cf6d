//! Tokens and grants end with the next request, on every process.

use blackbox::{Application, Asking, Expect, Member, PASSWORD, Pair, World, refreshing, text};
use serde_json::json;
use testkit::{Answer, TestServer};

use crate::{instant, with_partner, world};

const SCOPES: [&str; 2] = ["offers:read", "orders:read"];

/// Two processes on one database, and a grant that both have used successfully.
struct Granted {
    world: World,
    second: TestServer,
    member: Member,
    app: Application,
    pair: Pair,
    /// A code that was not exchanged.
    code: (Asking, String),
}

impl Granted {
    async fn start() -> Self {
        let (world, mut member, app) = with_partner(&SCOPES).await;
        let second = world.another().await;
        let pair = world.pair(&mut member.browser, &app, &SCOPES.join(" ")).await;
        let asking = world.asking(&app, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let granted = Self {
            world,
            second,
            member,
            app,
            pair,
            code: (asking, code),
        };
        granted.expect(200).await;
        granted
    }

    /// Renews the grant by a new consent.
    async fn renew(&mut self) {
        let (world, browser) = (&self.world, &mut self.member.browser);
        self.pair = world.pair(browser, &self.app, &SCOPES.join(" ")).await;
        self.code.0 = world.asking(&self.app, "offers:read");
        self.code.1 = world.code(browser, &self.code.0).await;
        self.expect(200).await;
    }

    /// Sends requests with the access token to both processes and asserts the status.
    async fn expect(&self, status: u16) {
        self.expect_of(&self.pair.access, status).await;
    }

    /// Sends repeated requests with a token to both processes and asserts the status.
    async fn expect_of(&self, token: &str, status: u16) {
        for _ in 0..3 {
            for base in [&self.world.server.base_url, &self.second.base_url] {
                let request = self.world.client.get(&format!("{base}/v1/offers"));
                request.bearer(token).send().await.expect(status);
            }
        }
    }

    /// Sends a form to an endpoint of the other process.
    async fn elsewhere(&self, endpoint: &str, fields: &[(&str, &str)]) -> Answer {
        let base = &self.second.base_url;
        let request = self.world.oauth_request_at(base, &self.app, endpoint, fields);
        request.send().await
    }

    /// Exchanges the code at the other process.
    async fn exchange(&self) -> Answer {
        let (asking, code) = &self.code;
        self.elsewhere("token", &asking.exchanging(code)).await
    }

    /// Asserts that nothing of the grant is valid on either process.
    async fn has_ended(&self, status: u16, error: &str) {
        self.expect(401).await;
        let refresh = self.elsewhere("token", &refreshing(&self.pair.refresh)).await;
        refresh.oauth_error(status, error);
        self.exchange().await.oauth_error(status, error);
    }
}

#[tokio::test]
async fn a_grant_ends_by_revocation_disconnection_or_deletion_and_pauses_with_a_suspension() {
    let mut granted = Granted::start().await;
    for (scopes, status) in [(["orders:read", "messaging"], 403), (SCOPES, 200)] {
        granted.world.set_scopes(&granted.app, &scopes).await;
        granted.expect(status).await;
    }
    granted.world.moved(&granted.app, "suspension").await;
    granted.has_ended(401, "invalid_client suspended").await;
    granted.world.moved(&granted.app, "reinstatement").await;
    granted.expect(200).await;
    Pair::of(granted.exchange().await);
    granted.pair = granted.world.refreshed(&granted.app, &granted.pair.refresh).await;
    // Revocation at the other process.
    let revoked = granted
        .elsewhere("revoke", &[("token", &granted.pair.refresh)])
        .await;
    revoked.expect(200);
    granted.has_ended(400, "invalid_grant").await;
    // A disconnection, which leaves another application's connection, and a new consent after it.
    granted.renew().await;
    let owner = granted.world.seller().await;
    let partner = granted.world.partner(&owner, &["offers:read"]).await;
    let beside = granted
        .world
        .pair(&mut granted.member.browser, &partner, "offers:read")
        .await;
    let action = format!("/panel/connections/{}/disconnect", granted.app.client_id);
    let page = granted.member.browser.page("/panel/connections").await;
    let question = granted.member.browser.sent(&page.form(&action)).await;
    question.shows(&format!("Disconnect {}?", granted.app.name));
    granted.expect(200).await;
    let page = granted.member.browser.sent(&question.form(&action)).await;
    page.shows("The application was disconnected");
    page.hides(&granted.app.name);
    granted.has_ended(400, "invalid_grant disconnected").await;
    granted.expect_of(&beside.access, 200).await;
    let own = granted.world.token(&granted.app).await;
    // The application's own tokens need no connection.
    assert!(granted.world.works(&own).await);
    let ended = granted.pair.access.clone();
    granted.renew().await;
    assert!(!granted.world.works(&ended).await);
    // Deletion ends this application's tokens alone, permanently.
    let sister = granted.world.application(&granted.member.seller, &SCOPES).await;
    let sister = granted.world.token(&sister).await;
    granted.world.delete_application(&granted.app).await;
    granted.has_ended(401, "invalid_client none").await;
    granted.expect_of(&own, 401).await;
    granted.expect_of(&sister, 200).await;
    let page = granted.member.browser.page("/panel/connections").await;
    page.hides(&granted.app.name);
}

#[tokio::test]
async fn closing_a_seller_ends_all_of_the_sellers_grants_tokens_and_sessions_and_no_others() {
    let mut granted = Granted::start().await;
    let world = &granted.world;
    let app = world.application(&granted.member.seller, &SCOPES).await;
    let own = world.token(&app).await;
    let personal = world.personal_token(&granted.member.seller, &SCOPES).await.token;
    let (_, stranger) = world.reader().await;
    for token in [&own, &personal, &stranger] {
        granted.expect_of(token, 200).await;
    }
    world.close(&granted.member.seller.id).await;
    granted.has_ended(400, "invalid_grant revoked").await;
    for (token, status) in [(&own, 401), (&personal, 401), (&stranger, 200)] {
        granted.expect_of(token, status).await;
    }
    let Member { seller, browser } = &mut granted.member;
    let page = browser.open("/panel/connections").await;
    let has_ended = page.path.starts_with("/panel/sign-in");
    assert!(has_ended, "the session has ended: {}", page.path);
    browser.sign_in(&seller.email, PASSWORD).await.expect(422);
}

#[tokio::test]
async fn closing_an_applications_owner_ends_the_application() {
    let granted = Granted::start().await;
    let (world, app) = (&granted.world, &granted.app);
    let own = world.token(app).await;
    assert!(world.works(&own).await);
    let path = format!("/applications/{}", app.client_id);
    let owner = text(&world.office_read(&path).await, "seller_id");
    world.close(&owner).await;
    // Other sellers' consents end with the next request too, on every process.
    granted.has_ended(401, "invalid_client closed").await;
    assert!(!world.works(&own).await);
    let mut unproved = app.clone();
    unproved.client_secret.push('x');
    for (app, error) in [(app, "invalid_client closed"), (&unproved, "invalid_client none")] {
        world.token_answer(app).await.oauth_error(401, error);
    }
    let asked = world.visit(&world.asking(app, "offers:read").path()).await;
    asked.oauth_error(400, "invalid_client none");
    // The seller who consented is not affected otherwise.
    let page = granted.member.browser.clone().page("/panel/connections").await;
    assert_eq!(page.path, "/panel/connections");
}

#[tokio::test]
async fn limits_and_revocations_of_personal_tokens_apply_at_once_on_every_process() {
    let granted = Granted::start().await;
    let (world, seller) = (&granted.world, &granted.member.seller);
    world.set_limit(&granted.pair.access, 5000).await;
    for base in [&world.server.base_url, &granted.second.base_url] {
        let request = world.client.get(&format!("{base}/v1/me"));
        let answer = request.bearer(&granted.pair.access).send().await.expect(200);
        assert_eq!(answer.number("x-ratelimit-limit"), 5000);
    }
    let one = world.personal_token(seller, &["offers:read"]).await;
    let other = world.personal_token(seller, &["offers:read"]).await;
    granted.expect_of(&one.token, 200).await;
    world.revoke_personal(seller, &one).await;
    granted.expect_of(&one.token, 401).await;
    granted.expect_of(&other.token, 200).await;
}

#[tokio::test]
async fn tokens_expire_at_their_instant_by_the_databases_clock() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    let app = world.application(&seller, &["offers:read"]).await;
    let access = world.token(&app).await;
    let personal = world.issuing(&seller, json!({"expires_at": "2040-01-01T12:00:10Z"}));
    let personal = text(&personal.send().await.expect(201).json(), "token");
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
