//! The served documentation: every reachable page, its headers, missing pages, and its feed.

use std::collections::BTreeMap;

use blackbox::{Document, Expect, World, logs_request};
use testkit::Answer;

use crate::world;

const FEED: &str = "/docs/changelog.atom";
const REFERENCE: &str = "/docs/reference";

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.bytes.clone()).unwrap()
}

/// A page's same-site links, with anchors.
fn links(html: &str) -> impl Iterator<Item = &str> {
    let marks = [" href=\"", " src=\""].into_iter();
    let values = marks.flat_map(move |mark| html.split(mark).skip(1));
    let links = values.map(|rest| rest.split('"').next().unwrap());
    links.filter(|link| link.starts_with('/'))
}

/// Every page and file that is reachable from the first page.
async fn everything(world: &World) -> BTreeMap<String, Answer> {
    let mut found = BTreeMap::new();
    let mut waiting = vec!["/docs".to_owned()];
    while let Some(path) = waiting.pop() {
        let answer = world.visit(&path).await;
        if answer.must("content-type").starts_with("text/html") {
            let html = text(&answer);
            let paths = links(&html).map(|link| link.split('#').next().unwrap().to_owned());
            waiting.extend(paths.filter(|path| path.starts_with("/docs")));
        }
        found.insert(path, answer);
        waiting.retain(|path| !found.contains_key(path));
    }
    found
}

#[track_caller]
fn is_guarded(path: &str, answer: &Answer) {
    let policy = crate::is_guarded(path, answer);
    // Only the reference inserts styles into the page.
    let own = if path == REFERENCE {
        "style-src 'self' 'unsafe-inline';"
    } else {
        "style-src 'self';"
    };
    for directive in ["script-src 'self';", "connect-src 'self';", own] {
        assert!(policy.contains(directive), "{path}: {policy}");
    }
    let rest = policy.replace(own, "");
    for loose in ["unsafe", "*", "http"] {
        assert!(!rest.contains(loose), "{path}: {policy}");
    }
    let makes_markup = policy.contains("trusted-types highlight");
    assert_eq!(makes_markup, path != REFERENCE, "{path}: {policy}");
    assert_eq!(answer.must("cross-origin-resource-policy"), "same-origin");
}

#[tokio::test]
async fn every_page_is_served_with_security_headers_and_cached() {
    let world = world().await;
    let found = everything(&world).await;
    assert!(found.len() > 40, "{:?}", found.keys());
    for (path, answer) in &found {
        assert_eq!(answer.status, 200, "{path}");
        is_guarded(path, answer);
        let for_ever = answer.must("cache-control").contains("immutable");
        assert_eq!(for_ever, path.starts_with("/docs/assets/"), "{path}");
    }
    // A page that the client has cached is not sent again.
    for path in ["/docs", "/docs/guide/webhooks", FEED] {
        let tag = world.visit(path).await.expect(200).must("etag").to_owned();
        assert!(tag.starts_with('"'), "{tag}");
        let knowing = |tag: &str| world.at("GET", path).header("if-none-match", tag).send();
        for known in [&tag, &format!("\"other\", W/{tag}"), "*"] {
            let answer = knowing(known).await.expect(304);
            assert_eq!((answer.must("etag"), answer.bytes.len()), (tag.as_str(), 0));
            is_guarded(path, &answer);
        }
        knowing("\"other\"").await.expect(200);
    }
}

/// Operators read about their service in the sandbox: the internet need not know what it runs on and what
/// does not hold.
#[tokio::test]
async fn pages_for_operators_are_not_public() {
    let world = world().await;
    let pages = "first-steps operations config backup metrics citus testing back-office mail performance architecture \
        decisions reliability security security-measures";
    for page in pages.split(' ') {
        world.visit(&format!("/docs/{page}")).await.expect(404);
    }
    for word in ["pgbouncer", "backup", "asvs", "hexagon"] {
        let found = text(&world.visit(&format!("/docs/search?q={word}")).await.expect(200));
        assert!(
            !found.contains("Running the service") && !found.contains("Background"),
            "{word}"
        );
    }
}

/// Operations and errors used to have separate pages. The home page also works with a slash.
#[tokio::test]
async fn former_addresses_redirect_to_the_present_ones() {
    let world = world().await;
    for operation in Document::current().operations() {
        let former = format!("{REFERENCE}/{}", operation.id);
        let answer = world.visit(&former).await.expect(308);
        let location = answer.must("location");
        assert!(location.starts_with(&format!("{REFERENCE}#tag/")), "{location}");
        assert!(location.ends_with(&format!("/{}", operation.id)), "{location}");
        is_guarded("", &answer);
    }
    for (former, present) in [
        ("/docs/explorer", REFERENCE),
        ("/docs/", "/docs"),
        ("/docs/errors/order_unpaid", "/docs/errors#order_unpaid-409"),
        (
            "/docs/errors/invalid_grant",
            "/docs/errors#oauth-invalid_grant-400",
        ),
    ] {
        let answer = world.visit(former).await.expect(308);
        assert_eq!(answer.must("location"), present);
    }
}

#[tokio::test]
async fn an_unknown_path_is_404_with_a_page_and_a_wrong_method_with_allow() {
    let world = world().await;
    for path in [
        "/docs/nothing",
        "/docs/guide/",
        "/docs/errors/nothing",
        "/docs/assets/docs.css",
    ] {
        let answer = world.visit(path).await.expect(404);
        assert!(text(&answer).contains("<h1>Page not found</h1>"), "{path}");
        assert_eq!(answer.must("cache-control"), "no-store", "{path}");
        is_guarded(path, &answer);
    }
    for (path, allow) in [
        ("/docs", Some("GET")),
        ("/docs/search", Some("GET")),
        ("/docs/nothing", None),
    ] {
        for method in ["POST", "DELETE", "OPTIONS"] {
            let answer = world.at(method, path).send().await.expect(404);
            assert_eq!(answer.header("allow"), allow, "{path}");
            is_guarded(path, &answer);
        }
    }
    for path in ["/docs", "/docs/search?q=order", "/docs/nothing", FEED] {
        let (got, head) = (world.visit(path).await, world.at("HEAD", path).send().await);
        assert_eq!((head.status, head.bytes.len()), (got.status, 0), "{path}");
        assert_eq!(head.header("etag"), got.header("etag"), "{path}");
        is_guarded(path, &head);
    }
    let answer = world.visit("/docs/guide/orders").await.expect(200);
    let trace_id = answer.must("x-trace-id");
    world.server.log_with(|log| logs_request(log, trace_id)).await;
}

/// Some documentation viewers take their configuration, and so another site's document, from the URL.
#[tokio::test]
async fn a_query_does_not_configure_pages_and_is_escaped_in_search() {
    let world = world().await;
    for path in ["/docs", REFERENCE, "/docs/errors"] {
        let plain = world.visit(path).await.expect(200);
        let query =
            "?url=https://evil.example/openapi.json&configUrl=https://evil.example/x&theme=%3Cscript%3E";
        let asked = world.visit(&format!("{path}{query}")).await.expect(200);
        assert_eq!(plain.bytes, asked.bytes, "{path}");
    }
    let html = text(&world.visit(REFERENCE).await);
    let (_, scripts) = html.split_once("<script").unwrap();
    let start = links(scripts).find(|link| link.contains("/reference-")).unwrap();
    let start = text(&world.visit(start).await.expect(200));
    let is_fixed = start.contains("fetch('/openapi.json')") && !start.contains("location.search");
    assert!(is_fixed, "{start}");
    let search = async |query: &str| {
        let answer = world.visit(&format!("/docs/search{query}")).await.expect(200);
        is_guarded("/docs/search", &answer);
        text(&answer)
    };
    let found = search("?q=order_unpaid").await;
    assert!(
        found.contains("href=\"/docs/errors#order_unpaid-409\""),
        "{found}"
    );
    let odd = search("?q=%3Cb%3E%22&q=x").await;
    assert!(
        !odd.contains("<b>\"") && odd.contains("&#60;b&#62;&#34;"),
        "{odd}"
    );
    for query in ["", "?q=", "?q=%ff", "?q=%00", "?other=1"] {
        assert!(search(query).await.contains("<h1>Search</h1>"), "{query}");
    }
    let long = format!("/docs/search?q={}", "x".repeat(9000));
    let long = world.visit(&long).await.expect(400);
    assert!(text(&long).contains("too large"), "{long:?}");
    let feed = world.visit(FEED).await.expect(200);
    assert_eq!(feed.must("content-type"), "application/atom+xml; charset=utf-8");
    let (xml, id) = (text(&feed), format!("<id>{}{FEED}</id>", world.server.base_url));
    assert!(
        xml.starts_with("<?xml version=\"1.0\"") && xml.contains(&id),
        "{xml}"
    );
    assert_eq!(feed.bytes, world.visit(FEED).await.bytes);
}
