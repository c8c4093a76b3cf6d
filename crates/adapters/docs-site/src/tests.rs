//! Over the whole site, as it is made of the repository's own files.

mod answers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use web::Code;
use web::schema::Node;

use crate::DocsSettings;
use crate::guides::SOURCES;
use crate::markdown::{self, Links};
use crate::site::Site;

const OPENAPI: &str = include_str!("../../../../docs/openapi.json");

/// What the public listener has beside the site.
const BESIDE: [&str; 2] = ["/openapi.json", "/panel"];

fn settings() -> DocsSettings {
    DocsSettings {
        public_url: "https://api.example.com".to_owned(),
        service_name: "Kettles & Co".to_owned(),
    }
}

fn site() -> Site {
    Site::new(&settings(), OPENAPI).unwrap()
}

/// Every page that is HTML.
fn pages(site: &Site) -> BTreeMap<&str, &str> {
    let html = site
        .paths()
        .filter(|(_, document)| document.media_type.starts_with("text/html"));
    html.map(|(path, document)| (path, std::str::from_utf8(&document.body).unwrap()))
        .collect()
}

/// The values of an attribute, wherever it stands.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let mark = format!(" {name}=\"");
    let values = html.split(&mark).skip(1);
    values.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn every_link_and_anchor_leads_somewhere() {
    let site = site();
    let pages = pages(&site);
    let (mut dead, mut checked) = (Vec::new(), 0);
    for (path, html) in &pages {
        for link in attributes(html, "href") {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if target.is_empty() { path } else { target };
            let known = site.find(target).is_some() || crate::assets::find(target).is_some();
            let there = match pages.get(target) {
                // The explorer opens these places itself.
                Some(_) if anchor.starts_with('/') => target == crate::reference::EXPLORER,
                Some(html) => anchor.is_empty() || attributes(html, "id").contains(&anchor),
                None => known || BESIDE.contains(&target),
            };
            if !there {
                dead.push(format!("{path}: {link}"));
            }
            checked += 1;
        }
    }
    assert_eq!(dead, Vec::<String>::new());
    assert!(checked > 1000, "{checked}");
}

/// Links to what only the repository has are shown as text; they lead somewhere there.
#[test]
fn files_that_the_site_does_not_have_are_in_the_repository() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let mut checked = 0;
    for source in SOURCES.iter() {
        let rendered = markdown::render(source.text, &Links::from_file(source.file));
        let folder = root.join(source.file);
        for link in rendered.unlinked {
            let file = link.split('#').next().unwrap();
            assert!(
                folder.parent().unwrap().join(file).exists(),
                "{}: {link}",
                source.file
            );
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn every_sequence_diagram_is_drawn() {
    let (mut diagrams, mut drawn) = (0, 0);
    for source in SOURCES.iter() {
        let html = markdown::render(source.text, &Links::from_file(source.file)).html;
        assert!(!html.contains("sequenceDiagram"), "{}", source.file);
        diagrams += source.text.matches("\nsequenceDiagram\n").count();
        drawn += html.matches("<ol class=\"sequence\">").count();
    }
    assert!(diagrams > 0);
    assert_eq!(drawn, diagrams);
}

#[test]
fn guides_come_in_the_order_of_their_list() {
    let site = site();
    let pages = pages(&site);
    let contents = pages["/docs"].split("<nav id=\"contents\"").nth(1).unwrap();
    let place = |path: &str| contents.find(&format!("href=\"{path}\"")).unwrap();
    let guides = [
        "",
        "/first-trade",
        "/authentication",
        "/common-rules",
        "/idempotency",
    ];
    assert!(
        guides
            .map(|guide| place(&format!("/docs/guide{guide}")))
            .is_sorted()
    );
}

#[test]
fn pages_are_plain_and_have_one_heading_and_every_id_once() {
    for (path, html) in pages(&site()) {
        assert_eq!(html.matches("<h1>").count(), 1, "{path}");
        assert!(
            !html.contains(" style=\"") && !html.contains("javascript:"),
            "{path}"
        );
        let scripts = html.matches("<script").count();
        assert_eq!(
            scripts,
            html.matches("<script src=\"/docs/assets/").count(),
            "{path}"
        );
        let ids = attributes(html, "id");
        assert_eq!(
            ids.iter().collect::<BTreeSet<_>>().len(),
            ids.len(),
            "{path}: {ids:?}"
        );
        for file in attributes(html, "src") {
            // A plot is in the page itself.
            let is_own = file.starts_with("/docs/assets/") || file.starts_with("data:image/svg+xml;base64,");
            assert!(is_own, "{path}: {file}");
        }
        assert!(html.contains("· Kettles &#38; Co</title>"), "{path}");
    }
}

#[test]
fn every_code_has_a_page() {
    let site = site();
    let pages = pages(&site);
    for code in Code::ALL {
        let page = pages[format!("/docs/errors/{}", code.as_str()).as_str()];
        assert!(
            page.contains(&format!("<dd>{}</dd>", code.status().as_u16())),
            "{code:?}"
        );
        assert!(page.contains(">What to do</h"), "{code:?}");
        assert!(page.contains("<div class=\"code\">"), "{code:?}");
        if let Some(message) = code.user_message() {
            assert!(page.contains(message), "{code:?}");
        }
    }
    let document = Node::parse(OPENAPI);
    let mut oauth = returned(&document);
    oauth_codes(&document, &mut oauth);
    assert_eq!(oauth.len(), 9);
    for code in oauth {
        assert!(
            pages.contains_key(format!("/docs/errors/{code}").as_str()),
            "{code}"
        );
    }
    let both = pages["/docs/errors/rate_limited"];
    assert!(
        both.contains("<h2>/v1</h2>") && both.contains("<h2>/oauth</h2>"),
        "{both}"
    );
}

#[test]
fn errors_that_go_back_by_the_browser_lead_to_their_operation_and_back() {
    let site = site();
    let pages = pages(&site);
    let operation = pages["/docs/reference/authorize"];
    let codes = returned(&Node::parse(OPENAPI));
    assert!(codes.len() > 3, "{codes:?}");
    for code in codes {
        let page = format!("/docs/errors/{code}");
        assert!(operation.contains(&format!("href=\"{page}\"")), "{code}");
        assert!(
            pages[page.as_str()].contains("href=\"/docs/reference/authorize\"><span"),
            "{code}"
        );
    }
}

/// The values with which a browser comes back to the client.
fn returned(document: &Node) -> BTreeSet<String> {
    let names = ["components", "schemas", "AuthorizationRedirectError", "enum"];
    let values = names.iter().try_fold(document, |node, name| node.get(name));
    match values {
        Some(Node::List(values)) => values
            .iter()
            .map(|value| value.to_string().trim_matches('"').to_owned())
            .collect(),
        _ => BTreeSet::new(),
    }
}

/// The `error` of every example.
fn oauth_codes(node: &Node, codes: &mut BTreeSet<String>) {
    match node {
        Node::Object(members) => {
            if let (Some(Node::Text(code)), true) = (members.get("error"), members.contains_key("traceId")) {
                codes.insert(code.clone());
            }
            members.values().for_each(|member| oauth_codes(member, codes));
        }
        Node::List(elements) => elements.iter().for_each(|element| oauth_codes(element, codes)),
        _ => {}
    }
}

#[test]
fn every_operation_and_event_has_a_page_with_its_fields_and_codes() {
    let site = site();
    let pages = pages(&site);
    let ids: Vec<_> = OPENAPI
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"operationId\": \""))
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert!(ids.len() > 20, "{ids:?}");
    for id in &ids {
        assert!(
            pages.contains_key(format!("/docs/reference/{id}").as_str()),
            "{id}"
        );
        assert!(
            pages["/docs/reference"].contains(&format!("/docs/reference/{id}\"")),
            "{id}"
        );
    }
    let page = pages["/docs/reference/updateOffer"];
    for expected in [
        "<code>price.amount</code>",
        "<code>Idempotency-Key</code>",
        "href=\"/docs/errors/status_locked_by_moderation\"",
        "<code>offers:write</code>",
        "-X PATCH",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(pages["/docs/errors/no_price_row"].contains("/docs/reference/updateOffer"));
    let security = pages["/docs/reference/security"];
    for expected in [
        "authorizationCode",
        "clientCredentials",
        "/oauth/token</code>",
        "/oauth/authorize</code>",
        "<code>shipments:write</code>",
        "report shipments (buyer is notified)",
        "id=\"bearer\"",
        "id=\"client\"",
    ] {
        assert!(security.contains(expected), "{expected}");
    }
    assert!(pages["/docs/reference"].contains("href=\"/docs/reference/security\""));
    assert!(pages["/docs/reference/listWebhooks"].contains("Values may be added"));
    let event = pages["/docs/reference/onOrderPaid"];
    assert!(
        event.contains("order.paid") && event.contains("X-Signature") && !event.contains("curl"),
        "{event}"
    );
}

#[test]
fn what_is_looked_for_is_found_first() {
    let site = site();
    let first = |query: &str| {
        let html = site.search(query);
        let results = html.split("<ol class=\"results\">").nth(1).unwrap_or_default();
        attributes(results, "href")
            .first()
            .copied()
            .unwrap_or_default()
            .to_owned()
    };
    let mut wrong = Vec::new();
    for (query, place) in [
        ("order_unpaid", "/docs/errors/order_unpaid"),
        ("listOffers", "/docs/reference/listOffers"),
        ("report shipment", "/docs/reference/createShipment"),
        ("invalid_grant", "/docs/errors/invalid_grant"),
        ("Refreshing", "/docs/guide/authentication#refreshing"),
        ("order.paid", "/docs/reference/onOrderPaid"),
        ("timestamp format", "/docs/guide/common-rules#timestamps"),
        ("date format", "/docs/guide/common-rules#timestamps"),
        ("paging", "/docs/guide/common-rules#pages"),
        ("pagination", "/docs/guide/common-rules#pages"),
        ("token lifetime", "/docs/guide/authentication#when-a-token-ends"),
        ("throttling", "/docs/guide/common-rules#the-rate-limit"),
        ("rate limit", "/docs/guide/common-rules#the-rate-limit"),
        (
            "breaking changes",
            "/docs/guide/versioning#what-is-announced-first",
        ),
        ("sdk", "/docs/guide/clients"),
        ("download openapi", "/docs/guide/clients"),
        ("idempotency", "/docs/guide/idempotency"),
        ("scopes", "/docs/guide/authentication#scopes"),
        ("security schemes", "/docs/reference/security#oauth2"),
        ("xyzzy plugh", ""),
        ("", ""),
        ("…", ""),
    ] {
        let found = first(query);
        if found != place {
            wrong.push(format!("{query}: {found}, not {place}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What a developer types who does not know what it is called here: the page is among the first three.
#[test]
fn questions_lead_to_their_page() {
    let site = site();
    let mut wrong = Vec::new();
    for (query, place) in [
        ("how to ship an order", "/docs/guide/shipments"),
        ("how to ship an order", "/docs/reference/createShipment"),
        ("how do I verify a webhook signature", "/docs/guide/webhooks"),
        (
            "how many requests per minute",
            "/docs/guide/common-rules#the-rate-limit",
        ),
        ("page size", "/docs/guide/common-rules#pages"),
        ("price in grosze", "/docs/guide/offers"),
        ("secret rotation", "/docs/guide/authentication"),
        ("retry after timeout", "/docs/guide/idempotency"),
        ("which carriers are supported", "/docs/guide/shipments"),
        ("changelog", "/docs/changelog"),
        ("architecture", "/docs/architecture"),
        ("backup", "/docs/operations"),
        ("how to", "/docs/"),
    ] {
        let html = site.search(query);
        let results = html.split("<ol class=\"results\">").nth(1).unwrap_or_default();
        let found = attributes(results, "href");
        if !found.iter().take(3).any(|found| found.starts_with(place)) {
            let first = &found[..found.len().min(8)];
            wrong.push(format!("{query}: {first:#?}, without {place}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn queries_are_text() {
    let site = site();
    let html = site.search("<script>alert(1)</script>");
    assert!(
        !html.contains("<script>alert") && html.contains("&#60;script&#62;alert"),
        "{html}"
    );
    assert!(site.search(&"ä".repeat(10_000)).len() < 50_000);
}
