//! A back office over a store in memory, and how the tests call it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_web::App;
use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use async_trait::async_trait;
use bytes::Bytes;
use kernel::{MockRandomness, Randomness, StoreError};
use oauth::{MockOperatorTokens, MockPasswordHasher, OperatorTokenRow, PasswordHash, SecretHash};
use orders::{Lookup, MockCarrierLookup};
use serde_json::{Value, json};
use uuid::Uuid;
use web::Tasks;
use web::client_ip::TrustedProxies;

use super::rows::{Store, now};
use crate::{BackOffice, BackOfficeSettings, Health, NotReady, configure};

/// The one token that opens the office.
pub(crate) const TOKEN: &str = "ps_op_goodgoodgoodgoodgoodgoodgoodgoodgoodgood123";

/// Its id.
pub(crate) const OPERATOR: Uuid = Uuid::from_u128(0x0b);

/// A listener for one test.
pub(crate) struct Office {
    pub(crate) store: Store,
    pub(crate) back_office: BackOffice,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

struct Well;

#[async_trait]
impl Health for Well {
    async fn ready(&self) -> Result<(), NotReady> {
        Ok(())
    }
}

impl Office {
    /// Empty, and all is well.
    pub(crate) fn new() -> Self {
        let store = Store::default();
        let back_office = BackOffice {
            units: Arc::new(store.clone()),
            sellers: Arc::new(store.clone()),
            offers: Arc::new(store.clone()),
            orders: Arc::new(store.clone()),
            changes: Arc::new(store.clone()),
            applications: Arc::new(store.clone()),
            panel: Arc::new(store.clone()),
            operators: Arc::new(operators()),
            claims: Arc::new(store.clone()),
            carriers: Arc::new(carriers()),
            passwords: Arc::new(passwords()),
            randomness: Arc::new(randomness()),
            tasks: Tasks::new(tokio::runtime::Handle::current()),
            health: Arc::new(Well),
            metrics: Arc::new(|| "up 1\n".to_owned()),
            settings: Arc::new(BackOfficeSettings {
                realm: "Seller API".to_owned(),
                public_url: "https://api.example".to_owned(),
                trusted_proxies: TrustedProxies::default(),
                default_rate_limit: NonZeroU32::new(600).unwrap(),
                body_timeout: Duration::from_secs(10),
                idempotency_lease: Duration::from_mins(1),
            }),
        };
        Self { store, back_office }
    }

    /// With one seller, whose id comes along.
    pub(crate) async fn with_seller() -> (Self, String) {
        let office = Self::new();
        let answer = office
            .post("/sellers", r#"{"name": "Kettles", "email": "shop@example.com"}"#)
            .await;
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        (office, id)
    }

    /// Sends a request just as it is.
    pub(crate) async fn send(&self, request: TestRequest) -> Answer {
        let app = init_service(App::new().configure(configure(self.back_office.clone()))).await;
        let response = call_service(&app, request.to_request()).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response).await;
        Answer {
            status,
            headers,
            body,
        }
    }

    /// Sends a JSON body with the good token; an empty body comes without a content type.
    pub(crate) async fn call(&self, method: Method, path: &str, body: &str) -> Answer {
        let mut request = authorized(method, path);
        if !body.is_empty() {
            request = request
                .insert_header(("content-type", "application/json"))
                .set_payload(body.to_owned());
        }
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.call(Method::POST, path, body).await
    }

    /// A POST with an idempotency key.
    pub(crate) async fn post_once(&self, key: &str, path: &str, body: &str) -> Answer {
        let request = authorized(Method::POST, path)
            .insert_header(("idempotency-key", key))
            .insert_header(("content-type", "application/json"))
            .set_payload(body.to_owned());
        self.send(request).await
    }

    /// Feeds an offer of this price and stock, or of none.
    pub(crate) async fn with_offer(
        &self,
        seller: &str,
        id: u128,
        price: Option<i64>,
        stock: Option<i32>,
    ) -> String {
        let offer = uuid(id);
        let price = price.map(|amount| json!({"amount": amount, "currency": "PLN"}));
        let body = json!({
            "title": format!("Kettle {id}"), "handle": "kettle", "status": "published", "price": price, "stock": stock,
            "url": "https://shop.example/kettle",
        });
        let path = format!("/sellers/{seller}/offers/{offer}");
        let answer = self.call(Method::PUT, &path, &body.to_string()).await;
        assert_eq!(answer.status, 201);
        offer
    }
}

impl Answer {
    /// The body; null where there is none.
    pub(crate) fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A header's text, empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The status, and the code and path of each entry: `400 validation_error email, …`.
    pub(crate) fn errors(&self) -> String {
        let body = self.json();
        let entries = body["errors"].as_array().into_iter().flatten();
        let entry = |entry: &Value| {
            let path = entry["path"].as_str().map(|path| format!(" {path}"));
            format!("{}{}", entry["code"].as_str().unwrap(), path.unwrap_or_default())
        };
        let entries: Vec<_> = entries.map(entry).collect();
        format!("{} {}", self.status.as_u16(), entries.join(", "))
    }
}

/// A request with the good token.
pub(crate) fn authorized(method: Method, path: &str) -> TestRequest {
    TestRequest::default()
        .method(method)
        .uri(path)
        .insert_header(("authorization", format!("Bearer {TOKEN}")))
}

/// A UUID in its canonical form.
pub(crate) fn uuid(number: u128) -> String {
    Uuid::from_u128(number).to_string()
}

/// Ids and secrets that count upwards.
pub(crate) fn randomness() -> impl Randomness {
    let mut randomness = MockRandomness::new();
    let ids = AtomicU64::new(1);
    randomness
        .expect_uuid()
        .returning(move || Uuid::from_u128(u128::from(ids.fetch_add(1, Ordering::Relaxed))));
    let secrets = AtomicU64::new(1);
    randomness.expect_secret().returning(move || {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&secrets.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        secret
    });
    randomness
}

/// Carriers that know of no parcel.
fn carriers() -> MockCarrierLookup {
    let mut carriers = MockCarrierLookup::new();
    carriers.expect_look_up().returning(|_, _| Lookup::NotFound);
    carriers
}

fn operators() -> MockOperatorTokens {
    let mut operators = MockOperatorTokens::new();
    operators.expect_operator().returning(|hash| {
        Ok((hash == SecretHash::of(TOKEN)).then(|| OperatorTokenRow {
            id: OPERATOR,
            name: "tests".to_owned(),
            created_at: now(),
            revoked_at: None,
        }))
    });
    operators
}

fn passwords() -> MockPasswordHasher {
    let mut passwords = MockPasswordHasher::new();
    passwords
        .expect_hash()
        .returning(|password| Ok::<_, StoreError>(PasswordHash::new(format!("hash of {password}"))));
    passwords
}
