//! The screen of consent: who sees it, what it says, and that it is decided once.

use blackbox::{Callback, Expect, Visitor, World, sign_in_form};
use reqwest::Method;
use serde_json::json;

use crate::{instant, world_of_consent};

/// The path of a fresh screen.
async fn screen_path(world: &World, asking: &blackbox::Asking) -> String {
    let answer = world
        .client
        .get(&world.url(&asking.path()))
        .send()
        .await
        .expect(302);
    let location = answer.must("location");
    location.strip_prefix(&world.server.base_url).unwrap().to_owned()
}

#[tokio::test]
async fn approval_and_refusal_go_back_with_the_state_and_the_issuer() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let state = "żółw & \"<state>\" +%20";
    for (decision, error) in [("approve", None), ("deny", Some("access_denied"))] {
        let asking = world.asking(&application, "offers:read").with("state", state);
        let page = world.screen(&mut member.browser, &asking).await;
        let form = page.form("/panel/consent").press("decision", decision);
        let answer = member.browser.post(&form).await.expect(303);
        assert_eq!(answer.must("cache-control"), "no-store");
        assert_eq!(answer.must("referrer-policy"), "no-referrer");
        let back = Callback::of(&answer);
        assert!(
            back.address.starts_with("https://app.example/callback?"),
            "{back:?}"
        );
        assert_eq!((back.get("state"), back.get("error")), (Some(state), error));
        assert_eq!(back.get("iss"), Some(world.server.base_url.as_str()));
        assert_eq!(back.get("code").is_some(), error.is_none());
    }
}

#[tokio::test]
async fn it_names_who_asks_for_what_of_whom() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let body = json!({"name": "Owner <&> \"Sons\"", "email": "owner@tools.example"});
    let owner = world.office_post("/sellers", &body).await.expect(201).json();
    let owner = blackbox::Seller {
        id: owner["id"].as_str().unwrap().to_owned(),
        seller_no: 0,
        email: String::new(),
    };
    let application = world
        .partner(&owner, &["offers:read", "orders:read", "messaging"])
        .await;
    let asking = world.asking(&application, "orders:read offers:read");
    let english = world.screen(&mut member.browser, &asking).await;
    let plain = &english.html;
    for told in [
        application.name.as_str(),
        "Owner &#60;&#38;&#62; &#34;Sons&#34;",
        "https://docs.example/sync",
        &member.seller.email,
        "orders:read",
        "offers:read",
        "read your offers",
        "app.example",
    ] {
        assert!(plain.contains(told), "{told}: {plain}");
    }
    assert!(!plain.contains("messaging"), "only what is asked for is listed");
    let mut polish = member
        .browser
        .clone()
        .with_header("accept-language", "pl-PL,pl;q=0.9,en;q=0.5");
    let page = polish.open(&english.path).await.expect(200);
    assert!(
        page.html.contains("lang=\"pl\"") && !page.html.contains("read your offers"),
        "{}",
        page.html
    );
}

#[tokio::test]
async fn it_may_lead_to_the_redirect_address_and_not_be_framed() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let page = world.screen(&mut member.browser, &asking).await;
    let policy = page.answer.must("content-security-policy");
    assert!(
        policy.contains("form-action 'self' https://app.example;"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(page.answer.must("x-frame-options"), "DENY");
    // Anything else stays with us.
    let other = member.browser.open("/panel/applications").await.expect(200);
    assert!(
        other
            .answer
            .must("content-security-policy")
            .contains("form-action 'self';")
    );
}

#[tokio::test]
async fn a_decided_unknown_or_tampered_request_is_a_page_of_its_own() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    for decision in ["approve", "deny"] {
        let page = world.screen(&mut member.browser, &asking).await;
        let form = page.form("/panel/consent").press("decision", decision);
        member.browser.post(&form).await.expect(303);
        for again in ["approve", "deny"] {
            let form = page.form("/panel/consent").press("decision", again);
            let refused = member.browser.post(&form).await;
            assert!((400..500).contains(&refused.status), "{refused:?}");
            assert_eq!(refused.header("location"), None);
        }
        let gone = member.browser.open(&page.path).await;
        assert!((400..500).contains(&gone.answer.status), "{gone:?}");
    }
    let page = world.screen(&mut member.browser, &asking).await;
    let handle = page.form("/panel/consent").value("request").unwrap().to_owned();
    let (head, tail) = handle.split_at(handle.len() / 2);
    let flipped = if tail.starts_with('A') { "B" } else { "A" };
    let tampered = format!("{head}{flipped}{}", &tail[1..]);
    for handle in ["", "nonsense", &handle[..handle.len() - 4], &tampered] {
        let page = member
            .browser
            .open(&format!("/panel/consent?request={handle}"))
            .await;
        assert!((400..500).contains(&page.answer.status), "{handle}: {page:?}");
    }
    // A decision that is none changes nothing.
    let odd = page.form("/panel/consent").with("decision", "maybe");
    member.browser.post(&odd).await.expect(400);
    let form = page.form("/panel/consent").press("decision", "approve");
    Callback::of(&member.browser.post(&form).await).code();
}

#[tokio::test]
async fn it_belongs_to_the_session_that_saw_it_first() {
    let world = world_of_consent().await;
    let (mut one, mut other) = (world.member().await, world.member().await);
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let path = screen_path(&world, &world.asking(&application, "offers:read")).await;
    let shown = one.browser.open(&path).await.expect(200);
    other.browser.open(&path).await.expect(403);
    let stolen = shown.form("/panel/consent").press("decision", "approve");
    let own = other
        .browser
        .open("/panel/applications")
        .await
        .form("/panel/sign-out");
    let stolen = stolen.with("csrf", own.value("csrf").unwrap());
    other.browser.post(&stolen).await.expect(403);
    let mut elsewhere = world.browser_of(&one.seller).await;
    elsewhere.open(&path).await.expect(403);
    one.browser.open(&path).await.expect(200);
    let form = shown.form("/panel/consent").press("decision", "approve");
    Callback::of(&one.browser.post(&form).await).code();
}

#[tokio::test]
async fn signing_in_leads_to_it_and_another_account_can_take_over() {
    let world = world_of_consent().await;
    let (one, other) = (world.member().await, world.member().await);
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let mut browser = world.visitor();
    let page = browser.open(&asking.path()).await.expect(200);
    assert!(page.path.starts_with("/panel/sign-in?request="), "{}", page.path);
    let page = browser
        .submit(&sign_in_form(&page, &one.seller.email, blackbox::PASSWORD))
        .await
        .expect(200);
    assert!(
        page.path.starts_with("/panel/consent?") && page.html.contains(&one.seller.email),
        "{page:?}"
    );
    let page = browser
        .submit(&page.form("/panel/consent/another-account"))
        .await
        .expect(200);
    assert!(page.path.starts_with("/panel/sign-in?request="), "{}", page.path);
    let page = browser
        .submit(&sign_in_form(&page, &other.seller.email, blackbox::PASSWORD))
        .await
        .expect(200);
    assert!(
        page.html.contains(&other.seller.email) && !page.html.contains(&one.seller.email),
        "{page:?}"
    );
    let form = page.form("/panel/consent").press("decision", "approve");
    let code = Callback::of(&browser.post(&form).await).code();
    let pair = blackbox::Pair::of(world.exchange(&application, &asking, &code).await);
    let me = world.get(&pair.access, "/v1/me").await.expect(200).json();
    assert_eq!(me["seller"]["id"], json!(other.seller.id));
}

#[tokio::test]
async fn own_use_and_pending_applications_ask_nobody_but_their_owner() {
    let world = world_of_consent().await;
    let (mut owner, mut stranger) = (world.member().await, world.member().await);
    let redirect = json!({"redirect_uris": [blackbox::CALLBACK]});
    for purpose in ["own_use", "for_other_sellers", "other"] {
        let changes = blackbox::merged(redirect.clone(), json!({"purpose": purpose}));
        let application = world.register(&owner.seller, changes).await;
        let asking = world.asking(&application, "offers:read");
        let back = Callback::of(&refused_at_once(&mut stranger.browser, &asking.path()).await);
        assert_eq!(back.get("error"), Some("access_denied"), "{purpose}: {back:?}");
        assert!(back.get("state").is_some() && back.get("iss").is_some());
        let code = world.code(&mut owner.browser, &asking).await;
        world.exchange(&application, &asking, &code).await.expect(200);
    }
}

/// Follows our own redirects up to the one that leaves the site.
async fn refused_at_once(browser: &mut Visitor, path: &str) -> testkit::Answer {
    let page = browser.open(path).await;
    assert!(
        page.html.is_empty() && page.path.starts_with("/panel/consent?"),
        "no form is shown: {page:?}"
    );
    page.answer
}

#[tokio::test]
async fn what_happens_to_the_application_meanwhile_counts_at_approval() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let owner = world.seller().await;
    let application = world.partner(&owner, &["offers:read", "orders:read"]).await;
    let id = application.client_id.clone();
    let asking = world.asking(&application, "offers:read orders:read");
    let approve = async |world: &World, browser: &mut Visitor, change: &str| {
        let page = world.screen(browser, &asking).await;
        match change {
            "narrowed" => world
                .adjust(&id, &json!({"scopes": ["orders:read", "messaging"]}))
                .await
                .expect(200),
            "emptied" => world
                .adjust(&id, &json!({"scopes": ["messaging"]}))
                .await
                .expect(200),
            "deleted" => world
                .office(Method::DELETE, &format!("/applications/{id}"))
                .send()
                .await
                .expect(204),
            step => world.move_application(&id, step).await.expect(200),
        };
        let form = page.form("/panel/consent").press("decision", "approve");
        Callback::of(&browser.post(&form).await)
    };
    let back = approve(&world, &mut member.browser, "suspension").await;
    assert_eq!(back.get("error"), Some("access_denied"));
    world.move_application(&id, "reinstatement").await.expect(200);
    let code = approve(&world, &mut member.browser, "narrowed").await.code();
    let pair = blackbox::Pair::of(world.exchange(&application, &asking, &code).await);
    assert_eq!(pair.scope, "orders:read");
    world
        .adjust(&id, &json!({"scopes": ["offers:read", "orders:read"]}))
        .await
        .expect(200);
    let back = approve(&world, &mut member.browser, "emptied").await;
    assert_eq!(back.get("error"), Some("invalid_scope"));
    world
        .adjust(&id, &json!({"scopes": ["offers:read", "orders:read"]}))
        .await
        .expect(200);
    let back = approve(&world, &mut member.browser, "deleted").await;
    assert_eq!(back.get("error"), Some("access_denied"));
}

#[tokio::test]
async fn a_request_can_be_answered_for_ten_minutes() {
    let world = world_of_consent().await;
    let member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let mut browser = world.browser_of(&member.seller).await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let (one, other) = (
        world.screen(&mut browser, &asking).await,
        world.screen(&mut browser, &asking).await,
    );
    let unseen = screen_path(&world, &asking).await;
    clock.freeze(instant("2040-01-01T12:09:59.9Z")).await;
    browser
        .post(&one.form("/panel/consent").press("decision", "approve"))
        .await
        .expect(303);
    clock.freeze(instant("2040-01-01T12:10:00Z")).await;
    browser
        .post(&other.form("/panel/consent").press("decision", "approve"))
        .await
        .expect(410);
    browser.open(&unseen).await.expect(410);
}

#[tokio::test]
async fn approval_pressed_many_times_at_once_gives_one_code() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let page = world
        .screen(&mut member.browser, &world.asking(&application, "offers:read"))
        .await;
    let form = page.form("/panel/consent").press("decision", "approve");
    let pressed = (0..20).map(|_| {
        tokio::spawn(
            member
                .browser
                .request(Method::POST, &form.action)
                .form(&form.body())
                .send(),
        )
    });
    let mut codes = 0;
    for answer in pressed.collect::<Vec<_>>() {
        let answer = answer.await.unwrap();
        match answer.status {
            303 => codes += usize::from(Callback::of(&answer).get("code").is_some()),
            status => assert!((400..500).contains(&status), "{answer:?}"),
        }
    }
    assert_eq!(codes, 1);
}
