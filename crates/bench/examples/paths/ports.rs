//! Ports that answer at once. Those on the counted paths are hand-written, since mocks cost more than the
//! counted code; the others are never called.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use adapter_http::{HttpSettings, Public, UsageMeter, Waiting};
use adapter_sealing::{KeyRing, SystemClock, SystemRandomness};
use anyhow::Context as _;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Keyset, MockIdempotencyClaims, Money, OfferId, Page, PageSize, Reader, StoreError};
use oauth::{
    Admission, BearerToken, DeadToken, Gate, MockApplicationReader, MockGrantReader, MockRateCounter,
    MockTokenIssuer, Principal, Quota, ScopeSet, TokenKey, TokenKind,
};
use offers::{MockOfferChanges, Offer, OfferFilter, OfferReader, Price, PriceSource, Product, Stock};
use orders::{MockCarrierLookup, MockOrderReader, PollSchedule};
use tokio::runtime::Handle;
use usecases::{Announcement, MockTransaction, MockUnitOfWork};
use uuid::Uuid;
use web::listener::Ports;
use web::places::Places;
use web::{ServiceSettings, Tasks, TrustedProxies};
use webhooks::{AddressPolicy, MockHostCheck, MockJournalReader, MockSubscriptionReader};

/// The id of every offer.
pub(crate) const OFFER: &str = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";

/// A sealing key in the configuration's format: 32 bytes, used nowhere else.
const KEY: &str = "bench:TfQCq6IEYj4gLzKp/TSogY4N3/34OFh+9aJYhXwjl5I=";

/// A key ring with one key.
fn ring() -> anyhow::Result<KeyRing> {
    Ok(KeyRing::parse(&[KEY.into()])?)
}

/// The only valid token.
pub(crate) fn token() -> BearerToken {
    BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32])
}

/// A fixed instant, to the microsecond.
fn instant() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 123_456_000).unwrap_or_default()
}

/// Authenticates every request.
struct Open(Principal);

#[async_trait]
impl Gate for Open {
    async fn admit(&self, _: TokenKey) -> Result<Result<Admission, Option<DeadToken>>, StoreError> {
        Ok(Ok(Admission {
            principal: self.0.clone(),
            quota: Quota {
                limit: 600,
                place: 3,
                resets_at: instant() + TimeDelta::seconds(40),
                counted_at: instant(),
            },
        }))
    }

    async fn look_up(&self, _: TokenKey) -> Result<Result<Principal, Option<DeadToken>>, StoreError> {
        Ok(Ok(self.0.clone()))
    }
}

/// Returns the same offer, any number of times.
struct Shelf(Offer);

#[async_trait]
impl OfferReader for Shelf {
    async fn offer(&self, _: Reader, _: OfferId) -> Result<Option<Offer>, StoreError> {
        Ok(Some(self.0.clone()))
    }

    async fn offers_by_id(&self, _: Reader, ids: &BTreeSet<OfferId>) -> Result<Vec<Offer>, StoreError> {
        Ok(vec![self.0.clone(); ids.len()])
    }

    async fn offers(
        &self,
        _: Reader,
        _: OfferFilter,
        _: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<Offer>, StoreError> {
        let items = vec![self.0.clone(); usize::from(size.get()) + 1];
        let position = |offer: &Offer| Keyset {
            at: offer.created_at,
            id: offer.id.uuid(),
        };
        Ok(Page::from_one_more(items, size, position))
    }
}

fn principal() -> anyhow::Result<Principal> {
    Ok(Principal {
        seller: Uuid::from_u128(0xa).into(),
        seller_no: 17,
        seller_name: "Kettles & Co".to_owned(),
        client_id: Uuid::from_u128(0xb).into(),
        app_name: "Kettle Sync".to_owned(),
        scopes: ScopeSet::parse("offers:read offers:write")
            .ok()
            .context("no scopes")?,
        kind: TokenKind::Access,
        expires_at: Some(instant() + TimeDelta::hours(12)),
        token: token().key(),
    })
}

fn offer() -> anyhow::Result<Offer> {
    let example = Offer::example(principal()?.seller, OFFER.parse()?, instant());
    Ok(Offer {
        product: Product {
            title: "Acme cordless drill 18 V, set number 123456".to_owned(),
            brand: Some("Acme".to_owned()),
            signature: Some("C123456|Acme|5900000123456".to_owned()),
            thumbnail: Some("https://img.shop.example/t/123456/160.webp".to_owned()),
            ..example.product
        },
        price: Some(Price {
            money: Money::pln(19_900).ok().context("no price")?,
            source: PriceSource::Manual,
        }),
        stock: Some(Stock::new(7).ok().context("no stock")?),
        ..example
    })
}

/// Transactions that find and save the offer.
fn units() -> anyhow::Result<MockUnitOfWork> {
    let offer = offer()?;
    let mut units = MockUnitOfWork::new();
    units.expect_begin_within().returning(move |_, _| {
        let offer = offer.clone();
        let mut transaction = MockTransaction::new();
        transaction.expect_now().returning(instant);
        transaction
            .expect_lock_offers()
            .returning(move |_, _| Ok(vec![offer.clone()]));
        transaction.expect_save_offers().returning(|_, _| Ok(()));
        transaction.expect_commit().returning(|| Ok(()));
        Ok(Box::new(transaction))
    });
    Ok(units)
}

/// The ports of the public listener.
pub(crate) fn public() -> anyhow::Result<Public> {
    let settings = HttpSettings {
        access_token_ttl: TimeDelta::hours(12),
        refresh_token_ttl: TimeDelta::days(90),
        token_limit_per_ip: 30,
        token_limit_per_client: 60,
        authorize_limit_per_ip: 60,
        addresses: AddressPolicy::Public,
        tracking: PollSchedule {
            interval: TimeDelta::minutes(15),
        },
        clock: Arc::new(SystemClock),
    };
    let service = ServiceSettings {
        public_url: "https://api.shop.example".to_owned(),
        name: "Shop".to_owned(),
        realm: "shop".to_owned(),
        docs_url: "https://docs.shop.example".to_owned(),
        default_rate_limit: NonZeroU32::new(600).context("no limit")?,
        trusted_proxies: TrustedProxies::default(),
        body_timeout: Duration::from_secs(10),
        idempotency_lease: Duration::from_mins(1),
        observer: None,
    };
    let ports = Ports {
        units: Arc::new(units()?),
        claims: Arc::new(MockIdempotencyClaims::new()),
        randomness: Arc::new(SystemRandomness::new()),
        tasks: Tasks::new(Handle::current()),
        finished: Arc::default(),
        service: Arc::new(service),
    };
    Ok(Public {
        ports,
        gate: Arc::new(Open(principal()?)),
        offers: Arc::new(Shelf(offer()?)),
        offer_changes: Some(Arc::new(MockOfferChanges::<Announcement>::new())),
        orders: Arc::new(MockOrderReader::new()),
        carriers: Arc::new(MockCarrierLookup::new()),
        subscriptions: Arc::new(MockSubscriptionReader::new()),
        hosts: Arc::new(MockHostCheck::new()),
        host_checks: Places::default(),
        applications: Arc::new(MockApplicationReader::new()),
        tokens: Arc::new(MockTokenIssuer::new()),
        grants: Arc::new(MockGrantReader::new()),
        rates: Arc::new(MockRateCounter::new()),
        waiting: Waiting::new(Arc::new(MockJournalReader::new())),
        usage: UsageMeter::default(),
        sealer: Arc::new(ring()?),
        openapi: Arc::new(actix_web::web::Bytes::new),
        settings: Arc::new(settings),
    })
}
