//! What ends a seller's grant does so for the very next request, on every process.

use blackbox::{Application, CALLBACK, Expect, Member, Pair, World, encoded};
use reqwest::Method;
use serde_json::json;
use testkit::TestServer;

use crate::world_of_consent;

/// Two processes on one database, and a grant that both have seen work.
struct Granted {
    world: World,
    second: TestServer,
    member: Member,
    application: Application,
    pair: Pair,
}

impl Granted {
    async fn start() -> Self {
        let world = world_of_consent().await;
        let second = world.another().await;
        let mut member = world.member().await;
        let owner = world.seller().await;
        let application = world.partner(&owner, &["offers:read", "orders:read"]).await;
        let pair = world
            .pair(&mut member.browser, &application, "offers:read orders:read")
            .await;
        let granted = Self {
            world,
            second,
            member,
            application,
            pair,
        };
        for _ in 0..3 {
            granted.expect(&granted.pair, 200).await;
        }
        granted
    }

    fn bases(&self) -> [&str; 2] {
        [&self.world.server.base_url, &self.second.base_url]
    }

    /// Asks both processes at once with an access token.
    async fn expect(&self, pair: &Pair, status: u16) {
        let [one, other] = self.bases().map(|base| {
            self.world
                .client
                .get(&format!("{base}/v1/offers"))
                .bearer(&pair.access)
                .send()
        });
        let (one, other) = tokio::join!(one, other);
        one.expect(status);
        other.expect(status);
    }

    /// A refresh on the other process fails with this error.
    async fn refused(&self, pair: &Pair, status: u16, error: &str) {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", pair.refresh.as_str()),
        ];
        let answer = self
            .world
            .oauth_at(&self.second.base_url, &self.application, "token", &fields)
            .await;
        answer.oauth_error(status, error);
    }

    /// A code that was not exchanged yet, and the exchange on the other process.
    async fn code(&mut self) -> Vec<(&'static str, String)> {
        let asking = self.world.asking(&self.application, "offers:read");
        let code = self.world.code(&mut self.member.browser, &asking).await;
        vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", CALLBACK.to_owned()),
            ("code_verifier", asking.verifier),
        ]
    }

    async fn exchange(&self, fields: &[(&str, String)]) -> testkit::Answer {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.world
            .oauth_at(&self.second.base_url, &self.application, "token", &fields)
            .await
    }
}

#[tokio::test]
async fn disconnection_ends_tokens_and_codes_and_a_new_consent_begins_anew() {
    let mut granted = Granted::start().await;
    let code = granted.code().await;
    let page = granted
        .member
        .browser
        .open("/panel/connections")
        .await
        .expect(200);
    assert!(page.html.contains(&granted.application.name), "{}", page.html);
    let action = format!("/panel/connections/{}/disconnect", granted.application.client_id);
    let page = granted
        .member
        .browser
        .submit(&page.form(&action))
        .await
        .expect(200);
    assert!(!page.html.contains(&granted.application.name), "{}", page.html);
    granted.expect(&granted.pair, 401).await;
    granted.refused(&granted.pair, 400, "invalid_grant").await;
    granted.exchange(&code).await.oauth_error(400, "invalid_grant");
    let own = granted.world.token(&granted.application).await;
    assert!(
        granted.world.works(&own).await,
        "the application's own tokens hang on no connection"
    );
    let (world, browser) = (&granted.world, &mut granted.member.browser);
    let anew = world.pair(browser, &granted.application, "offers:read").await;
    granted.expect(&anew, 200).await;
    granted.expect(&granted.pair, 401).await;
}

#[tokio::test]
async fn revocation_is_seen_by_every_process() {
    let granted = Granted::start().await;
    let token = encoded(&[
        ("token", granted.pair.refresh.as_str()),
        ("client_id", &granted.application.client_id),
        ("client_secret", &granted.application.client_secret),
    ]);
    let url = format!("{}/oauth/revoke", granted.second.base_url);
    granted
        .world
        .client
        .post(&url)
        .form(&token)
        .send()
        .await
        .expect(200);
    granted.expect(&granted.pair, 401).await;
    granted.refused(&granted.pair, 400, "invalid_grant").await;
}

#[tokio::test]
async fn suspension_rejects_and_reinstatement_revives() {
    let mut granted = Granted::start().await;
    let code = granted.code().await;
    let id = granted.application.client_id.clone();
    granted
        .world
        .move_application(&id, "suspension")
        .await
        .expect(200);
    granted.expect(&granted.pair, 401).await;
    granted.refused(&granted.pair, 401, "invalid_client").await;
    granted.exchange(&code).await.oauth_error(401, "invalid_client");
    granted
        .world
        .move_application(&id, "reinstatement")
        .await
        .expect(200);
    granted.expect(&granted.pair, 200).await;
    Pair::of(granted.exchange(&code).await);
    Pair::of(
        granted
            .world
            .refresh(&granted.application, &granted.pair.refresh)
            .await,
    );
}

#[tokio::test]
async fn narrowing_holds_at_once_and_widening_brings_back() {
    let granted = Granted::start().await;
    for (scopes, status) in [
        (["orders:read", "messaging"], 403),
        (["offers:read", "orders:read"], 200),
    ] {
        let changes = json!({"scopes": scopes});
        granted
            .world
            .adjust(&granted.application.client_id, &changes)
            .await
            .expect(200);
        granted.expect(&granted.pair, status).await;
    }
}

#[tokio::test]
async fn deletion_ends_everything_for_good() {
    let mut granted = Granted::start().await;
    let code = granted.code().await;
    let path = format!("/applications/{}", granted.application.client_id);
    granted
        .world
        .office(Method::DELETE, &path)
        .send()
        .await
        .expect(204);
    granted.expect(&granted.pair, 401).await;
    granted.refused(&granted.pair, 401, "invalid_client").await;
    granted.exchange(&code).await.oauth_error(401, "invalid_client");
    let page = granted
        .member
        .browser
        .open("/panel/connections")
        .await
        .expect(200);
    assert!(!page.html.contains(&granted.application.name), "{}", page.html);
}

#[tokio::test]
async fn a_closed_seller_has_granted_nothing() {
    let mut granted = Granted::start().await;
    let code = granted.code().await;
    let path = format!("/sellers/{}/closure", granted.member.seller.id);
    granted.world.office(Method::POST, &path).send().await.expect(200);
    granted.expect(&granted.pair, 401).await;
    granted.refused(&granted.pair, 400, "invalid_grant").await;
    granted.exchange(&code).await.oauth_error(400, "invalid_grant");
    let page = granted.member.browser.open("/panel/connections").await;
    assert!(
        page.path.starts_with("/panel/sign-in"),
        "the session has ended: {}",
        page.path
    );
    let page = granted
        .member
        .browser
        .sign_in(&granted.member.seller.email, blackbox::PASSWORD)
        .await;
    assert_eq!(page.answer.status, 422, "{}", page.html);
}

#[tokio::test]
async fn a_closed_owner_takes_its_applications_along() {
    let granted = Granted::start().await;
    let (world, application) = (&granted.world, &granted.application);
    let own = world.token(application).await;
    assert!(world.works(&own).await);
    let owner = world
        .office_get(&format!("/applications/{}", application.client_id))
        .await
        .expect(200)
        .json();
    let path = format!("/sellers/{}/closure", owner["seller_id"].as_str().unwrap());
    world.office(Method::POST, &path).send().await.expect(200);
    // What others consented to ends at the very next request as well, on every process.
    granted.expect(&granted.pair, 401).await;
    assert!(!world.works(&own).await);
    granted.refused(&granted.pair, 401, "invalid_client").await;
    world
        .token_answer(application)
        .await
        .oauth_error(401, "invalid_client");
    let asked = world
        .client
        .get(&world.url(&world.asking(application, "offers:read").path()))
        .send()
        .await;
    asked.oauth_error(400, "invalid_client");
    // The seller who consented is none the worse for it.
    let mut browser = granted.member.browser.clone();
    let page = browser.open("/panel/connections").await.expect(200);
    assert_eq!(page.path, "/panel/connections");
}
