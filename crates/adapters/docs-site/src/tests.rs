//! Tests of the whole site, rendered from the repository's files.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use atom_syndication::Feed;
use bytes::Bytes;
use futures_util::future::{join, join_all};
use web::{ServiceSettings, TrustedProxies};

use crate::markdown::{self, Rendered};
use crate::search::{Index, Passage};
use crate::site::Site;
use crate::sources::Audience;
use crate::{Docs, changelog, configure, sources};

const OPENAPI: &str = include_str!("../../../../docs/openapi.json");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Paths of the public listener outside the site.
const BESIDE: [&str; 2] = ["/openapi.json", "/panel"];

/// The site with all pages.
fn site() -> Site {
    site_for(Audience::Operators)
}

fn service() -> ServiceSettings {
    ServiceSettings {
        public_url: "https://api.example.com".to_owned(),
        name: "Kettles & Co".to_owned(),
        realm: "kettles".to_owned(),
        docs_url: "https://api.example.com/docs".to_owned(),
        default_rate_limit: NonZeroU32::MIN,
        trusted_proxies: TrustedProxies::default(),
        body_timeout: Duration::ZERO,
        idempotency_lease: Duration::ZERO,
        observer: None,
    }
}

fn site_for(audience: Audience) -> Site {
    Site::new(&service(), audience, OPENAPI.as_bytes()).unwrap()
}

#[actix_web::test]
async fn a_site_that_cannot_be_rendered_is_a_failure_with_its_trace_id() {
    let no_json = Arc::new(|| Bytes::from_static(b"no JSON"));
    let docs = Docs::new(Arc::new(service()), Audience::Integrators, no_json);
    let app = init_service(App::new().configure(configure(docs))).await;
    for path in ["/", "/docs/guide"] {
        let response = call_service(&app, TestRequest::get().uri(path).to_request()).await;
        assert_eq!(response.status(), 500, "{path}");
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let trace_id = header("x-trace-id");
        let text = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        assert!(text.contains(&trace_id), "{text}");
    }
}

/// Every HTML page.
fn pages(site: &Site) -> BTreeMap<&str, &str> {
    let html = site
        .documents
        .iter()
        .filter(|(_, document)| document.media_type.starts_with("text/html"));
    html.map(|(path, document)| (path.as_str(), std::str::from_utf8(&document.body).unwrap()))
        .collect()
}

/// The values of an attribute, on any element.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let mark = format!(" {name}=\"");
    html.split(&mark)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// The `runbook_url` of each alert leads to its heading.
#[test]
fn every_alert_is_in_the_runbook() {
    let site = site();
    let headings = attributes(pages(&site)["/docs/runbook"], "id");
    let lines = || include_str!("../../../../docs/operations/alerts.yml").lines();
    let values = |key| lines().filter_map(move |line| line.trim().strip_prefix(key));
    let alerts: Vec<_> = values("- alert: ").map(str::to_lowercase).collect();
    let urls: Vec<_> = values("runbook_url: https://docs.example/runbook#").collect();
    assert_eq!(urls, alerts);
    assert!(alerts.len() > 20 && urls.iter().all(|url| headings.contains(url)));
}

#[test]
fn every_link_and_anchor_has_a_target() {
    for audience in [Audience::Integrators, Audience::Operators] {
        has_no_dead_link(&site_for(audience));
    }
}

fn has_no_dead_link(site: &Site) {
    let pages = pages(site);
    let (mut dead, mut checked) = (Vec::new(), 0);
    let mut follow = |from: &str, link: &str| {
        let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if target.is_empty() { from } else { target };
        let is_there = match pages.get(target) {
            // Scalar generates these anchors.
            Some(_) if anchor.starts_with("tag/") => target == "/docs/reference",
            Some(html) => anchor.is_empty() || attributes(html, "id").contains(&anchor),
            None => site.documents.contains_key(target) || BESIDE.contains(&target),
        };
        if !is_there {
            dead.push(format!("{from}: {link}"));
        }
        checked += 1;
    };
    for (path, html) in &pages {
        for link in attributes(html, "href")
            .into_iter()
            .chain(attributes(html, "src"))
        {
            if !link.starts_with("https://") && !link.starts_with("http://") {
                follow(path, link);
            }
        }
    }
    for (from, to) in &site.moved {
        follow(from, to);
    }
    assert_eq!(dead, Vec::<String>::new());
    assert!(checked > 1000, "{checked}");
}

/// Links to files that exist only in the repository are shown as text; the files must exist.
#[test]
fn files_that_the_site_does_not_have_are_in_the_repository() {
    let dead = RefCell::new(Vec::new());
    for source in sources::pages(Audience::Operators) {
        markdown::render(&source.text, |link| {
            let address = sources::follow(&source.file, link, Audience::Operators);
            if address.is_none() {
                dead.borrow_mut().push((source.file.clone(), link.to_owned()));
            }
            address
        });
    }
    let dead = dead.into_inner();
    assert!(!dead.is_empty());
    for (file, link) in dead {
        let folder = Path::new(ROOT).join(&file);
        let target = folder.parent().unwrap().join(link.split('#').next().unwrap());
        assert!(target.exists(), "{file}: {link}");
    }
}

#[test]
fn pages_are_plain_and_have_one_heading_and_every_id_once() {
    for (path, html) in pages(&site()) {
        assert_eq!(html.matches("<h1>").count(), 1, "{path}");
        assert!(
            !html.contains(" style=\"") && !html.contains("javascript:"),
            "{path}"
        );
        let (scripts, own) = ("<script", "<script src=\"/docs/assets/");
        assert_eq!(html.matches(scripts).count(), html.matches(own).count(), "{path}");
        let ids = attributes(html, "id");
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{path}: {ids:?}");
        assert!(html.contains("· Kettles &#38; Co</title>"), "{path}");
    }
}

#[test]
fn searches_find_their_page_among_the_first_three() {
    let site = site();
    let mut wrong = Vec::new();
    for (query, expected) in [
        ("order_unpaid", "/docs/errors#order_unpaid-409"),
        ("order unpaid", "/docs/errors#order_unpaid-409"),
        ("invalid_grant", "/docs/errors#oauth-invalid_grant-400"),
        ("listOffers", "/docs/reference#tag/Offers/listOffers"),
        ("report shipment", "/docs/reference#tag/Shipments/createShipment"),
        (
            "order.paid",
            "/docs/reference#tag/Notifications/webhook/order.paid",
        ),
        ("Refreshing", "/docs/guide/authentication#refreshing"),
        ("timestamps", "/docs/guide/common-rules#timestamps"),
        ("pages", "/docs/guide/common-rules#pagination"),
        ("rate limit", "/docs/guide/common-rules#the-rate-limit"),
        ("idempotency", "/docs/guide/idempotency"),
        ("scopes", "/docs/guide/authentication#scopes"),
        ("how do I verify a webhook signature", "/docs/guide/webhooks"),
        ("which carriers are supported", "/docs/guide/shipments"),
        ("generated clients", "/docs/guide/clients"),
        ("refund", "/docs/guide/not-there"),
        ("invoice", "/docs/guide/not-there"),
        ("uninstall", "/docs/guide/authentication#disconnecting"),
        ("register an application", "/docs/guide/applications"),
        ("rate limit per seller", "/docs/guide/common-rules#the-rate-limit"),
        ("webhook ip", "/docs/guide/webhooks"),
        ("return", "/docs/guide/not-there"),
        ("backup", "/docs/backup"),
    ] {
        let html = site.search(query).unwrap();
        let results = html.split("<ol class=\"results\">").nth(1).unwrap_or_default();
        let found: Vec<_> = attributes(results, "href").into_iter().take(3).collect();
        if !found.iter().any(|found| found.starts_with(expected)) {
            wrong.push(format!("{query}: {found:?}, without {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for query in ["xyzzy plugh", "", "…"] {
        assert!(
            !site.search(query).unwrap().contains("class=\"results\""),
            "{query}"
        );
    }
    assert!(site.search(&"ä".repeat(10_000)).unwrap().len() < 50_000);
}

/// What a search found: the addresses in each group.
fn groups(html: &str) -> Vec<Vec<&str>> {
    let lists = html.split("<ol class=\"results\">").skip(1);
    let lists = lists.map(|rest| rest.split("</ol>").next().unwrap());
    lists.map(|list| attributes(list, "href")).collect()
}

#[test]
fn what_integrators_ask_for_first_leads_to_its_page() {
    let site = site_for(Audience::Integrators);
    for (query, pages) in [
        ("pagination", ["/docs/guide/common-rules"].as_slice()),
        ("cursor", &["/docs/guide/common-rules"]),
        ("SDK", &["/docs/guide/clients"]),
        ("postman", &["/docs/guide/clients", "/docs/reference"]),
        ("wrong tracking number", &["/docs/guide/shipments"]),
    ] {
        let html = site.search(query).unwrap();
        let found = &groups(&html)[0];
        let page = found[0].split('#').next().unwrap();
        assert!(pages.contains(&page), "{query}: {found:?}");
    }
}

#[test]
fn what_operators_read_is_found_below_what_integrators_read() {
    let html = site().search("idempotency").unwrap();
    let names = html.split("<h2>").skip(1);
    let names: Vec<_> = names.map(|rest| rest.split("</h2>").next().unwrap()).collect();
    assert_eq!(names, ["Running the service", "Background", "Changelog"]);
    let public = site_for(Audience::Integrators);
    let is_for_integrators = |address: &&str| {
        let page = address.split('#').next().unwrap();
        public.documents.contains_key(page) && page != sources::CHANGELOG_PAGE
    };
    let found = groups(&html);
    assert!(found[0].iter().all(is_for_integrators), "{found:?}");
    assert!(!found[1..].iter().flatten().any(is_for_integrators), "{found:?}");
}

#[test]
fn every_passage_is_suggested() {
    let site = site_for(Audience::Integrators);
    let suggested = &site.documents["/docs/suggestions.json"];
    assert_eq!(suggested.media_type, "application/json");
    let [own, aside]: [Vec<[String; 3]>; 2] = serde_json::from_slice(&suggested.body).unwrap();
    assert!(own[0][2].starts_with("/docs/guide"), "{own:?}");
    let is_of_changelog = |[.., address]: &[String; 3]| address.starts_with("/docs/changelog");
    assert!(
        !aside.is_empty() && aside.iter().all(is_of_changelog),
        "{aside:?}"
    );
    for expected in [
        [
            "List offers",
            "GET /v1/offers",
            "/docs/reference#tag/Offers/listOffers",
        ],
        ["order_unpaid (409)", "All codes", "/docs/errors#order_unpaid-409"],
        ["Offers", "", "/docs/guide/offers"],
    ] {
        assert!(own.iter().any(|one| *one == expected), "{expected:?}");
    }
}

#[test]
fn a_search_finds_passages_with_all_words_and_otherwise_says_that_they_are_the_nearest() {
    let site = site();
    let nearest = "No place has all words";
    let addresses = |query: &str| {
        let html = site.search(query).unwrap();
        let found = groups(&html).concat().into_iter().map(str::to_owned);
        (html.contains(nearest), found.collect::<Vec<_>>())
    };
    let (is_nearest, both) = addresses("how is a cursor clamped?");
    assert!(!is_nearest && !both.is_empty());
    let (_, one) = addresses("cursor");
    let (_, other) = addresses("clamped");
    assert!(
        both.iter()
            .all(|found| one.contains(found) && other.contains(found)),
        "{both:?}"
    );
    assert!(both.len() < one.len());
    let (is_nearest, some) = addresses("cursor xyzzy");
    assert!(is_nearest && !some.is_empty());
}

#[test]
fn an_excerpt_has_code_where_the_prose_has_no_word_of_the_query() {
    let text = "Ask for the status.\n\n```sh\ncurl status\n```\n\nThen wait.\n";
    let index = Index::new(vec![Passage {
        address: String::new(),
        section: sources::GUIDES,
        title: String::new(),
        heading: String::new(),
        text: rendered(text).sections[0].text.clone(),
    }]);
    for (query, expected) in [
        ("status", "Ask for the status. Then wait."),
        ("curl", "Ask for the status. curl status Then wait."),
    ] {
        assert_eq!(index.search(query).groups[0].1[0].excerpt, expected);
    }
}

#[test]
fn a_search_is_for_eight_distinct_words() {
    let site = site();
    let results = |query: &str| {
        let html = site.search(query).unwrap();
        html.split("role=\"status\"").nth(1).map(|rest| {
            let (_, found) = rest.split_once('>').unwrap();
            found.replace(query, "the query")
        })
    };
    let eight = "cursor page order event key offer stock token";
    assert_eq!(results(&format!("{eight} xyzzy carrier")), results(eight));
    assert_ne!(
        results("cursor page order event key offer stock xyzzy"),
        results(eight)
    );
    assert_eq!(
        results(&format!("cursor {}", "page ".repeat(30).trim())),
        results("cursor page")
    );
}

#[actix_web::test]
async fn more_searches_of_a_network_than_may_wait_are_told_to_come_later() {
    let openapi = Arc::new(|| Bytes::from_static(OPENAPI.as_bytes()));
    let docs = Docs::new(Arc::new(service()), Audience::Integrators, openapi);
    let app = init_service(App::new().configure(configure(docs))).await;
    let search = |client: &str| {
        let request = TestRequest::get().uri("/docs/search?q=order");
        request.peer_addr(client.parse().unwrap()).to_request()
    };
    let other = || search("198.51.100.1:1");
    assert_eq!(call_service(&app, other()).await.status(), 200);
    let many = (0..40).map(|n| call_service(&app, search(&format!("192.0.2.{n}:1"))));
    let (answers, others) = join(join_all(many), call_service(&app, other())).await;
    assert_eq!(others.status(), 200);
    let (mut found, mut busy) = (0, 0);
    for answer in answers {
        if answer.status() == 200 {
            found += 1;
            continue;
        }
        busy += 1;
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers().get("retry-after").unwrap(), "1");
        let html = String::from_utf8(read_body(answer).await.to_vec()).unwrap();
        assert!(html.contains("<h1>Search is busy</h1>"), "{html}");
    }
    // While the later ones ask, the first may end.
    assert!(found >= 4 && busy > 0, "{found} found, {busy} busy");
    let networks = (0..100).map(|n| call_service(&app, search(&format!("10.{n}.0.1:1"))));
    let answers = join_all(networks).await;
    assert!(answers.iter().any(|answer| answer.status() == 503));
}

fn rendered(text: &str) -> Rendered {
    let from = "docs/guide/orders.md";
    markdown::render(text, |link| sources::follow(from, link, Audience::Operators))
}

#[test]
fn markdown_is_rendered_with_links_to_pages_anchors_and_boxes() {
    let links = "[a](offers.md#x) [b](errors.md) [c](../../LICENSE) [d](https://a.example/) <b>\n";
    let code = "```sh run\na < b\n```\n";
    let table = "| a | b |\n|---|--:|\n| 1 | 2 |\n";
    for (text, expected) in [
        (
            links,
            "<p><a href=\"/docs/guide/offers#x\">a</a> <a href=\"/docs/errors\">b</a> <span>c</span> \
             <a href=\"https://a.example/\">d</a> &lt;b&gt;</p>\n",
        ),
        (
            code,
            "<div class=\"code\"><pre tabindex=\"0\"><code class=\"language-sh\">a &lt; b\n</code></pre></div>",
        ),
        (table, "<div class=\"scroll\" tabindex=\"0\"><table>"),
        (table, "<td class=\"number\">2</td>"),
        ("#### A, b: c_d\n", "<h4 id=\"a-b-c_d\">"),
    ] {
        let html = rendered(text).html;
        assert!(html.contains(expected), "{html}");
    }
    let rendered = rendered(
        "# T `x`\n\nfirst\n\n## A, *b*: `c_d`\n\ntext\n\n#### A, b: c_d\n\n## [1.2.0] - 2026-12-01\n",
    );
    assert_eq!(rendered.title, "T x");
    let sections = rendered.sections.iter();
    let sections: Vec<_> = sections.map(|one| (one.id.as_str(), one.text.trim())).collect();
    assert_eq!(
        sections,
        [
            ("", "first"),
            ("a-b-c_d", "text"),
            ("a-b-c_d-1", ""),
            ("1.2.0", "")
        ]
    );
}

fn feed(service: &str, changelog: &str) -> Feed {
    let feed = changelog::feed("https://a.example", service, changelog).unwrap();
    Feed::read_from(feed.as_slice()).unwrap()
}

#[test]
fn the_feed_has_releases_and_announcements() {
    let text = "# C\n\n## [Unreleased]\n\n- later\n\n### Changed\n\n\
                - **Incompatible**, announced 2027-01-15, effective 2027-07-15, both\n  until 2028-01-15: `Offer.brand`: it is gone.\n\n\
                ### Deprecated\n\n- `Offer.ean`, since 2027-02-01.\n\n\
                ## [1.1.0] - 2026-12-01 [YANKED]\n\n- b < [e](guide/errors.md)\n\n## [1.0.0] - soon\n";
    let read = feed("A & B", text);
    assert_eq!(read.title.as_str(), "A & B: changelog");
    let entries = read.entries.iter().map(|entry| {
        let id = entry.id.strip_prefix("https://a.example/docs/changelog").unwrap();
        format!("{id} {}", entry.title.as_str())
    });
    let expected = [
        "/announced/2027-02-01/Offer.ean Deprecated: Offer.ean",
        "/announced/2027-01-15/Offer.brand Incompatible: Offer.brand",
        "#1.1.0 1.1.0",
    ];
    assert!(entries.eq(expected));
    assert_eq!(read.updated.to_rfc3339(), "2027-02-01T00:00:00+00:00");
    let content = read.entries[2].content().unwrap().value().unwrap();
    let html = "<ul>\n<li>b &lt; <a href=\"https://a.example/docs/errors\">e</a></li>\n</ul>";
    assert_eq!(content.trim(), html);
    assert_eq!(
        feed("A", "# C\n").updated.to_rfc3339(),
        "2026-11-20T00:00:00+00:00"
    );
}

/// An announcement without a date would be missing from the feed, and so would a released document without a
/// section.
#[test]
fn the_changelog_is_read_whole() {
    let text = sources::text_of(sources::CHANGELOG_FILE);
    let feed = feed("A", &text);
    let titled = |begin: &str| {
        let titles = feed.entries.iter().map(|entry| entry.title.as_str());
        titles.filter(|title| title.starts_with(begin)).count()
    };
    let incompatible = text.matches("\n- **Incompatible**").count();
    assert_eq!(titled("Incompatible: "), incompatible);
    assert_eq!(titled("Deprecated: ") > 0, text.contains("\n### Deprecated\n"));
    for file in std::fs::read_dir(Path::new(ROOT).join("docs/released")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let version = name
            .strip_prefix("openapi-")
            .and_then(|name| name.strip_suffix(".json"))
            .unwrap();
        assert_eq!(titled(version), 1, "{version}");
    }
}
