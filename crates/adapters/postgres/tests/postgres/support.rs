//! A database with a handle on it, and things to put into it.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use adapter_postgres::{Database, DatabaseSettings};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Change, Money, OfferId, SellerId};
use oauth::{
    Application, ApplicationStatus, BearerToken, ClientId, ClientSecret, ClientType, Email, FamilyId,
    FamilyKind, Grant, NewSeller, NewToken, Purpose, Scope, ScopeSet, Seller, SellerName, TokenKey,
    TokenKind,
};
use offers::{Offer, OfferStatus, Price, PriceSource, Stock};
use testkit::TestDatabase;
use usecases::Transaction;
use uuid::Uuid;

/// What an application without a limit of its own may ask in a minute.
pub(crate) const DEFAULT_LIMIT: u32 = 600;

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// A number that no other call gets.
pub(crate) fn number() -> u32 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// An id that no other call gets.
pub(crate) fn id() -> Uuid {
    Uuid::from_u128(u128::from(number()) << 64 | 0x7000_8000_0000_0000_0000)
}

/// Settings for a database at a URL.
pub(crate) fn settings(url: &str) -> DatabaseSettings {
    DatabaseSettings {
        url: url.to_owned(),
        pool_size: 8,
        connect_timeout: Duration::from_secs(2),
        acquire_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(5),
        default_rate_limit: NonZeroU32::new(DEFAULT_LIMIT).unwrap(),
    }
}

/// A database of the test's own.
pub(crate) struct Fixture {
    pub(crate) place: TestDatabase,
    pub(crate) database: Database,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let place = TestDatabase::create().await;
        let database = Database::new(settings(place.url())).unwrap();
        Self { place, database }
    }

    /// Another handle on the same database, as another process would have it.
    pub(crate) fn another(&self) -> Database {
        Database::new(settings(self.place.url())).unwrap()
    }

    pub(crate) async fn begin(&self) -> Box<dyn Transaction> {
        self.database.units().begin().await.unwrap()
    }

    pub(crate) async fn seller(&self) -> Seller {
        let tx = self.begin().await;
        let seller = tx
            .add_seller(new_seller(&format!("shop{}@example.com", number())))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        seller
    }

    pub(crate) async fn application(&self, owner: SellerId) -> Application {
        let application = application(owner);
        let tx = self.begin().await;
        tx.save_application(Change::made(application.clone(), Vec::new()))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        application
    }

    /// An access token of the application, for its owner, with its scopes and an hour to live.
    pub(crate) async fn token(&self, application: &Application) -> TokenKey {
        let tx = self.begin().await;
        let new = new_token(
            application,
            FamilyKind::ClientCredentials,
            Some(tx.now() + TimeDelta::hours(1)),
        );
        tx.issue_token(new).await.unwrap();
        tx.commit().await.unwrap();
        TokenKey {
            family: new.family,
            hash: new.hash,
        }
    }

    /// A seller with an application and a token.
    pub(crate) async fn caller(&self) -> (Seller, Application, TokenKey) {
        let seller = self.seller().await;
        let application = self.application(seller.id).await;
        let token = self.token(&application).await;
        (seller, application, token)
    }

    pub(crate) async fn save(&self, offers: Vec<Offer>) {
        let Some(seller) = offers.first().map(|offer| offer.seller) else {
            return;
        };
        let tx = self.begin().await;
        let changes = offers
            .into_iter()
            .map(|offer| Change::made(offer, Vec::new()))
            .collect();
        tx.save_offers(seller, changes).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Notes in the table `seen` how each change of `table` that comes commits; one that says nothing of it waits for the disk,
    /// as it does not in the tests' cluster.
    pub(crate) async fn watch_commits(&self, table: &str) {
        self.tamper(&format!(
            "do $do$ begin execute format('alter database %I set synchronous_commit = on', current_database()); end $do$; \
             create table seen (mode text); create function look() returns trigger language plpgsql as \
             'begin insert into seen values (current_setting(''synchronous_commit'')); return null; end'; \
             create trigger look after insert or update on {table} for each statement execute function look()"
        ))
        .await;
    }

    /// How those changes committed.
    pub(crate) async fn seen_commits(&self) -> Vec<String> {
        let client = self.place.connect().await;
        let modes = client.query("select distinct mode from seen", &[]).await.unwrap();
        modes.iter().map(|row| row.get(0)).collect()
    }

    /// Runs SQL behind the adapter's back.
    pub(crate) async fn tamper(&self, sql: &str) {
        self.place.connect().await.batch_execute(sql).await.unwrap();
    }
}

/// An instant on a quiet day.
pub(crate) fn instant() -> DateTime<Utc> {
    "2026-03-01T10:00:00.123456Z".parse().unwrap()
}

pub(crate) fn new_seller(email: &str) -> NewSeller {
    NewSeller {
        id: id().into(),
        name: SellerName::new("Kettles & Co".to_owned()).unwrap(),
        email: Email::new(email.to_owned()).unwrap(),
        password: None,
        created_at: instant(),
    }
}

/// An active own-use application with a secret and every scope in use.
pub(crate) fn application(owner: SellerId) -> Application {
    let client_id = ClientId::from(id());
    Application {
        client_id,
        owner,
        name: format!("App {}", number()),
        description: Some("Does things".to_owned()),
        documentation_url: Some("https://docs.example/app".to_owned()),
        purpose: Purpose::OwnUse,
        client_type: ClientType::Confidential,
        redirect_uris: vec![
            "https://app.example/cb".to_owned(),
            "https://app.example/zwrot?a=1".to_owned(),
        ],
        scopes: Scope::IN_USE.into_iter().collect(),
        status: ApplicationStatus::Active,
        rate_limit: None,
        built_in: false,
        secret: Some(ClientSecret::from_random(&[7; 32]).hash()),
        created_at: instant(),
    }
}

pub(crate) fn new_token(
    application: &Application,
    kind: FamilyKind,
    expires_at: Option<DateTime<Utc>>,
) -> NewToken {
    let family = FamilyId::from(id());
    let mut random = [0; 32];
    random[..4].copy_from_slice(&number().to_be_bytes());
    let token = BearerToken::from_random(TokenKind::Access, family, &random);
    let grant = Grant {
        seller: application.owner,
        client_id: application.client_id,
        scopes: application.scopes,
    };
    NewToken {
        family,
        kind,
        grant,
        hash: token.key().hash,
        expires_at,
    }
}

pub(crate) fn key(token: &NewToken) -> TokenKey {
    TokenKey {
        family: token.family,
        hash: token.hash,
    }
}

/// An offer with every field.
pub(crate) fn offer(seller: SellerId, created_at: DateTime<Utc>) -> Offer {
    let id = OfferId::from(id());
    Offer {
        seller,
        id,
        title: format!("Czajnik żółty {id}"),
        handle: format!("czajnik-{id}"),
        status: OfferStatus::Published,
        price: Some(Price {
            money: Money::pln(12_999).unwrap(),
            source: PriceSource::Automatic,
        }),
        stock: Some(Stock::new(3).unwrap()),
        ean: Some("5901234123457".to_owned()),
        brand: Some("Czajnex".to_owned()),
        signature: Some("1|Czajnex|5901234123457".to_owned()),
        thumbnail: Some("https://img.example/1.jpg".to_owned()),
        url: "https://shop.example/czajnik".to_owned(),
        created_at,
        updated_at: created_at,
    }
}

/// A set of one scope.
pub(crate) fn only(scope: Scope) -> ScopeSet {
    [scope].into_iter().collect()
}
