//! What changes between the moment the screen of consent is shown and the moment somebody presses its button.

use blackbox::{Application, Asking, Callback, Expect, Form, Member, Visitor, World};
use reqwest::Method;

use crate::world_of_consent;

struct Shown {
    world: World,
    owner: Member,
    browser: Visitor,
    application: Application,
    asking: Asking,
}

impl Shown {
    async fn prepare() -> Self {
        let world = world_of_consent().await;
        let (owner, member) = (world.member().await, world.member().await);
        let application = world.partner(&owner.seller, &["offers:read"]).await;
        let asking = world.asking(&application, "offers:read");
        Self {
            world,
            owner,
            browser: member.browser,
            application,
            asking,
        }
    }

    /// The form of a fresh screen.
    async fn form(&mut self, decision: &str) -> Form {
        let page = self.world.screen(&mut self.browser, &self.asking).await;
        page.form("/panel/consent").press("decision", decision)
    }

    /// The owner writes the redirect addresses anew, in the panel.
    async fn redirect_to(&mut self, addresses: &str) {
        let path = format!("/panel/applications/{}", self.application.client_id);
        let page = self.owner.browser.open(&path).await.expect(200);
        let form = page.form(&path).with("redirect_uris", addresses);
        self.owner.browser.submit(&form).await.expect(200);
    }

    async fn codes(&self) -> i64 {
        let of_it = "select count(*) from authorization_codes c join families f on f.id = c.family_id \
                     join applications a on a.client_id = f.client_id where a.name = $1";
        self.world.count(of_it, &self.application.name).await
    }
}

#[tokio::test]
async fn an_address_that_was_taken_away_gets_no_code_and_no_browser() {
    let mut shown = Shown::prepare().await;
    let approval = shown.form("approve").await;
    let unseen = shown.world.client.get(&shown.world.url(&shown.asking.path()));
    let unseen = unseen.send().await.expect(302).must("location").to_owned();
    shown.redirect_to("https://app.example/elsewhere").await;
    let refused = shown.browser.post(&approval).await.expect(404);
    assert_eq!(refused.header("location"), None, "{refused:?}");
    // Nor is a screen shown that was asked for before.
    let path = unseen.strip_prefix(&shown.world.server.base_url).unwrap();
    let page = shown.browser.open(path).await.expect(404);
    assert!(!page.html.contains("value=\"approve\""), "{}", page.html);
    assert_eq!(shown.codes().await, 0);
    // The refusal has decided nothing: with the address back, the seller can still do so.
    shown.redirect_to(blackbox::CALLBACK).await;
    let code = Callback::of(&shown.browser.post(&approval).await).code();
    let exchanged = shown
        .world
        .exchange(&shown.application, &shown.asking, &code)
        .await;
    exchanged.expect(200);
}

#[tokio::test]
async fn a_suspended_deleted_or_closed_one_gets_no_code() {
    for change in ["suspended", "deleted", "closed"] {
        let mut shown = Shown::prepare().await;
        let approval = shown.form("approve").await;
        let (world, id) = (&shown.world, &shown.application.client_id);
        match change {
            "suspended" => world.move_application(id, "suspension").await.expect(200),
            "deleted" => {
                let path = format!("/applications/{id}");
                world.office(Method::DELETE, &path).send().await.expect(204)
            }
            _ => {
                let path = format!("/sellers/{}/closure", shown.owner.seller.id);
                world.office(Method::POST, &path).send().await.expect(200)
            }
        };
        let back = Callback::of(&shown.browser.post(&approval).await);
        assert_eq!(
            (back.get("error"), back.get("code")),
            (Some("access_denied"), None),
            "{change}: {back:?}"
        );
        assert!(
            back.get("state").is_some() && back.get("iss").is_some(),
            "{back:?}"
        );
        assert_eq!(shown.codes().await, 0, "{change}");
    }
}
