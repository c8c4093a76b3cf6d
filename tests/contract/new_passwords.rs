//! What a new password ends: sessions and one-time links that somebody else may hold.

use std::path::Path;

use blackbox::{Member, PASSWORD, Visitor, World, eventually};
use reqwest::Method;
use serde_json::json;

use crate::office_links::{links, with_mail};
use crate::world;

const NEW: &str = "staple of another kind";

async fn is_in(browser: &mut Visitor) -> bool {
    let page = browser.open("/panel/account").await.expect(200);
    !page.path.starts_with("/panel/sign-in")
}

/// A link that signs the member in.
async fn sign_in_link(world: &World, member: &Member) -> String {
    let path = format!("/sellers/{}/sign-in-links", member.seller.id);
    let made = world.office_post(&path, &json!({})).await.expect(201).json();
    let url = made["url"].as_str().unwrap();
    url.strip_prefix(&world.server.base_url).unwrap().to_owned()
}

/// Asks for a reset as somebody who knows the address alone does, and reads the mail.
async fn reset_link(world: &World, member: &Member, folder: &Path) -> String {
    let before = links(folder).len();
    let mut browser = world.visitor();
    let page = browser.open("/panel/forgotten-password").await.expect(200);
    let form = page.form("/panel/forgotten-password");
    browser
        .submit(&form.with("email", &member.seller.email))
        .await
        .expect(200);
    let all = eventually("the mail", async || {
        Some(links(folder)).filter(|links| links.len() > before)
    })
    .await;
    let newest = all
        .into_iter()
        .find(|link| link.starts_with("/panel/password-reset/"));
    newest.unwrap()
}

/// A link that cannot be used shows no form, and its form, kept from before, does nothing.
async fn is_dead(world: &World, link: &str) {
    let mut browser = world.visitor();
    let page = browser.open(link).await;
    assert_eq!(page.answer.status, 410, "{}", page.html);
    assert!(
        page.forms().iter().all(|form| form.action != link),
        "{}",
        page.html
    );
    let csrf = browser.open("/panel/sign-in").await.form("/panel/sign-in");
    let kept = blackbox::encoded(&[("csrf", csrf.value("csrf").unwrap()), ("password", NEW)]);
    let sent = browser.request(Method::POST, link).form(&kept);
    browser.send(sent).await.expect(410);
    assert!(!is_in(&mut browser).await);
}

#[tokio::test]
async fn a_change_ends_every_link_into_the_account_and_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let (mut member, stranger) = (world.member().await, world.member().await);
    let reset = reset_link(&world, &member, folder.path()).await;
    let (sign_in, others) = (
        sign_in_link(&world, &member).await,
        sign_in_link(&world, &stranger).await,
    );
    let page = member.browser.open("/panel/account").await.expect(200);
    let form = page
        .form("/panel/account")
        .with("current_password", PASSWORD)
        .with("new_password", NEW);
    member.browser.submit(&form).await.expect(200);
    is_dead(&world, &reset).await;
    is_dead(&world, &sign_in).await;
    assert!(is_in(&mut member.browser).await, "who changed it stays in");
    world.visitor().open(&others).await.expect(200);
}

#[tokio::test]
async fn a_reset_ends_every_session_and_every_other_link() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let (mut member, mut stranger) = (world.member().await, world.member().await);
    let sign_in = sign_in_link(&world, &member).await;
    let reset = reset_link(&world, &member, folder.path()).await;
    let mut browser = world.visitor();
    let page = browser.open(&reset).await.expect(200);
    browser
        .submit(&page.form(&reset).with("password", NEW))
        .await
        .expect(200);
    assert!(!is_in(&mut member.browser).await, "its sessions have ended");
    assert!(is_in(&mut stranger.browser).await, "another's has not");
    is_dead(&world, &sign_in).await;
    is_dead(&world, &reset).await;
    let email = &member.seller.email;
    world.visitor().sign_in(email, PASSWORD).await.expect(422);
    world.visitor().sign_in(email, NEW).await.expect(200);
}

#[tokio::test]
async fn the_present_password_is_no_new_one() {
    let world = world().await;
    let mut member = world.member().await;
    let mut other = world.browser_of(&member.seller).await;
    let page = member.browser.open("/panel/account").await.expect(200);
    let form = page
        .form("/panel/account")
        .with("current_password", PASSWORD)
        .with("new_password", PASSWORD);
    let refused = member.browser.submit(&form).await.expect(422);
    assert!(
        refused.html.contains("id=\"new_password-error\""),
        "{}",
        refused.html
    );
    assert!(
        !refused.html.contains("id=\"current_password-error\"") && !refused.html.contains(PASSWORD),
        "{}",
        refused.html
    );
    assert!(is_in(&mut other).await, "nothing was changed");
}
