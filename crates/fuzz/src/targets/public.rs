//! The public listener over ports that know one seller, one offer and one application, and a store that cannot be written to: any
//! request has an answer of the contract's form, and nothing but the store's failure is a failure.

mod ports;

use actix_web::http::header::HeaderValue;
use adapter_http::configure;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use oauth::{BearerToken, ScopeSet};
use serde_json::Value;
use web::{Code, TraceId};

use ports::{OFFER, PUBLIC_URL, REDIRECT, SECRET, client, public, token};
pub(crate) use ports::{application, offer};

use crate::held::is_printable;
use crate::listeners::{Answered, Listening};
use crate::raw_request::RawRequest;
use crate::{Target, targets::texts};

/// The `next` of the list of offers as `sealed::ring` sealed it once.
const CURSOR: &str = include_str!("public/cursor.txt");

const WORDS: &[&str] = &[
    "GET ",
    "POST ",
    "PATCH ",
    "HEAD ",
    "/v1/offers",
    "/v1/orders",
    "/v1/webhooks",
    "/v1/me",
    "?fields=id,title",
    "&after=",
    "&limit=",
    "updated_after=2026-01-01T00:00:00Z",
    "status=published",
    "idempotency-key: k1\n",
    "content-type: application/json\n",
    "user-agent: A/1\n",
    "authorization: Bearer ps_at_x\n",
    "x-request-id: 12345678\n",
    "\n\n",
    "{\"stock\":1}",
    "\"price\":",
    "\"currency\":\"PLN\"",
    "\"carrier\":\"inpost\"",
    "\"tracking_number\":",
    "\"item_ids\":",
    "\"events\":[\"order.paid\"]",
    "%2F",
    "?",
    "&status=draft",
    "2147483648",
];

pub(crate) const API: Target = Target {
    name: "api",
    run: api,
    seeds: || {
        let page = format!(
            "GET /v1/offers?after={}&limit=2&fields=id,title\n\n",
            CURSOR.trim()
        );
        texts(&[
            &page,
            &format!("{}&status=published HTTP", page.trim()),
            "GET /v1/offers?status=published&updated_after=2026-01-01T00:00:00%2B02:00&limit=-1\nx-request-id: my-request-17\n\n",
            &format!("GET /v1/offers/{OFFER}?fields=price,stock\n\n"),
            &format!(
                "PATCH /v1/offers/{OFFER}\ncontent-type: application/json\nidempotency-key: k-1\n\n{{\"price\": {{\"amount\": 12900, \"currency\": \"PLN\"}}, \"stock\": 14, \"status\": \"draft\"}}"
            ),
            "GET /v1/orders?status=processing&placed_after=2026-01-01T00:00:00Z\n\n",
            "GET /v1/orders/PL-2026-17\n\n",
            "POST /v1/orders/PL-2026-17/shipments?fields=id\ncontent-type: application/json\nidempotency-key: k-2\n\n{\"carrier\": \"inpost\", \"tracking_number\": \"620000000000000000000001\", \"item_ids\": [\"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e\"]}",
            "POST /v1/webhooks\ncontent-type: application/json; charset=utf-8\n\n{\"url\": \"https://example.com/hook\", \"events\": [\"order.paid\", \"order.shipped\"]}",
            "GET /v1/webhooks\n\n",
            &format!("GET /v1/webhooks/{OFFER}/deliveries\n\n"),
            &format!("DELETE /v1/webhooks/{OFFER}\nidempotency-key: k-3\n\n"),
            "GET /v1/me\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n\n",
            "HEAD /v1/me\nuser-agent: App/1.0 (+https://example.com)\n\n",
            "GET /v1/me\nauthorization: bearer ps_at_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n\n",
            "GET /openapi.json\n\n",
            "GET /.well-known/oauth-authorization-server\n\n",
        ])
    },
    words: WORDS,
    grows: &[],
};

pub(crate) const OAUTH: Target = Target {
    name: "oauth",
    run: oauth,
    seeds: || {
        let id = client().to_string();
        let form = "content-type: application/x-www-form-urlencoded";
        texts(&[
            &format!(
                "POST /oauth/token\n{form}\n\ngrant_type=client_credentials&client_id={id}&client_secret={SECRET}&scope=offers%3Aread"
            ),
            &format!(
                "POST /oauth/token\ncontent-type: application/json\n\n{{\"grant_type\":\"client_credentials\",\"client_id\":\"{id}\",\"client_secret\":\"{SECRET}\"}}"
            ),
            &format!(
                "POST /oauth/token\n{form}\nauthorization: Basic {}\n\ngrant_type=client_credentials",
                basic(&format!("{id}:{SECRET}"))
            ),
            &format!(
                "POST /oauth/token\n{form}\n\ngrant_type=authorization_code&client_id={id}&client_secret={SECRET}&code=ps_ac_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
            ),
            &format!(
                "POST /oauth/token\n{form}\n\ngrant_type=refresh_token&client_id={id}&client_secret={SECRET}&refresh_token=ps_rt_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"
            ),
            &format!(
                "POST /oauth/revoke\n{form}\n\ntoken=ps_at_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH&client_id={id}&client_secret={SECRET}"
            ),
            &format!(
                "GET /oauth/authorize?response_type=code&client_id={id}&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&scope=offers%3Aread&state=some-state&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256\n\n"
            ),
            &format!(
                "GET /oauth/authorize?client_id={id}&redirect_uri={REDIRECT}&response_type=token&state=a%0d%0ab5678&state=c\n\n"
            ),
        ])
    },
    words: &[
        "grant_type=",
        "client_id=",
        "client_secret=",
        "&scope=",
        "redirect_uri=",
        "code_verifier=",
        "&state=",
        "/oauth/token",
        "/oauth/revoke",
        "/oauth/authorize?",
        "authorization: Basic ",
        "Basic QTpC",
        "content-type: application/json\n",
        "%0d%0a",
        "%00",
        "{\"grant_type\":",
        "https://evil.example/",
        "&&",
        "token=",
    ],
    grows: &[],
};

fn basic(text: &str) -> String {
    STANDARD.encode(text)
}

thread_local! {
    static LISTENING: Listening = Listening::new(|runtime| configure(public(runtime)));
}

fn api(bytes: &[u8]) {
    let Some(mut request) = RawRequest::read(bytes) else {
        return;
    };
    request.unless_given("user-agent", "Fuzz/1.0");
    request.unless_given("authorization", &format!("Bearer {}", token().reveal()));
    let path = request.uri.path().to_owned();
    let answered = LISTENING.with(|listening| listening.ask(request));
    is_an_answer(&answered, bytes.len());
    if path.starts_with("/v1/") {
        errors_are_of_the_table(&answered, bytes.len());
        assert!(answered.header("x-ratelimit-limit").is_some());
    }
}

/// What every answer of the listener has.
#[track_caller]
fn is_an_answer(answered: &Answered, sent: usize) {
    let Answered {
        status, store_failed, ..
    } = answered;
    assert!(*status < 500 || *store_failed, "{answered:?}");
    assert!(
        (200..=201).contains(status) || matches!(status, 204 | 302) || *status >= 400,
        "{answered:?}"
    );
    let trace_id = answered.header("x-trace-id").expect("a trace id");
    assert!(TraceId::parse(trace_id.as_bytes()).is_some());
    for (name, value) in &answered.headers {
        assert!(
            value.as_bytes().iter().all(|byte| (0x20..0x7f).contains(byte)),
            "{name}: {value:?}"
        );
    }
    // What JSON has to escape (RFC 8259 §7).
    assert!(
        !answered.body.iter().any(|byte| *byte < 0x20) || answered.body.len() > 100_000,
        "{answered:?}"
    );
    // DEL is not among it: the name of an unknown field is told as it was sent, and nothing else may have some.
    assert!(
        answered.del_was_sent || !answered.body.contains(&0x7f),
        "DEL that nobody sent: {answered:?}"
    );
    assert!(answered.body.len() <= 2 * 1024 * 1024 + 12 * sent);
}

/// The shape of the contract's errors (Errors).
#[track_caller]
pub(super) fn errors_are_of_the_table(answered: &Answered, sent: usize) {
    if answered.status < 400 {
        return;
    }
    assert_eq!(answered.header("content-type"), Some("application/json"));
    let json: Value = serde_json::from_slice(&answered.body).expect("JSON");
    assert_eq!(json["traceId"].as_str(), answered.header("x-trace-id"));
    let entries = json["errors"].as_array().expect("entries");
    assert!((1..=20).contains(&entries.len()));
    for entry in entries {
        let known = |code: &&Code| Some(code.as_str()) == entry["code"].as_str();
        let code = Code::ALL.iter().find(known).expect("a code of the table");
        assert_eq!(code.status().as_u16(), answered.status);
        is_printable(entry["message"].as_str().expect("a message"), sent);
        assert!(
            entry["path"]
                .as_str()
                .is_none_or(|path| path.len() <= sent * 3 + 100)
        );
    }
}

fn oauth(bytes: &[u8]) {
    let Some(request) = RawRequest::read(bytes) else {
        return;
    };
    let path = request.uri.path().to_owned();
    let answered = LISTENING.with(|listening| listening.ask(request));
    is_an_answer(&answered, bytes.len());
    if !path.starts_with("/oauth/") {
        return;
    }
    if let Some(location) = answered.header("location") {
        assert_eq!(answered.status, 302);
        let consent = format!("{PUBLIC_URL}/panel/consent?request=");
        assert!(
            location.starts_with(&consent) || location.starts_with(&format!("{REDIRECT}?")),
            "{location}"
        );
        assert!(HeaderValue::from_str(location).is_ok());
    }
    if answered.status >= 400 {
        let json: Value = serde_json::from_slice(&answered.body).expect("JSON");
        let description = json["error_description"].as_str().expect("a description");
        // RFC 6749 §5.2
        let allowed = |c: char| matches!(c, ' ' | '!' | '#'..='[' | ']'..='~');
        assert!(
            !description.is_empty() && description.chars().all(allowed),
            "{description:?}"
        );
        assert!(description.len() <= 300, "{description}");
        let error = json["error"].as_str().expect("an error");
        let codes = [
            "invalid_request",
            "invalid_client",
            "invalid_grant",
            "invalid_scope",
            "unsupported_grant_type",
            "rate_limited",
            "server_error",
        ];
        assert!(codes.contains(&error), "{error}");
        assert_eq!(answered.header("cache-control"), Some("no-store"));
    } else if answered.status == 200 && path == "/oauth/token" {
        let json: Value = serde_json::from_slice(&answered.body).expect("JSON");
        assert!(BearerToken::parse(json["access_token"].as_str().expect("a token")).is_some());
        assert!(
            ScopeSet::parse(json["scope"].as_str().expect("scopes")).is_ok_and(|scopes| !scopes.is_empty())
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_mean_something() {
        let page = answered("GET /v1/offers\n\n");
        assert_eq!(page.status, 200);
        let json: Value = serde_json::from_slice(&page.body).unwrap();
        let next = json["next"].as_str().unwrap();
        let again = answered(&format!("GET /v1/offers?after={}\n\n", CURSOR.trim()));
        assert_eq!(again.status, 200, "put this into public/cursor.txt: {next}");
        let statuses: Vec<_> = (API.seeds)()
            .iter()
            .map(|seed| answered(std::str::from_utf8(seed).unwrap()).status)
            .collect();
        assert_eq!(
            statuses,
            [
                200, 400, 200, 200, 500, 200, 404, 404, 500, 200, 404, 500, 200, 200, 200, 200, 200
            ]
        );
        let ask = |seed: &Vec<u8>| {
            LISTENING.with(|listening| listening.ask(RawRequest::read(seed).unwrap()).status)
        };
        let statuses: Vec<_> = (OAUTH.seeds)().iter().map(ask).collect();
        assert_eq!(statuses, [200, 200, 200, 500, 500, 500, 302, 302]);
    }

    fn answered(request: &str) -> Answered {
        let mut request = RawRequest::read(request.as_bytes()).unwrap();
        request.unless_given("user-agent", "Fuzz/1.0");
        request.unless_given("authorization", &format!("Bearer {}", token().reveal()));
        LISTENING.with(|listening| listening.ask(request))
    }

    const UNKNOWN_FIELD: &str = "POST /v1/webhooks\ncontent-type: application/json\n\n{\"url\": \"https://example.com/hook\", \"events\": [\"order.paid\"], ";

    #[test]
    fn del_may_be_told_to_whoever_sent_it() {
        for request in [
            "GET /v1/offers?%7f=1\n\n".to_owned(),
            "GET /v1/offers?a%7F=1\n\n".to_owned(),
            format!("{UNKNOWN_FIELD}\"a\u{7f}\": 1}}"),
            format!("{UNKNOWN_FIELD}\"a\\u007F\": 1}}"),
        ] {
            let answered = answered(&request);
            assert!(answered.body.contains(&0x7f), "{answered:?}");
            is_an_answer(&answered, request.len());
        }
    }

    #[test]
    #[should_panic(expected = "DEL that nobody sent")]
    fn del_that_nobody_sent_is_a_finding() {
        let mut answered = answered("GET /v1/offers?%7e=1\n\n");
        let body = [&answered.body[..], b"\x7f"].concat();
        answered.body = body.into();
        is_an_answer(&answered, 100);
    }
}
