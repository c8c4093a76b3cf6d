//! The handle that creates all ports.

use std::num::NonZeroU32;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::Duration;

use accounts::{AccountMail, AccountReader, OperatorReader, UsageLog};
use changes::ChangeReader;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Text, Timestamptz};
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use futures_util::FutureExt;
use kernel::{IdempotencyClaims, MailQueue, Sealer, StoreError, TransactionError};
use oauth::{ApplicationDirectory, ApplicationReader, Gate, GrantReader, RateCounter, TokenIssuer};
use offers::{OfferChanges, OfferReader};
use orders::{OrderDirectory, OrderReader, ShipmentMail, TrackingQueue};
use tokio::sync::{Mutex, Notify};
use usecases::{Announcement, LockSet, Transaction, UnitOfWork};
use webhooks::{JournalReader, SubscriptionQueues, SubscriptionReader};

use crate::accounts::panel::{Operators, Sessions};
use crate::batch::{BatchQuery, Batcher, Reads};
use crate::connection::error::{SchemaOutdated, is_permission_denied};
use crate::connection::pool::{Autocommit, Connections};
use crate::connection::shared::SharedConnection;
use crate::connection::url::{DatabaseUrlError, malformed};
use crate::connection::{Connector, url};
use crate::gate::Requests;
use crate::idempotency::StoredClaims;
use crate::journal::Journals;
use crate::layout::Layout;
use crate::listing::{List, Listed};
use crate::mails::Mails;
use crate::oauth::applications::Clients;
use crate::oauth::consents::Holders;
use crate::oauth::issuing::BatchedTokens;
use crate::observe::{StatementTimes, TRANSACTION};
use crate::offers::{SellerOffers, changes::BatchedChanges};
use crate::orders::{SellerParts, WholeOrders};
use crate::parcels::Parcels;
use crate::rate_limits::Calls;
use crate::retention::{Cleared, Expired};
use crate::schema::{api_now, parcels, sellers};
use crate::sealing::Sealing;
use crate::searched::Searched;
use crate::slow_reads::{SlowReads, SlowSellers};
use crate::statement::{Only, statements};
use crate::turns::Turns;
use crate::unit_of_work::{PgUnitOfWork, Tx, expect_rows};
use crate::webhooks::{RecentlyAsleep, StoredQueues, StoredSubscriptions};
use crate::{ANSWER_TIMEOUT, follow_ups, retention, slow_reads};

statements! {
    "database.sql";
    ANALYZE: ();
    GRANT_ANALYZE: () -> Only<Text, String>;
    ANY_TABLE: ();
    CLOCK: () -> Only<Timestamptz, DateTime<Utc>>;
    /// An installation mark.
    pub(crate) MARK: (Text) -> Only<Text, String>;
    pub(crate) SET_MARK: (Text, Text);
}

/// The most connections of a process's workers.
pub const WORKER_CONNECTIONS: usize = 8;

/// The database's URL and its timeouts.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/database`. The host may be the percent-encoded directory of a Unix
    /// socket, or a comma-separated list of hosts, of which the one that accepts writes is used. Supports
    /// libpq's `sslmode`, `sslrootcert`, `sslcert` and `sslkey`, and the parameters of
    /// `tokio_postgres::Config`.
    pub url: String,
    /// Connections for transactions and single statements, at least 1; one seller's requests use a quarter at
    /// most, and one for releases of their keys. There are others beside them: see `database.pool_size`.
    pub pool_size: usize,
    /// Timeout for opening a connection.
    pub connect_timeout: Duration,
    /// How long a transaction waits for a free connection.
    pub acquire_timeout: Duration,
    /// Timeout of one statement in a transaction.
    pub statement_timeout: Duration,
    pub layout: Layout,
    /// Requests a minute on `/v1` for an application without a limit of its own.
    pub default_rate_limit: NonZeroU32,
}

/// A PostgreSQL database. Cheap to clone. Creating one does not connect: connections are opened on demand,
/// and reopened after they have died.
#[derive(Clone)]
pub struct Database {
    pub(crate) units: PgUnitOfWork,
    slow: Arc<SlowReads>,
    workers: Connections,
    release_turns: Arc<Turns>,
    asleep: RecentlyAsleep,
    outcomes: Arc<Mutex<SharedConnection>>,
    default_rate_limit: NonZeroU32,
}

impl Database {
    /// Its pools' connections live on the present runtime, which must be multi-threaded where other runtimes use
    /// them, and outlive these.
    pub fn new(settings: DatabaseSettings) -> Result<Self, DatabaseUrlError> {
        let DatabaseSettings {
            url,
            pool_size,
            connect_timeout,
            acquire_timeout,
            ..
        } = settings;
        let hosts = url::parse(&url)?;
        let connector = Arc::new(Connector::new(hosts, connect_timeout));
        let connections = |size, share| {
            let opener = Arc::clone(&connector);
            let mut manager = ManagerConfig::<AsyncPgConnection>::default();
            // The other methods query the server at each checkout. This one only checks locally whether the
            // connection is closed or in a transaction.
            manager.recycling_method = RecyclingMethod::Fast;
            manager.custom_setup = Box::new(move |_| {
                let opener = Arc::clone(&opener);
                async move { opener.open_for_pool().await }.boxed()
            });
            let manager = AsyncDieselConnectionManager::new_with_config(String::new(), manager);
            let pool = Pool::builder(manager)
                .max_size(size)
                .wait_timeout(Some(acquire_timeout))
                .recycle_timeout(Some(connect_timeout))
                .runtime(deadpool::Runtime::Tokio1)
                .build();
            // Building the pool fails only if it has timeouts but no runtime.
            let pool = pool.map_err(|_| malformed())?;
            Ok(Connections {
                connector: Arc::clone(&connector),
                pool,
                turns: Turns::new(share),
                waits: metrics::histogram!("database_pool_wait_seconds"),
            })
        };
        let units = PgUnitOfWork {
            connections: connections(pool_size.max(1), (pool_size / 4).max(1))?,
            statement_timeout: settings.statement_timeout,
            layout: settings.layout,
            sealing: Sealing::default(),
            queued: Arc::default(),
            os_user: None,
            begin_times: StatementTimes::of("begin"),
            statement_times: StatementTimes::of(TRANSACTION),
            commit_times: StatementTimes::of("commit"),
        };
        let slow = PgUnitOfWork {
            connections: Connections {
                turns: Turns::with_share_of_applications(1, slow_reads::CONNECTIONS / 2),
                ..connections(slow_reads::CONNECTIONS, 1)?
            },
            statement_timeout: settings.statement_timeout.min(ANSWER_TIMEOUT),
            ..units.clone()
        };
        Ok(Self {
            units,
            workers: connections(WORKER_CONNECTIONS, WORKER_CONNECTIONS / 4)?,
            release_turns: Turns::new(1),
            slow: Arc::new(SlowReads {
                units: slow,
                long: Turns::new(1),
                sellers: SlowSellers::default(),
            }),
            asleep: RecentlyAsleep::default(),
            outcomes: Arc::new(Mutex::new(SharedConnection::new(connector, "outcomes", true))),
            default_rate_limit: settings.default_rate_limit,
        })
    }

    /// Sets the sealer of stored values: idempotent responses, webhook secrets, links in mails. Without it,
    /// none can be stored or opened.
    #[must_use]
    pub fn with_sealer(mut self, sealer: Arc<dyn Sealer>) -> Self {
        self.units.sealing = Sealing::with(sealer);
        self
    }

    /// Sets the operating system's user that the audit log names for the actions of a command line.
    #[must_use]
    pub fn with_os_user(mut self, name: Option<String>) -> Self {
        self.units.os_user = name;
        self
    }

    /// Notified after each commit of this handle or its clones that has woken a delivery queue. It wakes one
    /// waiter; if there is none, the next one to wait.
    pub fn queued(&self) -> Arc<Notify> {
        Arc::clone(&self.units.queued)
    }

    /// A handle for the workers of this process, whose pool has [`WORKER_CONNECTIONS`] of its own, with shares
    /// of its own: neither they nor requests wait for each other's connections, nor in each other's queues.
    #[must_use]
    pub fn for_workers(&self) -> Self {
        let units = PgUnitOfWork {
            connections: self.workers.clone(),
            ..self.units.clone()
        };
        Self {
            units,
            ..self.clone()
        }
    }

    pub fn units(&self) -> Arc<dyn UnitOfWork> {
        Arc::new(self.units.clone())
    }

    /// Creates a gate. Create one per server thread: each has its own batch and connection.
    pub fn gate(&self) -> Arc<dyn Gate> {
        let requests = Requests {
            default_limit: self.default_rate_limit,
        };
        Arc::new(Batcher::new(requests, Arc::clone(self.connector())))
    }

    /// Creates a reader of offers; one per server thread, as with [`Self::gate`].
    pub fn offer_reader(&self) -> Arc<dyn OfferReader> {
        Arc::new(self.list::<SellerOffers>())
    }

    fn list<L: Listed>(&self) -> List<L> {
        List::new(self.connector(), &self.slow, self.units.layout)
    }

    /// Changes offers without a lock; create one per process. `None` on Citus, where no single statement
    /// changes offers of several sellers and plain tables.
    pub fn offer_changes(&self) -> Option<Arc<dyn OfferChanges<Announcement>>> {
        (self.units.layout == Layout::Single).then(|| -> Arc<dyn OfferChanges<Announcement>> {
            let sealing = self.units.sealing.clone();
            Arc::new(BatchedChanges::new(self.connector(), sealing))
        })
    }

    /// Creates a reader of a seller's orders; one per server thread, as with [`Self::gate`].
    pub fn order_reader(&self) -> Arc<dyn OrderReader> {
        Arc::new(self.list::<SellerParts>())
    }

    /// Reads whole orders, for the marketplace.
    pub fn order_directory(&self) -> Arc<dyn OrderDirectory> {
        Arc::new(WholeOrders {
            statements: self.autocommit("order_directory"),
            layout: self.units.layout,
        })
    }

    /// Claims idempotency keys.
    pub fn claims(&self) -> Arc<dyn IdempotencyClaims> {
        let for_releases = Connections {
            turns: Arc::clone(&self.release_turns),
            ..self.units.connections.clone()
        };
        Arc::new(StoredClaims {
            statements: self.autocommit("claims"),
            releases: Autocommit::new(for_releases, "claims"),
            outcomes: Arc::clone(&self.outcomes),
            sealing: self.units.sealing.clone(),
        })
    }

    pub fn change_reader(&self) -> Arc<dyn ChangeReader> {
        Arc::new(self.autocommit("changes"))
    }

    /// Reads the sellers' journals, in which events are kept for this time.
    pub fn journals(&self, kept_for: TimeDelta) -> Arc<dyn JournalReader> {
        Arc::new(Journals {
            statements: self.autocommit("journal"),
            kept_for,
        })
    }

    /// The queue of mails to buyers.
    pub fn mail_queue(&self) -> Arc<dyn MailQueue<ShipmentMail>> {
        Arc::new(self.mails("mails"))
    }

    /// The queue of mails about accounts.
    pub fn account_mail_queue(&self) -> Arc<dyn MailQueue<AccountMail>> {
        Arc::new(self.mails("account_mails"))
    }

    fn mails(&self, statement: &'static str) -> Mails {
        Mails {
            statements: self.autocommit(statement),
            sealing: self.units.sealing.clone(),
            searched: Searched::default(),
        }
    }

    /// The queue of parcels to look up.
    pub fn tracking_queue(&self) -> Arc<dyn TrackingQueue> {
        Arc::new(Parcels::new(self.autocommit("parcels")))
    }

    /// Reads subscriptions and their deliveries.
    pub fn subscriptions(&self) -> Arc<dyn SubscriptionReader> {
        Arc::new(StoredSubscriptions {
            statements: self.autocommit("subscriptions"),
            slow: Arc::clone(&self.slow),
            sealing: self.units.sealing.clone(),
        })
    }

    /// The delivery queues.
    pub fn subscription_queues(&self) -> Arc<dyn SubscriptionQueues> {
        Arc::new(StoredQueues::new(
            self.autocommit("webhook_queues"),
            self.units.sealing.clone(),
            self.asleep.clone(),
        ))
    }

    /// Reads applications; one for each server thread, as with [`Self::gate`].
    pub fn applications(&self) -> Arc<dyn ApplicationReader> {
        self.reader(Clients, "applications")
    }

    /// Looks up applications of all owners.
    pub fn application_directory(&self) -> Arc<dyn ApplicationDirectory> {
        Arc::new(self.of_readers("applications"))
    }

    /// Issues tokens; one per server thread, as with [`Self::gate`].
    pub fn token_issuer(&self) -> Arc<dyn TokenIssuer> {
        Arc::new(BatchedTokens::new(self.connector()))
    }

    /// Reads sellers' consents; one for each server thread, as with [`Self::gate`].
    pub fn grants(&self) -> Arc<dyn GrantReader> {
        self.reader(Holders, "grants")
    }

    /// Reads accounts for the panel; one for each server thread, as with [`Self::gate`].
    pub fn panel(&self) -> Arc<dyn AccountReader> {
        self.reader(Sessions, "panel")
    }

    /// Stores counts of calls.
    pub fn usage(&self) -> Arc<dyn UsageLog> {
        Arc::new(self.autocommit("usage"))
    }

    /// Reads accounts for the marketplace.
    pub fn sellers(&self) -> Arc<dyn AccountReader> {
        self.reader_by(Sessions, self.of_readers("sellers"))
    }

    /// Finds operator tokens.
    pub fn operator_tokens(&self) -> Arc<dyn OperatorReader> {
        self.reader(Operators, "operator_tokens")
    }

    /// Counts calls of the OAuth endpoints, sign-in attempts, panel pages and journal reads; one per server
    /// thread, as with [`Self::gate`].
    pub fn rate_counter(&self) -> Arc<dyn RateCounter> {
        Arc::new(Batcher::new(Calls, Arc::clone(self.connector())))
    }

    /// Whether the newest connection, or [`Self::identity`] since, found the schema finished, that is, closed
    /// to programs of the previous release. All handles share the flag.
    pub fn finished_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.connector().finished)
    }

    /// How the database's servers are reached.
    pub const fn connector(&self) -> &Arc<Connector> {
        &self.units.connections.connector
    }

    /// Deletes or erases one small batch of expired data, and reports whether more is left.
    pub async fn clear(&self, expired: Expired) -> Result<Cleared, StoreError> {
        let tx = self
            .units
            .open_transaction(&LockSet::default(), ANSWER_TIMEOUT)
            .await?;
        let cleared = retention::clear(&tx, expired).await?;
        finish(tx, cleared).await
    }

    /// Does one small batch of the follow-up that has been due longest; false if none is due.
    pub async fn follow_up(&self) -> Result<bool, StoreError> {
        let tx = self
            .units
            .open_transaction(&LockSet::default(), ANSWER_TIMEOUT)
            .await?;
        let taken = tx.row(follow_ups::TAKE.bare()).await?;
        let Some(taken) = finish(tx, taken).await? else {
            return Ok(false);
        };
        let tx = self
            .units
            .open_transaction(&LockSet::default(), ANSWER_TIMEOUT)
            .await?;
        follow_ups::run(&tx, taken).await?;
        finish(tx, true).await
    }

    /// Refreshes the statistics of small tables that have grown, and with them every plan that was made for a
    /// few rows. If the role may not do that, returns the statement by which the tables' owner allows it.
    pub async fn analyze_grown_tables(&self) -> Result<Option<String>, StoreError> {
        let statements = self.autocommit("statistics");
        match statements.execute(ANALYZE.bare()).await {
            Err(error) if is_permission_denied(&error) => {
                let grant = statements.row(GRANT_ANALYZE.bare()).await?;
                Ok(grant.map(|statement| statement.0))
            }
            analyzed => analyzed.map(|_| None),
        }
    }

    /// True if the database has no table at all, ours or not, apart from those of extensions.
    pub async fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.autocommit("marks").execute(ANY_TABLE.bare()).await? == 0)
    }

    /// Whether any seller is registered; None without the schema.
    pub async fn has_sellers(&self) -> Result<Option<bool>, StoreError> {
        let any = sellers::table.select(sellers::id).limit(1);
        match self.autocommit("marks").execute(any).await {
            Err(StoreError::Unavailable(cause)) if cause.is::<SchemaOutdated>() => Ok(None),
            found => Ok(Some(found? > 0)),
        }
    }

    /// The value of an installation mark, such as "this is a sandbox"; None if it is unset or the table is
    /// missing.
    pub async fn mark(&self, key: &str) -> Result<Option<String>, StoreError> {
        match self.autocommit("marks").row(MARK.bind((key,))).await {
            Err(StoreError::Unavailable(cause)) if cause.is::<SchemaOutdated>() => Ok(None),
            read => Ok(read?.map(|mark| mark.0)),
        }
    }

    /// Sets an installation mark, replacing an earlier value.
    pub async fn set_mark(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let set = SET_MARK.bind((key, value));
        expect_rows("instance", self.autocommit("marks").execute(set).await?, 1)
    }

    /// Has carriers asked now about parcels with this number; for the sandbox alone, since no index has it.
    pub async fn ask_about_parcels(&self, tracking_number: &str) -> Result<(), StoreError> {
        let these = parcels::table.filter(parcels::tracking_number.eq(tracking_number));
        let ask = diesel::update(these).set(parcels::due_at.eq(api_now()));
        self.autocommit("parcels").execute(ask).await.map(drop)
    }

    /// The database's time.
    pub async fn now(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        let clock = self.autocommit("queues").row(CLOCK.bare()).await?;
        Ok(clock.map(|now| now.0))
    }

    /// The current load of the pool. Sends no query.
    pub fn pool_state(&self) -> deadpool::Status {
        self.units.connections.pool.status()
    }

    pub(crate) fn autocommit(&self, statement: &'static str) -> Autocommit {
        Autocommit::new(self.units.connections.clone(), statement)
    }

    /// For reads of the back office, all of which together have one share of the pool.
    fn of_readers(&self, statement: &'static str) -> Autocommit {
        self.autocommit(statement).sharing(LockSet::of_readers())
    }

    fn reader<G: BatchQuery>(&self, query: G, statement: &'static str) -> Arc<Reads<G>> {
        self.reader_by(query, self.autocommit(statement))
    }

    fn reader_by<G: BatchQuery>(&self, query: G, statements: Autocommit) -> Arc<Reads<G>> {
        let batches = Batcher::new(query, Arc::clone(self.connector()));
        Arc::new(Reads { batches, statements })
    }
}

async fn finish<T>(tx: Tx, done: T) -> Result<T, StoreError> {
    let tx: Box<dyn Transaction> = Box::new(tx);
    match tx.commit().await {
        Ok(()) => Ok(done),
        Err(TransactionError::Store(cause) | TransactionError::Unknown(cause)) => Err(cause),
    }
}
