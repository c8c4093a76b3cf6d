//! Signing in and out.

use actix_web::http::StatusCode;
use chrono::TimeDelta;
use oauth::{Action, PasswordHash};

use super::browser::Browser;
use super::world::{EMAIL, PASSWORD, Shared, seller};

#[actix_web::test]
async fn the_right_password_opens_a_session_under_a_new_cookie() {
    let world = Shared::new();
    let browser = Browser::new(&world);
    browser.get("/panel/sign-in").await;
    let before = browser.cookies.borrow().clone();
    let answer = browser.sign_in("ANNA@shop.example ", PASSWORD, "").await;
    assert_eq!(answer.location(), "/panel/applications");
    let cookie = answer.header("set-cookie");
    assert!(
        cookie.contains("HttpOnly; SameSite=Lax") && cookie.contains("Max-Age=604800"),
        "{cookie}"
    );
    assert!(!cookie.contains("Secure"), "{cookie}");
    assert_ne!(before, *browser.cookies.borrow());
    assert_eq!(world.noted(), [Action::SignedIn]);
    assert_eq!(world.get().notes[0].1, Some("198.51.100.7".parse().unwrap()));
    let page = browser.get("/panel/applications").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.text.contains("Anna&#39;s &#60;Kettles&#62;"),
        "{}",
        page.text
    );
}

#[actix_web::test]
async fn whoever_cannot_sign_in_gets_the_same_page() {
    let world = Shared::new();
    world.get().sellers[1].closed_at = None;
    let mut pages = Vec::new();
    for (email, password) in [
        (EMAIL, "wrong"),
        ("nobody@shop.example", "wrong"),
        ("bob@lamps.example", "wrong"),
    ] {
        let browser = Browser::new(&world);
        let answer = browser.sign_in(email, password, "").await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.text.contains(&format!("value=\"{email}\"")));
        assert!(!answer.text.contains("wrong\""), "{}", answer.text);
        let page = answer.text.replace(email, "…");
        pages.push(page.replace(&answer.hidden("csrf"), "…"));
    }
    assert_eq!(pages[0], pages[1]);
    assert_eq!(pages[0], pages[2]);
    assert!(pages[0].contains("The e-mail or the password is not right."));
    assert!(world.get().sessions.is_empty());
}

#[actix_web::test]
async fn a_closed_account_cannot_sign_in_and_its_sessions_are_over() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let now = world.get().now;
    world.get().sellers[0].closed_at = Some(now);
    assert_eq!(
        browser.get("/panel/tokens").await.location(),
        "/panel/sign-in?next=tokens"
    );
    let refused = browser.sign_in(EMAIL, PASSWORD, "").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[actix_web::test]
async fn a_wrong_password_of_an_account_is_noted_without_waiting_for_it() {
    let world = Shared::new();
    let panel = world.panel();
    let tasks = panel.tasks.clone();
    Browser::of(panel.clone()).sign_in(EMAIL, "wrong", "").await;
    Browser::of(panel)
        .sign_in("nobody@shop.example", "wrong", "")
        .await;
    tasks.drained().await;
    assert_eq!(world.noted(), [Action::SignInFailed]);
}

#[actix_web::test]
async fn an_address_beyond_its_limit_is_refused() {
    let world = Shared::new();
    world.get().places = (31, 1);
    let answer = Browser::new(&world).sign_in(EMAIL, PASSWORD, "").await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.header("retry-after"), "20");
    assert!(answer.text.contains("Wait 20 s"), "{}", answer.text);
}

#[actix_web::test]
async fn an_account_beyond_its_limit_waits_and_still_gets_in() {
    let world = Shared::new();
    world.get().places = (1, 8);
    let browser = Browser::new(&world);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let answer = browser.sign_in(EMAIL, PASSWORD, "").await;
    assert_eq!(answer.location(), "/panel/applications");
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[actix_web::test]
async fn a_form_of_another_browser_is_refused() {
    let world = Shared::new();
    let csrf = Browser::new(&world).get("/panel/sign-in").await.hidden("csrf");
    let other = Browser::new(&world);
    let fields = [("email", EMAIL), ("password", PASSWORD), ("csrf", csrf.as_str())];
    let bare = other.post("/panel/sign-in", &fields).await;
    assert_eq!(bare.status, StatusCode::FORBIDDEN);
    other.get("/panel/sign-in").await;
    assert_eq!(
        other.post("/panel/sign-in", &fields).await.status,
        StatusCode::FORBIDDEN
    );
    assert!(world.get().sessions.is_empty());
}

#[actix_web::test]
async fn signing_in_leads_to_the_page_that_was_asked_for_and_never_elsewhere() {
    let world = Shared::new();
    let asked = Browser::new(&world).get("/panel/connections").await;
    assert_eq!(asked.location(), "/panel/sign-in?next=connections");
    let answer = Browser::new(&world)
        .sign_in(EMAIL, PASSWORD, "?next=connections")
        .await;
    assert_eq!(answer.location(), "/panel/connections");
    let browser = Browser::signed_in(&world).await;
    let odd = browser.get("/panel/sign-in?next=https://evil.example").await;
    assert_eq!(odd.location(), "/panel/applications");
}

#[actix_web::test]
async fn a_session_ends_when_idle_and_a_cookie_of_it_gives_nothing() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    world.get().now += TimeDelta::hours(8);
    assert_eq!(browser.get("/panel").await.location(), "/panel/sign-in");
}

#[actix_web::test]
async fn signing_out_ends_the_session_and_takes_the_cookie_away() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let page = browser.get("/panel/sign-out").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(world.get().sessions.len(), 1);
    let csrf = page.hidden("csrf");
    let answer = browser.post("/panel/sign-out", &[("csrf", &csrf)]).await;
    assert_eq!(answer.location(), "/panel/sign-in?done=signed-out");
    assert!(world.get().sessions.is_empty() && browser.cookies.borrow().is_empty());
    let page = browser.get(answer.location()).await;
    assert!(page.text.contains("You have signed out."), "{}", page.text);
    assert_eq!(world.noted(), [Action::SignedIn, Action::SignedOut]);
}

#[actix_web::test]
async fn signing_out_everywhere_ends_every_session_of_the_account() {
    let world = Shared::new();
    let (one, other) = (Browser::signed_in(&world).await, Browser::signed_in(&world).await);
    one.submit("/panel/sign-out-everywhere", &[]).await;
    assert!(world.get().sessions.is_empty());
    assert_eq!(
        other.get("/panel/account").await.location(),
        "/panel/sign-in?next=account"
    );
}

#[actix_web::test]
async fn an_earlier_session_of_the_browser_ends_with_the_next_one() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let hash = PasswordHash::new("h:bobs password".to_owned());
    world.get().passwords.insert(seller(2), hash);
    let csrf = browser.get("/panel/account").await.hidden("csrf");
    let fields = [
        ("email", "bob@lamps.example"),
        ("password", "bobs password"),
        ("csrf", &csrf),
    ];
    browser.post("/panel/sign-in", &fields).await;
    let sessions: Vec<_> = world
        .get()
        .sessions
        .iter()
        .map(|session| session.seller)
        .collect();
    assert_eq!(sessions, [seller(2)]);
}
