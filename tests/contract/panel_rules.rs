//! Smaller rules of the panel's forms, links and pages, its limits, and an application's statistics.

use std::collections::BTreeSet;

use blackbox::{
    Expect, PASSWORD, Page, Receiver, Visitor, at_once, count_of, eventually, sign_in_form, text,
};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::{with_partner, world, world_of_consent, world_of_hooks, world_with};

#[tokio::test]
async fn a_form_is_urlencoded_and_has_each_field_once() {
    let world = world().await;
    let member = world.member().await;
    let mut browser = world.visitor();
    let page = browser.page("/panel/sign-in").await;
    let form = sign_in_form(&page, &member.seller.email, PASSWORD).body();
    let urlencoded = "application/x-www-form-urlencoded";
    for (more, content_type) in [
        ("", "multipart/form-data"),
        ("", "text/plain"),
        ("", "application/json"),
        ("&email=x", urlencoded),
        ("&x=%zz", urlencoded),
        ("&x=%00", urlencoded),
    ] {
        let request = browser.request(Method::POST, "/panel/sign-in");
        let request = request.body(form.clone() + more);
        let answer = request.header("content-type", content_type).send().await;
        let html = String::from_utf8(answer.expect(400).bytes).unwrap();
        assert!(html.contains("This request cannot be read"), "{html}");
    }
    // A link submits no form.
    browser.get("/panel/sign-out-everywhere").await.expect(404);
}

#[tokio::test]
async fn a_form_of_an_ended_session_says_that_nothing_was_done() {
    let world = world().await;
    let mut member = world.member().await;
    let page = member.browser.page("/panel/account").await;
    let form = page.form("/panel/sign-out-everywhere");
    let sign_out = page.form("/panel/sign-out");
    world.execute("delete from sessions").await;
    let page = member.browser.sent(&form).await;
    assert_eq!(page.path, "/panel/sign-in?next=account&done=session-ended");
    page.shows("so nothing was done");
    // Signing out is done.
    let answer = member.browser.post(&sign_out).await.expect(303);
    assert_eq!(answer.must("location"), "/panel/sign-in?done=signed-out");
    assert_eq!(answer.header("clear-site-data"), Some("\"storage\""));
    assert!(member.browser.cookies.is_empty(), "{answer:?}");
}

#[tokio::test]
async fn the_other_language_keeps_where_a_sign_in_leads_and_spares_a_secret() {
    let world = world().await;
    let member = world.member().await;
    let mut browser = world.visitor();
    let page = browser.page("/panel/sign-in?next=tokens").await;
    let mistyped = sign_in_form(&page, &member.seller.email, "mistyped");
    let answer = browser.post(&mistyped).await.expect(422);
    let html = String::from_utf8(answer.bytes).unwrap();
    let html = html.replace("&amp;", "&").replace("&#38;", "&");
    assert!(html.contains("\"/panel/sign-in?next=tokens&lang=pl\""), "{html}");
    let mut browser = member.browser;
    let form = browser.filled("/panel/tokens", "name", "Report").await;
    let page = browser.sent(&form.with("scopes", "orders:read")).await;
    page.shows("Copy it now");
    page.hides("?lang=");
}

#[tokio::test]
async fn a_link_works_for_its_purpose_alone_and_an_account_may_have_no_password() {
    let world = world().await;
    let seller = world.seller().await;
    let link = world.sign_in_link(&seller).await;
    let mut browser = world.visitor();
    for kind in ["invitation", "password-reset"] {
        let elsewhere = link.replace("/sign-in/", &format!("/{kind}/"));
        let page = browser.open(&elsewhere).await.expect(410);
        page.shows("This link does not work any more");
        page.shows("href=\"/panel/sign-in\"");
    }
    let form = browser.form(&link).await;
    browser.sent(&form).await;
    let page = browser.page("/panel/account").await;
    page.shows("has no password yet");
    let mut form = page.form("/panel/sign-out-everywhere");
    form.action = "/panel/account".to_owned();
    let form = form.and("form", &Uuid::new_v4().to_string());
    let form = form.and("current_password", "").and("new_password", PASSWORD);
    browser.post(&form).await.expect(422);
    world.sign_in(&seller.email, PASSWORD, 422).await;
}

#[tokio::test]
async fn an_applications_page_shows_its_state_and_the_built_in_one_has_no_page() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let changes = json!({"purpose": "for_other_sellers", "client_type": "public"});
    let pending = world.register(&member.seller, changes).await;
    let path = format!("/panel/applications/{}", pending.client_id);
    let page = member.browser.page(&path).await;
    page.shows("Waiting to be accepted");
    page.hides("client_credentials");
    page.hides("id=\"scopes-hint\"");
    page.shows("A public application has no secret");
    page.hides("Rotate secret");
    let mut forged = page.form(&path).and("form", &Uuid::new_v4().to_string());
    forged.action = format!("{path}/secret");
    member.browser.post(&forged).await.expect(404);
    let personal = world.personal_token(&member.seller, &["offers:read"]).await;
    let me = world.read(&personal.token, "/v1/me").await;
    let path = format!("/panel/applications/{}", text(&me["app"], "client_id"));
    member.browser.open(&path).await.expect(404);
}

#[tokio::test]
async fn an_ended_subscription_gets_no_test_event_and_another_sellers_is_404() {
    let world = world_of_hooks(&[]).await;
    let (mut member, mut stranger) = (world.member().await, world.member().await);
    let receiver = Receiver::start().await;
    let partner = world.partner(&world.seller().await, &["settings:write"]).await;
    let pair = world.pair(&mut member.browser, &partner, "settings:write").await;
    let hook = world.hook(&pair.access, &receiver).await.id;
    let action = format!("/panel/deliveries/{hook}/test");
    let page = member.browser.page("/panel/deliveries").await;
    page.shows("Nothing has been sent yet.");
    // The URL may hold its owner's secret: other sellers see the host.
    page.shows("<code>127.0.0.1</code>");
    page.hides(&receiver.url);
    let form = page.form(&action);
    let own = stranger.browser.form("/panel/account").await;
    let theirs = form.clone().with("csrf", own.value("csrf").unwrap());
    stranger.browser.post(&theirs).await.expect(404);
    let filtered = format!("/panel/deliveries?subscription={hook}");
    member.browser.page(&filtered).await;
    stranger.browser.open(&filtered).await.expect(404);
    member.browser.disconnect(&partner.client_id).await;
    let page = member.browser.sent(&form).await;
    page.shows("<p class=\"warning\" role=\"status\">Nothing was sent");
    page.shows("The connection has ended, or the account of the application");
    assert!(page.forms().iter().all(|form| form.action != action));
}

/// The rows of the table of requests: status and number.
fn rows(page: &Page) -> String {
    let rows = page.html.split("<tr><td><code>").skip(1);
    let cells = rows.filter_map(|row| {
        let (status, rest) = row.split_once("</code>")?;
        let (_, rest) = rest.split_once("<td class=\"number\">")?;
        Some(format!("{status}:{}", rest.split_once('<')?.0))
    });
    cells.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn an_applications_page_shows_the_days_requests_by_status() {
    let (world, mut customer, other) = with_partner(&["offers:read"]).await;
    let mut member = world.member().await;
    let own = world.partner(&member.seller, &["offers:read"]).await;
    let path = format!("/panel/applications/{}", own.client_id);
    let page = member.browser.page(&path).await;
    assert_eq!(rows(&page), "", "{}", page.html);
    // With the application's own token and with that of a seller who has consented.
    let token = world.token(&own).await;
    let pair = world.pair(&mut customer.browser, &own, "offers:read").await;
    for (token, path, status) in [
        (&token, "/v1/me", 200),
        (&pair.access, "/v1/offers", 200),
        (&pair.access, "/v1/orders", 403),
        (&token, "/v1/offers/x", 404),
        (&token, "/v1/offers?after=x", 400),
        (&token, "/v1/me", 200),
    ] {
        world.get(token, path).await.expect(status);
    }
    // Requests that are not the application's are not counted.
    world.get("ps_at_x", "/v1/me").await.expect(401);
    world.get(&world.token(&other).await, "/v1/me").await.expect(200);
    // A process stores its counts every ten seconds, and when it stops.
    let second = world.another().await;
    world.server.terminate();
    let mut browser = Visitor::new(&world.client, &second.base_url);
    browser.cookies.clone_from(&member.browser.cookies);
    let page = eventually("the counts", async || {
        let page = browser.open(&path).await;
        (rows(&page) == "200:3 400:1 403:1 404:1").then_some(page)
    })
    .await;
    page.shows("max=\"600\"");
}

#[tokio::test]
async fn a_sign_in_is_503_while_eight_others_of_its_network_are_checked() {
    let world = world_with(&[("PANEL__SIGN_IN_LIMIT_PER_IP", "1000")]).await;
    let mut browser = world.visitor();
    let page = browser.page("/panel/sign-in").await;
    let sign_in = |n| sign_in_form(&page, &format!("nobody-{n}@shop.example"), "wrong horse battery");
    let crowd = (0..120).map(|n| browser.posting(&sign_in(n)));
    let mut statuses = BTreeSet::new();
    for answer in at_once(crowd).await {
        let retry_after = (answer.status == 503).then_some("1");
        assert_eq!(answer.header("retry-after"), retry_after);
        statuses.insert(answer.status);
    }
    assert_eq!(statuses, [422, 503].into());
}

#[tokio::test]
async fn an_account_has_120_pages_a_minute_in_all_sessions_and_processes_together() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:20Z").await;
    let (member, other) = (world.member().await, world.member().await);
    let again = world.browser_of(&member.seller).await;
    let second = world.another().await;
    let mut elsewhere = Visitor::new(&world.client, &second.base_url);
    elsewhere.cookies.clone_from(&again.cookies);
    // Signing in has led to a page.
    clock.advance(TimeDelta::minutes(1)).await;
    let browsers = [&member.browser, &again, &elsewhere];
    let open = |n: usize| browsers[n % 3].request(Method::GET, ["/panel/tokens", "/panel/once/x"][n % 2]);
    let answers = at_once((0..130).map(open)).await;
    assert_eq!(count_of(&answers, 429), 10, "{answers:?}");
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), Some("40"));
    let html = String::from_utf8_lossy(&refused.bytes);
    assert!(
        html.contains("Too many requests") && html.contains("Wait 40 s"),
        "{html}"
    );
    let mut theirs = other.browser;
    theirs.page("/panel/tokens").await;
    // Signing out is not counted.
    let mut mine = member.browser;
    let page = mine.page("/panel/sign-out").await;
    mine.sent(&page.form("/panel/sign-out-everywhere")).await;
    assert!(!elsewhere.is_in().await);
    clock.advance(TimeDelta::seconds(40)).await;
    world.browser_of(&member.seller).await.page("/panel/tokens").await;
}

/// Maximum size of a form in bytes.
const CAP: usize = 192 * 1024;

#[tokio::test]
async fn a_form_may_have_192_kib_into_which_the_longest_valid_registration_fits() {
    let world = world().await;
    let mut member = world.member().await;
    // Who is not signed in sends short ones.
    for (page, cap, valid) in [
        ("/panel/applications/new", CAP, 422),
        ("/panel/forgotten-password", 16 * 1024, 200),
    ] {
        let form = member.browser.form(page).await;
        let head = form.body() + "&padding=";
        for (length, status) in [(cap, valid), (cap + 1, 400)] {
            let body = format!("{head}{}", "x".repeat(length - head.len()));
            let request = member.browser.request(Method::POST, &form.action).form(&body);
            let answer = request.send().await.expect(status);
            assert_eq!(answer.header("connection") == Some("close"), status == 400);
        }
    }
    let addresses = (0..20).map(|n| {
        let stem = format!("https://app.example/{n:02}?q=");
        // Each of these characters takes three bytes in a form.
        format!("{stem}{}\r\n", "/".repeat(2048 - stem.len()))
    });
    let form = member.registration("Label Printer").await;
    let form = form
        .with("description", &"😀".repeat(2000))
        .with("client_type", "public")
        .with("redirect_uris", &addresses.collect::<String>());
    assert!(form.body().len() > 128 * 1024, "{}", form.body().len());
    member.browser.post(&form).await.expect(303);
}
