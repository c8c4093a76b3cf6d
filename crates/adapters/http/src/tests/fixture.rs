//! A listener over mocks. A request fails if it reaches a port for which the test has set no expectation.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::http::header::{AUTHORIZATION, HeaderMap, USER_AGENT};
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, http::StatusCode};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{MockClock, MockIdempotencyClaims, MockRandomness, Money, StoreError};
use oauth::{
    Admission, Application, BearerToken, Count, Limiter, MockApplicationReader, MockClientTokens, MockGate,
    MockGrantReader, MockRateCounter, Principal, Quota, ScopeSet, Subject, TokenKind,
};
use offers::{MockOfferReader, Offer, OfferStatus, Price, PriceSource, Stock};
use orders::{MockCarrierLookup, MockOrderReader};
use serde_json::Value;
use tokio::runtime::Handle;
use usecases::{MockTransaction, MockUnitOfWork};
use uuid::Uuid;
use web::Tasks;
use webhooks::{AddressPolicy, MockHostCheck, MockSubscriptionReader};

use super::fakes::PlainSealer;
use crate::{HttpSettings, Public, UsageMeter, configure};

pub(crate) const OFFER: &str = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";

/// The ports; a test sets their expectations.
pub(crate) struct Fixture {
    pub(crate) gate: MockGate,
    pub(crate) offers: MockOfferReader,
    pub(crate) orders: MockOrderReader,
    pub(crate) carriers: MockCarrierLookup,
    pub(crate) subscriptions: MockSubscriptionReader,
    pub(crate) hosts: MockHostCheck,
    pub(crate) addresses: AddressPolicy,
    pub(crate) claims: MockIdempotencyClaims,
    pub(crate) applications: MockApplicationReader,
    pub(crate) client_tokens: MockClientTokens,
    pub(crate) grants: MockGrantReader,
    pub(crate) rates: MockRateCounter,
    pub(crate) units: MockUnitOfWork,
    pub(crate) usage: UsageMeter,
    pub(crate) trusted_proxies: Vec<&'static str>,
}

/// The response.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

pub(crate) fn now() -> DateTime<Utc> {
    // 2023-11-14T22:13:20Z: 40 s before the end of a minute.
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

pub(crate) const LEASE: Duration = Duration::from_mins(1);

pub(crate) fn token() -> BearerToken {
    BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32])
}

pub(crate) fn principal() -> Principal {
    Principal {
        seller: Uuid::from_u128(0xa).into(),
        seller_no: 17,
        client_id: Uuid::from_u128(0xb).into(),
        app_name: "Kettle Sync".to_owned(),
        scopes: ScopeSet::parse("offers:read orders:read").unwrap(),
        kind: TokenKind::Access,
        expires_at: Some(now() + TimeDelta::hours(12)),
    }
}

pub(crate) fn quota(place: u64) -> Quota {
    Quota {
        limit: 600,
        place,
        resets_at: now() + TimeDelta::seconds(40),
        counted_at: now() + TimeDelta::milliseconds(500),
    }
}

pub(crate) fn count(place: u64) -> Count {
    Count {
        place,
        resets_at: now() + TimeDelta::seconds(40),
        counted_at: now() + TimeDelta::milliseconds(500),
    }
}

pub(crate) fn offer() -> Offer {
    Offer {
        seller: principal().seller,
        id: OFFER.parse().unwrap(),
        title: "Czajnik \"Żółw\"".to_owned(),
        handle: "czajnik-zolw".to_owned(),
        status: OfferStatus::Published,
        price: Some(Price {
            money: Money::pln(19_900).unwrap(),
            source: PriceSource::Manual,
        }),
        stock: Some(Stock::new(7).unwrap()),
        ean: Some("5901234123457".to_owned()),
        brand: None,
        signature: None,
        thumbnail: None,
        url: "https://shop.example/p/czajnik-zolw".to_owned(),
        created_at: now(),
        updated_at: now() + TimeDelta::microseconds(1),
    }
}

pub(crate) fn unavailable() -> StoreError {
    StoreError::Unavailable("connection refused".into())
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            gate: MockGate::new(),
            offers: MockOfferReader::new(),
            orders: MockOrderReader::new(),
            carriers: MockCarrierLookup::new(),
            subscriptions: MockSubscriptionReader::new(),
            hosts: MockHostCheck::new(),
            addresses: AddressPolicy::Public,
            claims: MockIdempotencyClaims::new(),
            applications: MockApplicationReader::new(),
            client_tokens: MockClientTokens::new(),
            grants: MockGrantReader::new(),
            rates: MockRateCounter::new(),
            units: MockUnitOfWork::new(),
            usage: UsageMeter::default(),
            trusted_proxies: Vec::new(),
        }
    }

    /// Every lookup of a client returns this application.
    pub(crate) fn knows(&mut self, application: Application) {
        self.applications
            .expect_client()
            .returning(move |_| Ok(Some(application.clone())));
    }

    /// Makes every call the first of its minute, and returns the list of counted calls.
    pub(crate) fn counts(&mut self) -> Arc<Mutex<Vec<(Limiter, Subject)>>> {
        let counted = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&counted);
        self.rates.expect_count().returning(move |limiter, subject| {
            seen.lock().unwrap().push((limiter, subject));
            Ok(count(1))
        });
        counted
    }

    /// A gate that knows the token and admits it as the 3rd request of its window.
    pub(crate) fn admitting(principal: Principal) -> Self {
        Self::at_place(principal, 3)
    }

    pub(crate) fn at_place(principal: Principal, place: u64) -> Self {
        let mut fixture = Self::new();
        fixture
            .gate
            .expect_admit()
            .once()
            .withf(|key| *key == token().key())
            .returning(move |_| {
                Ok(Some(Admission {
                    principal: principal.clone(),
                    quota: quota(place),
                }))
            });
        fixture
    }

    pub(crate) fn public(self) -> Public {
        let mut clock = MockClock::new();
        clock.expect_now().returning(now);
        let mut randomness = MockRandomness::new();
        randomness.expect_secret().returning(|| [7; 32]);
        randomness.expect_uuid().returning(|| Uuid::from_u128(1));
        let proxies = self
            .trusted_proxies
            .iter()
            .map(|network| network.parse().unwrap());
        let settings = HttpSettings {
            public_url: "https://api.shop.example".to_owned(),
            realm: "Shop".to_owned(),
            default_rate_limit: NonZeroU32::new(600).unwrap(),
            access_token_ttl: TimeDelta::hours(12),
            refresh_token_ttl: TimeDelta::days(90),
            token_limit_per_ip: 30,
            token_limit_per_client: 60,
            authorize_limit_per_ip: 60,
            docs_url: "https://docs.shop.example".to_owned(),
            trusted_proxies: proxies.collect(),
            addresses: self.addresses,
            body_timeout: Duration::from_millis(300),
            idempotency_lease: LEASE,
            clock: Arc::new(clock),
        };
        Public {
            units: Arc::new(self.units),
            gate: Arc::new(self.gate),
            offers: Arc::new(self.offers),
            orders: Arc::new(self.orders),
            carriers: Arc::new(self.carriers),
            subscriptions: Arc::new(self.subscriptions),
            hosts: Arc::new(self.hosts),
            claims: Arc::new(self.claims),
            applications: Arc::new(self.applications),
            client_tokens: Arc::new(self.client_tokens),
            grants: Arc::new(self.grants),
            usage: self.usage,
            rates: Arc::new(self.rates),
            sealer: Arc::new(PlainSealer),
            randomness: Arc::new(randomness),
            tasks: Tasks::new(Handle::current()),
            settings: Arc::new(settings),
        }
    }

    /// Sends one request unchanged.
    pub(crate) async fn send(self, request: TestRequest) -> Answered {
        let app = init_service(App::new().configure(configure(self.public()))).await;
        let peer = SocketAddr::from(([192, 0, 2, 1], 4711));
        let response = call_service(&app, request.peer_addr(peer).to_request()).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body()).await.unwrap();
        Answered {
            status,
            headers,
            bytes,
        }
    }

    /// Sends a valid request for `url`.
    pub(crate) async fn get(self, url: &str) -> Answered {
        self.send(good(url)).await
    }
}

/// A GET with a valid `User-Agent` and token.
pub(crate) fn good(url: &str) -> TestRequest {
    TestRequest::get()
        .uri(url)
        .insert_header((USER_AGENT, "Tests/1.0"))
        .insert_header((AUTHORIZATION, format!("Bearer {}", token().reveal())))
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    /// Status and the `code` of the first entry.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let json = self.json();
        assert_eq!(json["traceId"], self.header("x-trace-id").unwrap());
        (
            self.status.as_u16(),
            json["errors"][0]["code"].as_str().unwrap().to_owned(),
        )
    }

    /// Status and `error` of an `/oauth` error.
    pub(crate) fn oauth_error(&self) -> (u16, String) {
        let json = self.json();
        assert_eq!(json["traceId"], self.header("x-trace-id").unwrap());
        assert!(!json["error_description"].as_str().unwrap().is_empty());
        (self.status.as_u16(), json["error"].as_str().unwrap().to_owned())
    }
}

/// A caller with every scope.
pub(crate) fn writer() -> Principal {
    let mut caller = principal();
    caller.scopes = ScopeSet::all();
    caller
}

/// The time of the transactions.
pub(crate) fn later() -> DateTime<Utc> {
    now() + TimeDelta::hours(3)
}

/// A transaction without expectations yet.
pub(crate) fn transaction() -> MockTransaction {
    let mut transaction = MockTransaction::new();
    transaction.expect_now().returning(later);
    transaction
}

/// A transaction that finds this offer.
pub(crate) fn finding(offer: Option<Offer>) -> MockTransaction {
    let mut transaction = transaction();
    transaction
        .expect_lock_offers()
        .withf(|seller, ids| *seller == principal().seller && ids == [OFFER.parse().unwrap()])
        .returning(move |_, _| Ok(offer.clone().into_iter().collect()));
    transaction
}

impl Fixture {
    /// Exactly these transactions are opened, in this order.
    pub(crate) fn transactions(mut self, transactions: Vec<MockTransaction>) -> Self {
        let left = Mutex::new(transactions.into_iter());
        self.units.expect_begin().returning(move || {
            let next = left.lock().unwrap().next();
            Ok(Box::new(next.expect("no transaction is expected here")))
        });
        self
    }
}
