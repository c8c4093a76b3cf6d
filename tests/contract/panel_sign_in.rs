//! Signing in to the panel: the words are the same whatever is wrong, attempts are slowed down, and nobody is locked out.

use std::time::{Duration, Instant};

use blackbox::{Expect, PASSWORD, Page, Visitor, World, sign_in_form};
use reqwest::Method;

use crate::{PROGRAM, instant, world};

async fn attempt(world: &World, email: &str, password: &str) -> Page {
    world.visitor().sign_in(email, password).await
}

#[tokio::test]
async fn the_right_password_opens_a_session_under_a_new_secret() {
    let world = world().await;
    let member = world.member().await;
    let mut browser = world.visitor();
    let page = browser.open("/panel/sign-in").await.expect(200);
    let before = browser.cookies.clone();
    assert_eq!(before.len(), 1, "{before:?}");
    let form = sign_in_form(&page, &member.seller.email.to_uppercase(), PASSWORD);
    let answer = browser.post(&form).await.expect(303);
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    let [cookie] = cookies[..] else {
        panic!("one cookie: {cookies:?}")
    };
    let cookie = cookie.to_str().unwrap();
    for attribute in ["; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(
        !cookie.contains("Secure") && !cookie.contains("Domain"),
        "by http on a loopback address: {cookie}"
    );
    assert_ne!(browser.cookies, before);
    browser.open("/panel/applications").await.expect(200);
    let mut planted = world.visitor();
    planted.cookies = before;
    let page = planted.open("/panel/applications").await;
    assert!(
        page.path.starts_with("/panel/sign-in"),
        "the secret of before is worth nothing: {}",
        page.path
    );
}

#[tokio::test]
async fn cookies_are_secure_where_the_panel_is_reached_by_https() {
    let behind_tls = |options: testkit::ServerOptions| {
        options.set("SELLER_API__SERVER__PUBLIC_URL", "https://api.shop.example")
    };
    let world = World::with(PROGRAM, behind_tls).await;
    let answer = world.visitor().get("/panel/sign-in").await.expect(200);
    let cookie = answer.must("set-cookie");
    assert!(
        cookie.starts_with("__Host-") && cookie.contains("; Secure"),
        "{cookie}"
    );
    assert!(
        answer.must("strict-transport-security").contains("max-age="),
        "{answer:?}"
    );
}

#[tokio::test]
async fn unknown_wrong_closed_and_passwordless_read_the_same() {
    let world = world().await;
    let (member, closed) = (world.member().await, world.member().await);
    let path = format!("/sellers/{}/closure", closed.seller.id);
    world.office(Method::POST, &path).send().await.expect(200);
    let passwordless = world.seller().await;
    let mut seen = Vec::new();
    for (email, password) in [
        (member.seller.email.as_str(), "wrong horse battery"),
        ("nobody@shop.example", PASSWORD),
        (&closed.seller.email, PASSWORD),
        (&passwordless.email, ""),
        (&passwordless.email, PASSWORD),
    ] {
        let page = attempt(&world, email, password).await.expect(422);
        let csrf = page.form("/panel/sign-in").value("csrf").unwrap().to_owned();
        assert!(!page.html.contains(PASSWORD), "the password is not repeated");
        seen.push(page.html.replace(&csrf, "").replace(email, ""));
    }
    assert!(seen.iter().all(|html| *html == seen[0]), "{seen:#?}");
}

#[tokio::test]
async fn an_unknown_account_takes_the_same_work() {
    let world = world().await;
    let member = world.member().await;
    let takes = async |email: &str| {
        let mut browser = world.visitor();
        let page = browser.open("/panel/sign-in").await;
        let form = sign_in_form(&page, email, "wrong horse battery");
        let began = Instant::now();
        browser.post(&form).await.expect(422);
        began.elapsed()
    };
    // In turns, since what else the machine does comes and goes.
    let (mut wrong, mut unknown) = (Duration::MAX, Duration::MAX);
    for _ in 0..4 {
        wrong = wrong.min(takes(&member.seller.email).await);
        unknown = unknown.min(takes("nobody@shop.example").await);
    }
    // A hash takes by far the most of it: without one it would be less than a tenth.
    assert!(unknown > wrong / 3, "unknown {unknown:?}, wrong {wrong:?}");
}

#[tokio::test]
async fn an_address_has_30_attempts_a_minute_over_all_processes() {
    let world = world().await;
    let member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:48Z").await;
    let second = world.another().await;
    for n in 0..30 {
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        let mut browser = Visitor::new(&world.client, base);
        browser
            .sign_in(&format!("nobody-{n}@shop.example"), "x")
            .await
            .expect(422);
    }
    let limited = attempt(&world, &member.seller.email, PASSWORD).await.expect(429);
    assert_eq!(limited.answer.must("retry-after"), "12");
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    attempt(&world, &member.seller.email, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn an_attacked_account_is_slow_and_its_owner_gets_in() {
    let world = world().await;
    let member = world.member().await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    for _ in 0..5 {
        attempt(&world, &member.seller.email, "wrong horse battery")
            .await
            .expect(422);
    }
    let began = Instant::now();
    attempt(&world, &member.seller.email, PASSWORD).await.expect(200);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn it_leads_to_the_page_that_was_asked_for_and_never_elsewhere() {
    let world = world().await;
    let member = world.member().await;
    for path in [
        "/panel/tokens",
        "/panel/connections",
        "/panel/applications/new",
        "/panel/account",
    ] {
        let mut browser = world.visitor();
        let page = browser.open(path).await.expect(200);
        assert!(page.path.starts_with("/panel/sign-in"), "{}", page.path);
        let form = sign_in_form(&page, &member.seller.email, PASSWORD);
        assert_eq!(browser.submit(&form).await.expect(200).path, path);
    }
}

#[tokio::test]
async fn it_leads_nowhere_else() {
    let world = world().await;
    let member = world.member().await;
    for evil in [
        "next=https://evil.example",
        "next=//evil.example",
        "next=/panel/../evil",
        "request=https://evil.example",
        "request=%0d%0aLocation:%20https://evil.example",
    ] {
        let mut browser = world.visitor();
        let page = browser.open(&format!("/panel/sign-in?{evil}")).await.expect(200);
        let mut form = sign_in_form(&page, &member.seller.email, PASSWORD);
        let (name, value) = evil.split_once('=').unwrap();
        if form.value(name).is_none() {
            form = form.with(name, value);
        }
        let answer = browser.post(&form).await.expect(303);
        assert_eq!(answer.must("location"), "/panel/applications", "{evil}");
        // Who is signed in already is led on in the same way.
        let again = browser.get(&format!("/panel/sign-in?{evil}")).await.expect(303);
        assert_eq!(again.must("location"), "/panel/applications", "{evil}");
    }
}
