//! What bounds those who knock at the panel: the operator's limits of attempts, and how long a form may be.

use blackbox::{Page, World};
use reqwest::Method;

use crate::{PROGRAM, world};

async fn attempt(world: &World, email: &str) -> Page {
    world.visitor().sign_in(email, "wrong horse battery").await
}

#[tokio::test]
async fn attempts_of_an_address_are_limited_as_configured() {
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__PANEL__SIGN_IN_LIMIT_PER_IP", 2)
    })
    .await;
    world.stop_clock("2040-01-01T12:00:15Z").await;
    for n in 0..4 {
        let page = attempt(&world, &format!("nobody-{n}@shop.example")).await;
        let status = if n < 2 { 422 } else { 429 };
        assert_eq!(page.answer.status, status, "{n}: {}", page.html);
        let retry_after = page.answer.header("retry-after");
        assert_eq!(retry_after, (n >= 2).then_some("45"), "{n}");
    }
}

#[tokio::test]
async fn attempts_at_an_account_wait_as_configured() {
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__PANEL__SIGN_IN_UNDELAYED_PER_ACCOUNT", 1)
            .set("SELLER_API__PANEL__SIGN_IN_LONGEST_DELAY", "0s")
    })
    .await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    // With waits this would take more than four minutes.
    for _ in 0..25 {
        attempt(&world, "nobody@shop.example").await.expect(422);
    }
}

#[tokio::test]
async fn who_finds_the_queue_of_passwords_full_is_told_to_come_again() {
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__PANEL__PASSWORD_HASHES_AT_A_TIME", 1)
            .set("SELLER_API__PANEL__PASSWORD_HASHES_WAITING", 0)
    })
    .await;
    let mut crowd = Vec::new();
    for n in 0..12 {
        let mut browser = world.visitor();
        let page = browser.open("/panel/sign-in").await.expect(200);
        let form = blackbox::sign_in_form(&page, &format!("nobody-{n}@shop.example"), "wrong horse battery");
        crowd.push(browser.request(Method::POST, &form.action).form(&form.body()));
    }
    let mut statuses = Vec::new();
    let sent: Vec<_> = crowd
        .into_iter()
        .map(|request| tokio::spawn(request.send()))
        .collect();
    for answer in sent {
        let answer = answer.await.unwrap();
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
        statuses.push(answer.status);
    }
    statuses.sort_unstable();
    assert!(
        statuses.iter().all(|status| [422, 503].contains(status)),
        "{statuses:?}"
    );
    assert!(statuses.contains(&422) && statuses.contains(&503), "{statuses:?}");
}

/// What a form may have, in bytes.
const CAP: usize = 192 * 1024;

#[tokio::test]
async fn a_form_may_have_192_kib() {
    let world = world().await;
    let mut member = world.member().await;
    let page = member.browser.open("/panel/applications/new").await.expect(200);
    let form = page.form("/panel/applications/new");
    let head = form.body();
    let filled = |length: usize| {
        format!(
            "{head}&padding={}",
            "x".repeat(length - head.len() - "&padding=".len())
        )
    };
    for (length, status) in [(CAP, 422), (CAP + 1, 400)] {
        let body = filled(length);
        assert_eq!(body.len(), length);
        let answer = member
            .browser
            .request(Method::POST, &form.action)
            .form(&body)
            .send()
            .await;
        assert_eq!(answer.status, status, "{length}");
        assert_eq!(
            answer.header("connection") == Some("close"),
            status == 400,
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn the_longest_registration_that_keeps_the_rules_fits() {
    let world = world().await;
    let mut member = world.member().await;
    let page = member.browser.open("/panel/applications/new").await.expect(200);
    let mut addresses = Vec::new();
    for n in 0..20 {
        let stem = format!("https://app.example/{n:02}?q=");
        // Every one of them takes three bytes in a form.
        addresses.push(format!("{stem}{}", "/".repeat(2048 - stem.len())));
    }
    let form = page
        .form("/panel/applications/new")
        .with("name", "Label Printer")
        .with("description", &"😀".repeat(2000))
        .with("documentation_url", "https://docs.example/labels")
        .with("purpose", "own_use")
        .with("client_type", "public")
        .with("redirect_uris", &addresses.join("\r\n"))
        .with("scopes", "offers:read")
        .with("accept_terms", "true");
    assert!(form.body().len() > 128 * 1024, "{}", form.body().len());
    member.browser.post(&form).await.expect(303);
}
