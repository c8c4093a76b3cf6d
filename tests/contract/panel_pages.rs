//! Every page of the panel: its headers, its languages, HEAD, and trace ids.

use blackbox::{Expect, Visitor, World, line, logs_request, offer_line, parcel, text};
use reqwest::Method;
use serde_json::json;
use testkit::Answer;

use crate::{world, world_of_consent, world_with};

/// Pages of every kind with their statuses, for a member with one application.
async fn pages(world: &World) -> (Visitor, Vec<(String, u16)>) {
    let member = world.member().await;
    let app = world.partner(&member.seller, &["offers:read"]).await;
    let of_it = format!("/panel/applications/{}", app.client_id);
    let screen = world.unseen_screen(&world.asking(&app, "offers:read")).await;
    let paths = [
        ("/panel", 303),
        ("/panel/sign-in", 303),
        ("/panel/sign-out", 200),
        ("/panel/forgotten-password", 200),
        ("/panel/invitation/ps_ln_unknown", 410),
        ("/panel/password-reset/ps_ln_unknown", 410),
        ("/panel/sign-in/ps_ln_unknown", 410),
        (&screen, 200),
        ("/panel/consent?request=nonsense", 404),
        ("/panel/applications", 200),
        ("/panel/applications/new", 200),
        (&of_it, 200),
        (&format!("{of_it}/delete"), 200),
        (&format!("/panel/connections/{}/disconnect", app.client_id), 404),
        ("/panel/applications/psa_nobody", 404),
        ("/panel/offers", 200),
        ("/panel/orders", 200),
        ("/panel/orders?after=1_", 404),
        // No time of PostgreSQL's: others' lists are in the same batch.
        (
            "/panel/offers?after=-250000000000000000_00000000-0000-0000-0000-000000000000",
            404,
        ),
        ("/panel/tokens", 200),
        ("/panel/connections", 200),
        ("/panel/account", 200),
        ("/panel/once/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e", 410),
        ("/panel/nothing", 404),
        ("/panel/", 404),
    ];
    let paths = paths.map(|(path, status)| (path.to_owned(), status));
    (member.browser, paths.into())
}

#[track_caller]
fn is_guarded(path: &str, answer: &Answer) {
    let policy = crate::is_guarded(path, answer);
    let is_strict = !policy.contains("unsafe") && !policy.contains('*');
    assert!(is_strict, "{path}: {policy}");
    assert_eq!(answer.must("cache-control"), "no-store", "{path}");
}

#[tokio::test]
async fn every_answer_has_the_security_headers() {
    let world = world_of_consent().await;
    let (mut browser, pages) = pages(&world).await;
    for (path, status) in &pages {
        let head = browser.request(Method::HEAD, path).send().await;
        assert_eq!((head.status, head.bytes.len()), (*status, 0), "{path}");
        is_guarded(path, &head);
        let answer = browser.get(path).await;
        assert_eq!(answer.status, *status, "{path}");
        is_guarded(path, &answer);
        let html = String::from_utf8(answer.bytes).unwrap();
        for script in ["<script", " style=", " onclick="] {
            assert!(!html.contains(script), "{path}: {html}");
        }
    }
    let posted = browser.request(Method::POST, "/panel/tokens").form("csrf=x");
    is_guarded("/panel/tokens", &posted.send().await.expect(403));
    for method in [Method::PUT, Method::DELETE, Method::OPTIONS] {
        let answer = browser.request(method, "/panel/tokens").send().await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
        is_guarded("/panel/tokens", &answer);
    }
}

#[tokio::test]
async fn offers_and_orders_are_shown_with_external_ids_and_corrections_and_without_buyers() {
    let world = world().await;
    let mut member = world.member().await;
    let own = world.integration_of(member.seller.clone()).await.trader();
    for path in ["/panel/offers", "/panel/orders"] {
        member.browser.page(path).await.shows("class=\"card empty\"");
    }
    let others = world.trader().await;
    world
        .any_offer(&others.seller, json!({"title": "Not mine"}))
        .await;
    let first = json!({"title": "Kettle <1>", "price": {"amount": 4905, "currency": "PLN"}});
    let offer = world.offer(&own.seller, 1, first).await;
    world
        .patched(&own.token, &offer, &json!({"external_id": "SKU-1"}))
        .await;
    let lines = (2..52).map(|n| offer_line(n, json!({"title": format!("Cup {n}.")})));
    world
        .import(&own.seller, lines.collect::<Vec<_>>().join("\n"))
        .await
        .expect(200);
    let page = member.browser.page("/panel/offers").await;
    page.hides("SKU-1");
    let (_, rest) = page.html.split_once("<a href=\"/panel/offers?after=").unwrap();
    let next = format!("/panel/offers?after={}", rest.split('"').next().unwrap());
    let last = member.browser.page(&next).await;
    for text in ["Kettle &#60;1&#62;", "SKU-1", "49.05 PLN", "Published"] {
        last.shows(text);
    }
    for text in ["Cup", "Not mine", "rel=\"next\""] {
        last.hides(text);
    }
    let order = world.paid(&[line(&own.seller, &offer, 2)], json!({})).await;
    let shipment = world.shipped(&own.token, &order.id, &parcel("AAAA1")).await;
    let corrected = world.correcting(&own.token, &order.id, &text(&shipment, "id"), &parcel("BBBB2"));
    corrected.send().await.expect(200);
    let page = member.browser.page("/panel/orders").await;
    for text in [
        &order.number,
        "Shipped",
        "2 × Kettle <code>K-1</code>",
        "<code>BBBB2</code>",
        "Corrections left</dt><dd>2</dd>",
    ] {
        page.shows(text);
    }
    for text in ["Ewa", "ewa@", "WAW01M", "AAAA1"] {
        page.hides(text);
    }
}

#[tokio::test]
async fn assets_are_cached_and_pages_are_in_polish_or_english() {
    let world = world().await;
    let page = world.visitor().open("/panel/sign-in").await.expect(200);
    for mark in [
        "<link rel=\"stylesheet\" href=\"",
        "<link rel=\"icon\" type=\"image/svg+xml\" href=\"",
    ] {
        let (_, rest) = page.html.split_once(mark).unwrap();
        // A cache gives it to others.
        let address = format!("{}?lang=pl", rest.split('"').next().unwrap());
        let asset = world.visit(&address).await.expect(200);
        assert!(asset.must("cache-control").contains("max-age"), "{asset:?}");
        assert_eq!(asset.header("set-cookie"), None);
        assert_eq!(asset.must("x-content-type-options"), "nosniff");
        asset.must("x-trace-id");
    }
    world.visit("/panel/assets/nothing.css").await.expect(404);
    let polish = "pl|pl-PL,pl;q=0.9,en;q=0.8|de,pl;q=0.4,en;q=0.2|en;q=0.1, pl";
    let english = "en|en-GB,pl;q=0.9|de|pl;q=0||*|nonsense;;q=x";
    for (language, preferences) in [("pl", polish), ("en", english)] {
        for preference in preferences.split('|') {
            let mut browser = world.visitor().with_header("accept-language", preference);
            let page = browser.page("/panel/sign-in").await;
            page.shows(&format!("<html lang=\"{language}\">"));
        }
    }
    // Each page links to the other language, and the choice is remembered for a year.
    let mut browser = world.visitor();
    browser.page("/panel/sign-in").await.shows("lang=pl");
    for path in ["/panel/sign-in?lang=pl", "/panel/forgotten-password"] {
        browser.open(path).await.shows("<html lang=\"pl\">");
    }
    let chosen = browser.get("/panel/sign-in?lang=pl").await;
    let cookie = chosen.must("set-cookie");
    assert!(cookie.contains("; Max-Age=31536000"), "{cookie}");
}

#[tokio::test]
async fn the_products_name_and_its_terms_are_configured() {
    let terms = "https://shop.example/terms";
    let named = [("SERVER__NAME", "Kettles & Co"), ("PANEL__TERMS_URL", terms)];
    for (settings, name, link) in [
        (&named[..], "Kettles &#38; Co", format!("<a href=\"{terms}\"")),
        (&[], "Seller API", String::new()),
    ] {
        let world = world_with(settings).await;
        let mut member = world.member().await;
        let page = member.browser.page("/panel/applications/new").await;
        page.shows(&format!("</span>{name} <span"));
        page.shows(&format!("· {name}</title>"));
        page.shows(&link);
        assert_eq!(page.html.contains("Read the terms"), !link.is_empty());
        let site = world.visit("/docs").await.expect(200);
        let site = String::from_utf8(site.bytes).unwrap().replace("&amp;", "&#38;");
        assert!(site.contains(&format!("</span>{name} <span")), "{site}");
        let document = world.visit("/openapi.json").await.expect(200).json();
        assert_eq!(document["info"]["title"], name.replace("&#38;", "&"));
        let unknown = world.get("ps_at_x", "/v1/me").await.expect(401);
        assert!(unknown.must("www-authenticate").contains("realm=\"seller-api\""));
    }
}

#[tokio::test]
async fn an_error_page_shows_its_trace_id_which_is_logged() {
    let world = world().await;
    let answer = world.visit("/panel/nothing").await.expect(404);
    let trace_id = answer.must("x-trace-id");
    let html = String::from_utf8_lossy(&answer.bytes);
    assert!(html.contains(trace_id), "{html}");
    world.server.log_with(|log| logs_request(log, trace_id)).await;
}
