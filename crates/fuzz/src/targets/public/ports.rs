//! The ports of the public listener: they know one seller, one offer and one application, and admit one token.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use adapter_http::{HttpSettings, Public, UsageMeter};
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
use tokio::runtime::Handle;
use uuid::Uuid;
use web::Tasks;
use webhooks::{AddressPolicy, MockHostCheck, MockSubscriptionReader};

use super::super::sealed::ring;
use crate::listeners::units_that_fail;

pub(super) const OFFER: &str = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
pub(super) const SECRET: &str = "pss_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
pub(super) const PUBLIC_URL: &str = "https://api.shop.example";
pub(super) const REDIRECT: &str = "https://app.example/cb";

pub(super) fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

pub(super) fn client() -> oauth::ClientId {
    Uuid::from_u128(0xb).into()
}

pub(super) fn token() -> BearerToken {
    BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32])
}

/// Where the page begins that the cursor among the seeds leads to.
fn position() -> Keyset {
    Keyset {
        at: now(),
        id: Uuid::from_u128(17),
    }
}

pub(crate) fn offer() -> Offer {
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

pub(crate) fn application() -> Application {
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

pub(super) fn public(runtime: Handle) -> Public {
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
        idempotency_lease: Duration::from_mins(1),
        clock: Arc::new(SystemClock),
    }
}
