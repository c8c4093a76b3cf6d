//! Requests of every kind with any of their bytes changed, sent to the running program: whatever comes is answered as documented, or
//! its connection ends; nothing hangs, nothing fails, and nobody is alarmed.
//!
//! `FUZZ_SECONDS` says for how long (five without it), `FUZZ_SEED` which bytes (a number, or `random`; the same in each
//! run without it).

// By its path: the crate around it brings stand-ins of every port along, which must not get into the program under test.
#[path = "../../crates/fuzz/src/mutation.rs"]
#[expect(unreachable_pub, reason = "there it is for others")]
mod mutation;
#[path = "../../crates/fuzz/src/seed.rs"]
#[expect(unreachable_pub, reason = "there it is for others")]
mod seed;

use std::{
    env,
    time::{Duration, Instant},
};

use blackbox::{Application, Wire, World, request, request_with_body};
use serde_json::json;

use crate::PROGRAM;
use mutation::Mutator;

const WORDS: &[&str] = &[
    "/v1/offers",
    "/v1/orders",
    "/v1/webhooks",
    "/v1/me",
    "/oauth/token",
    "/oauth/authorize?",
    "/sellers",
    "?limit=",
    "&after=",
    "&fields=id",
    "updated_after=2026-01-01T00:00:00Z",
    "HEAD ",
    "PUT ",
    "HTTP/1.0",
    "\r\n\r\n",
    "\r\n",
    "content-length: 5\r\n",
    "transfer-encoding: chunked\r\n",
    "expect: 100-continue\r\n",
    "connection: close\r\n",
    "host: a\r\n",
    "\"price\":",
    "\"stock\":1",
    "\"status\":\"draft\"",
    "\"events\":[\"order.paid\"]",
    "\"url\":\"https://example.com\"",
    "grant_type=",
    "&scope=",
    "%2F",
    "1\r\nx\r\n",
];

const SCOPES: &[&str] = &[
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "settings:read",
    "settings:write",
];

/// Requests that are good, for the public listener and for the marketplace's.
struct Good {
    public: Vec<String>,
    office: Vec<String>,
}

impl Good {
    async fn of(world: &World) -> Self {
        let seller = world.seller().await;
        let application = world.application(&seller, SCOPES).await;
        let offer = world.offer(&seller, 1, json!({})).await;
        let token = world.personal_token(&seller, SCOPES).await.token;
        let order = world.any_order(&seller).await.id;
        let bearer = format!("Bearer {token}");
        let caller = [("user-agent", "Any/1.0"), ("authorization", bearer.as_str())];
        let read = |target: &str| request("GET", target, &caller);
        let write = |method: &str, target: &str, body: &str| {
            let more = [("content-type", "application/json"), ("idempotency-key", "k-17")];
            request_with_body(method, target, &[&caller[..], &more].concat(), body)
        };
        let mut public = vec![
            read("/v1/me"),
            read("/v1/offers?status=published&limit=2&fields=id,title&updated_after=2026-01-01T00:00:00Z"),
            read(&format!("/v1/offers/{offer}?fields=price")),
            read("/v1/orders?limit=1&placed_after=2026-01-01T00:00:00%2B02:00"),
            read(&format!("/v1/orders/{order}")),
            read("/v1/webhooks"),
            write(
                "PATCH",
                &format!("/v1/offers/{offer}"),
                r#"{"price": {"amount": 12900, "currency": "PLN"}, "stock": 14}"#,
            ),
            write(
                "POST",
                &format!("/v1/orders/{order}/shipments"),
                r#"{"carrier": "other", "tracking_number": "620000000000000000000001"}"#,
            ),
            write(
                "POST",
                "/v1/webhooks",
                r#"{"url": "https://1.1.1.1/hook", "events": ["order.paid"]}"#,
            ),
        ];
        public.extend(Self::of_oauth(&application));
        let operator = format!("Bearer {}", world.server.operator_token);
        let headers = [
            ("authorization", operator.as_str()),
            ("content-type", "application/json"),
        ];
        let feed = format!("/sellers/{}/offers:import", seller.id);
        let office = vec![
            request("GET", "/sellers?limit=1", &headers),
            request("GET", &format!("/sellers/{}/offers/{offer}", seller.id), &headers),
            request_with_body(
                "POST",
                "/sellers",
                &headers,
                r#"{"name": "Kettles", "email": "any@shop.example"}"#,
            ),
            request_with_body(
                "POST",
                &feed,
                &[headers[0], ("content-type", "application/x-ndjson")],
                "{\"id\": 5}\n\n{}\n",
            ),
        ];
        Self { public, office }
    }

    fn of_oauth(application: &Application) -> [String; 3] {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let Application {
            client_id,
            client_secret,
            ..
        } = application;
        let body = format!("client_id={client_id}&client_secret={client_secret}");
        let authorize = format!(
            "/oauth/authorize?response_type=code&client_id={client_id}&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&state=12345678"
        );
        [
            request_with_body(
                "POST",
                "/oauth/token",
                &form,
                &format!("grant_type=client_credentials&{body}"),
            ),
            request_with_body("POST", "/oauth/revoke", &form, &format!("token=ps_at_x&{body}")),
            request("GET", &authorize, &[]),
        ]
    }
}

/// What came of many requests.
#[derive(Debug, Default)]
struct Came {
    answered: usize,
    good: usize,
    unanswered: usize,
}

/// Sends good requests as they are, and then changed ones until the end.
async fn try_bytes(base_url: &str, good: &[String], seed: u64, end: Instant) -> Came {
    let good: Vec<Vec<u8>> = good.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut mutator = Mutator::new(seed, good.clone(), WORDS);
    let mut good = good.into_iter();
    let mut came = Came::default();
    while Instant::now() < end {
        let next = good.next();
        let bytes = next.unwrap_or_else(|| with_its_length(mutator.next_input()));
        let began = Instant::now();
        let answer = Wire::tried(base_url, &bytes).await;
        let shown = bytes.escape_ascii();
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?} for b\"{shown}\"",
            began.elapsed()
        );
        match answer {
            None => came.unanswered += 1,
            Some(answer) => {
                assert!(answer.status < 500, "{answer:?} to b\"{shown}\"");
                came.answered += 1;
                came.good += usize::from(answer.status < 400);
            }
        }
    }
    came
}

/// Mostly the body is as long as its request says, so that it is looked into.
fn with_its_length(bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let name = b"content-length: ";
    let (Some(end), false) = (end, bytes.len().is_multiple_of(4)) else {
        return bytes;
    };
    let Some(at) = bytes[..end].windows(name.len()).position(|window| window == name) else {
        return bytes;
    };
    let digits = bytes[at + name.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let mut changed = bytes.clone();
    let length = bytes.len() - end - 4;
    changed.splice(
        at + name.len()..at + name.len() + digits,
        length.to_string().into_bytes(),
    );
    changed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "how many requests there were is told")]
async fn whatever_bytes_come_the_program_answers_or_hangs_up() {
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1_000_000)
            .set("SELLER_API__OAUTH__AUTHORIZE_LIMIT_PER_IP", 1_000_000)
    })
    .await;
    let good = Good::of(&world).await;
    let seed = seed::seed();
    let seconds = env::var("FUZZ_SECONDS").map_or(5, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (one, other, office) = tokio::join!(
        try_bytes(&world.server.base_url, &good.public, seed, end),
        try_bytes(&world.server.base_url, &good.public, seed ^ 1, end),
        try_bytes(&world.server.backoffice_url, &good.office, seed ^ 2, end),
    );
    println!("{one:?} {other:?} {office:?}");
    // The good ones were, and most of the changed ones are still requests.
    for came in [one, other, office] {
        assert!(came.answered > came.unanswered && came.good > 2, "{came:?}");
    }
    let ready = world
        .client
        .get(&format!("{}/readyz", world.server.backoffice_url))
        .send()
        .await;
    assert_eq!(ready.status, 200);
    let log = world.server.log();
    assert!(!log.contains("\"ERROR\"") && !log.contains("panicked"), "{log}");
}
