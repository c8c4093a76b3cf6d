//! Every page of the panel: its headers, its languages, HEAD, and trace ids.

use blackbox::{Expect, Visitor, World};
use reqwest::Method;
use testkit::Answer;

use crate::{world, world_of_consent};

/// Pages of every kind, with their statuses, for a member with one application.
async fn pages(world: &World) -> (Visitor, Vec<(String, u16)>) {
    let member = world.member().await;
    let application = world.partner(&member.seller, &["offers:read"]).await;
    let of_it = format!("/panel/applications/{}", application.client_id);
    let asking = world.asking(&application, "offers:read");
    let handle = world
        .client
        .get(&world.url(&asking.path()))
        .send()
        .await
        .expect(302);
    let screen = handle
        .must("location")
        .strip_prefix(&world.server.base_url)
        .unwrap();
    let paths = [
        ("/panel", 303),
        ("/panel/sign-in", 303),
        ("/panel/sign-out", 200),
        ("/panel/forgotten-password", 200),
        ("/panel/invitation/ps_ln_unknown", 410),
        ("/panel/password-reset/ps_ln_unknown", 410),
        ("/panel/sign-in/ps_ln_unknown", 410),
        (screen, 200),
        ("/panel/consent?request=nonsense", 404),
        ("/panel/applications", 200),
        ("/panel/applications/new", 200),
        (&of_it, 200),
        (&format!("{of_it}/delete"), 200),
        ("/panel/applications/psa_nobody", 404),
        ("/panel/tokens", 200),
        ("/panel/connections", 200),
        ("/panel/account", 200),
        ("/panel/once/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e", 410),
        ("/panel/nothing", 404),
        ("/panel/", 404),
    ];
    (
        member.browser,
        paths.map(|(path, status)| (path.to_owned(), status)).into(),
    )
}

#[track_caller]
fn is_guarded(path: &str, answer: &Answer) {
    let policy = answer.must("content-security-policy");
    for directive in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(directive), "{path}: {policy}");
    }
    assert!(
        !policy.contains("unsafe") && !policy.contains('*'),
        "{path}: {policy}"
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.must(name), value, "{path}");
    }
    answer.must("x-trace-id");
}

#[tokio::test]
async fn every_answer_carries_the_headers_that_guard_it() {
    let world = world_of_consent().await;
    let (mut browser, pages) = pages(&world).await;
    for (path, status) in &pages {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, *status, "{path}");
        is_guarded(path, &answer);
        let html = String::from_utf8(answer.bytes).unwrap();
        assert!(
            !html.contains("<script") && !html.contains(" style=") && !html.contains(" onclick="),
            "{path}: {html}"
        );
    }
    let posted = browser
        .request(Method::POST, "/panel/tokens")
        .form("csrf=x")
        .send()
        .await
        .expect(403);
    is_guarded("/panel/tokens", &posted);
    for method in [Method::PUT, Method::DELETE, Method::OPTIONS] {
        let answer = browser.request(method, "/panel/tokens").send().await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
        is_guarded("/panel/tokens", &answer);
    }
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let world = world_of_consent().await;
    let (browser, pages) = pages(&world).await;
    for (path, status) in &pages {
        let answer = browser.request(Method::HEAD, path).send().await;
        assert_eq!((answer.status, answer.bytes.len()), (*status, 0), "{path}");
        is_guarded(path, &answer);
    }
}

#[tokio::test]
async fn assets_are_cached_and_the_page_names_them() {
    let world = world().await;
    let page = world.visitor().open("/panel/sign-in").await.expect(200);
    for mark in [
        "<link rel=\"stylesheet\" href=\"",
        "<link rel=\"icon\" type=\"image/svg+xml\" href=\"",
    ] {
        let path = page
            .html
            .split_once(mark)
            .and_then(|(_, rest)| rest.split_once('"'))
            .unwrap()
            .0;
        let asset = world.visitor().get(path).await.expect(200);
        assert!(asset.must("cache-control").contains("max-age"), "{asset:?}");
        assert_eq!(asset.must("x-content-type-options"), "nosniff");
        asset.must("x-trace-id");
    }
    world.visitor().get("/panel/assets/nothing.css").await.expect(404);
}

#[tokio::test]
async fn pages_speak_polish_and_english_by_preference_and_by_choice() {
    let world = world().await;
    let html = async |accept: &str| {
        let mut browser = world.visitor().with_header("accept-language", accept);
        browser.open("/panel/sign-in").await.expect(200).html
    };
    for polish in [
        "pl",
        "pl-PL,pl;q=0.9,en;q=0.8",
        "de,pl;q=0.4,en;q=0.2",
        "en;q=0.1, pl",
    ] {
        assert!(html(polish).await.contains("<html lang=\"pl\">"), "{polish}");
    }
    for english in ["en", "en-GB,pl;q=0.9", "de", "pl;q=0", "", "*", "nonsense;;q=x"] {
        assert!(html(english).await.contains("<html lang=\"en\">"), "{english}");
    }
    let mut browser = world.visitor();
    let page = browser.open("/panel/sign-in").await.expect(200);
    let switch = page.html.split_once("lang=pl").is_some();
    assert!(switch, "the page offers the other language: {}", page.html);
    assert!(
        browser
            .open("/panel/sign-in?lang=pl")
            .await
            .html
            .contains("<html lang=\"pl\">")
    );
    assert!(
        browser
            .open("/panel/forgotten-password")
            .await
            .html
            .contains("<html lang=\"pl\">"),
        "it is remembered"
    );
}

#[tokio::test]
async fn trace_ids_are_taken_given_and_logged() {
    let world = world().await;
    let given = world
        .visitor()
        .request(Method::GET, "/panel/sign-in")
        .header("x-request-id", "panel-trace-1");
    assert_eq!(given.send().await.must("x-trace-id"), "panel-trace-1");
    let odd = world
        .visitor()
        .request(Method::GET, "/panel/nothing")
        .header("x-request-id", "no spaces, please");
    let odd = odd.send().await.expect(404);
    let made = odd.must("x-trace-id").to_owned();
    assert!(
        String::from_utf8_lossy(&odd.bytes).contains(&made),
        "the page of a failure shows it"
    );
    for trace_id in ["panel-trace-1", &made] {
        world
            .server
            .log_with(|log| blackbox::tells_of(log, trace_id))
            .await;
    }
}

#[tokio::test]
async fn names_are_shown_as_text() {
    let world = world().await;
    let mut member = world.member().await;
    world.personal_token(&member.seller, &["offers:read"]).await;
    let page = member.browser.open("/panel/tokens").await.expect(200);
    let form = page
        .form("/panel/tokens")
        .with("name", "<b onmouseover=\"x\">&amp;")
        .with("scopes", "offers:read");
    member.browser.submit(&form).await.expect(200);
    let page = member.browser.open("/panel/tokens").await.expect(200);
    assert!(
        !page.html.contains("<b onmouseover") && page.html.contains("&#60;b onmouseover"),
        "{}",
        page.html
    );
}
