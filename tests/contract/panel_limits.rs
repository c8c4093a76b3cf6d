//! Limits of the panel: the operator's rate limits of attempts, and the maximum length of a form.

use blackbox::{Page, World, at_once, sign_in_form};
use reqwest::Method;

use crate::{form_numbers::registration, world, world_with};

async fn attempt(world: &World, email: &str) -> Page {
    world.visitor().sign_in(email, "wrong horse battery").await
}

#[tokio::test]
async fn attempts_of_an_address_are_limited_as_configured() {
    let world = world_with(&[("PANEL__SIGN_IN_LIMIT_PER_IP", "2")]).await;
    world.stop_clock("2040-01-01T12:00:15Z").await;
    for n in 0..4 {
        let page = attempt(&world, &format!("nobody-{n}@shop.example")).await;
        let page = page.expect(if n < 2 { 422 } else { 429 });
        assert_eq!(page.answer.header("retry-after"), (n >= 2).then_some("45"), "{n}");
    }
}

#[tokio::test]
async fn attempts_at_an_account_wait_as_configured() {
    let world = world_with(&[
        ("PANEL__SIGN_IN_UNDELAYED_PER_ACCOUNT", "1"),
        ("PANEL__SIGN_IN_LONGEST_DELAY", "0s"),
    ])
    .await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    // With delays this would take more than four minutes.
    for _ in 0..25 {
        attempt(&world, "nobody@shop.example").await.expect(422);
    }
}

#[tokio::test]
async fn who_finds_the_queue_of_passwords_full_is_told_to_come_again() {
    let world = world_with(&[
        ("PANEL__PASSWORD_HASHES_AT_A_TIME", "1"),
        ("PANEL__PASSWORD_HASHES_WAITING", "0"),
    ])
    .await;
    let mut crowd = Vec::new();
    for n in 0..12 {
        let mut browser = world.visitor();
        let page = browser.page("/panel/sign-in").await;
        let email = format!("nobody-{n}@shop.example");
        crowd.push(browser.posting(&sign_in_form(&page, &email, "wrong horse battery")));
    }
    let mut statuses = Vec::new();
    for answer in at_once(crowd).await {
        let retry_after = (answer.status == 503).then_some("1");
        assert_eq!(answer.header("retry-after"), retry_after);
        statuses.push(answer.status);
    }
    statuses.sort_unstable();
    statuses.dedup();
    assert_eq!(statuses, [422, 503]);
}

/// Maximum size of a form in bytes.
const CAP: usize = 192 * 1024;

#[tokio::test]
async fn a_form_may_have_192_kib_and_the_longest_registration_that_keeps_the_rules_fits() {
    let world = world().await;
    let mut member = world.member().await;
    let form = member.browser.form("/panel/applications/new").await;
    let head = form.body() + "&padding=";
    for (length, status) in [(CAP, 422), (CAP + 1, 400)] {
        let body = format!("{head}{}", "x".repeat(length - head.len()));
        let request = member.browser.request(Method::POST, &form.action).form(&body);
        let answer = request.send().await.expect(status);
        assert_eq!(
            answer.header("connection") == Some("close"),
            status == 400,
            "{answer:?}"
        );
    }
    let mut addresses = Vec::new();
    for n in 0..20 {
        let stem = format!("https://app.example/{n:02}?q=");
        // Each of these characters takes three bytes in a form.
        addresses.push(format!("{stem}{}", "/".repeat(2048 - stem.len())));
    }
    let form = registration(&mut member, "Label Printer").await;
    let form = form
        .with("description", &"😀".repeat(2000))
        .with("client_type", "public");
    let form = form.with("redirect_uris", &addresses.join("\r\n"));
    assert!(form.body().len() > 128 * 1024, "{}", form.body().len());
    member.browser.post(&form).await.expect(303);
}
