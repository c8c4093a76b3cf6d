//! Sessions of the panel: when they end, and that they end for good.

use blackbox::{Member, PASSWORD, Visitor, World};
use chrono::TimeDelta;

use crate::world;

async fn is_in(browser: &mut Visitor) -> bool {
    let page = browser.open("/panel/account").await.expect(200);
    !page.path.starts_with("/panel/sign-in")
}

/// A session that began at a stopped clock's time.
async fn signed_in_at_noon() -> (World, testkit::TestClock, Visitor) {
    let world = world().await;
    let member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let browser = world.browser_of(&member.seller).await;
    (world, clock, browser)
}

#[tokio::test]
async fn eight_idle_hours_end_it() {
    let (_world, clock, mut browser) = signed_in_at_noon().await;
    clock.advance(TimeDelta::hours(8) - TimeDelta::minutes(2)).await;
    assert!(is_in(&mut browser).await);
    clock.advance(TimeDelta::hours(8) - TimeDelta::minutes(2)).await;
    assert!(is_in(&mut browser).await, "the request before was a use");
    clock.advance(TimeDelta::hours(8)).await;
    let cookies = browser.cookies.clone();
    assert!(!is_in(&mut browser).await);
    browser.cookies = cookies;
    assert!(!is_in(&mut browser).await);
}

#[tokio::test]
async fn seven_days_end_it_however_busy() {
    let (_world, clock, mut browser) = signed_in_at_noon().await;
    for _ in 0..(7 * 24 / 7) - 1 {
        clock.advance(TimeDelta::hours(7)).await;
        assert!(is_in(&mut browser).await);
    }
    clock.advance(TimeDelta::hours(7) - TimeDelta::seconds(1)).await;
    assert!(is_in(&mut browser).await);
    clock.advance(TimeDelta::seconds(1)).await;
    assert!(!is_in(&mut browser).await);
}

#[tokio::test]
async fn every_process_knows_it_and_its_end() {
    let world = world().await;
    let Member { mut browser, .. } = world.member().await;
    let second = world.another().await;
    let mut elsewhere = Visitor::new(&world.client, &second.base_url);
    elsewhere.cookies = browser.cookies.clone();
    assert!(is_in(&mut elsewhere).await);
    let page = browser.open("/panel/account").await;
    browser.submit(&page.form("/panel/sign-out")).await.expect(200);
    assert!(!is_in(&mut browser).await && !is_in(&mut elsewhere).await);
}

#[tokio::test]
async fn a_link_signs_nobody_out() {
    let world = world().await;
    let mut member = world.member().await;
    member.browser.open("/panel/sign-out").await.expect(200);
    assert!(is_in(&mut member.browser).await);
}

#[tokio::test]
async fn signing_out_leaves_nothing_in_the_browser() {
    let world = world().await;
    for action in ["/panel/sign-out", "/panel/sign-out-everywhere"] {
        let mut member = world.member().await;
        let page = member.browser.open("/panel/account").await;
        let form = match action {
            "/panel/sign-out" => member.browser.open(action).await.form(action),
            _ => page.form(action),
        };
        let answer = member.browser.post(&form).await.expect(303);
        assert_eq!(answer.header("clear-site-data"), Some("\"storage\""), "{action}");
        assert!(!is_in(&mut member.browser).await, "{action}");
    }
}

#[tokio::test]
async fn signing_out_everywhere_ends_every_session_of_the_account_alone() {
    let world = world().await;
    let (mut one, mut stranger) = (world.member().await, world.member().await);
    let mut other = world.browser_of(&one.seller).await;
    let page = one.browser.open("/panel/account").await;
    one.browser
        .submit(&page.form("/panel/sign-out-everywhere"))
        .await
        .expect(200);
    assert!(!is_in(&mut one.browser).await && !is_in(&mut other).await);
    assert!(is_in(&mut stranger.browser).await);
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions() {
    let world = world().await;
    let mut member = world.member().await;
    let mut other = world.browser_of(&member.seller).await;
    let page = member.browser.open("/panel/account").await.expect(200);
    let new = "staple of another kind";
    let form = page.form("/panel/account").with("new_password", new);
    let refused = member
        .browser
        .submit(&form.clone().with("current_password", "wrong"))
        .await;
    assert_eq!(refused.answer.status, 422);
    assert!(is_in(&mut other).await);
    member
        .browser
        .submit(&form.with("current_password", PASSWORD))
        .await
        .expect(200);
    assert!(!is_in(&mut other).await);
    world
        .visitor()
        .sign_in(&member.seller.email, PASSWORD)
        .await
        .expect(422);
    world
        .visitor()
        .sign_in(&member.seller.email, new)
        .await
        .expect(200);
}

#[tokio::test]
async fn what_is_no_session_is_none() {
    let world = world().await;
    let member = world.member().await;
    let (name, value) = member.browser.cookies.iter().next().unwrap();
    for forged in [
        "",
        "x",
        "ps_se_",
        &value[..value.len() - 1],
        &value.to_uppercase(),
        &format!("{value}x"),
    ] {
        let mut browser = world.visitor();
        browser.cookies.insert(name.clone(), forged.to_owned());
        assert!(!is_in(&mut browser).await, "{forged}");
    }
}
