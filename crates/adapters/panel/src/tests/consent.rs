//! The screen of consent.

use actix_web::http::StatusCode;
use chrono::TimeDelta;
use oauth::{Action, ApplicationStatus, PasswordHash, Purpose, Scope};

use super::browser::Browser;
use super::world::{EMAIL, PASSWORD, Shared, client, seller};

async fn asked(world: &Shared) -> (Browser, String, String) {
    let application = world.application(1, 2, |_| ());
    let handle = world.handle(application);
    let browser = Browser::signed_in(world).await;
    let path = format!("/panel/consent?request={handle}");
    (browser, path, handle)
}

#[actix_web::test]
async fn the_screen_says_who_asks_for_what_and_for_which_account() {
    let world = Shared::new();
    let (browser, path, _) = asked(&world).await;
    let page = browser.get(&path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for text in [
        "Stock Sync 1 asks for access to your account",
        "Bob&#39;s Lamps",
        "https://docs.example/sync",
        "Anna&#39;s &#60;Kettles&#62;",
        EMAIL,
        "read your offers",
        "read orders and buyers&#39; data",
        "you return to app.example",
        "<button class=\"primary\" name=\"decision\" value=\"approve\">",
        "<button name=\"decision\" value=\"deny\">",
    ] {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
    assert_eq!(page.text.matches("<li class=\"danger\">").count(), 1);
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("form-action 'self' https://app.example;"),
        "{policy}"
    );
}

#[actix_web::test]
async fn approval_sends_the_seller_back_with_a_code() {
    let world = Shared::new();
    let (browser, path, handle) = asked(&world).await;
    let csrf = browser.get(&path).await.hidden("csrf");
    let fields = [
        ("csrf", csrf.as_str()),
        ("request", &handle),
        ("decision", "approve"),
    ];
    let answer = browser.post("/panel/consent", &fields).await;
    let location = answer.location();
    assert!(
        location.starts_with("https://app.example/cb?code=ps_ac_"),
        "{location}"
    );
    assert!(
        location.ends_with("&state=some-state&iss=http%3A%2F%2F127.0.0.1%3A8080"),
        "{location}"
    );
    {
        let world = world.get();
        let consent = &world.consents[0];
        assert_eq!((consent.seller, consent.client_id), (seller(1), client(1)));
        assert_eq!(consent.expires_at, world.now + TimeDelta::minutes(10));
        assert_eq!(world.notes.last().unwrap().0, Action::ConsentGiven);
    }
    let again = browser.post("/panel/consent", &fields).await;
    assert_eq!(again.status, StatusCode::GONE);
    assert_eq!(browser.get(&path).await.status, StatusCode::GONE);
    assert_eq!(world.get().consents.len(), 1);
}

#[actix_web::test]
async fn denial_sends_the_seller_back_with_an_error() {
    let world = Shared::new();
    let (browser, path, handle) = asked(&world).await;
    let csrf = browser.get(&path).await.hidden("csrf");
    let fields = [
        ("csrf", csrf.as_str()),
        ("request", &handle),
        ("decision", "deny"),
    ];
    let answer = browser.post("/panel/consent", &fields).await;
    assert!(
        answer
            .location()
            .starts_with("https://app.example/cb?error=access_denied&state=some-state&iss="),
        "{}",
        answer.location()
    );
    assert!(world.get().consents.is_empty());
    assert_eq!(world.noted().last(), Some(&Action::ConsentRefused));
}

#[actix_web::test]
async fn a_decision_needs_a_button_and_the_token_of_the_page() {
    let world = Shared::new();
    let (browser, path, handle) = asked(&world).await;
    let csrf = browser.get(&path).await.hidden("csrf");
    let bare = [("request", handle.as_str()), ("decision", "approve")];
    assert_eq!(
        browser.post("/panel/consent", &bare).await.status,
        StatusCode::FORBIDDEN
    );
    let undecided = [("csrf", csrf.as_str()), ("request", &handle)];
    assert_eq!(
        browser.post("/panel/consent", &undecided).await.status,
        StatusCode::BAD_REQUEST
    );
    assert!(world.get().consents.is_empty());
}

#[actix_web::test]
async fn whoever_is_not_signed_in_signs_in_first_and_comes_back() {
    let world = Shared::new();
    let handle = world.handle(world.application(1, 2, |_| ()));
    let browser = Browser::new(&world);
    let path = format!("/panel/consent?request={handle}");
    let location = browser.get(&path).await.location().to_owned();
    assert_eq!(location, format!("/panel/sign-in?request={handle}"));
    let page = browser.get(&location).await;
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("form-action 'self' https://app.example;"),
        "{policy}"
    );
    assert!(
        page.text.contains("decide what an application may do"),
        "{}",
        page.text
    );
    let answer = browser
        .sign_in(EMAIL, PASSWORD, &format!("?request={handle}"))
        .await;
    assert_eq!(answer.location(), path);
}

#[actix_web::test]
async fn who_may_not_be_asked_is_sent_back_at_once() {
    let world = Shared::new();
    let pending = world.application(1, 2, |application| {
        application.status = ApplicationStatus::Pending;
    });
    let own_use = world.application(2, 2, |application| application.purpose = Purpose::OwnUse);
    let suspended = world.application(3, 1, |application| {
        application.status = ApplicationStatus::Suspended;
    });
    let narrowed = world.application(4, 2, |application| {
        application.scopes = [Scope::Messaging].into_iter().collect();
    });
    let browser = Browser::signed_in(&world).await;
    for (application, error) in [
        (pending, "access_denied"),
        (own_use, "access_denied"),
        (suspended, "access_denied"),
        (client(99), "access_denied"),
        (narrowed, "invalid_scope"),
    ] {
        let path = format!("/panel/consent?request={}", world.handle(application));
        let answer = browser.get(&path).await;
        let expected = format!("https://app.example/cb?error={error}&state=some-state");
        assert!(answer.location().starts_with(&expected), "{}", answer.location());
    }
}

#[actix_web::test]
async fn an_answer_at_once_does_not_get_lost_with_the_answer_to_its_commit() {
    let world = Shared::new();
    let own_use = world.application(1, 2, |application| application.purpose = Purpose::OwnUse);
    let browser = Browser::signed_in(&world).await;
    for lost in 0..=3 {
        let path = format!("/panel/consent?request={}", world.handle(own_use));
        world.get().lost_answers = lost;
        let answer = browser.get(&path).await;
        if lost == 3 {
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        }
        // Asked again it is the same.
        let answer = if lost == 3 {
            browser.get(&path).await
        } else {
            answer
        };
        let expected = "https://app.example/cb?error=access_denied&state=some-state";
        assert!(answer.location().starts_with(expected), "{}", answer.location());
    }
}

#[actix_web::test]
async fn a_screen_belongs_to_the_session_that_saw_it_first() {
    let world = Shared::new();
    let (browser, path, handle) = asked(&world).await;
    browser.get(&path).await;
    let other = Browser::signed_in(&world).await;
    assert_eq!(other.get(&path).await.status, StatusCode::FORBIDDEN);
    let decided = other
        .submit("/panel/consent", &[("request", &handle), ("decision", "approve")])
        .await;
    assert_eq!(decided.status, StatusCode::FORBIDDEN);
    assert!(world.get().consents.is_empty());
}

#[actix_web::test]
async fn handles_that_are_none_and_old_ones_lead_nowhere() {
    let world = Shared::new();
    let (browser, path, _) = asked(&world).await;
    for none in ["/panel/consent", "/panel/consent?request=abc"] {
        assert_eq!(browser.get(none).await.status, StatusCode::NOT_FOUND, "{none}");
    }
    world.get().now += TimeDelta::minutes(10);
    let late = browser.get(&path).await;
    assert_eq!(late.status, StatusCode::GONE);
    assert!(late.text.contains("This request has expired"), "{}", late.text);
}

#[actix_web::test]
async fn another_account_can_take_the_screen_over() {
    let world = Shared::new();
    let (browser, path, handle) = asked(&world).await;
    let csrf = browser.get(&path).await.hidden("csrf");
    let fields = [("csrf", csrf.as_str()), ("request", &handle)];
    let answer = browser.post("/panel/consent/another-account", &fields).await;
    assert_eq!(answer.location(), format!("/panel/sign-in?request={handle}"));
    assert!(world.get().sessions.is_empty());
    let hash = PasswordHash::new("h:bobs password".to_owned());
    world.get().passwords.insert(seller(2), hash);
    let query = format!("?request={handle}");
    let answer = browser
        .sign_in("bob@lamps.example", "bobs password", &query)
        .await;
    assert_eq!(answer.location(), path);
    assert_eq!(browser.get(&path).await.status, StatusCode::OK);
}
