//! What the stand-ins of the ports keep, and the panel over them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Purpose, Randomness, SealError, Sealer, SellerId, StoreError};
use oauth::{
    AccountMail, Action, Application, ApplicationStatus, AuthorizationRequest, ClientId, ClientType,
    CodeChallenge, ConnectedApplication, Consent, ConsentId, ConsentTicket, HourlyUsage, Link, NewConsent,
    Overcrowded, PasswordHash, PasswordHasher, PersonalToken, Purpose as For, Scope, ScopeSet, SecretHash,
    Seller, Session,
};
use tokio::runtime::Handle;
use usecases::sign_in::AttemptLimits;
use usecases::{MockUnitOfWork, consent_ticket};
use uuid::Uuid;
use web::Tasks;
use webhooks::{DeliveryOfSeller, SubscriptionOfSeller};

use super::readers::Readers;
use super::receivers::subscriptions;
use super::transaction::transaction;
use crate::{Panel, PanelSettings};

pub(crate) const EMAIL: &str = "anna@shop.example";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Everything that is kept.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) now: DateTime<Utc>,
    pub(crate) sellers: Vec<Seller>,
    pub(crate) passwords: HashMap<SellerId, PasswordHash>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) links: Vec<Link>,
    pub(crate) mails: Vec<AccountMail>,
    pub(crate) applications: Vec<Application>,
    pub(crate) tokens: Vec<(SellerId, PersonalToken)>,
    pub(crate) connections: Vec<(SellerId, ConnectedApplication)>,
    pub(crate) subscriptions: Vec<(SellerId, SubscriptionOfSeller)>,
    pub(crate) deliveries: Vec<(SellerId, DeliveryOfSeller)>,
    pub(crate) usage: Vec<HourlyUsage>,
    pub(crate) screens: HashMap<ConsentId, Consent>,
    pub(crate) consents: Vec<NewConsent>,
    pub(crate) flashes: HashMap<Uuid, (SecretHash, Option<Vec<u8>>)>,
    pub(crate) notes: Vec<(Action, Option<IpAddr>, String)>,
    /// The places that attempts to sign in get, from an address and for an account.
    pub(crate) places: (u64, u64),
    /// How many answers to a COMMIT are lost from here on.
    pub(crate) lost_answers: usize,
    /// As many passwords wait to be compared as may.
    pub(crate) crowded: bool,
    /// Every read and write fails.
    pub(crate) away: bool,
}

/// The world, shared by its ports.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

pub(crate) fn seller(n: u128) -> SellerId {
    Uuid::from_u128(n).into()
}

pub(crate) fn client(n: u128) -> ClientId {
    Uuid::from_u128(0xa00 + n).into()
}

impl Shared {
    /// Two sellers: Anna (1), with a password, and Bob (2), without.
    pub(crate) fn new() -> Self {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let account = |n: u128, name: &str, email: &str| Seller {
            id: seller(n),
            seller_no: i32::try_from(n).unwrap(),
            name: name.to_owned(),
            email: email.to_owned(),
            created_at: now,
            closed_at: None,
        };
        let world = World {
            now,
            sellers: vec![
                account(1, "Anna's <Kettles>", EMAIL),
                account(2, "Bob's Lamps", "bob@lamps.example"),
            ],
            passwords: [(seller(1), PasswordHash::new(format!("h:{PASSWORD}")))].into(),
            places: (1, 1),
            ..World::default()
        };
        Self(Arc::new(Mutex::new(world)))
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// An error while the store is away.
    pub(crate) fn there(&self) -> Result<MutexGuard<'_, World>, StoreError> {
        let world = self.get();
        if world.away {
            return Err(StoreError::Unavailable("connection refused".into()));
        }
        Ok(world)
    }

    pub(crate) fn noted(&self) -> Vec<Action> {
        self.get().notes.iter().map(|(action, ..)| *action).collect()
    }

    /// Registers an active, confidential application for other sellers, with two scopes.
    pub(crate) fn application(
        &self,
        n: u128,
        owner: u128,
        change: impl FnOnce(&mut Application),
    ) -> ClientId {
        let mut world = self.get();
        let mut application = Application {
            name: format!("Stock Sync {n}"),
            documentation_url: Some("https://docs.example/sync".to_owned()),
            purpose: For::ForOtherSellers,
            client_type: ClientType::Confidential,
            redirect_uris: vec!["https://app.example/cb".to_owned()],
            scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
            status: ApplicationStatus::Active,
            secret: Some(SecretHash::of("pss_old")),
            built_in: false,
            ..Application::built_in(client(n), seller(owner), world.now).after
        };
        change(&mut application);
        world.applications.push(application);
        client(n)
    }

    /// The handle of a request for consent.
    pub(crate) fn handle(&self, application: ClientId) -> String {
        let request = AuthorizationRequest {
            client_id: application,
            redirect_uri: "https://app.example/cb".to_owned(),
            scopes: ScopeSet::parse("offers:read orders:read").unwrap(),
            state: "some-state".to_owned(),
            challenge: CodeChallenge::new("x".repeat(43)).unwrap(),
        };
        let expires_at = self.get().now + TimeDelta::minutes(10);
        let id = Chance.uuid();
        consent_ticket::seal(&PlainSealer, &ConsentTicket::new(id, request, expires_at)).unwrap()
    }

    /// The panel, reached by http.
    pub(crate) fn panel(&self) -> Panel {
        self.panel_at("http://127.0.0.1:8080")
    }

    pub(crate) fn panel_at(&self, public_url: &str) -> Panel {
        let mut units = MockUnitOfWork::new();
        let world = self.clone();
        units.expect_begin().returning(move || {
            drop(world.there()?);
            Ok(Box::new(transaction(&world)))
        });
        let readers = Arc::new(Readers(self.clone()));
        Panel {
            units: Arc::new(units),
            panel: readers.clone(),
            grants: Arc::new(readers.grants()),
            subscriptions: Arc::new(subscriptions(self)),
            applications: Arc::new(readers.applications()),
            sellers: readers.clone(),
            rates: readers,
            passwords: Arc::new(Passwords(self.clone())),
            sealer: Arc::new(PlainSealer),
            randomness: Arc::new(Chance),
            tasks: Tasks::new(Handle::current()),
            settings: Arc::new(PanelSettings {
                public_url: public_url.to_owned(),
                service_name: "Shop".to_owned(),
                docs_url: "https://docs.shop.example".to_owned(),
                code_ttl: TimeDelta::minutes(10),
                attempts: AttemptLimits {
                    per_address: 30,
                    undelayed_per_account: 5,
                    longest_delay: Duration::from_secs(10),
                },
                default_rate_limit: NonZeroU32::new(600).unwrap(),
                trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()],
                body_timeout: Duration::from_secs(5),
            }),
        }
    }
}

/// Ids and secrets that differ, across all panels of a test run.
pub(crate) struct Chance;

static DRAWN: AtomicU64 = AtomicU64::new(1);

impl Randomness for Chance {
    fn secret(&self) -> [u8; 32] {
        let number = DRAWN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&number);
        secret
    }

    fn uuid(&self) -> Uuid {
        Uuid::from_u128(0xf000_0000 + u128::from(DRAWN.fetch_add(1, Ordering::Relaxed)))
    }
}

/// A password's hash is the password.
struct Passwords(Shared);

#[async_trait]
impl PasswordHasher for Passwords {
    async fn hash(&self, password: &str) -> Result<PasswordHash, StoreError> {
        Ok(PasswordHash::new(format!("h:{password}")))
    }

    async fn verify(&self, password: &str, hash: Option<PasswordHash>) -> Result<bool, StoreError> {
        if self.0.get().crowded {
            return Err(StoreError::Unavailable(Overcrowded.into()));
        }
        Ok(hash.is_some_and(|hash| hash.as_str() == format!("h:{password}")))
    }
}

/// Writes down what was sealed for what, in clear.
pub(crate) struct PlainSealer;

impl Sealer for PlainSealer {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        [purpose.name().as_bytes(), bound_to, plain].concat()
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let head = [purpose.name().as_bytes(), bound_to].concat();
        let plain = sealed.strip_prefix(head.as_slice()).ok_or(SealError)?;
        Ok(plain.to_vec())
    }
}
