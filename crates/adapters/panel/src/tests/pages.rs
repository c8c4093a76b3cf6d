//! What every page has.

use webhooks::DeliveryState;

use super::browser::Browser;
use super::receivers::{delivery, subscribe};
use super::world::Shared;

#[actix_web::test]
async fn every_response_carries_the_headers_that_lock_it_down() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    for path in ["/panel/applications", "/panel/nothing", "/panel/tokens", "/panel"] {
        let answer = browser.get(path).await;
        assert_eq!(
            answer.header("content-security-policy"),
            "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; \
             base-uri 'none'"
        );
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert!(!answer.header("x-trace-id").is_empty());
        assert_eq!(answer.header("strict-transport-security"), "");
    }
}

#[actix_web::test]
async fn under_https_cookies_are_secure_and_browsers_stay_with_it() {
    let world = Shared::new();
    let browser = Browser::of(world.panel_at("https://api.shop.example"));
    let page = browser.get("/panel/sign-in").await;
    let cookie = page.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-seller_panel=") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    assert_eq!(page.header("strict-transport-security"), "max-age=31536000");
}

#[actix_web::test]
async fn a_trace_id_that_was_given_is_kept() {
    let world = Shared::new();
    let browser = Browser::new(&world);
    browser
        .extra
        .borrow_mut()
        .push(("x-request-id".into(), "my-own-id-1".into()));
    assert_eq!(
        browser.get("/panel/sign-in").await.header("x-trace-id"),
        "my-own-id-1"
    );
}

#[actix_web::test]
async fn pages_use_files_that_may_be_kept_and_nothing_inline() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    world.application(1, 1, |_| ());
    for path in [
        "/panel/applications",
        "/panel/applications/new",
        "/panel/tokens",
        "/panel/deliveries",
        "/panel/account",
    ] {
        let page = browser.get(path).await.text;
        for forbidden in ["<script", "style=", "<style", " onclick", "javascript:"] {
            assert!(!page.contains(forbidden), "{forbidden} is in {page}");
        }
        let (_, rest) = page.split_once("rel=\"stylesheet\" href=\"").unwrap();
        let style = browser.get(rest.split('"').next().unwrap()).await;
        assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
        assert_eq!(
            style.header("cache-control"),
            "public, max-age=31536000, immutable"
        );
        assert_eq!(style.header("set-cookie"), "");
    }
}

#[actix_web::test]
async fn every_field_has_a_label_and_no_id_is_there_twice() {
    let world = Shared::new();
    let id = world.application(1, 1, |_| ());
    let browser = Browser::signed_in(&world).await;
    let one = format!("/panel/applications/{id}");
    let to = subscribe(&world, 1, 1, true);
    for n in [1, 2] {
        delivery(&world, 1, to, n, DeliveryState::Queued);
    }
    let pages = [
        "/panel/applications/new",
        "/panel/tokens",
        "/panel/deliveries",
        "/panel/account",
        &one,
    ];
    for path in pages {
        let page = browser.get(path).await.text;
        let ids: Vec<_> = page
            .split(" id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "{path}: {ids:?}");
        for field in page.split("<input type=\"").skip(1) {
            let tag = field.split('>').next().unwrap();
            let id = tag.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next());
            let labelled = id.is_some_and(|id| page.contains(&format!(" for=\"{id}\"")));
            // Radio buttons stand inside their labels.
            let within = tag.starts_with("radio") || tag.contains("accept_terms");
            let unseen = tag.starts_with("hidden") || tag.contains("aria-hidden");
            assert!(labelled || within || unseen, "{path}: {tag}");
        }
    }
}

#[actix_web::test]
async fn the_navigation_says_where_one_is() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let page = browser.get("/panel/tokens").await.text;
    assert!(
        page.contains("<a href=\"/panel/tokens\" aria-current=\"page\">"),
        "{page}"
    );
    assert_eq!(page.matches("aria-current").count(), 1);
}
