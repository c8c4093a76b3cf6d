//! A new password ends sessions and one-time links, which another person may have.

use std::path::Path;

use blackbox::{Member, PASSWORD, World, encoded, eventually};
use reqwest::Method;

use crate::office_links::{links, with_mail};

const NEW: &str = "staple of another kind";

/// Requests a reset as anyone who knows the address can, and reads the mail. An unknown address gets the same answer.
async fn reset_link(world: &World, member: &Member, folder: &Path) -> String {
    let before = links(folder).len();
    let mut answers = Vec::new();
    for email in ["nobody@shop.example", &member.seller.email] {
        let mut browser = world.visitor();
        let form = browser.filled("/panel/forgotten-password", "email", email).await;
        answers.push(browser.sent(&form).await.html);
    }
    assert_eq!(answers[0], answers[1]);
    let all = async || Some(links(folder)).filter(|links| links.len() > before);
    let all = eventually("the mail", all).await;
    assert_eq!(all.len(), before + 1, "one mail to the owner");
    let mut all = all.into_iter();
    all.find(|link| link.starts_with("/panel/password-reset/"))
        .unwrap()
}

/// Asserts that a link shows no form any more, and that a form from before has no effect.
async fn is_dead(world: &World, link: &str) {
    let mut browser = world.visitor();
    let page = browser.open(link).await.expect(410);
    assert!(
        page.forms().iter().all(|form| form.action != link),
        "{}",
        page.html
    );
    let csrf = browser.form("/panel/sign-in").await;
    let sent = encoded(&[("csrf", csrf.value("csrf").unwrap()), ("password", NEW)]);
    let sent = browser.request(Method::POST, link).form(&sent);
    browser.send(sent).await.expect(410);
    assert!(!browser.is_in().await);
}

#[tokio::test]
async fn a_change_ends_every_link_into_the_account_and_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let (mut member, stranger) = (world.member().await, world.member().await);
    let mut other = world.browser_of(&member.seller).await;
    let reset = reset_link(&world, &member, folder.path()).await;
    let sign_in = world.sign_in_link(&member.seller).await;
    let others = world.sign_in_link(&stranger.seller).await;
    let form = member.browser.filled("/panel/account", "new_password", NEW).await;
    let form = form.with("current_password", PASSWORD);
    // A wrong password, or the current one as new password, changes nothing.
    let wrong = form.clone().with("current_password", "wrong");
    member.browser.submit(&wrong).await.expect(422);
    let same = form.clone().with("new_password", PASSWORD);
    let refused = member.browser.submit(&same).await.expect(422);
    refused.shows("id=\"new_password-error\"");
    refused.hides("id=\"current_password-error\"");
    refused.hides(PASSWORD);
    assert!(other.is_in().await);
    member.browser.sent(&form).await;
    is_dead(&world, &reset).await;
    is_dead(&world, &sign_in).await;
    assert!(member.browser.is_in().await, "who changed it stays in");
    assert!(!other.is_in().await, "the other sessions have ended");
    world.visitor().open(&others).await.expect(200);
    world.sign_in(&member.seller.email, PASSWORD, 422).await;
    world.sign_in(&member.seller.email, NEW, 200).await;
}

#[tokio::test]
async fn a_reset_ends_every_session_and_every_other_link() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let (mut member, mut stranger) = (world.member().await, world.member().await);
    let sign_in = world.sign_in_link(&member.seller).await;
    let reset = reset_link(&world, &member, folder.path()).await;
    let mut browser = world.visitor();
    let form = browser.filled(&reset, "password", NEW).await;
    browser.sent(&form).await;
    assert!(!member.browser.is_in().await, "its sessions have ended");
    assert!(stranger.browser.is_in().await, "another's has not");
    is_dead(&world, &sign_in).await;
    is_dead(&world, &reset).await;
    world.sign_in(&member.seller.email, PASSWORD, 422).await;
    world.sign_in(&member.seller.email, NEW, 200).await;
}
