//! What goes wrong: pages in the look of the panel.

use actix_web::http::{Method, StatusCode};
use kernel::StoreError;
use oauth::Overcrowded;

use super::browser::{Answered, Browser};
use super::world::{EMAIL, PASSWORD, Shared};
use crate::refusal::Refusal;

fn is_a_page(answer: &Answered) {
    let trace_id = answer.header("x-trace-id");
    assert!(
        trace_id.len() >= 8 && answer.text.contains(trace_id),
        "{}",
        answer.text
    );
    assert!(answer.text.contains("<html lang=\"en\">"), "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(
        answer
            .header("content-security-policy")
            .contains("frame-ancestors 'none'")
    );
}

#[actix_web::test]
async fn unknown_pages_and_methods_are_not_found() {
    let world = Shared::new();
    let browser = Browser::new(&world);
    for (method, path) in [
        (Method::GET, "/panel/nothing"),
        (Method::GET, "/panel/"),
        (Method::POST, "/panel/applications"),
        (Method::PUT, "/panel/sign-in"),
        (Method::DELETE, "/panel/tokens"),
        (Method::GET, "/panel/sign-out-everywhere"),
        (Method::GET, "/panel/assets/panel-0.css"),
    ] {
        let answer = browser.send(method, path, None, "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        is_a_page(&answer);
    }
}

#[actix_web::test]
async fn a_store_that_is_away_is_a_page() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    world.get().away = true;
    for path in ["/panel/applications", "/panel/connections", "/panel/sign-in"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.header("retry-after"), "1");
        is_a_page(&answer);
    }
}

#[actix_web::test]
async fn a_crowd_of_passwords_is_a_refusal_and_no_defect() {
    let world = Shared::new();
    world.get().crowded = true;
    let answer = Browser::new(&world).sign_in(EMAIL, PASSWORD, "").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.header("retry-after"), "1");
    is_a_page(&answer);
    let refusal = Refusal::from(StoreError::Unavailable(Overcrowded.into()));
    assert!(
        matches!(refusal, Refusal::Crowded),
        "nothing is logged: {refusal:?}"
    );
}

#[actix_web::test]
async fn forms_are_small_urlencoded_and_without_repetition() {
    let world = Shared::new();
    let browser = Browser::new(&world);
    let csrf = browser.get("/panel/sign-in").await.hidden("csrf");
    let form = format!("csrf={csrf}&email={EMAIL}&password={PASSWORD}");
    let urlencoded = "application/x-www-form-urlencoded";
    for (body, content_type) in [
        (form.clone(), "multipart/form-data"),
        (form.clone(), "text/plain"),
        ("{}".to_owned(), "application/json"),
        (format!("{form}&email=x"), urlencoded),
        (format!("{form}&x=%zz"), urlencoded),
        (format!("{form}&x={}", "x".repeat(192 * 1024)), urlencoded),
    ] {
        let answer = browser
            .send(Method::POST, "/panel/sign-in", Some(body), content_type)
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{content_type}");
        is_a_page(&answer);
    }
    assert!(world.get().sessions.is_empty());
}

#[actix_web::test]
async fn every_form_needs_its_token_and_every_page_of_a_seller_a_session() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let stranger = Browser::new(&world);
    for route in crate::routes::TABLE {
        let path = route.template.replace(['{', '}'], "");
        if route.method == Method::POST {
            let answer = browser.post(&path, &[]).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        }
        if route.method == Method::GET && matches!(route.handler, crate::routes::Handler::Member(_)) {
            let answer = stranger.get(&path).await;
            assert!(answer.location().starts_with("/panel/sign-in"), "{path}");
        }
    }
    assert_eq!(world.get().sessions.len(), 1);
}
