//! One-time links into an account, by mail or from a page of the marketplace; and a new password, which ends
//! them.

use std::path::Path;

use blackbox::{
    Expect, Member, PASSWORD, Page, Visitor, World, at_once, encoded, eventually, mailed_links, mails_to,
    offer_id, whole,
};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;

use crate::{PROGRAM, UNDELAYED, set, world};

/// A world that writes its mails into a folder.
async fn with_mail(folder: &Path) -> World {
    World::with(PROGRAM, |options| mails_to(options, folder)).await
}

/// Opens a link and submits its form, with a password if it asks for one.
async fn used(browser: &mut Visitor, link: &str, password: Option<&str>) -> Page {
    let mut form = browser.form(link).await;
    if let Some(password) = password {
        form = form.with("password", password);
    }
    browser.sent(&form).await
}

/// The number of entries of the audit log with this action.
async fn logged(world: &World, action: &str) -> i64 {
    let count = "select count(*) from audit_log where action = $1";
    world.count(count, &[&action]).await
}

#[tokio::test]
async fn an_invitation_is_sent_again_after_five_minutes_and_ends_with_the_use_of_any() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.registered(json!({"email": "late@shop.example"})).await;
    let path = format!("/sellers/{}/invitations", seller.id);
    let invite = async || world.office_post(&path, &json!({})).await.expect(202).json();
    let same = json!({"expires_at": "2040-01-08T12:00:00.000000Z"});
    assert_eq!([invite().await, invite().await], [same.clone(), same]);
    clock.advance(TimeDelta::minutes(5)).await;
    assert_eq!(
        invite().await,
        json!({"expires_at": "2040-01-08T12:05:00.000000Z"})
    );
    let sent = || Some(mailed_links(folder.path())).filter(|links| links.len() == 2);
    let sent = eventually("both invitations", async || sent()).await;
    assert!(sent[0].starts_with("/panel/invitation/ps_ln_"), "{sent:?}");
    used(&mut world.visitor(), &sent[0], Some(PASSWORD)).await;
    world.sign_in(&seller.email, PASSWORD, 200).await;
    for link in &sent {
        is_dead(&world, link).await;
    }
    let refused = world.office_post(&path, &json!({})).await;
    refused.is_problem(409, &[whole("conflict")]);
    assert_eq!(logged(&world, "invitation.sent").await, 1);
}

#[tokio::test]
async fn nobody_floods_a_seller_with_mails_or_ends_the_links_of_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let undelayed = [UNDELAYED, ("PANEL__SIGN_IN_LIMIT_PER_IP", "1000")];
    let settings = |options| set(mails_to(options, folder.path()), &undelayed);
    let world = World::with(PROGRAM, settings).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let member = world.member().await;
    let mut visitor = world.visitor();
    let form = visitor
        .filled("/panel/forgotten-password", "email", &member.seller.email)
        .await;
    let unknown = form.clone().with("email", "nobody@shop.example");
    let expected = visitor.submit(&unknown).await.expect(200).html;
    // How many mails each wave of requests leads to. The work of a wave may last into the next one, and then
    // does what that would have done; a link that it makes with the time of before the last step has expired,
    // and its mail is not sent.
    let mut all = 0;
    for (minutes, mails) in [(0, 1), (5, 1), (5, 1), (5, 1), (5, 1), (5, 0), (60, 1)] {
        clock.advance(TimeDelta::minutes(minutes)).await;
        for answer in at_once((0..8).map(|_| visitor.posting(&form))).await {
            let html = String::from_utf8(answer.expect(200).bytes).unwrap();
            assert_eq!(html, expected);
        }
        all += mails;
        let count = "select count(*) from account_mails where sent_at is not null";
        let what = format!("{all} mails");
        world.until_count(&what, count, &[], all).await;
        if all == 5 {
            for link in mailed_links(folder.path()) {
                world.visitor().form(&link).await;
            }
        }
    }
    let sent = mailed_links(folder.path());
    assert_eq!(sent.len(), 6, "{sent:?}");
    is_dead(&world, &sent[4]).await;
    used(&mut world.visitor(), &sent[5], Some(NEW)).await;
    is_dead(&world, &sent[5]).await;
    world.sign_in(&member.seller.email, NEW, 200).await;
}

#[tokio::test]
async fn a_sign_in_link_signs_in_once_within_a_minute() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let ask = || world.office(Method::POST, &path).header("idempotency-key", "k-1");
    let made = ask().send().await.expect(201);
    let link = world.path_of(&made.json());
    assert!(link.starts_with("/panel/sign-in/ps_ln_"), "{link}");
    let replayed = ask().send().await.expect(201);
    assert_eq!((replayed.is_replayed(), replayed.json()), (true, made.json()));
    world.visitor().open(&link).await.expect(200);
    let mut browser = world.visitor();
    used(&mut browser, &link, None).await;
    assert!(browser.is_in().await);
    for action in ["sign_in_link.made", "session.opened"] {
        assert_eq!(logged(&world, action).await, 1, "{action}");
    }
    is_dead(&world, &link).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let made = world.office_made(&path, &json!({})).await;
    assert_eq!(made["expires_at"], "2040-01-01T12:01:00.000000Z");
    let link = world.path_of(&made);
    clock.advance(TimeDelta::seconds(59)).await;
    world.visitor().form(&link).await;
    clock.advance(TimeDelta::seconds(1)).await;
    is_dead(&world, &link).await;
}

#[tokio::test]
async fn a_closed_account_is_409_for_links_and_an_unknown_one_404() {
    let world = world().await;
    let seller = world.seller().await;
    let early = world.sign_in_link(&seller).await;
    world.close(&seller.id).await;
    is_dead(&world, &early).await;
    for call in ["sign-in-links", "invitations"] {
        for (id, status, code) in [(&seller.id, 409, "conflict"), (&offer_id(1), 404, "not_found")] {
            let path = format!("/sellers/{id}/{call}");
            let answer = world.office_post(&path, &json!({})).await;
            answer.refused(status, code);
        }
    }
}

const NEW: &str = "staple of another kind";

/// Requests a reset as anyone who knows the address can, and reads the mail. An unknown address gets the same
/// answer.
async fn reset_link(world: &World, member: &Member, folder: &Path) -> String {
    let before = mailed_links(folder).len();
    let mut answers = Vec::new();
    for email in ["nobody@shop.example", &member.seller.email] {
        let mut browser = world.visitor();
        let form = browser.filled("/panel/forgotten-password", "email", email).await;
        answers.push(browser.sent(&form).await.html);
    }
    assert_eq!(answers[0], answers[1]);
    let all = async || Some(mailed_links(folder)).filter(|links| links.len() > before);
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
    assert!(page.forms().iter().all(|form| form.action != link));
    let csrf = browser.form("/panel/sign-in").await;
    let sent = encoded(&[("csrf", csrf.value("csrf").unwrap()), ("password", NEW)]);
    let sent = browser.request(Method::POST, link).form(&sent);
    browser.send(sent).await.expect(410);
    assert!(!browser.is_in().await);
}

#[tokio::test]
async fn a_changed_password_ends_the_accounts_links_and_other_sessions() {
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
    // A double click changes it once.
    for answer in at_once((0..2).map(|_| member.browser.posting(&form))).await {
        assert_eq!(answer.must("location"), "/panel/account?done=password-changed");
    }
    assert_eq!(logged(&world, "password.changed").await, 1);
    is_dead(&world, &reset).await;
    is_dead(&world, &sign_in).await;
    assert!(member.browser.is_in().await, "who changed it stays in");
    assert!(!other.is_in().await, "the other sessions have ended");
    world.visitor().open(&others).await.expect(200);
    world.sign_in(&member.seller.email, PASSWORD, 422).await;
    world.sign_in(&member.seller.email, NEW, 200).await;
}

#[tokio::test]
async fn a_password_reset_ends_every_session_and_every_other_link() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let (mut member, mut stranger) = (world.member().await, world.member().await);
    let sign_in = world.sign_in_link(&member.seller).await;
    let reset = reset_link(&world, &member, folder.path()).await;
    // In a browser that another account is signed in to.
    let form = stranger.browser.filled(&reset, "password", NEW).await;
    stranger.browser.sent(&form).await.shows("The password is set.");
    assert_eq!(logged(&world, "password.changed").await, 1);
    assert!(!member.browser.is_in().await, "its sessions have ended");
    assert!(stranger.browser.is_in().await, "another's has not");
    is_dead(&world, &sign_in).await;
    is_dead(&world, &reset).await;
    world.sign_in(&member.seller.email, PASSWORD, 422).await;
    world.sign_in(&member.seller.email, NEW, 200).await;
}
