//! A seller's applications.

use actix_web::http::StatusCode;
use chrono::TimeDelta;
use oauth::{Action, ApplicationStatus, ClientType, HourlyUsage, Purpose, SecretHash};

use super::browser::{Answered, Browser};
use super::world::{Shared, client};

const FINE: [(&str, &str); 8] = [
    ("name", "Order Desk"),
    ("description", "Ours"),
    ("documentation_url", "https://docs.example"),
    ("purpose", "own_use"),
    ("client_type", "confidential"),
    (
        "redirect_uris",
        "https://a.example/cb\r\n\r\nhttps://b.example/cb\r\n",
    ),
    ("accept_terms", "true"),
    ("scopes", "offers:read"),
];

/// Opens the form, fills it in and sends it.
async fn register(browser: &Browser, change: &[(&str, &str)]) -> (String, Answered) {
    let page = browser.get("/panel/applications/new").await;
    let (csrf, number) = (page.hidden("csrf"), page.hidden("form"));
    let mut fields = vec![
        ("csrf", csrf.as_str()),
        ("form", number.as_str()),
        ("scopes", "orders:read"),
    ];
    let kept = FINE
        .iter()
        .filter(|(name, _)| !change.iter().any(|(changed, _)| changed == name));
    fields.extend(kept);
    fields.extend(change.iter().filter(|(_, value)| !value.is_empty()));
    let answer = browser.post("/panel/applications/new", &fields).await;
    (number, answer)
}

/// What stands in a page as a secret.
fn secret(page: &Answered) -> Option<String> {
    let (_, rest) = page.text.split_once("id=\"secret\">")?;
    Some(rest.split('<').next()?.to_owned())
}

#[actix_web::test]
async fn a_registration_shows_its_secret_once() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let (number, answer) = register(&browser, &[]).await;
    assert_eq!(answer.location(), format!("/panel/once/{number}"));
    let page = browser.get(answer.location()).await;
    let secret = secret(&page).unwrap();
    assert!(secret.starts_with("pss_"), "{secret}");
    let application = world.get().applications[0].clone();
    assert_eq!(application.secret, Some(SecretHash::of(&secret)));
    assert!(page.text.contains(&application.client_id.to_string()));
    assert_eq!(
        application.redirect_uris,
        ["https://a.example/cb", "https://b.example/cb"]
    );
    assert_eq!(application.scopes.to_string(), "offers:read orders:read");
    assert_eq!(application.status, ApplicationStatus::Active);
    assert_eq!(world.noted().last(), Some(&Action::ApplicationRegistered));
    let again = browser.get(answer.location()).await;
    assert_eq!(again.status, StatusCode::GONE);
    assert!(!again.text.contains(&secret));
}

#[actix_web::test]
async fn only_the_session_that_registered_sees_the_secret_and_head_takes_nothing() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let (_, answer) = register(&browser, &[]).await;
    let other = Browser::signed_in(&world).await;
    assert_eq!(other.get(answer.location()).await.status, StatusCode::GONE);
    let method = actix_web::http::Method::HEAD;
    browser.send(method, answer.location(), None, "").await;
    assert!(secret(&browser.get(answer.location()).await).is_some());
}

#[actix_web::test]
async fn a_public_application_gets_none_and_waits_where_it_is_for_others() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let change = [("client_type", "public"), ("purpose", "for_other_sellers")];
    let (_, answer) = register(&browser, &change).await;
    let page = browser.get(answer.location()).await;
    assert_eq!(secret(&page), None);
    assert!(page.text.contains("A public application has no secret"));
    let id = world.get().applications[0].client_id;
    let page = browser.get(&format!("/panel/applications/{id}")).await;
    assert!(page.text.contains("Waiting to be accepted"), "{}", page.text);
    assert!(!page.text.contains("Rotate secret"));
}

#[actix_web::test]
async fn what_is_wrong_stands_beside_its_field_and_what_was_filled_in_stays() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let change = [
        ("name", "x\"y"),
        ("documentation_url", "http://docs.example"),
        ("redirect_uris", "https://a.example\nhttps://localhost/cb"),
        ("purpose", ""),
        ("accept_terms", ""),
    ];
    let (number, page) = register(&browser, &change).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    for text in [
        "<title>Error: Register an application",
        "<a href=\"#name\">Name: Must be 3 to 40 characters",
        "id=\"name-error\"",
        "value=\"x&#34;y\"",
        "aria-describedby=\"name-hint name-error\" aria-invalid=\"true\"",
        "Address 2: must not point to localhost",
        "https://a.example\nhttps://localhost/cb</textarea>",
        "<a href=\"#purpose\">Purpose: Choose one.</a>",
        "The terms of the API have to be accepted.",
        "value=\"orders:read\" checked",
        "value=\"confidential\" checked",
        "Ours</textarea>",
    ] {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
    assert!(!page.text.contains("id=\"scopes-error\""));
    assert_eq!(page.hidden("form"), number);
    assert!(world.get().applications.is_empty());
}

#[actix_web::test]
async fn a_taken_name_is_said_beside_the_name() {
    let world = Shared::new();
    world.application(1, 2, |application| application.name = "Order Desk".to_owned());
    let browser = Browser::signed_in(&world).await;
    let (_, page) = register(&browser, &[]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(
        page.text.contains("Another application has this name"),
        "{}",
        page.text
    );
}

#[actix_web::test]
async fn a_double_click_rotates_once_and_shows_the_secret_that_works() {
    let world = Shared::new();
    let id = world.application(1, 1, |_| ());
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(&format!("/panel/applications/{id}")).await;
    let (csrf, number) = (page.hidden("csrf"), page.hidden("form"));
    let fields = [("csrf", csrf.as_str()), ("form", number.as_str())];
    let path = format!("/panel/applications/{id}/secret");
    let first = browser.post(&path, &fields).await;
    let stored = world.get().applications[0].secret;
    let second = browser.post(&path, &fields).await;
    assert_eq!(first.location(), second.location());
    assert_eq!(world.get().applications[0].secret, stored);
    let secret = secret(&browser.get(second.location()).await).unwrap();
    assert_eq!(stored, Some(SecretHash::of(&secret)));
    assert_ne!(stored, Some(SecretHash::of("pss_old")));
    let rotations = world
        .noted()
        .into_iter()
        .filter(|action| *action == Action::SecretRotated);
    assert_eq!(rotations.count(), 1);
}

#[actix_web::test]
async fn settings_are_saved_and_mistakes_told() {
    let world = Shared::new();
    let id = world.application(1, 1, |_| ());
    let browser = Browser::signed_in(&world).await;
    let path = format!("/panel/applications/{id}");
    let wrong = browser
        .submit(
            &path,
            &[("redirect_uris", "nonsense"), ("description", "kept <text>")],
        )
        .await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    for text in [
        "Address 1: must be a full address",
        "Tick at least one.",
        "kept &#60;text&#62;",
    ] {
        assert!(wrong.text.contains(text), "{text} is not in {}", wrong.text);
    }
    let fields = [
        ("redirect_uris", "https://new.example/cb"),
        ("scopes", "messaging"),
    ];
    let saved = browser.submit(&path, &fields).await;
    assert_eq!(saved.location(), format!("{path}?done=saved"));
    assert!(
        browser
            .get(saved.location())
            .await
            .text
            .contains("role=\"status\">Saved.")
    );
    let application = world.get().applications[0].clone();
    assert_eq!(application.scopes.to_string(), "messaging");
    assert_eq!(application.redirect_uris, ["https://new.example/cb"]);
    assert_eq!(world.noted().last(), Some(&Action::ApplicationChanged));
}

#[actix_web::test]
async fn deleting_asks_first() {
    let world = Shared::new();
    let id = world.application(1, 1, |_| ());
    let browser = Browser::signed_in(&world).await;
    let path = format!("/panel/applications/{id}/delete");
    let page = browser.get(&path).await;
    assert!(page.text.contains("Delete Stock Sync 1?"), "{}", page.text);
    assert_eq!(world.get().applications.len(), 1);
    let deleted = browser.post(&path, &[("csrf", &page.hidden("csrf"))]).await;
    assert_eq!(deleted.location(), "/panel/applications?done=deleted");
    assert!(world.get().applications.is_empty());
    assert_eq!(world.noted().last(), Some(&Action::ApplicationDeleted));
}

#[actix_web::test]
async fn other_sellers_applications_and_the_built_in_one_are_not_found() {
    let world = Shared::new();
    let elses = world.application(1, 2, |_| ());
    let built_in = world.application(2, 1, |application| application.built_in = true);
    let browser = Browser::signed_in(&world).await;
    let before = world.get().applications.clone();
    for id in [
        elses.to_string(),
        built_in.to_string(),
        client(9).to_string(),
        "nonsense".to_owned(),
    ] {
        let path = format!("/panel/applications/{id}");
        let number = "00000000-0000-4000-8000-000000000001";
        let answers = [
            browser.get(&path).await,
            browser.get(&format!("{path}/delete")).await,
            browser.submit(&path, &[("scopes", "messaging")]).await,
            browser
                .submit(&format!("{path}/secret"), &[("form", number)])
                .await,
            browser.submit(&format!("{path}/delete"), &[]).await,
        ];
        for answer in answers {
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
        }
        world.get().flashes.clear();
    }
    assert_eq!(world.get().applications, before);
    let list = browser.get("/panel/applications").await;
    assert!(
        list.text.contains("You have not registered any application yet."),
        "{}",
        list.text
    );
}

#[actix_web::test]
async fn the_page_shows_calls_and_the_use_of_the_limit() {
    let world = Shared::new();
    let id = world.application(1, 1, |application| application.purpose = Purpose::OwnUse);
    let hour = world.get().now - TimeDelta::hours(1);
    world.get().usage = vec![
        HourlyUsage {
            hour,
            status: 200,
            calls: 1234,
        },
        HourlyUsage {
            hour,
            status: 429,
            calls: 5,
        },
    ];
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(&format!("/panel/applications/{id}")).await;
    for text in [
        "30 of 600 calls used",
        "max=\"600\"",
        ">1234<",
        "Over the limit",
        "Registered for own use",
    ] {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
    assert_eq!(world.get().applications[0].client_type, ClientType::Confidential);
}
