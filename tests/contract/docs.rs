//! The documentation as it is served: every page that can be reached, its headers, what is not there, and its feed.

use std::collections::{BTreeMap, BTreeSet};

use blackbox::{Document, Expect, World};
use reqwest::Method;
use testkit::Answer;

use crate::world;

const FEED: &str = "/docs/changelog.atom";
const REFERENCE: &str = "/docs/reference";

async fn get(world: &World, path: &str) -> Answer {
    world.client.get(&world.url(path)).send().await
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.bytes.clone()).unwrap()
}

/// The addresses on the same site that a page names, with their anchors.
fn links(html: &str) -> impl Iterator<Item = &str> {
    let values = [" href=\"", " src=\""]
        .into_iter()
        .flat_map(move |mark| html.split(mark).skip(1));
    values
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|link| link.starts_with('/'))
}

/// Every page and file that can be reached from the first page.
async fn everything(world: &World) -> BTreeMap<String, Answer> {
    let mut found = BTreeMap::new();
    let mut waiting = vec!["/docs".to_owned()];
    while let Some(path) = waiting.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let answer = get(world, &path).await;
        if answer.must("content-type").starts_with("text/html") {
            let html = text(&answer);
            let paths = links(&html).map(|link| link.split('#').next().unwrap().to_owned());
            waiting.extend(paths.filter(|path| path.starts_with("/docs")));
        }
        found.insert(path, answer);
    }
    found
}

#[track_caller]
fn is_guarded(path: &str, answer: &Answer) {
    let policy = answer.must("content-security-policy");
    for directive in [
        "default-src 'none'",
        "script-src 'self';",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(directive), "{path}: {policy}");
    }
    // The reference alone asks for anything by script, of its own origin, and puts styles into the page.
    let (own, other) = if path == REFERENCE {
        ("style-src 'self' 'unsafe-inline';", "connect-src 'self'")
    } else {
        ("style-src 'self';", "trusted-types highlight")
    };
    assert!(policy.contains(own) && policy.contains(other), "{path}: {policy}");
    let rest = policy.replace(own, "");
    assert!(
        !rest.contains("unsafe") && !rest.contains('*') && !rest.contains("http"),
        "{path}: {policy}"
    );
    assert_eq!(
        policy.contains("connect-src"),
        path == REFERENCE,
        "{path}: {policy}"
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.must(name), value, "{path}");
    }
    answer.must("x-trace-id");
}

#[tokio::test]
async fn every_page_is_there_guarded_and_cached() {
    let world = world().await;
    let found = everything(&world).await;
    assert!(found.len() > 50, "{:?}", found.keys());
    for (path, answer) in &found {
        assert_eq!(answer.status, 200, "{path}");
        is_guarded(path, answer);
        let for_ever = answer.must("cache-control").contains("immutable");
        assert_eq!(for_ever, path.starts_with("/docs/assets/"), "{path}");
    }
}

/// Operations and errors had pages of their own once.
#[tokio::test]
async fn former_addresses_lead_to_the_present_ones() {
    let world = world().await;
    for operation in Document::current().operations() {
        let answer = get(&world, &format!("{REFERENCE}/{}", operation.id))
            .await
            .expect(308);
        let anchor = format!("/{}", operation.id);
        assert!(answer.must("location").starts_with(&format!("{REFERENCE}#tag/")));
        assert!(answer.must("location").ends_with(&anchor), "{anchor}");
        is_guarded("", &answer);
    }
    let answer = get(&world, "/docs/explorer").await.expect(308);
    assert_eq!(answer.must("location"), REFERENCE);
}

#[tokio::test]
async fn every_code_that_the_document_names_is_explained() {
    let world = world().await;
    let mut codes = BTreeSet::new();
    let document = Document::current();
    for operation in document.operations() {
        for (status, response) in operation.responses(document) {
            let examples = response["content"]["application/json"]["examples"].as_object();
            let refuses = status.starts_with(['4', '5']);
            codes.extend(
                examples
                    .filter(|_| refuses)
                    .into_iter()
                    .flat_map(|examples| examples.keys().cloned()),
            );
        }
    }
    assert!(codes.len() > 10, "{codes:?}");
    let page = text(&get(&world, "/docs/errors").await.expect(200));
    for code in codes {
        let answer = get(&world, &format!("/docs/errors/{code}")).await.expect(308);
        let anchor = answer.must("location").strip_prefix("/docs/errors#").unwrap();
        let (_, section) = page.split_once(&format!("id=\"{anchor}\"")).unwrap();
        let section = section.split("<h3").next().unwrap();
        assert!(section.contains(&format!("<code>{code}</code>")), "{code}");
        assert!(section.contains("What to do."), "{code}");
    }
}

#[tokio::test]
async fn a_page_that_is_known_is_not_sent_again() {
    let world = world().await;
    for path in ["/docs", "/docs/guide/webhooks", FEED] {
        let tag = get(&world, path).await.expect(200).must("etag").to_owned();
        assert!(tag.starts_with('"'), "{tag}");
        for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            let request = world.client.get(&world.url(path)).header("if-none-match", &known);
            let answer = request.send().await.expect(304);
            assert_eq!(
                (answer.must("etag"), answer.bytes.len()),
                (tag.as_str(), 0),
                "{known}"
            );
            is_guarded(path, &answer);
        }
        let request = world
            .client
            .get(&world.url(path))
            .header("if-none-match", "\"other\"");
        request.send().await.expect(200);
    }
}

#[tokio::test]
async fn the_home_page_is_found_with_a_slash_too() {
    let world = world().await;
    let answer = get(&world, "/docs/").await.expect(308);
    assert_eq!(answer.must("location"), "/docs");
}

#[tokio::test]
async fn what_is_not_there_is_told_by_a_page() {
    let world = world().await;
    for path in [
        "/docs/nothing",
        "/docs/guide/",
        "/docs/errors/nothing",
        "/docs/assets/docs.css",
    ] {
        let answer = get(&world, path).await.expect(404);
        assert!(text(&answer).contains("<h1>Page not found</h1>"), "{path}");
        assert_eq!(answer.must("cache-control"), "no-store", "{path}");
        is_guarded(path, &answer);
    }
    for (path, allow) in [
        ("/docs", Some("GET")),
        ("/docs/search", Some("GET")),
        ("/docs/nothing", None),
    ] {
        for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
            let answer = world
                .client
                .request(method, &world.url(path))
                .send()
                .await
                .expect(404);
            assert_eq!(answer.header("allow"), allow, "{path}");
            is_guarded(path, &answer);
        }
    }
    let long = get(&world, &format!("/docs/search?q={}", "x".repeat(9000)))
        .await
        .expect(400);
    assert!(text(&long).contains("too large"), "{long:?}");
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let world = world().await;
    for path in ["/docs", "/docs/search?q=order", "/docs/nothing", FEED] {
        let got = get(&world, path).await;
        let head = world.client.request(Method::HEAD, &world.url(path)).send().await;
        assert_eq!((head.status, head.bytes.len()), (got.status, 0), "{path}");
        assert_eq!(head.header("etag"), got.header("etag"), "{path}");
        is_guarded(path, &head);
    }
}

/// Pages of documentation are known to take their configuration from the address, and with it another's document.
#[tokio::test]
async fn the_query_configures_nothing() {
    let world = world().await;
    for path in ["/docs", REFERENCE, "/docs/errors"] {
        let plain = get(&world, path).await.expect(200);
        let query =
            "?url=https://evil.example/openapi.json&configUrl=https://evil.example/x&theme=%3Cscript%3E";
        let asked = get(&world, &format!("{path}{query}")).await.expect(200);
        assert_eq!(plain.bytes, asked.bytes, "{path}");
    }
    let html = text(&get(&world, REFERENCE).await);
    let start = links(&html).find(|link| link.contains("/reference-")).unwrap();
    let start = text(&get(&world, start).await.expect(200));
    assert!(
        start.contains("fetch('/openapi.json')") && !start.contains("location.search"),
        "{start}"
    );
}

#[tokio::test]
async fn the_search_finds_and_shows_what_was_asked_as_text() {
    let world = world().await;
    let found = text(&get(&world, "/docs/search?q=order_unpaid").await.expect(200));
    assert!(
        found.contains("href=\"/docs/errors#order_unpaid-409\""),
        "{found}"
    );
    let odd = text(&get(&world, "/docs/search?q=%3Cb%3E%22&q=x").await.expect(200));
    assert!(
        !odd.contains("<b>\"") && odd.contains("&#60;b&#62;&#34;"),
        "{odd}"
    );
    for query in ["", "?q=", "?q=%ff", "?q=%00", "?other=1"] {
        let answer = get(&world, &format!("/docs/search{query}")).await.expect(200);
        assert!(text(&answer).contains("<h1>Search</h1>"), "{query}");
        is_guarded("/docs/search", &answer);
    }
}

#[tokio::test]
async fn the_feed_names_itself_by_the_public_url() {
    let world = world().await;
    let feed = get(&world, FEED).await.expect(200);
    assert_eq!(feed.must("content-type"), "application/atom+xml; charset=utf-8");
    let xml = text(&feed);
    let id = format!("<id>{}{FEED}</id>", world.server.base_url);
    assert!(
        xml.starts_with("<?xml version=\"1.0\"") && xml.contains(&id),
        "{xml}"
    );
    assert_eq!(feed.bytes, get(&world, FEED).await.bytes);
}

#[tokio::test]
async fn trace_ids_are_taken_and_logged() {
    let world = world().await;
    let request = world.client.get(&world.url("/docs/guide/orders"));
    let answer = request
        .header("x-request-id", "docs-trace-1")
        .send()
        .await
        .expect(200);
    assert_eq!(answer.must("x-trace-id"), "docs-trace-1");
    world
        .server
        .log_with(|log| blackbox::tells_of(log, "docs-trace-1"))
        .await;
}
