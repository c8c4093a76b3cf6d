//! The consent screen: who sees it, its content, that it can be decided once, and changes before the
//! decision.

use blackbox::{
    Application, Asking, CALLBACK, Callback, Expect, Form, Member, PASSWORD, Pair, Visitor, World, at_once,
    sign_in_form,
};
use serde_json::json;

use crate::{instant, with_partner, world_of_consent};

const SCREEN: &str = "/panel/consent";

#[tokio::test]
async fn approval_and_denial_return_state_and_issuer_to_the_client() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let state = "żółw & \"<state>\" +%20";
    let denial = Some("The seller refused.");
    for (decision, error, reason) in [("approve", None, None), ("deny", Some("access_denied"), denial)] {
        let asking = world.asking(&app, "offers:read").with("state", state);
        let page = world.screen(&mut member.browser, &asking).await;
        let form = page.form(SCREEN).press("decision", decision);
        let answer = member.browser.post(&form).await.expect(303);
        assert_eq!(answer.must("cache-control"), "no-store");
        assert_eq!(answer.must("referrer-policy"), "no-referrer");
        let back = Callback::of(&answer);
        assert!(back.address.starts_with(&format!("{CALLBACK}?")), "{back:?}");
        assert_eq!((back.get("state"), back.get("error")), (Some(state), error));
        assert_eq!(back.get("error_description"), reason);
        assert_eq!(back.get("iss"), Some(world.server.base_url.as_str()));
        assert_eq!(back.get("code").is_some(), error.is_none());
    }
}

#[tokio::test]
async fn the_screen_shows_application_owner_seller_and_scopes_and_is_not_framed() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let owner = world.registered(json!({"name": "Owner <&> \"Sons\""})).await;
    let scopes = ["offers:read", "orders:read", "messaging"];
    let app = world.partner(&owner, &scopes).await;
    let asking = world.asking(&app, "orders:read offers:read");
    let page = world.screen(&mut member.browser, &asking).await;
    for text in [
        app.name.as_str(),
        "Owner &#60;&#38;&#62; &#34;Sons&#34;",
        "https://docs.example/sync",
        &member.seller.email,
        "orders:read",
        "offers:read",
        "read offers",
        "app.example",
    ] {
        page.shows(text);
    }
    page.hides("messaging");
    page.hides("for the owner alone");
    let polish = "pl-PL,pl;q=0.9,en;q=0.5";
    let mut browser = member.browser.clone().with_header("accept-language", polish);
    let polish = browser.page(&page.path).await;
    polish.shows("lang=\"pl\"");
    polish.hides("read offers");
    // The form may lead to the redirect URI, and on from there; otherwise only to our own origin.
    let other = member.browser.page("/panel/applications").await;
    for (page, action) in [(&page, "'self' https://app.example https:"), (&other, "'self'")] {
        let policy = page.answer.must("content-security-policy");
        assert!(policy.contains(&format!("form-action {action};")), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        crate::is_guarded(&page.path, &page.answer);
    }
}

/// The contract's labels.
const LABELS: [(&str, &str); 7] = [
    ("offers:read", "read offers"),
    ("offers:write", "create and edit offers, change prices and stock"),
    ("orders:read", "read orders and buyer data"),
    ("shipments:write", "report shipments (buyer is notified)"),
    ("settings:read", "read sales settings"),
    ("settings:write", "change sales settings"),
    ("shipments:read", "read shipments"),
];

#[tokio::test]
async fn consent_and_registration_show_each_scopes_label_word_for_word() {
    let (world, mut member, app) = with_partner(&LABELS.map(|(scope, _)| scope)).await;
    let asking = world.asking(&app, &LABELS.map(|(scope, _)| scope).join(" "));
    let consent = world.screen(&mut member.browser, &asking).await;
    let registration = member.browser.page("/panel/applications/new").await;
    for page in [&consent, &registration] {
        for (_, label) in LABELS {
            // The scope's name or a warning may follow.
            let mut ends = ["<", " <"].into_iter();
            assert!(
                ends.any(|end| page.html.contains(&format!(">{label}{end}"))),
                "{label}: {page:?}"
            );
        }
        page.shows("It cannot create offers.");
    }
    consent.hides("it permits nothing yet");
    consent.shows(" asks for access to your account · ");
    world.set_scopes(&app, &["messaging"]).await;
    let asking = world.asking(&app, "messaging");
    let consent = world.screen(&mut member.browser, &asking).await;
    consent.shows("it permits nothing yet");
}

#[tokio::test]
async fn a_request_is_decided_once_and_a_changed_or_unknown_one_not_at_all() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let is_refused = |status: u16| (400..500).contains(&status);
    for decision in ["approve", "deny"] {
        let page = world.screen(&mut member.browser, &asking).await;
        let form = |decision: &str| page.form(SCREEN).press("decision", decision);
        member.browser.post(&form(decision)).await.expect(303);
        for again in ["approve", "deny"] {
            let refused = member.browser.post(&form(again)).await;
            assert!(is_refused(refused.status), "{refused:?}");
            assert_eq!(refused.header("location"), None);
        }
        let gone = member.browser.open(&page.path).await;
        assert!(is_refused(gone.answer.status), "{gone:?}");
    }
    let page = world.screen(&mut member.browser, &asking).await;
    let handle = page.form(SCREEN).value("request").unwrap().to_owned();
    for handle in ["", "nonsense", &handle[..handle.len() - 4]] {
        let page = member.browser.open(&format!("{SCREEN}?request={handle}")).await;
        assert!(is_refused(page.answer.status), "{handle}: {page:?}");
    }
    // An invalid decision changes nothing.
    let odd = page.form(SCREEN).with("decision", "maybe");
    member.browser.post(&odd).await.expect(400);
    // Of many submissions, exactly one gives a code.
    let form = page.form(SCREEN).press("decision", "approve");
    let answers = at_once((0..20).map(|_| member.browser.posting(&form))).await;
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 303);
    assert!(refused.iter().all(|answer| is_refused(answer.status)));
    let codes = done
        .into_iter()
        .filter_map(|answer| Callback::of(answer).get("code").map(str::to_owned));
    assert_eq!(codes.count(), 1);
}

#[tokio::test]
async fn a_screen_belongs_to_the_session_that_opened_it_first() {
    let (world, mut one, app) = with_partner(&["offers:read"]).await;
    let mut other = world.member().await;
    let path = world.unseen_screen(&world.asking(&app, "offers:read")).await;
    let shown = one.browser.page(&path).await;
    other.browser.open(&path).await.expect(403);
    let approval = shown.form(SCREEN).press("decision", "approve");
    let own = other.browser.form("/panel/account").await;
    let stolen = approval.clone().with("csrf", own.value("csrf").unwrap());
    other.browser.post(&stolen).await.expect(403);
    let mut elsewhere = world.browser_of(&one.seller).await;
    elsewhere.open(&path).await.expect(403);
    one.browser.page(&path).await;
    Callback::of(&one.browser.post(&approval).await).code();
}

#[tokio::test]
async fn the_forms_of_an_ended_session_lead_back_to_the_application() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let page = world.screen(&mut member.browser, &asking).await;
    world.execute("delete from sessions").await;
    let approval = page.form(SCREEN).press("decision", "approve");
    for form in [approval, page.form("/panel/consent/another-account")] {
        let refused = member.browser.submit(&form).await.expect(403);
        refused.shows("start again from there");
    }
}

#[tokio::test]
async fn a_sign_in_leads_to_the_screen_and_the_account_can_be_changed() {
    let (world, one, app) = with_partner(&["offers:read"]).await;
    let other = world.member().await;
    let asking = world.asking(&app, "offers:read");
    let mut browser = world.visitor();
    let page = browser.page(&asking.path()).await;
    assert!(page.path.starts_with("/panel/sign-in?request="), "{}", page.path);
    let form = sign_in_form(&page, &one.seller.email, PASSWORD);
    // A form that was open for too long leads there, too.
    let stale = browser.submit(&form.clone().without("csrf")).await.expect(403);
    let handle = form.value("request").unwrap();
    stale.shows(&format!("href=\"/panel/consent?request={handle}\""));
    let page = browser.sent(&form).await;
    assert!(page.path.starts_with("/panel/consent?"), "{page:?}");
    page.shows(&one.seller.email);
    let form = page.form("/panel/consent/another-account");
    let page = browser.sent(&form).await;
    assert!(page.path.starts_with("/panel/sign-in?request="), "{}", page.path);
    let form = sign_in_form(&page, &other.seller.email, PASSWORD);
    let page = browser.sent(&form).await;
    page.shows(&other.seller.email);
    page.hides(&one.seller.email);
    let form = page.form(SCREEN).press("decision", "approve");
    let code = Callback::of(&browser.post(&form).await).code();
    let pair = Pair::of(world.exchange(&app, &asking, &code).await);
    let me = world.read(&pair.access, "/v1/me").await;
    assert_eq!(me["seller"]["id"], json!(other.seller.id));
}

#[tokio::test]
async fn own_use_and_pending_applications_can_ask_their_owner_alone() {
    let world = world_of_consent().await;
    let (mut owner, mut stranger) = (world.member().await, world.member().await);
    for (purpose, reason) in [
        ("own_use", "registered for own use"),
        ("for_other_sellers", "is pending"),
        ("other", "is pending"),
    ] {
        let changes = json!({"redirect_uris": [CALLBACK], "purpose": purpose});
        let app = world.register(&owner.seller, changes).await;
        let asking = world.asking(&app, "offers:read");
        // Our own redirects lead up to the one that leaves the site; no form is shown.
        let page = stranger.browser.open(&asking.path()).await;
        let is_redirect = page.html.is_empty() && page.path.starts_with("/panel/consent?");
        assert!(is_redirect, "{page:?}");
        let back = Callback::of(&page.answer);
        assert_eq!(back.get("error"), Some("access_denied"), "{purpose}: {back:?}");
        assert!(
            back.get("error_description").unwrap().contains(reason),
            "{back:?}"
        );
        assert!(back.get("state").is_some() && back.get("iss").is_some());
        let code = world.code(&mut owner.browser, &asking).await;
        world.exchange(&app, &asking, &code).await.expect(200);
    }
}

#[tokio::test]
async fn a_request_can_be_answered_for_ten_minutes() {
    let (world, member, app) = with_partner(&["offers:read"]).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let mut browser = world.browser_of(&member.seller).await;
    let asking = world.asking(&app, "offers:read");
    let mut approvals = Vec::new();
    for _ in 0..2 {
        let page = world.screen(&mut browser, &asking).await;
        approvals.push(page.form(SCREEN).press("decision", "approve"));
    }
    let unseen = world.unseen_screen(&asking).await;
    clock.freeze(instant("2040-01-01T12:09:59.9Z")).await;
    browser.post(&approvals[0]).await.expect(303);
    clock.freeze(instant("2040-01-01T12:10:00Z")).await;
    browser.post(&approvals[1]).await.expect(410);
    let page = browser.open(&format!("{unseen}&lang=pl")).await.expect(410);
    page.shows("Do panelu sprzedawcy");
}

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

    /// The form of a new screen, with this button pressed.
    async fn form(&mut self, decision: &str) -> Form {
        let page = self.world.screen(&mut self.browser, &self.asking).await;
        page.form("/panel/consent").press("decision", decision)
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
        self.world.count(of_it, &[&self.app.name]).await
    }
}

#[tokio::test]
async fn a_removed_redirect_uri_gets_neither_code_nor_browser() {
    let mut shown = Shown::prepare().await;
    let (approval, denial) = (shown.form("approve").await, shown.form("deny").await);
    let unseen = shown.world.unseen_screen(&shown.asking).await;
    shown.redirect_to("https://app.example/elsewhere").await;
    for decision in [&approval, &denial] {
        let refused = shown.browser.post(decision).await.expect(404);
        assert_eq!(refused.header("location"), None, "{refused:?}");
    }
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
async fn an_approval_grants_nothing_that_was_not_shown() {
    let mut shown = Shown::prepare().await;
    let unseen = shown.world.unseen_screen(&shown.asking).await;
    shown.world.set_scopes(&shown.app, &["orders:read"]).await;
    let page = shown.browser.open(&unseen).await.expect(200);
    page.hides("offers:read");
    let approval = page.form("/panel/consent").press("decision", "approve");
    // The owner may widen the scopes again before the decision.
    let all = ["offers:read", "orders:read"];
    shown.world.set_scopes(&shown.app, &all).await;
    let code = Callback::of(&shown.browser.post(&approval).await).code();
    let answer = shown.world.exchange(&shown.app, &shown.asking, &code).await;
    assert_eq!(Pair::of(answer).scope, "orders:read");
}

#[tokio::test]
async fn an_approval_uses_the_applications_present_state() {
    let mut shown = Shown::prepare().await;
    let mut approvals = Vec::new();
    for _ in 0..3 {
        approvals.push(shown.form("approve").await);
    }
    let (world, app) = (&shown.world, &shown.app);
    world.set_scopes(app, &["orders:read", "messaging"]).await;
    let code = Callback::of(&shown.browser.post(&approvals[0]).await).code();
    let answer = world.exchange(app, &shown.asking, &code).await;
    assert_eq!(Pair::of(answer).scope, "orders:read");
    let codes = shown.codes().await;
    for (approval, error) in approvals[1..].iter().zip(["invalid_scope", "access_denied"]) {
        match error {
            "invalid_scope" => world.set_scopes(app, &["messaging"]).await,
            _ => world.close(&shown.owner.seller.id).await,
        }
        let back = Callback::of(&shown.browser.post(approval).await);
        assert_eq!(back.get("error"), Some(error));
        assert_eq!(back.get("code"), None);
        assert!(back.get("state").is_some() && back.get("iss").is_some());
    }
    assert_eq!(shown.codes().await, codes);
}
