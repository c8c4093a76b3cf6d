//! The public listener over ports that know one seller, one offer and one application, and a store that cannot be written to: any
//! request has an answer of the contract's form, and nothing but the store's failure is a failure.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use actix_web::http::header::HeaderValue;
use adapter_http::{HttpSettings, Public, UsageMeter, configure};
use adapter_sealing::{SystemClock, SystemRandomness};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Claimed, Keyset, MockIdempotencyClaims, Money, Page};
use oauth::{
    Admission, Application, ApplicationStatus, BearerToken, ClientType, Count, MockApplicationReader,
    MockClientTokens, MockGate, MockGrantReader, MockRateCounter, Principal, Quota, ScopeSet, SecretHash,
    TokenKind,
};
use offers::{MockOfferReader, Offer, OfferStatus, Price, PriceSource, Stock};
use orders::{Lookup, MockCarrierLookup, MockOrderReader};
use serde_json::Value;
use tokio::runtime::Handle;
use uuid::Uuid;
use web::{Code, Tasks, TraceId};
use webhooks::{AddressPolicy, MockHostCheck, MockSubscriptionReader};

use super::sealed::ring;
use crate::held::is_printable;
use crate::listeners::{Answered, Listening, units_that_fail};
use crate::raw_request::RawRequest;
use crate::{Target, targets::texts};

/// The `next` of the list of offers as `sealed::ring` sealed it once.
const CURSOR: &str = include_str!("public/cursor.txt");
const OFFER: &str = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
const SECRET: &str = "pss_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
const PUBLIC_URL: &str = "https://api.shop.example";
const REDIRECT: &str = "https://app.example/cb";

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

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

fn client() -> oauth::ClientId {
    Uuid::from_u128(0xb).into()
}

fn token() -> BearerToken {
    BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32])
}

fn basic(text: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

/// Where the page begins that [`CURSOR`] leads to.
fn position() -> Keyset {
    Keyset {
        at: now(),
        id: Uuid::from_u128(17),
    }
}

pub(super) fn offer() -> Offer {
    Offer {
        seller: Uuid::from_u128(0xa).into(),
        id: OFFER.parse().expect("an id"),
        title: "Czajnik \"Żółw\"".to_owned(),
        handle: "czajnik-zolw".to_owned(),
        status: OfferStatus::Published,
        price: Money::pln(19_900).ok().map(|money| Price {
            money,
            source: PriceSource::Manual,
        }),
        stock: Stock::new(7).ok(),
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        url: "https://shop.example/p/czajnik-zolw".to_owned(),
        created_at: now(),
        updated_at: now(),
    }
}

pub(super) fn application() -> Application {
    let base = Application::built_in(client(), Uuid::from_u128(0xa).into(), now()).after;
    Application {
        name: "Kettle Sync".to_owned(),
        client_type: ClientType::Confidential,
        redirect_uris: vec![REDIRECT.to_owned()],
        scopes: ScopeSet::parse("offers:read orders:read").expect("scopes"),
        status: ApplicationStatus::Active,
        secret: Some(SecretHash::of(SECRET)),
        built_in: false,
        ..base
    }
}

fn count() -> Count {
    Count {
        place: 1,
        resets_at: now() + TimeDelta::seconds(40),
        counted_at: now(),
    }
}

fn gate() -> MockGate {
    let mut gate = MockGate::new();
    gate.expect_admit().returning(|key| {
        let principal = Principal {
            seller: Uuid::from_u128(0xa).into(),
            seller_no: 17,
            client_id: client(),
            app_name: "Kettle Sync".to_owned(),
            scopes: ScopeSet::all(),
            kind: TokenKind::Access,
            expires_at: Some(now() + TimeDelta::hours(12)),
        };
        let quota = Quota {
            limit: 600,
            place: 3,
            resets_at: now() + TimeDelta::seconds(40),
            counted_at: now(),
        };
        Ok((key == token().key()).then_some(Admission { principal, quota }))
    });
    gate
}

fn public(runtime: Handle) -> Public {
    let mut offers = MockOfferReader::new();
    offers
        .expect_offer()
        .returning(|_, id| Ok(Some(offer()).filter(|offer| offer.id == id)));
    offers.expect_offers().returning(|_, _, after, _| {
        // Any other place than the one that was given out is forged.
        assert!(
            after.is_none_or(|after| after == position()),
            "a place that nobody gave out: {after:?}"
        );
        Ok(Page {
            items: vec![offer(); 2],
            next: Some(position()),
        })
    });
    let mut orders = MockOrderReader::new();
    orders.expect_order().returning(|_, _| Ok(None));
    orders.expect_orders().returning(|_, _, after, _| {
        assert!(after.is_none(), "no place was given out in this list");
        Ok(Page {
            items: Vec::new(),
            next: None,
        })
    });
    let mut carriers = MockCarrierLookup::new();
    carriers.expect_look_up().returning(|_, _| Lookup::NotFound);
    let mut subscriptions = MockSubscriptionReader::new();
    subscriptions
        .expect_subscriptions()
        .returning(|_, _| Ok(Vec::new()));
    subscriptions.expect_history().returning(|_, _, _| Ok(None));
    let mut hosts = MockHostCheck::new();
    hosts.expect_check().returning(|_| Ok(()));
    let mut claims = MockIdempotencyClaims::new();
    claims.expect_claim().returning(|_, _| Ok(Claimed::Run));
    claims.expect_release().returning(|_| Ok(()));
    claims.expect_outcome().returning(|_| Ok(None));
    let mut applications = MockApplicationReader::new();
    applications
        .expect_client()
        .returning(|id| Ok(Some(application()).filter(|application| application.client_id == id)));
    let mut client_tokens = MockClientTokens::new();
    client_tokens.expect_issue().returning(|_| Ok(true));
    let mut grants = MockGrantReader::new();
    grants.expect_holder().returning(|_| Ok(Some(client())));
    let mut rates = MockRateCounter::new();
    rates.expect_count().returning(|_, _| Ok(count()));
    Public {
        units: Arc::new(units_that_fail()),
        gate: Arc::new(gate()),
        offers: Arc::new(offers),
        orders: Arc::new(orders),
        carriers: Arc::new(carriers),
        subscriptions: Arc::new(subscriptions),
        hosts: Arc::new(hosts),
        claims: Arc::new(claims),
        applications: Arc::new(applications),
        client_tokens: Arc::new(client_tokens),
        grants: Arc::new(grants),
        rates: Arc::new(rates),
        usage: UsageMeter::default(),
        sealer: ring().clone(),
        randomness: Arc::new(SystemRandomness::new()),
        tasks: Tasks::new(runtime),
        settings: Arc::new(settings()),
    }
}

fn settings() -> HttpSettings {
    HttpSettings {
        public_url: PUBLIC_URL.to_owned(),
        realm: "Shop".to_owned(),
        default_rate_limit: NonZeroU32::MIN,
        access_token_ttl: TimeDelta::hours(12),
        refresh_token_ttl: TimeDelta::days(90),
        token_limit_per_ip: 30,
        token_limit_per_client: 60,
        authorize_limit_per_ip: 60,
        docs_url: "https://docs.shop.example".to_owned(),
        trusted_proxies: vec!["192.0.2.0/24".parse().expect("a network")],
        addresses: AddressPolicy::Public,
        body_timeout: Duration::from_secs(1),
        idempotency_lease: Duration::from_secs(60),
        clock: Arc::new(SystemClock),
    }
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
    assert!(
        !answered.body.iter().any(u8::is_ascii_control) || answered.body.len() > 100_000,
        "{answered:?}"
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
        let ask = |text: &str| {
            let mut request = RawRequest::read(text.as_bytes()).unwrap();
            request.unless_given("user-agent", "Fuzz/1.0");
            request.unless_given("authorization", &format!("Bearer {}", token().reveal()));
            LISTENING.with(|listening| listening.ask(request))
        };
        let page = ask("GET /v1/offers\n\n");
        assert_eq!(page.status, 200);
        let json: Value = serde_json::from_slice(&page.body).unwrap();
        let next = json["next"].as_str().unwrap();
        let again = ask(&format!("GET /v1/offers?after={}\n\n", CURSOR.trim()));
        assert_eq!(again.status, 200, "put this into public/cursor.txt: {next}");
        let statuses: Vec<_> = (API.seeds)()
            .iter()
            .map(|seed| ask(std::str::from_utf8(seed).unwrap()).status)
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
}
