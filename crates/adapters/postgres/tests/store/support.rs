//! A database per test with a handle on it, and its content: accounts, applications, tokens, offers.

mod consents;
pub(crate) mod servers;
mod trade;
mod webhooks;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use accounts::{Link, LinkKind, NewPersonalToken, NewSeller, Seller, Session};
use adapter_postgres::{Database, DatabaseSettings};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{
    Change, Money, OfferId, Randomness, SealError, SealPurpose, Sealer, SellerId, StoreError,
    TransactionError,
};
use oauth::{
    Application, ApplicationStatus, ClientId, ClientSecret, ClientType, Grant, NewClientToken, Purpose,
    Scope, ScopeSet, SecretHash, TokenKey,
};
use offers::{Offer, OfferStatus, Price, PriceSource, Product, Stock};
use testkit::{TestClock, TestDatabase, lock_waits};
use tokio_postgres::{Client, Row};
use usecases::{Announcement, LockSet, Transaction};
use uuid::Uuid;

pub(crate) use self::{consents::*, trade::*, webhooks::*};

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// A unique number.
pub(crate) fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A unique id; later ones are greater.
pub(crate) fn id() -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(number()))
}

/// The hash of a unique secret.
pub(crate) fn hash() -> SecretHash {
    SecretHash::of(&format!("secret {}", number()))
}

/// A fixed time.
pub(crate) fn instant() -> DateTime<Utc> {
    "2026-03-01T10:00:00.123456Z".parse().unwrap()
}

/// Randomness without repetitions.
pub(crate) struct TestRandomness;

impl Randomness for TestRandomness {
    fn secret(&self) -> [u8; 32] {
        let number = number();
        // An order number uses the low five bits of each of the first ten bytes.
        std::array::from_fn(|n| u8::try_from((number >> (5 * (n % 10))) & 31).unwrap())
    }

    fn uuid(&self) -> Uuid {
        id()
    }
}

/// A fake sealer: the sealed value shows its purpose and binding, and opens only with the same binding.
struct MirrorSealer;

impl MirrorSealer {
    fn wrapping(purpose: SealPurpose, bound_to: &[u8]) -> Vec<u8> {
        [purpose.as_str().as_bytes(), b"|", bound_to, b"|"].concat()
    }
}

impl Sealer for MirrorSealer {
    fn seal(&self, purpose: SealPurpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        let mirrored = plain.iter().map(|byte| !byte);
        Self::wrapping(purpose, bound_to)
            .into_iter()
            .chain(mirrored)
            .collect()
    }

    fn open(&self, purpose: SealPurpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let mirrored = sealed.strip_prefix(&*Self::wrapping(purpose, bound_to));
        Ok(mirrored.ok_or(SealError)?.iter().map(|byte| !byte).collect())
    }

    fn derive(&self, _: SealPurpose, _: &[u8]) -> ([u8; 32], Vec<[u8; 32]>) {
        unreachable!("the store derives nothing")
    }
}

pub(crate) fn settings(url: &str, pool_size: usize) -> DatabaseSettings {
    DatabaseSettings {
        url: url.to_owned(),
        pool_size,
        connect_timeout: Duration::from_secs(5),
        acquire_timeout: Duration::from_secs(20),
        statement_timeout: Duration::from_secs(5),
        layout: TestDatabase::layout(),
        default_rate_limit: NonZeroU32::new(600).unwrap(),
    }
}

/// A handle configured as in a process.
pub(crate) fn handle(settings: DatabaseSettings) -> Database {
    Database::new(settings)
        .unwrap()
        .with_sealer(Arc::new(MirrorSealer))
}

pub(crate) struct Fixture {
    pub(crate) test_database: TestDatabase,
    pub(crate) database: Database,
    /// A plain connection for direct queries.
    pub(crate) client: Client,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let test_database = TestDatabase::create().await;
        let database = handle(settings(test_database.url(), 12));
        let client = test_database.connect().await;
        Self {
            test_database,
            database,
            client,
        }
    }

    /// A database whose clock is stopped at [`instant`].
    pub(crate) async fn frozen() -> (Self, TestClock) {
        let fixture = Self::new().await;
        let clock = fixture.test_database.control_clock().await;
        clock.freeze(instant()).await;
        (fixture, clock)
    }

    /// Another handle on the same database, as another process would have.
    pub(crate) fn another(&self, pool_size: usize) -> Database {
        handle(settings(self.test_database.url(), pool_size))
    }

    pub(crate) async fn begin(&self) -> Box<dyn Transaction> {
        self.database.units().begin(&LockSet::default()).await.unwrap()
    }

    /// Runs `work` in a transaction and commits it.
    pub(crate) async fn tx<T>(&self, work: impl AsyncFnOnce(&dyn Transaction) -> T) -> T {
        let tx = self.begin().await;
        let done = work(&*tx).await;
        tx.commit().await.unwrap();
        done
    }

    /// Runs SQL directly, without the adapter.
    pub(crate) async fn tamper(&self, sql: &str) {
        if let Err(error) = self.client.batch_execute(sql).await {
            panic!("{sql}: {error:?}");
        }
    }

    /// Changes a setting for new sessions.
    pub(crate) async fn set(&self, setting: &str, value: &str) {
        let set = "do $do$ begin execute format('alter database %I set {setting} = ''{value}''', current_database()); end $do$";
        self.tamper(&set.replace("{setting}", setting).replace("{value}", value))
            .await;
    }

    pub(crate) async fn rows(&self, sql: &str) -> Vec<Row> {
        self.client.query(sql, &[]).await.unwrap()
    }

    /// The texts that a query returns.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        self.rows(sql).await.iter().map(|row| row.get(0)).collect()
    }

    /// The number that a query returns.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// The number of rows of a table; `table` may include a condition.
    pub(crate) async fn rows_of(&self, table: &str) -> i64 {
        self.count(&format!("select count(*) from {table}")).await
    }

    /// The database's clock.
    pub(crate) async fn now(&self) -> DateTime<Utc> {
        let now = self.client.query_one("select api_now()", &[]).await;
        now.unwrap().get(0)
    }

    /// Waits until a session waits for a lock.
    pub(crate) async fn wait_for_blocked_session(&self) {
        wait_for_blocked_session(&self.client).await;
    }

    /// The sessions that wait for a lock end although it is still held.
    pub(crate) async fn nothing_waits(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.count(lock_waits()).await > 0 {
            assert!(Instant::now() < end, "a session waits for a lock");
            tokio::task::yield_now().await;
        }
    }

    /// Ends an open transaction once another one waits for it.
    pub(crate) async fn end_once_it_blocks_another(&self, tx: Box<dyn Transaction>, commits: bool) {
        self.wait_for_blocked_session().await;
        if commits {
            tx.commit().await.unwrap();
        }
    }

    /// Waits until no other session except the clock's is connected: a server process reports its statistics
    /// when it ends.
    pub(crate) async fn wait_until_alone(&self) {
        let own = "pg_stat_activity where datname = current_database() and application_name = 'seller-api'";
        let end_idle = format!("select pg_terminate_backend(pid) from {own} and state = 'idle'");
        let end = Instant::now() + Duration::from_secs(20);
        while self.rows_of(own).await > 0 {
            assert!(Instant::now() < end, "a session stays");
            self.tamper(&end_idle).await;
        }
    }

    pub(crate) async fn account(&self) -> Seller {
        let new = new_seller(&format!("shop{}@example.com", number()));
        self.tx(async |tx| tx.add_seller(new).await.unwrap()).await
    }

    pub(crate) async fn seller(&self) -> SellerId {
        self.account().await.id
    }

    /// Does all follow-ups.
    pub(crate) async fn follow_up(&self) {
        while self.database.follow_up().await.unwrap() {}
    }

    pub(crate) async fn close(&self, seller: SellerId) {
        let close = async |tx: &dyn Transaction| tx.close_seller(seller, tx.now()).await;
        assert!(self.tx(close).await.unwrap());
    }

    pub(crate) async fn application(&self, owner: SellerId) -> Application {
        let application = application(owner);
        self.save_application(created(application.clone())).await;
        application
    }

    /// Creates an application and returns its id.
    pub(crate) async fn client_of(&self, owner: SellerId) -> ClientId {
        self.application(owner).await.client_id
    }

    pub(crate) async fn built_in(&self, owner: SellerId) -> Application {
        let built_in = Application::built_in(id().into(), owner, instant());
        let saved = built_in.after.clone();
        self.save_application(Announcement::of_application(built_in, instant()))
            .await;
        saved
    }

    pub(crate) async fn save_application(&self, change: Change<Application, Announcement>) {
        self.tx(async |tx| tx.save_application(change).await.unwrap())
            .await;
    }

    /// Sets an application's status, as the operator does.
    pub(crate) async fn set_status(&self, application: ClientId, status: ApplicationStatus) {
        self.tx(async |tx| set_status(tx, application, status).await)
            .await;
    }

    pub(crate) async fn suspend(&self, application: ClientId) {
        self.set_status(application, ApplicationStatus::Suspended).await;
    }

    /// An access token of the application for its owner, with its scopes and a lifetime of an hour.
    pub(crate) async fn token(&self, application: &Application) -> TokenKey {
        self.token_for(TimeDelta::hours(1), application).await
    }

    pub(crate) async fn token_for(&self, lifetime: TimeDelta, application: &Application) -> TokenKey {
        let (key, grant) = (token_key(), grant(application));
        let new = NewClientToken {
            family: key.family,
            grant,
            hash: key.hash,
            lifetime,
        };
        assert!(self.database.token_issuer().issue(new).await.unwrap());
        key
    }

    /// Personal tokens of a seller with these ends, of its built-in application.
    pub(crate) async fn personal_tokens<const N: usize>(
        &self,
        seller: SellerId,
        ends: [Option<DateTime<Utc>>; N],
    ) -> [TokenKey; N] {
        let Application {
            client_id, scopes, ..
        } = self.built_in(seller).await;
        let keys = ends.map(|_| token_key());
        self.tx(async |tx| {
            for (key, expires_at) in keys.into_iter().zip(ends) {
                let token = NewPersonalToken {
                    name: "script".to_owned(),
                    scopes,
                    expires_at,
                };
                let added = tx.add_personal_token(seller, client_id, key, token).await;
                added.unwrap();
            }
        })
        .await;
        keys
    }

    pub(crate) async fn admits(&self, token: TokenKey) -> bool {
        self.database.gate().admit(token).await.unwrap().is_ok()
    }

    /// An offer with this many pieces in stock.
    pub(crate) async fn offer(&self, seller: SellerId, pieces: i64) -> OfferId {
        let offer = Offer {
            stock: Stock::new(pieces).ok(),
            ..offer(seller)
        };
        let id = offer.id;
        self.save_offers(vec![offer]).await;
        id
    }

    /// Saves new offers of one seller.
    pub(crate) async fn save_offers(&self, offers: Vec<Offer>) {
        let seller = offers[0].seller;
        let changes = offers.into_iter().map(created);
        self.tx(async |tx| tx.save_fed_offers(seller, changes.collect()).await.unwrap())
            .await;
    }
}

/// Waits until a session of the client's database waits for a lock.
pub(crate) async fn wait_for_blocked_session(client: &Client) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let waiting = client.query_one(lock_waits(), &[]).await.unwrap();
        if waiting.get::<_, i64>(0) > 0 {
            return;
        }
        assert!(Instant::now() < end, "no session waits for a lock");
        tokio::task::yield_now().await;
    }
}

/// Takes from a queue until three batches in a row are empty: rows locked by another worker are skipped.
pub(crate) async fn take_all(batch: impl AsyncFn() -> Vec<Uuid>) -> Vec<Uuid> {
    let (mut taken, mut empty) = (Vec::new(), 0);
    while empty < 3 {
        let rows = batch().await;
        empty = if rows.is_empty() { empty + 1 } else { 0 };
        taken.extend(rows);
    }
    taken
}

/// Asserts that workers took this number of rows, each once.
pub(crate) fn each_once(workers: &[Vec<Uuid>], rows: usize) {
    let taken = workers.concat();
    let distinct: BTreeSet<_> = taken.iter().collect();
    assert_eq!((taken.len(), distinct.len()), (rows, rows));
}

pub(crate) async fn set_status(tx: &dyn Transaction, application: ClientId, status: ApplicationStatus) {
    let mut after = tx.lock_application(application).await.unwrap().unwrap();
    after.status = status;
    tx.save_application(changed(after)).await.unwrap();
}

/// A new item, without events.
pub(crate) fn created<A, E>(after: A) -> Change<A, E> {
    Change::created(after, Vec::new())
}

/// A changed item, without events.
pub(crate) fn changed<A, E>(after: A) -> Change<A, E> {
    Change::of_existing(after, Vec::new())
}

pub(crate) fn new_seller(email: &str) -> NewSeller {
    NewSeller {
        id: id().into(),
        name: "Kettles & Co".to_owned(),
        email: email.to_owned(),
        password: None,
        created_at: instant(),
    }
}

/// An active application with a secret and every scope in use.
pub(crate) fn application(owner: SellerId) -> Application {
    let client_id = ClientId::from(id());
    Application {
        client_id,
        owner,
        name: format!("App {}", client_id.uuid()),
        description: Some("Does things".to_owned()),
        documentation_url: Some("https://docs.example/app".to_owned()),
        purpose: Purpose::ForOtherSellers,
        client_type: ClientType::Confidential,
        redirect_uris: vec![REDIRECT.to_owned()],
        scopes: Scope::IN_USE.into_iter().collect(),
        granted: None,
        requested: ScopeSet::default(),
        status: ApplicationStatus::Active,
        rate_limit: None,
        built_in: false,
        secret: Some(ClientSecret::from_random(&[7; 32]).hash()),
        created_at: instant(),
    }
}

/// The key of a new family's token.
fn token_key() -> TokenKey {
    TokenKey {
        family: id().into(),
        hash: hash(),
    }
}

/// The grant of all of an application's scopes for its owner.
pub(crate) fn grant(application: &Application) -> Grant {
    Grant {
        seller: application.owner,
        client_id: application.client_id,
        scopes: application.scopes,
    }
}

pub(crate) fn session(seller: SellerId, now: DateTime<Utc>) -> Session {
    Session {
        hash: hash(),
        seller,
        created_at: now,
        seen_at: now,
    }
}

/// A link that is created now.
pub(crate) fn link(seller: SellerId, kind: LinkKind, now: DateTime<Utc>) -> Link {
    Link {
        hash: hash(),
        kind,
        seller,
        expires_at: now + kind.lifetime(),
    }
}

pub(crate) fn only(scope: Scope) -> ScopeSet {
    [scope].into_iter().collect()
}

/// A published offer with every field set.
pub(crate) fn offer(seller: SellerId) -> Offer {
    let id = OfferId::from(id());
    Offer {
        seller,
        id,
        product: Product {
            title: format!("Czajnik żółty {id}"),
            handle: format!("czajnik-{id}"),
            ean: Some("5901234123457".to_owned()),
            brand: Some("Czajnex".to_owned()),
            signature: Some("1|Czajnex|5901234123457".to_owned()),
            thumbnail: Some("https://img.example/1.jpg".to_owned()),
            url: "https://shop.example/czajnik".to_owned(),
        },
        status: OfferStatus::Published,
        price: Some(Price {
            money: Money::pln(12_999).unwrap(),
            source: PriceSource::Automatic,
        }),
        stock: Some(Stock::new(3).unwrap()),
        external_id: Some("CZ 1/ż".to_owned()),
        created_at: instant(),
        updated_at: instant(),
    }
}

/// Asserts that the database was unavailable.
pub(crate) fn is_unavailable<T>(answer: Result<T, StoreError>) {
    let error = answer.err().unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

/// Asserts that the number of changed rows did not match.
pub(crate) fn is_unexpected<T>(answer: Result<T, StoreError>) {
    let error = answer.err().unwrap();
    assert!(matches!(error, StoreError::Unexpected(_)), "{error:?}");
}

/// Asserts that the commit failed and certainly changed nothing.
pub(crate) async fn is_rolled_back(tx: Box<dyn Transaction>) -> StoreError {
    match tx.commit().await {
        Err(TransactionError::Store(cause)) => cause,
        other => panic!("{other:?}"),
    }
}
