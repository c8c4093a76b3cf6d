//! The scenarios and their requests; `scripts.rs` does the reads or writes of some without the program.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::http::{Connection, compose};
use crate::scripts;
use crate::seed::{APPLICATION, ID_LOW, OFFER, OPERATOR_TOKEN, SELLER, Seed, client_secret, id};

/// Offers of a batch.
pub(crate) const BATCH: u64 = 100;
const JOURNAL: &str = "/v1/events?limit=200";
const PAGE: &str = "/v1/offers?limit=50";
/// The largest page size, to reach a depth quickly.
const LARGEST_PAGE: u64 = 200;

/// One thing that clients do, or that is done for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// A random offer, with its seller's token.
    Offer,
    /// The first page of the largest seller's offers.
    Page,
    /// A page at 90 % of their depth.
    DeepPage,
    /// Another price for a random offer, under a fresh idempotency key.
    Patch,
    /// Other prices for a hundred offers of a seller, under a fresh idempotency key. Sellers take turns, so
    /// that batches do not wait for each other's offers.
    Batch,
    /// The oldest events of a seller.
    Journal,
    /// An order of a random offer by the marketplace, under a fresh idempotency key, and its payment.
    PaidOrder,
    /// A token of a random application.
    Token,
    /// A refresh by each connection's own family.
    Refresh,
    /// A webhook's delivery, one of a backlog of all subscriptions.
    Delivery,
}

impl Scenario {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Offer => "`GET /v1/offers/{id}`",
            Self::Page => "`GET /v1/offers?limit=50`",
            Self::DeepPage => "the same at 90 % depth",
            Self::Patch => "`PATCH /v1/offers/{id}`, keyed",
            Self::Batch => "an offer by `POST /v1/offers/batch` of 100, keyed",
            Self::Journal => "`GET /v1/events?limit=200`",
            Self::PaidOrder => "`POST /orders`, keyed, and its payment",
            Self::Token => "`POST /oauth/token`, `client_credentials`",
            Self::Refresh => "`POST /oauth/token`, `refresh_token`",
            Self::Delivery => "a webhook delivery, many subscriptions",
        }
    }

    /// The lowest acceptable ratio to pgbench.
    pub(crate) const fn goal(self) -> Option<f64> {
        match self {
            Self::Patch | Self::Refresh => Some(0.7),
            Self::Batch | Self::Journal => Some(0.5),
            _ => None,
        }
    }

    /// How many one request or transaction counts as, in rates and CPU times.
    pub(crate) const fn weight(self) -> u64 {
        match self {
            Self::Batch => BATCH,
            _ => 1,
        }
    }

    /// Requests to `server`.
    pub(crate) async fn requests(self, seed: &Arc<Seed>, server: SocketAddr) -> anyhow::Result<Requests> {
        let part = seed.catalogue.part();
        ensure!(
            self != Self::Batch || part >= BATCH,
            "a batch is of {BATCH} offers, and most sellers have {part}: raise --offers"
        );
        let path = match self {
            Self::DeepPage => format!("{PAGE}&after={}", cursor_at_depth(seed, server).await?),
            _ => PAGE.to_owned(),
        };
        let (scenario, seed) = (self, Arc::clone(seed));
        Ok(Requests { scenario, seed, path })
    }

    /// The script of one transaction, where there is a goal beside pgbench.
    pub(crate) fn script(self, seed: &Seed) -> Option<String> {
        match self {
            Self::Patch => Some(scripts::patch(seed)),
            Self::Batch => Some(scripts::batch(seed)),
            Self::Journal => Some(scripts::journal(seed)),
            Self::Refresh => Some(scripts::refresh(seed)),
            _ => None,
        }
    }
}

/// The number of the first seller's offers before a deep page.
fn depth(seed: &Seed) -> u64 {
    seed.catalogue.largest() * 9 / 10 / LARGEST_PAGE * LARGEST_PAGE
}

/// Walks the list to the cursor at that depth: cursors are sealed, so they cannot be computed.
async fn cursor_at_depth(seed: &Seed, server: SocketAddr) -> anyhow::Result<String> {
    let mut connection = Connection::open(server).await?;
    let (mut request, mut after) = (Vec::new(), String::new());
    for _ in 0..depth(seed) / LARGEST_PAGE {
        let path = format!("/v1/offers?fields=id&limit={LARGEST_PAGE}{after}");
        get(&mut request, &path, token_of(seed, 0)?)?;
        let page: Value = serde_json::from_slice(connection.exchange(&request).await?.expect(200)?)?;
        let next = page.get("next").and_then(Value::as_str);
        after = format!("&after={}", next.context("the list is shorter than expected")?);
    }
    Ok(after.trim_start_matches("&after=").to_owned())
}

/// Creates the requests of all connections of a load.
pub(crate) struct Requests {
    scenario: Scenario,
    seed: Arc<Seed>,
    /// Of requests for a page of offers.
    path: String,
}

impl Requests {
    /// The status of the answer.
    pub(crate) const fn status(&self) -> u16 {
        match self.scenario {
            Scenario::PaidOrder => 201,
            _ => 200,
        }
    }

    /// Replaces `into` by the next request of a connection.
    pub(crate) fn write(
        &self,
        connection: usize,
        random: &mut fastrand::Rng,
        into: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let seed = &self.seed;
        match self.scenario {
            Scenario::Offer => {
                let offer = random.u64(0..seed.catalogue.offers);
                let token = token_of(seed, seed.catalogue.seller_of(offer))?;
                get(into, &format!("/v1/offers/{}", id(OFFER, offer)), token)
            }
            Scenario::Page | Scenario::DeepPage => get(into, &self.path, token_of(seed, 0)?),
            Scenario::Patch => {
                let offer = random.u64(0..seed.catalogue.offers);
                let token = token_of(seed, seed.catalogue.seller_of(offer))?;
                let body = format!("{{{}}}", any_price(random));
                let line = format_args!("PATCH /v1/offers/{}", id(OFFER, offer));
                keyed(into, line, token, self.number(), &body)
            }
            Scenario::Batch => {
                let number = self.number();
                let place = number % seed.catalogue.whole_parts();
                let (part, token) = (seed.catalogue.part(), token_of(seed, 1 + place)?);
                let first = seed.catalogue.largest() + place * part;
                // One offer of each hundredth of them: no two are the same.
                let step = part / BATCH;
                let items = (0..BATCH).map(|n| {
                    let offer = first + n * step + random.u64(0..step);
                    format!(r#"{{"id":"{}",{}}}"#, id(OFFER, offer), any_price(random))
                });
                let items: Vec<String> = items.collect();
                let body = format!(r#"{{"items":[{}]}}"#, items.join(","));
                keyed(into, format_args!("POST /v1/offers/batch"), token, number, &body)
            }
            Scenario::Journal => {
                let seller = self.number() % seed.catalogue.journals();
                get(into, JOURNAL, token_of(seed, seller)?)
            }
            Scenario::PaidOrder => {
                let offer = random.u64(0..seed.catalogue.offers);
                let seller = id(SELLER, seed.catalogue.seller_of(offer));
                let order = json!({
                    "payment_method": "card",
                    "delivery_method": "courier",
                    "buyer": {"name": "Jan Nowak", "email": "jan@example.com", "phone": "+48 600 100 200"},
                    "shipping_address":
                        {"line1": "Prosta 1", "postal_code": "00-001", "city": "Warszawa", "country": "PL"},
                    "items": [{"seller_id": seller, "offer_id": id(OFFER, offer), "quantity": 1}],
                });
                let (line, body) = (format_args!("POST /orders"), order.to_string());
                keyed(into, line, OPERATOR_TOKEN, self.number(), &body)
            }
            Scenario::Token => {
                let application = random.u64(0..seed.catalogue.sellers);
                token_request(into, application, format_args!("grant_type=client_credentials"))
            }
            Scenario::Refresh => {
                let application = u64::try_from(connection)? % seed.catalogue.sellers;
                let token = self.family(connection)?;
                let grant = format_args!("grant_type=refresh_token&refresh_token={token}");
                token_request(into, application, grant)
            }
            Scenario::Delivery => bail!("a delivery is not a request"),
        }
    }

    /// Gets the body of the answer to that request. Whether a second request belongs to it, which then
    /// replaces `into`.
    pub(crate) fn answered(
        &self,
        connection: usize,
        body: &[u8],
        into: &mut Vec<u8>,
    ) -> anyhow::Result<bool> {
        match self.scenario {
            Scenario::Refresh => {
                member(body, "refresh_token")?.clone_into(&mut *self.family(connection)?);
            }
            Scenario::Batch => {
                let done = std::str::from_utf8(body)?.matches(r#""http_status":200"#).count();
                ensure!(
                    u64::try_from(done)? == BATCH,
                    "only {done} offers of a batch were changed"
                );
            }
            Scenario::Journal => {
                ensure!(
                    body.ends_with(br#""has_more":true}"#),
                    "a page of the journal is not full"
                );
            }
            Scenario::PaidOrder => {
                let order = member(body, "order_id")?;
                let head = format_args!(
                    "POST /orders/{order}/payment HTTP/1.1\r\nAuthorization: Bearer {OPERATOR_TOKEN}"
                );
                compose(into, head, "")?;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn number(&self) -> u64 {
        self.seed.request_numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A connection's current refresh token.
    fn family(&self, connection: usize) -> anyhow::Result<MutexGuard<'_, String>> {
        let token: Option<&Mutex<String>> = self.seed.refresh_tokens.get(connection);
        let token = token.context("there are more connections than families")?;
        Ok(token.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text of a JSON object.
fn member(body: &[u8], name: &str) -> anyhow::Result<String> {
    let answer: Value = serde_json::from_slice(body)?;
    let text = answer.get(name).and_then(Value::as_str);
    Ok(text
        .with_context(|| format!("an answer has no {name}"))?
        .to_owned())
}

pub(crate) fn token_of(seed: &Seed, seller: u64) -> anyhow::Result<&str> {
    let token = seed.tokens.get(usize::try_from(seller)?);
    token.map(String::as_str).context("a seller has no token")
}

pub(crate) fn get(into: &mut Vec<u8>, path: &str, token: &str) -> anyhow::Result<()> {
    compose(
        into,
        format_args!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}"),
        "",
    )
}

/// A change under a key. Each number gives a distinct key. Keys are scattered over the index, as random keys
/// are.
fn keyed(
    into: &mut Vec<u8>,
    line: fmt::Arguments<'_>,
    token: &str,
    number: u64,
    body: &str,
) -> anyhow::Result<()> {
    let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let head = format_args!(
        "{line} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {key:032x}\r\nContent-Type: application/json"
    );
    compose(into, head, body)
}

/// The member `price` of a change.
fn any_price(random: &mut fastrand::Rng) -> String {
    let amount = random.u32(1_000_000..2_000_000);
    format!(r#""price":{{"amount":{amount},"currency":"PLN"}}"#)
}

fn token_request(into: &mut Vec<u8>, application: u64, grant: fmt::Arguments<'_>) -> anyhow::Result<()> {
    let (number, secret) = (ID_LOW + application, client_secret(application));
    let body = format!("{grant}&client_id=psa_{APPLICATION}{number}&client_secret={secret}");
    let head = format_args!("POST /oauth/token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded");
    compose(into, head, &body)
}
