//! Sends mutated requests of every kind to the running program. It answers as documented or closes the
//! connection; nothing stalls, fails or logs an error. `World` checks every answer of `/v1` and `/oauth`
//! against the OpenAPI document.
//!
//! `FUZZ_SECONDS` sets the duration (default five), `PROPTEST_RNG_SEED` the seed of the inputs (fixed by
//! default).

use std::env;
use std::time::{Duration, Instant};

use blackbox::{Application, CALLBACK, HOOK_SCOPES, Wire, World, request, request_with_body};
use fuzz::{mutated, runner};
use proptest::strategy::{Strategy, ValueTree};
use serde_json::{Value, json};
use testkit::Answer;

use crate::world_with;

/// Not a request: mutations insert pieces of it.
const WORDS: &str = "HEAD PUT HTTP/1.0\r\n\r\n\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n1\r\nx\r\nexpect: 100-continue\r\n\
    connection: close\r\nhost: a\r\n?limit=&after=&fields=id%2F%3Cfuzz%3E&lang=pl&next=javascript:<fuzz>&request=<fuzz>";

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn requests_of_the_api(world: &World) -> Vec<String> {
    let seller = world.seller().await;
    let application = world.application(&seller, &HOOK_SCOPES).await;
    let offer = world.offer(&seller, 1, json!({})).await;
    let token = world.personal_token(&seller, &HOOK_SCOPES).await.token;
    let order = world.any_order(&seller).await.id;
    let bearer = format!("Bearer {token}");
    let caller = [("user-agent", "Any/1.0"), ("authorization", bearer.as_str())];
    let read = |target: &str| request("GET", target, &caller);
    let write = |method: &str, target: &str, body: &str| {
        let more = [("content-type", "application/json"), ("idempotency-key", "k-17")];
        request_with_body(method, target, &[&caller[..], &more].concat(), body)
    };
    let offer = format!("/v1/offers/{offer}");
    let shipments = format!("/v1/orders/{order}/shipments");
    let patch = r#"{"price": {"amount": 12900, "currency": "PLN"}, "stock": 14, "status": "draft"}"#;
    let parcel = r#"{"carrier": "other", "tracking_number": "620000000000000000000001"}"#;
    let hook = r#"{"url": "https://1.1.1.1/hook", "events": ["order.paid"]}"#;
    let Application {
        client_id,
        client_secret,
        ..
    } = application;
    let client = format!("client_id={client_id}&client_secret={client_secret}");
    let query = format!("response_type=code&client_id={client_id}&redirect_uri={CALLBACK}&state=12345678");
    let form = |path: &str, body: &str| request_with_body("POST", path, &[FORM], &format!("{body}&{client}"));
    vec![
        read("/v1/me"),
        read("/v1/offers?status=published&limit=2&fields=id,title&updated_after=2026-01-01T00:00:00Z"),
        read(&format!("{offer}?fields=price")),
        read("/v1/orders?limit=1&placed_after=2026-01-01T00:00:00%2B02:00"),
        read(&format!("/v1/orders/{order}")),
        read("/v1/webhooks"),
        write("PATCH", &offer, patch),
        write("POST", &shipments, parcel),
        write("POST", "/v1/webhooks", hook),
        form("/oauth/token", "grant_type=client_credentials"),
        form("/oauth/revoke", "token=ps_at_x"),
        request("GET", &format!("/oauth/authorize?{query}"), &[]),
    ]
}

async fn requests_of_the_back_office(world: &World) -> Vec<String> {
    let seller = world.seller().await;
    let offer = world.offer(&seller, 1, json!({})).await;
    let bearer = format!("Bearer {}", world.server.operator_token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let lines = [headers[0], ("content-type", "application/x-ndjson")];
    let import = format!("/sellers/{}/offers:import", seller.id);
    let new_seller = r#"{"name": "Kettles", "email": "any@shop.example"}"#;
    vec![
        request("GET", "/sellers?limit=1", &headers),
        request("GET", &format!("/sellers/{}/offers/{offer}", seller.id), &headers),
        request("GET", "/changes?limit=5", &headers),
        request_with_body("POST", "/sellers", &headers, new_seller),
        request_with_body("POST", &import, &lines, "{\"id\": 5}\n\n{}\n"),
    ]
}

async fn requests_of_the_panel(world: &World) -> Vec<String> {
    let mut browser = world.member().await.browser;
    let application = browser.open("/panel/applications/new").await;
    let application = application.form("/panel/applications/new").with("name", "<fuzz>");
    let application = application.with("description", "\"'<fuzz>");
    let token = browser.open("/panel/tokens").await;
    let token = token.form("/panel/tokens").with("name", "<fuzz>");
    let cookies = browser
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let cookies = cookies.collect::<Vec<_>>().join("; ");
    let signed_in = [
        ("cookie", cookies.as_str()),
        ("accept-language", "en;q=0.7, pl;q=0.5, *;q=0"),
    ];
    let post =
        |path: &str, body: &str| request_with_body("POST", path, &[&signed_in[..], &[FORM]].concat(), body);
    vec![
        request("GET", "/panel/sign-in?next=tokens&lang=pl", &[]),
        request("GET", "/panel/tokens", &signed_in),
        request("GET", "/panel/consent?request=<fuzz>", &signed_in),
        request("GET", "/panel/deliveries?failed=on&<fuzz>=<fuzz>", &signed_in),
        post("/panel/applications/new", &application.body()),
        post("/panel/tokens", &token.body()),
    ]
}

#[derive(Debug, Default)]
struct Answered {
    all: usize,
    well: usize,
    not: usize,
}

/// Sends valid requests unchanged, and then mutated ones until `end`.
async fn send(base_url: &str, good: Vec<String>, end: Instant, check: impl Fn(&Answer)) -> Answered {
    let inputs = mutated(good.clone().into_iter().chain([WORDS.to_owned()]));
    let mut good = good.into_iter();
    let mut runner = runner();
    let mut answered = Answered::default();
    while Instant::now() < end {
        let bytes = match good.next() {
            Some(request) => request.into_bytes(),
            None => with_its_length(inputs.new_tree(&mut runner).unwrap().current()),
        };
        let began = Instant::now();
        let answer = Wire::tried(base_url, &bytes).await;
        let (took, shown) = (began.elapsed(), bytes.escape_ascii());
        assert!(took < Duration::from_secs(10), "{took:?} for b\"{shown}\"");
        let Some(answer) = answer else {
            answered.not += 1;
            continue;
        };
        // JSON does not require DEL to be escaped, so it may occur in answers that quote the request.
        let sent = bytes.to_ascii_lowercase();
        let has = |del: &&[u8]| sent.windows(del.len()).any(|part| part == *del);
        let sent_del = [&b"\x7f"[..], b"%7f", b"\\u007f"].iter().any(has);
        let is_printable = sent_del || !answer.bytes.contains(&0x7f);
        let is_bounded = answer.bytes.len() <= 256 * 1024 + 16 * bytes.len();
        let is_good = answer.status < 500 && is_printable && is_bounded;
        assert!(is_good, "{answer:?} to b\"{shown}\"");
        check(&answer);
        answered.all += 1;
        answered.well += usize::from(answer.status < 400);
    }
    answered
}

/// Usually sets the body's length to the one in the request, so that the body is read.
fn with_its_length(bytes: Vec<u8>) -> Vec<u8> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return bytes;
    };
    let name = b"content-length: ";
    let at = bytes[..end].windows(name.len()).position(|window| window == name);
    let Some(at) = at.filter(|_| !bytes.len().is_multiple_of(4)) else {
        return bytes;
    };
    let (before, digits) = bytes.split_at(at + name.len());
    let digits = digits.trim_ascii_start();
    let after = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(0);
    let length = (bytes.len() - end - 4).to_string();
    [before, length.as_bytes(), &digits[after..]].concat()
}

/// Asserts that redirects lead to the panel or to the registered URI.
fn goes_nowhere_else(world: &World, answer: &Answer) {
    if let Some(location) = answer.header("location") {
        let own = location.strip_prefix(&world.server.base_url).unwrap_or(location);
        let is_known = own.starts_with("/panel") || own.starts_with("/v1/") || location.starts_with(CALLBACK);
        assert!(is_known, "{answer:?}");
    }
}

/// Asserts that no input has become markup.
fn is_a_page(answer: &Answer) {
    let kind = answer.header("content-type");
    if kind.is_some_and(|kind| kind.starts_with("text/html")) {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let page = String::from_utf8_lossy(&answer.bytes).to_lowercase();
        assert!(!page.contains("<fuzz"), "{page}");
    }
}

/// Back office answers are not in the document, but their errors have the same form.
fn is_of_the_back_office(answer: &Answer) {
    let trace_id = answer.header("x-trace-id");
    if answer.status >= 400 && trace_id.is_some() {
        let body: Value = serde_json::from_slice(&answer.bytes).unwrap();
        assert_eq!(body["traceId"].as_str(), trace_id);
        let errors = body["errors"].as_array().unwrap();
        assert!((1..=20).contains(&errors.len()), "{body}");
        let is_whole = |error: &Value| error["code"].is_string() && error["message"].is_string();
        assert!(errors.iter().all(is_whole), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the numbers of requests")]
async fn any_bytes_get_an_answer_or_the_connection_ends() {
    let limits = [
        "RATE_LIMIT__DEFAULT",
        "OAUTH__TOKEN_LIMIT_PER_IP",
        "OAUTH__TOKEN_LIMIT_PER_CLIENT",
        "OAUTH__AUTHORIZE_LIMIT_PER_IP",
    ];
    let world = world_with(&limits.map(|limit| (limit, "1000000"))).await;
    let api = requests_of_the_api(&world).await;
    let panel = requests_of_the_panel(&world).await;
    let office = requests_of_the_back_office(&world).await;
    let seconds = env::var("FUZZ_SECONDS").map_or(5, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (public, office_url) = (&world.server.base_url, &world.server.backoffice_url);
    let (api, panel, office) = tokio::join!(
        send(public, api, end, |answer| goes_nowhere_else(&world, answer)),
        send(public, panel, end, |answer| {
            goes_nowhere_else(&world, answer);
            is_a_page(answer);
        }),
        send(office_url, office, end, is_of_the_back_office),
    );
    println!("{api:?} {panel:?} {office:?}");
    // The valid requests succeeded, and most mutated ones still got an answer.
    for answered in [api, panel, office] {
        assert!(answered.all > answered.not && answered.well > 2, "{answered:?}");
    }
    world.server.ready().await;
    let log = world.server.log();
    assert!(!log.contains("\"ERROR\"") && !log.contains("panicked"), "{log}");
}
