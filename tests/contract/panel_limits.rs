//! Limits of the panel: concurrent password hashes, and the maximum length of a form.

use std::collections::BTreeSet;

use blackbox::{at_once, sign_in_form};
use reqwest::Method;

use crate::{form_numbers::registration, world, world_with};

#[tokio::test]
async fn a_sign_in_is_503_while_the_queue_of_password_hashes_is_full() {
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
    let mut statuses = BTreeSet::new();
    for answer in at_once(crowd).await {
        let retry_after = (answer.status == 503).then_some("1");
        assert_eq!(answer.header("retry-after"), retry_after);
        statuses.insert(answer.status);
    }
    assert_eq!(statuses, [422, 503].into());
}

/// Maximum size of a form in bytes.
const CAP: usize = 192 * 1024;

#[tokio::test]
async fn a_form_may_have_192_kib_into_which_the_longest_valid_registration_fits() {
    let world = world().await;
    let mut member = world.member().await;
    let form = member.browser.form("/panel/applications/new").await;
    let head = form.body() + "&padding=";
    for (length, status) in [(CAP, 422), (CAP + 1, 400)] {
        let body = format!("{head}{}", "x".repeat(length - head.len()));
        let request = member.browser.request(Method::POST, &form.action).form(&body);
        let answer = request.send().await.expect(status);
        assert_eq!(answer.header("connection") == Some("close"), status == 400);
    }
    let addresses = (0..20).map(|n| {
        let stem = format!("https://app.example/{n:02}?q=");
        // Each of these characters takes three bytes in a form.
        format!("{stem}{}\r\n", "/".repeat(2048 - stem.len()))
    });
    let form = registration(&mut member, "Label Printer").await;
    let form = form
        .with("description", &"😀".repeat(2000))
        .with("client_type", "public")
        .with("redirect_uris", &addresses.collect::<String>());
    assert!(form.body().len() > 128 * 1024, "{}", form.body().len());
    member.browser.post(&form).await.expect(303);
}
