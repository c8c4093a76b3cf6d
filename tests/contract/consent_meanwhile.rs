//! Changes between the display of the consent screen and the seller's decision.

use blackbox::{Application, Asking, CALLBACK, Callback, Form, Member, Pair, Visitor, World};

use crate::world_of_consent;

struct Shown {
    world: World,
    owner: Member,
    browser: Visitor,
    app: Application,
    asking: Asking,
}

impl Shown {
    async fn prepare() -> Self {
        let world = world_of_consent().await;
        let (owner, member) = (world.member().await, world.member().await);
        let scopes = ["offers:read", "orders:read"];
        let app = world.partner(&owner.seller, &scopes).await;
        Self {
            asking: world.asking(&app, "offers:read orders:read"),
            browser: member.browser,
            world,
            owner,
            app,
        }
    }

    /// The approval form of a new screen.
    async fn approval(&mut self) -> Form {
        let page = self.world.screen(&mut self.browser, &self.asking).await;
        page.form("/panel/consent").press("decision", "approve")
    }

    /// Submits the form after this change.
    async fn approved_after(&mut self, change: &str) -> Callback {
        let approval = self.approval().await;
        let (world, app) = (&self.world, &self.app);
        match change {
            "deletion" => world.delete_application(app).await,
            "closure" => world.close(&self.owner.seller.id).await,
            "narrowing" => world.set_scopes(app, &["orders:read", "messaging"]).await,
            "emptying" => world.set_scopes(app, &["messaging"]).await,
            step => world.moved(app, step).await,
        }
        Callback::of(&self.browser.post(&approval).await)
    }

    /// The owner changes the redirect URIs in the panel.
    async fn redirect_to(&mut self, addresses: &str) {
        let path = format!("/panel/applications/{}", self.app.client_id);
        let form = self.owner.browser.filled(&path, "redirect_uris", addresses).await;
        self.owner.browser.sent(&form).await;
    }

    async fn codes(&self) -> i64 {
        let of_it = "select count(*) from authorization_codes c join families f on f.id = c.family_id \
             join applications a on a.client_id = f.client_id where a.name = $1";
        self.world.count(of_it, &self.app.name).await
    }
}

#[tokio::test]
async fn an_address_that_was_taken_away_gets_no_code_and_no_browser() {
    let mut shown = Shown::prepare().await;
    let approval = shown.approval().await;
    let unseen = shown.world.unseen_screen(&shown.asking).await;
    shown.redirect_to("https://app.example/elsewhere").await;
    let refused = shown.browser.post(&approval).await.expect(404);
    assert_eq!(refused.header("location"), None, "{refused:?}");
    // The screen of an earlier request is not shown either.
    let page = shown.browser.open(&unseen).await.expect(404);
    page.hides("value=\"approve\"");
    assert_eq!(shown.codes().await, 0);
    // The error decided nothing: with the URI restored, the seller can still decide.
    shown.redirect_to(CALLBACK).await;
    let code = Callback::of(&shown.browser.post(&approval).await).code();
    let exchanged = shown.world.exchange(&shown.app, &shown.asking, &code).await;
    exchanged.expect(200);
}

#[tokio::test]
async fn an_approval_uses_the_applications_present_state() {
    let mut shown = Shown::prepare().await;
    let refused = async |shown: &mut Shown, change: &str, error: &str| {
        let back = shown.approved_after(change).await;
        assert_eq!(
            (back.get("error"), back.get("code")),
            (Some(error), None),
            "{change}"
        );
        assert!(
            back.get("state").is_some() && back.get("iss").is_some(),
            "{back:?}"
        );
    };
    let all = ["offers:read", "orders:read"];
    refused(&mut shown, "suspension", "access_denied").await;
    shown.world.moved(&shown.app, "reinstatement").await;
    refused(&mut shown, "emptying", "invalid_scope").await;
    assert_eq!(shown.codes().await, 0);
    shown.world.set_scopes(&shown.app, &all).await;
    let code = shown.approved_after("narrowing").await.code();
    let answer = shown.world.exchange(&shown.app, &shown.asking, &code).await;
    assert_eq!(Pair::of(answer).scope, "orders:read");
    shown.world.set_scopes(&shown.app, &all).await;
    refused(&mut shown, "deletion", "access_denied").await;
    shown.app = shown.world.partner(&shown.owner.seller, &all).await;
    shown.asking = shown.world.asking(&shown.app, "offers:read");
    refused(&mut shown, "closure", "access_denied").await;
    assert_eq!(shown.codes().await, 0);
}
