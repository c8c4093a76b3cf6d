//! Sessions of the panel: when they end, and that they end permanently.

use blackbox::{Visitor, World};
use chrono::TimeDelta;
use testkit::TestClock;

use crate::world;

/// A session that started at a frozen clock's time.
async fn signed_in_at_noon() -> (World, TestClock, Visitor) {
    let world = world().await;
    let member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let browser = world.browser_of(&member.seller).await;
    (world, clock, browser)
}

#[tokio::test]
async fn eight_idle_hours_end_it_and_seven_days_however_busy() {
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
async fn every_process_knows_it_and_its_end() {
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

#[tokio::test]
async fn what_is_no_session_is_none() {
    let world = world().await;
    let member = world.member().await;
    let (name, value) = member.browser.cookies.iter().next().unwrap();
    let shorter = &value[..value.len() - 1];
    for forged in [
        "",
        "x",
        "ps_se_",
        shorter,
        &value.to_uppercase(),
        &format!("{value}x"),
    ] {
        let mut browser = world.visitor();
        browser.cookies.insert(name.clone(), forged.to_owned());
        assert!(!browser.is_in().await, "{forged}");
    }
}
