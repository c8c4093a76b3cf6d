//! A seller's grant ends with the next request, on every process.

use blackbox::{Application, Asking, Expect, Member, PASSWORD, Pair, World, refreshing, text};
use testkit::{Answer, TestServer};

use crate::with_partner;

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

    /// Sends repeated requests with the access token to both processes and asserts the status.
    async fn expect(&self, status: u16) {
        for _ in 0..3 {
            for base in [&self.world.server.base_url, &self.second.base_url] {
                let request = self.world.client.get(&format!("{base}/v1/offers"));
                request.bearer(&self.pair.access).send().await.expect(status);
            }
        }
    }

    /// Exchanges the code at the other process.
    async fn exchange(&self) -> Answer {
        let (asking, code) = &self.code;
        let (base, fields) = (&self.second.base_url, asking.exchanging(code));
        let request = self.world.oauth_request_at(base, &self.app, "token", &fields);
        request.send().await
    }

    /// Asserts that nothing of the grant is valid on either process.
    async fn has_ended(&self, status: u16, error: &str) {
        self.expect(401).await;
        let (base, fields) = (&self.second.base_url, refreshing(&self.pair.refresh));
        let refresh = self.world.oauth_request_at(base, &self.app, "token", &fields);
        refresh.send().await.oauth_error(status, error);
        self.exchange().await.oauth_error(status, error);
    }
}

#[tokio::test]
async fn what_ends_a_grant_and_what_holds_it() {
    let mut granted = Granted::start().await;
    for (scopes, status) in [(["orders:read", "messaging"], 403), (SCOPES, 200)] {
        granted.world.set_scopes(&granted.app, &scopes).await;
        granted.expect(status).await;
    }
    granted.world.moved(&granted.app, "suspension").await;
    granted.has_ended(401, "invalid_client").await;
    granted.world.moved(&granted.app, "reinstatement").await;
    granted.expect(200).await;
    Pair::of(granted.exchange().await);
    granted.pair = granted.world.refreshed(&granted.app, &granted.pair.refresh).await;
    // Revocation at the other process.
    let token = [("token", granted.pair.refresh.as_str())];
    let base = &granted.second.base_url;
    let revocation = granted
        .world
        .oauth_request_at(base, &granted.app, "revoke", &token);
    revocation.send().await.expect(200);
    granted.has_ended(400, "invalid_grant").await;
    // A disconnection, and a new consent after it.
    granted.renew().await;
    let page = granted.member.browser.page("/panel/connections").await;
    page.shows(&granted.app.name);
    let action = format!("/panel/connections/{}/disconnect", granted.app.client_id);
    let page = granted.member.browser.sent(&page.form(&action)).await;
    page.hides(&granted.app.name);
    granted.has_ended(400, "invalid_grant").await;
    let own = granted.world.token(&granted.app).await;
    assert!(
        granted.world.works(&own).await,
        "the application's own tokens hang on no connection"
    );
    let ended = granted.pair.access.clone();
    granted.renew().await;
    assert!(!granted.world.works(&ended).await);
    granted.world.delete_application(&granted.app).await;
    granted.has_ended(401, "invalid_client").await;
    let page = granted.member.browser.page("/panel/connections").await;
    page.hides(&granted.app.name);
}

#[tokio::test]
async fn a_closed_seller_has_granted_nothing() {
    let mut granted = Granted::start().await;
    granted.world.close(&granted.member.seller.id).await;
    granted.has_ended(400, "invalid_grant").await;
    let Member { seller, browser } = &mut granted.member;
    let page = browser.open("/panel/connections").await;
    assert!(
        page.path.starts_with("/panel/sign-in"),
        "the session has ended: {}",
        page.path
    );
    browser.sign_in(&seller.email, PASSWORD).await.expect(422);
}

#[tokio::test]
async fn a_closed_owner_takes_its_applications_along() {
    let granted = Granted::start().await;
    let (world, app) = (&granted.world, &granted.app);
    let own = world.token(app).await;
    assert!(world.works(&own).await);
    let owner = world
        .office_read(&format!("/applications/{}", app.client_id))
        .await;
    world.close(&text(&owner, "seller_id")).await;
    // Other sellers' consents end with the next request too, on every process.
    granted.has_ended(401, "invalid_client").await;
    assert!(!world.works(&own).await);
    let token = world.token_answer(app).await;
    token.oauth_error(401, "invalid_client");
    let asked = world.visit(&world.asking(app, "offers:read").path()).await;
    asked.oauth_error(400, "invalid_client");
    // The seller who consented is not affected otherwise.
    let page = granted.member.browser.clone().open("/panel/connections").await;
    assert_eq!(
        (page.answer.status, page.path.as_str()),
        (200, "/panel/connections")
    );
}
