//! Sign-in to the panel: every failure has the same text, attempts are slowed down, and no seller is locked out.

use std::time::{Duration, Instant};

use blackbox::{Expect, PASSWORD, Visitor, sign_in_form};

use crate::{instant, world, world_with};

const WRONG: &str = "wrong horse battery";

#[tokio::test]
async fn the_right_password_opens_a_session_under_a_new_secret() {
    let world = world().await;
    let member = world.member().await;
    let mut browser = world.visitor();
    let page = browser.page("/panel/sign-in").await;
    let before = browser.cookies.clone();
    assert_eq!(before.len(), 1, "{before:?}");
    let form = sign_in_form(&page, &member.seller.email.to_uppercase(), PASSWORD);
    let answer = browser.post(&form).await.expect(303);
    let cookie = answer.must("set-cookie");
    for attribute in ["; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    let by_http = !cookie.contains("Secure") && !cookie.contains("Domain");
    assert!(by_http, "on a loopback address: {cookie}");
    assert_ne!(browser.cookies, before);
    browser.page("/panel/applications").await;
    // The secret from before the sign-in is invalid.
    let mut planted = world.visitor();
    planted.cookies = before;
    assert!(!planted.is_in().await);
}

#[tokio::test]
async fn cookies_are_secure_where_the_panel_is_reached_by_https() {
    let world = world_with(&[("SERVER__PUBLIC_URL", "https://api.shop.example")]).await;
    let answer = world.visit("/panel/sign-in").await.expect(200);
    let cookie = answer.must("set-cookie");
    assert!(
        cookie.starts_with("__Host-") && cookie.contains("; Secure"),
        "{cookie}"
    );
    let hsts = answer.must("strict-transport-security");
    assert!(hsts.contains("max-age="), "{hsts}");
}

#[tokio::test]
async fn unknown_wrong_closed_and_passwordless_read_the_same_and_take_the_same_work() {
    let world = world().await;
    let (member, closed) = (world.member().await.seller, world.member().await.seller);
    world.close(&closed.id).await;
    let passwordless = world.seller().await;
    let mut seen = Vec::new();
    for (email, password) in [
        (member.email.as_str(), WRONG),
        ("nobody@shop.example", PASSWORD),
        (&closed.email, PASSWORD),
        (&passwordless.email, ""),
        (&passwordless.email, PASSWORD),
    ] {
        let page = world.sign_in(email, password, 422).await;
        let form = page.form("/panel/sign-in");
        page.hides(PASSWORD);
        seen.push(
            page.html
                .replace(form.value("csrf").unwrap(), "")
                .replace(email, ""),
        );
    }
    assert!(seen.iter().all(|html| *html == seen[0]), "{seen:#?}");
    let takes = async |email: &str| {
        let mut browser = world.visitor();
        let page = browser.open("/panel/sign-in").await;
        let form = sign_in_form(&page, email, WRONG);
        let began = Instant::now();
        browser.post(&form).await.expect(422);
        began.elapsed()
    };
    // Alternates, since the machine's other load varies. Too few attempts to be slowed down.
    let (mut wrong, mut unknown) = (Duration::MAX, Duration::MAX);
    let others = world.member().await.seller;
    for n in 0..4 {
        wrong = wrong.min(takes(&others.email).await);
        unknown = unknown.min(takes(&format!("nobody-{n}@shop.example")).await);
    }
    // The hash takes most of the time: without it, the answer would take less than a tenth.
    assert!(unknown > wrong / 3, "unknown {unknown:?}, wrong {wrong:?}");
}

#[tokio::test]
async fn an_address_has_30_attempts_a_minute_over_all_processes() {
    let world = world().await;
    let member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:48Z").await;
    let second = world.another().await;
    let bases = [&world.server.base_url, &second.base_url];
    for n in 0..30 {
        let mut browser = Visitor::new(&world.client, bases[n % 2]);
        let page = browser.sign_in(&format!("nobody-{n}@shop.example"), "x").await;
        page.expect(422);
    }
    let limited = world.visitor().sign_in(&member.seller.email, PASSWORD).await;
    assert_eq!(limited.expect(429).answer.must("retry-after"), "12");
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    let mut browser = world.visitor();
    browser.sign_in(&member.seller.email, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn an_attacked_account_is_slow_and_its_owner_gets_in() {
    let world = world().await;
    let email = world.member().await.seller.email;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    for _ in 0..5 {
        world.sign_in(&email, WRONG, 422).await;
    }
    let began = Instant::now();
    world.sign_in(&email, PASSWORD, 200).await;
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn it_leads_nowhere_else() {
    let world = world().await;
    let email = world.member().await.seller.email;
    // Redirects to the requested page.
    for path in [
        "/panel/tokens",
        "/panel/connections",
        "/panel/applications/new",
        "/panel/account",
    ] {
        let mut browser = world.visitor();
        let page = browser.page(path).await;
        assert!(page.path.starts_with("/panel/sign-in"), "{}", page.path);
        let page = browser.submit(&sign_in_form(&page, &email, PASSWORD)).await;
        assert_eq!(page.expect(200).path, path);
    }
    for evil in [
        "next=https://evil.example",
        "next=//evil.example",
        "next=/panel/../evil",
        "request=https://evil.example",
        "request=%0d%0aLocation:%20https://evil.example",
    ] {
        let mut browser = world.visitor();
        let page = browser.page(&format!("/panel/sign-in?{evil}")).await;
        let mut form = sign_in_form(&page, &email, PASSWORD);
        let (name, value) = evil.split_once('=').unwrap();
        if form.value(name).is_none() {
            form = form.with(name, value);
        }
        let signed_in = browser.post(&form).await.expect(303);
        // A seller who is signed in already is redirected in the same way.
        let again = browser.get(&format!("/panel/sign-in?{evil}")).await.expect(303);
        for answer in [signed_in, again] {
            assert_eq!(answer.must("location"), "/panel/applications", "{evil}");
        }
    }
}
