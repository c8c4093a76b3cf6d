//! Sign-in to the panel: every failure has the same text, attempts are slowed down, no seller is locked out;
//! and when sessions end.

use std::{time::Duration, time::Instant};

use blackbox::{Expect, PASSWORD, Visitor, World, eventually, lock_waits, sign_in_form, until};
use chrono::TimeDelta;
use testkit::TestClock;

use crate::{UNDELAYED, instant, world, world_with};

const WRONG: &str = "wrong horse battery";

#[tokio::test]
async fn a_sign_in_starts_a_session_with_a_new_secret() {
    let world = world().await;
    let member = world.member().await;
    let mut browser = world.visitor();
    let page = browser.page("/panel/sign-in").await;
    let before = browser.cookies.clone();
    assert_eq!(before.len(), 1, "{before:?}");
    let form = sign_in_form(&page, &member.seller.email.to_uppercase(), PASSWORD);
    let answer = browser.post(&form).await.expect(303);
    let cookie = answer.must("set-cookie");
    for attribute in ["; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=604800"] {
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
    // Signing in again ends the session.
    let mut earlier = browser.clone();
    let csrf = browser
        .form("/panel/account")
        .await
        .value("csrf")
        .unwrap()
        .to_owned();
    browser.post(&form.with("csrf", &csrf)).await.expect(303);
    assert!(browser.is_in().await && !earlier.is_in().await);
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
    // Without the prefix, another host of the domain may have set the cookie.
    let mut browser = world.member().await.browser;
    assert!(browser.is_in().await);
    let secret = browser.cookies.remove("__Host-seller_panel").unwrap();
    browser.cookies.insert("seller_panel".to_owned(), secret);
    assert!(!browser.is_in().await);
}

#[tokio::test]
async fn each_failed_sign_in_has_the_same_text_and_takes_the_same_work() {
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
        let html = page.html.replace(form.value("csrf").unwrap(), "");
        seen.push(html.replace(email, ""));
    }
    assert!(seen.iter().all(|html| *html == seen[0]), "{seen:#?}");
    assert!(
        seen[0].contains("tabindex=\"-1\" autofocus>The e-mail or"),
        "{seen:#?}"
    );
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
    let email = world.seller().await.email;
    let clock = world.stop_clock("2040-01-01T12:00:48Z").await;
    let second = world.another().await;
    let bases = [&world.server.base_url, &second.base_url];
    let attempt = async |n: usize, email: &str| {
        let mut browser = Visitor::new(&world.client, bases[n % 2]);
        browser.sign_in(email, "x").await.answer
    };
    for n in 0..30 {
        let answer = attempt(n, &format!("nobody-{n}@shop.example")).await;
        assert_eq!((answer.status, answer.header("retry-after")), (422, None));
    }
    for n in 0..2 {
        let limited = attempt(n, &email).await.expect(429);
        assert_eq!(limited.must("retry-after"), "12");
    }
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    attempt(0, &email).await.expect(422);
}

#[tokio::test]
async fn attempts_at_an_attacked_account_are_slow_but_not_refused() {
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
async fn a_sign_in_leads_to_pages_of_the_panel_alone() {
    let world = world_with(&[UNDELAYED]).await;
    let email = world.member().await.seller.email;
    for path in ["tokens", "connections", "applications/new", "account"] {
        let path = format!("/panel/{path}");
        let mut browser = world.visitor();
        let page = browser.page(&path).await;
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

/// A session that started at a frozen clock's time.
async fn signed_in_at_noon() -> (World, TestClock, Visitor) {
    let world = world().await;
    let member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let browser = world.browser_of(&member.seller).await;
    (world, clock, browser)
}

#[tokio::test]
async fn a_session_ends_after_eight_idle_hours_or_seven_days() {
    let (world, clock, mut browser) = signed_in_at_noon().await;
    clock.advance(TimeDelta::hours(8) - TimeDelta::minutes(2)).await;
    assert!(browser.is_in().await);
    clock.advance(TimeDelta::hours(8) - TimeDelta::minutes(2)).await;
    assert!(browser.is_in().await, "the request before was a use");
    clock.advance(TimeDelta::hours(8)).await;
    let cookies = browser.cookies.clone();
    assert!(!browser.is_in().await);
    browser.cookies = cookies;
    assert!(!browser.is_in().await);
    let mut browser = world.member().await.browser;
    for _ in 0..(7 * 24 / 7) - 1 {
        clock.advance(TimeDelta::hours(7)).await;
        assert!(browser.is_in().await);
    }
    clock.advance(TimeDelta::hours(7) - TimeDelta::seconds(1)).await;
    assert!(browser.is_in().await);
    clock.advance(TimeDelta::seconds(1)).await;
    assert!(!browser.is_in().await);
}

#[tokio::test]
async fn a_session_and_its_end_are_valid_in_every_process() {
    let world = world().await;
    let second = world.another().await;
    for action in ["/panel/sign-out", "/panel/sign-out-everywhere"] {
        let mut member = world.member().await;
        let mut stranger = world.member().await;
        let mut other = world.browser_of(&member.seller).await;
        let mut elsewhere = Visitor::new(&world.client, &second.base_url);
        elsewhere.cookies = member.browser.cookies.clone();
        assert!(elsewhere.is_in().await);
        // A link (GET) does not sign the seller out.
        member.browser.page("/panel/sign-out").await;
        assert!(member.browser.is_in().await);
        let form = member.browser.open("/panel/account").await.form(action);
        let answer = member.browser.post(&form).await.expect(303);
        assert_eq!(answer.header("clear-site-data"), Some("\"storage\""), "{action}");
        assert!(
            !member.browser.is_in().await && !elsewhere.is_in().await,
            "{action}"
        );
        assert_eq!(other.is_in().await, action == "/panel/sign-out");
        assert!(stranger.browser.is_in().await);
    }
}

/// Its account's row is held up, as one that changes all the time is.
#[tokio::test]
async fn sign_ins_to_one_account_wait_in_its_own_share() {
    let world = world_with(&[UNDELAYED]).await;
    let (busy, other) = (world.seller().await, world.member().await.seller);
    let (link, mut browser) = (world.sign_in_link(&busy).await, world.visitor());
    let form = browser.form(&link).await;
    let holder = world.database.connect().await;
    let lock = format!("begin; select from sellers where id = '{}' for update", busy.id);
    holder.batch_execute(&lock).await.unwrap();
    // As many as the network has places, and twice the share: the second half waits on when the first one's locks time out.
    let signing_in = (0..8).map(|_| tokio::spawn(browser.posting(&form).send()));
    let _waiting: Vec<_> = signing_in.collect();
    until("four wait for the row", async || {
        world.count(lock_waits(), &[]).await == 4
    })
    .await;
    world.sign_in(&other.email, PASSWORD, 200).await;
}

/// Anybody can invent links.
#[tokio::test]
async fn a_network_has_eight_links_looked_up_at_a_time() {
    let world = world().await;
    let holder = world.database.connect().await;
    holder.batch_execute("begin; lock table links").await.unwrap();
    let asking = (0..12).map(|_| tokio::spawn(world.at("GET", "/panel/sign-in/invented").send()));
    let asking: Vec<_> = asking.collect();
    let refused = || asking.iter().filter(|asked| asked.is_finished()).count();
    eventually("four are refused", async || (refused() == 4).then_some(())).await;
    holder.batch_execute("rollback").await.unwrap();
    let mut statuses = Vec::new();
    for asked in asking {
        statuses.push(asked.await.unwrap().status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![410; 8], vec![503; 4]].concat());
}
