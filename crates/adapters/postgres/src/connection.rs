//! Connections to the database, opened on the first of its hosts that accepts one; the search begins with the
//! host used last.

pub(crate) mod error;
mod host;
pub(crate) mod pool;
mod pooler;
pub(crate) mod shared;
mod tls;
pub(crate) mod url;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use diesel::ConnectionError;
use diesel::sql_types::{Bool, Nullable, Text};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use kernel::{StoreError, error_chain};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::select;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};
use tokio_util::{context::TokioContext, task::AbortOnDropHandle};

use self::error::{AnswerTimeout, is_statement_lost};
pub(crate) use self::host::ConnectError;
use self::host::{Driver, Host, HostFailure, Unusable, ends};
use crate::statement::statements;

statements! {
    "identity.sql";
    pub(crate) IDENTITY: () -> Identity;
}

/// The present database, and the one in which its rows were written.
#[derive(Debug, Clone, PartialEq, Eq, diesel::QueryableByName)]
pub struct Identity {
    /// The cluster's system identifier and the database's oid.
    #[diesel(sql_type = Text)]
    pub here: String,
    #[diesel(sql_type = Nullable<Text>)]
    timeline: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub written_in: Option<String>,
    #[diesel(sql_type = Bool)]
    pub(crate) is_finished: bool,
}

impl Identity {
    /// Whether the rows were written here, or adopted since.
    pub fn is_own(&self) -> bool {
        self.written_in.as_ref() == Some(&self.here)
    }

    /// The timeline of the cluster's write-ahead log, in hexadecimal, by which a promoted copy differs from the
    /// original; `standby` on one.
    pub fn timeline(&self) -> &str {
        self.timeline.as_deref().unwrap_or("standby")
    }
}

/// A timeline of a cluster's write-ahead log: each promotion begins one with a higher number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Timeline {
    /// See [`Identity::here`].
    here: String,
    number: u32,
}

impl Timeline {
    /// Whether a primary on this one has been replaced by one on the other.
    fn is_older_than(&self, other: &Self) -> bool {
        self.here == other.here && self.number < other.number
    }
}

/// READ COMMITTED, whatever the default of role or server is.
pub(crate) const BEGIN: &str = "begin isolation level read committed read write";
/// For maintenance, and for what operators list, which may take long. Without compiled plans: see `OPEN`.
pub(crate) const BEGIN_UNLIMITED: &str = "begin isolation level read committed read write; set local statement_timeout = 0; \
    set local lock_timeout = 0; set local idle_in_transaction_session_timeout = 0; set local jit = off";
/// Why nothing is read from a database whose rows were written in another one.
pub(crate) const NOT_ADOPTED: &str =
    "the rows are another database's: `seller-api admin adopt-database` makes them this one's own";

/// The most connections of a process that cancel statements.
const CANCELLATIONS: usize = 2;

/// How the servers of a database are reached.
pub struct Connector {
    hosts: Vec<Host>,
    timeout: Duration,
    /// The process's runtime; absent if this was made outside one.
    runtime: Option<Handle>,
    /// The index of the host that accepted the last connection. The next attempt starts there, so that a dead
    /// host costs its timeout only once.
    last: AtomicUsize,
    /// The newest timeline that a connection had.
    newest: watch::Sender<Timeline>,
    /// Advice about the last failure, if there is any; cleared once a connection was opened.
    advice: Mutex<Option<&'static str>>,
    /// Set once the program needs its connections no longer.
    is_done: Arc<AtomicBool>,
    /// Connections lost since the database was last seen to answer: behind a pooler, an outage costs some
    /// each second.
    lost: Arc<AtomicU64>,
    /// Set while the database's rows are known to be another database's.
    is_foreign: AtomicBool,
    /// Set while a pooler is known to lose prepared statements: under a name that two processes use, one would
    /// execute the other's.
    pub(crate) loses_statements: AtomicBool,
    /// Whether prepared statements are known to be kept. Locked during a check: of two checks at once, one could
    /// take the server connection on which the other relies.
    is_proven: tokio::sync::Mutex<bool>,
    /// Whether the schema was last found finished.
    pub(crate) finished: Arc<AtomicBool>,
    /// Places of cancellations, each of which opens a connection: many callers may give up at once.
    cancellations: Arc<Semaphore>,
}

/// A connection, and the task that performs its I/O on the runtime that opened it. The task ends with this
/// value: a server that does not respond would keep it waiting for its last statement.
pub(crate) struct OpenConnection {
    connection: AsyncPgConnection,
    driver: AbortOnDropHandle<()>,
}

impl OpenConnection {
    /// The connection. Statements over the shared reference are pipelined.
    pub(crate) const fn connection(&self) -> &AsyncPgConnection {
        &self.connection
    }

    /// False once the connection was closed by the server or by the end of the runtime.
    pub(crate) fn is_open(&self) -> bool {
        !self.driver.is_finished()
    }
}

impl Connector {
    pub(crate) fn new(hosts: Vec<Host>, timeout: Duration) -> Self {
        Self {
            hosts,
            timeout,
            runtime: Handle::try_current().ok(),
            last: AtomicUsize::new(0),
            newest: watch::Sender::default(),
            advice: Mutex::new(None),
            is_done: Arc::default(),
            lost: Arc::default(),
            is_foreign: AtomicBool::new(false),
            loses_statements: AtomicBool::new(false),
            is_proven: tokio::sync::Mutex::new(false),
            finished: Arc::default(),
            cancellations: Arc::new(Semaphore::new(CANCELLATIONS)),
        }
    }

    /// While set, nothing is read or written for callers: the rows are another database's, and not adopted
    /// yet. See [`Identity::is_own`].
    pub fn set_foreign(&self, is_foreign: bool) {
        self.is_foreign.store(is_foreign, Ordering::Relaxed);
    }

    /// Fails while the database is not adopted, or prepared statements are lost.
    pub(crate) fn require_usable(&self) -> Result<(), StoreError> {
        if self.is_foreign.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable(NOT_ADOPTED.into()));
        }
        self.require_statements()
    }

    /// Fails while prepared statements are lost.
    pub(crate) fn require_statements(&self) -> Result<(), StoreError> {
        if self.loses_statements.load(Ordering::Relaxed) {
            let reason = "the pooler in front of the database loses prepared statements";
            return Err(StoreError::Unavailable(reason.into()));
        }
        Ok(())
    }

    /// Call it with every error of a statement: it remembers whether a pooler has lost a prepared one.
    pub(crate) fn notice(&self, error: &diesel::result::Error) {
        if is_statement_lost(error) && !self.loses_statements.swap(true, Ordering::Relaxed) {
            let error = error_chain(error);
            tracing::warn!(
                error,
                "a pooler has lost a prepared statement: nothing is read or written until it is found to keep them"
            );
        }
    }

    /// The names of all hosts, for the operator.
    pub fn hosts(&self) -> String {
        let names = self.hosts.iter().map(|host| host.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// From now on lost connections are not logged as warnings: the program is shutting down.
    pub fn expect_losses(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// Call it when the database answers: logs how many connections were lost since it last did. A single one
    /// is in the log already.
    pub fn answers(&self) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 1 {
            tracing::info!(
                lost,
                "the database answers again; connections to it were lost meanwhile"
            );
        }
    }

    /// Advice for the operator if the last attempt to open a connection failed for a fixable reason, such as
    /// a certificate. Never names the server.
    pub fn advice(&self) -> Option<&'static str> {
        *self.advice.lock()
    }

    /// Ends the statement under way on a connection that its callers have given up: the server would go on
    /// with it. The connection is kept until then, since a pooler forgets a statement with it.
    pub(crate) fn cancel<C: Send + Sync + 'static>(
        &self,
        given_up: C,
        connection: impl Fn(&C) -> &AsyncPgConnection + Send + Sync + 'static,
    ) {
        let Some(tls) = self.hosts.first().map(|host| host.tls.clone()) else {
            return;
        };
        let (places, limit) = (Arc::clone(&self.cancellations), self.timeout);
        let cancelled = async move {
            // Those before it may take as long.
            let Ok(Ok(place)) = tokio::time::timeout(limit * 10, places.acquire()).await else {
                return;
            };
            let ended = async {
                let mut connection = connection(&given_up);
                let token = connection.cancel_token();
                drop(token.cancel_query(tls).await);
                drop(place);
                drop(connection.batch_execute("").await);
            };
            drop(tokio::time::timeout(limit, ended).await);
        };
        // Where there is none, the program ends.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(cancelled));
        }
    }

    pub(crate) async fn open(&self) -> Result<OpenConnection, ConnectError> {
        let opening = async {
            let (client, driver) = self.connect_to_any(true).await?;
            let connection = AsyncPgConnection::try_from(client).await;
            let open = connection.map(|connection| OpenConnection { connection, driver });
            open.map_err(ConnectError::SetUp)
        };
        let opened = tokio::time::timeout(self.timeout, opening).await;
        opened.unwrap_or_else(|_| {
            Err(ConnectError::NoHost(vec![HostFailure {
                host: self.hosts(),
                error: AnswerTimeout(self.timeout).into(),
            }]))
        })
    }

    /// Opens a connection for the pool. Its driver ends with its last statement. It lives on the runtime of the
    /// process: a stopping server's threads end one by one, and others still use what one has opened.
    pub(crate) async fn open_for_pool(&self) -> Result<AsyncPgConnection, ConnectionError> {
        let refused = |error| ConnectionError::BadConnection(error_chain(&error));
        let opened = match &self.runtime {
            Some(runtime) => TokioContext::new(self.open(), runtime.clone()).await,
            None => self.open().await,
        };
        let open = opened.map_err(refused)?;
        drop(open.driver.detach());
        Ok(open.connection)
    }

    /// Opens a connection as a bare `tokio_postgres` client, for work on the schema. Its I/O task ends with it.
    pub(crate) async fn open_bare(&self) -> Result<Client, ConnectError> {
        let (client, driver) = self.connect_to_any(false).await?;
        drop(driver.detach());
        Ok(client)
    }

    /// Whether a new connection is refused because of the role's name or password; None if no server has
    /// answered.
    pub async fn refuses_role(&self) -> Option<bool> {
        match self.connect_to_any(true).await {
            Ok(_) => Some(false),
            Err(ConnectError::NoHost(failures)) => {
                failures.iter().any(HostFailure::is_of_role).then_some(true)
            }
            Err(_) => None,
        }
    }

    /// Tries the hosts in turn; each gets its share of the remaining time. `checks`: whether the
    /// database's identity is checked, see [`Self::accept`].
    async fn connect_to_any(&self, checks: bool) -> Result<(Client, AbortOnDropHandle<()>), ConnectError> {
        let end = Instant::now() + self.timeout;
        let first = self.last.load(Ordering::Relaxed);
        let order = self.hosts.iter().enumerate().cycle().skip(first);
        let mut failures = Vec::new();
        for (index, host) in order.take(self.hosts.len()) {
            let untried = u32::try_from(self.hosts.len().saturating_sub(failures.len()));
            let share = end.saturating_duration_since(Instant::now()) / untried.unwrap_or(u32::MAX).max(1);
            let error = match tokio::time::timeout(share, self.connect(host, checks)).await {
                Ok(Ok(connected)) => {
                    *self.advice.lock() = None;
                    if self.last.swap(index, Ordering::Relaxed) != index {
                        tracing::info!(host = host.name, "the database is now at another host");
                    }
                    return Ok(connected);
                }
                Ok(Err(error)) => error,
                Err(_) => AnswerTimeout(share).into(),
            };
            failures.push(HostFailure {
                host: host.name.clone(),
                error,
            });
        }
        let advice = failures.iter().find_map(HostFailure::advice);
        let mut last = self.advice.lock();
        // A pooler that cannot log in tells why from time to time, and else closes the connection.
        let is_kept = advice.is_none() && failures.iter().any(HostFailure::is_closed);
        if !(is_kept && last.is_some_and(host::is_of_role)) {
            *last = advice;
        }
        drop(last);
        Err(ConnectError::NoHost(failures))
    }

    async fn connect(&self, host: &Host, checks: bool) -> Result<(Client, AbortOnDropHandle<()>), Unusable> {
        let (client, connection) = host.connect().await?;
        let (own, of_driver) = oneshot::channel();
        let driver = AbortOnDropHandle::new(tokio::spawn(self.drive(connection, of_driver)));
        let found = if checks {
            // Else the server goes on with it, behind a lock, when this connection is given up and another is opened.
            let bounded = format!("set local statement_timeout = 1000; {}", IDENTITY.text);
            client.simple_query(&bounded).await
        } else {
            Ok(Vec::new())
        };
        // Before the first migration there is no identity to check.
        let has_failed = |error: &tokio_postgres::Error| {
            let waits = [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE];
            ends(error) || error.code().is_some_and(|code| waits.contains(code))
        };
        let found = found.or_else(|error| {
            if has_failed(&error) {
                Err(error)
            } else {
                Ok(Vec::new())
            }
        })?;
        for message in found {
            if let SimpleQueryMessage::Row(row) = message {
                self.accept(&row, own)?;
                break;
            }
        }
        Ok((client, driver))
    }

    /// Takes notice of the database of a new connection. Refuses a primary that another has replaced: whoever
    /// wrote to it would be alone. Once one shows a newer timeline, connections with an older one end: a server
    /// that was silent for a while does not know that it was replaced.
    ///
    /// Sets `is_foreign` if the rows are not the database's own, since another one may be here now; the
    /// readiness check clears it. Stores whether the schema is finished, so that nobody who has read from the
    /// database takes it for unfinished.
    fn accept(&self, row: &SimpleQueryRow, own: oneshot::Sender<Timeline>) -> Result<(), Unusable> {
        let number = row.get("timeline").map(|hex| u32::from_str_radix(hex, 16));
        if let (Some(here), Some(Ok(number))) = (row.get("here"), number) {
            let here = here.to_owned();
            let timeline = Timeline { here, number };
            self.newest.send_if_modified(|newest| {
                let replaces = newest.is_older_than(&timeline);
                if replaces {
                    tracing::info!(
                        timeline = timeline.number,
                        "another server has become the primary: connections to the former one end"
                    );
                }
                let is_taken = replaces || newest.here != timeline.here;
                if is_taken {
                    newest.clone_from(&timeline);
                }
                is_taken
            });
            if timeline.is_older_than(&self.newest.borrow()) {
                return Err(Unusable::Replaced);
            }
            drop(own.send(timeline));
        }
        self.finished
            .store(row.get("is_finished") == Some("t"), Ordering::Relaxed);
        if row.get("here") != row.get("written_in") {
            self.set_foreign(true);
        }
        Ok(())
    }

    /// Performs a connection's I/O until it ends, or its timeline is no longer the newest.
    fn drive(
        &self,
        connection: Driver,
        timeline: oneshot::Receiver<Timeline>,
    ) -> impl Future<Output = ()> + use<> {
        let (is_done, lost) = (Arc::clone(&self.is_done), Arc::clone(&self.lost));
        let mut newest = self.newest.subscribe();
        let replaced = async move {
            // A connection of unknown timeline counts as one of the first timeline that is known.
            let own = match timeline.await {
                Ok(own) => Ok(own),
                Err(_) => newest
                    .wait_for(|newest| !newest.here.is_empty())
                    .await
                    .map(|newest| newest.clone()),
            };
            if let Ok(own) = own
                && newest.wait_for(|newest| own.is_older_than(newest)).await.is_ok()
            {
                return;
            }
            pending::<()>().await;
        };
        async move {
            let ended = select! {
                ended = connection => ended,
                () = replaced => return,
            };
            match ended {
                Ok(()) => {}
                Err(error) if is_done.load(Ordering::Relaxed) => {
                    tracing::debug!(error = error_chain(&error), "an unused connection was lost");
                }
                Err(error) => {
                    let (is_first, error) = (lost.fetch_add(1, Ordering::Relaxed) == 0, error_chain(&error));
                    // If it is an outage, the readiness check warns.
                    if is_first {
                        tracing::info!(
                            error,
                            "a connection to the database was lost; more are counted until it answers"
                        );
                    } else {
                        tracing::debug!(error, "another connection to the database was lost");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tokio_postgres::Config;

    use super::*;

    #[tokio::test]
    async fn lost_connections_are_one_line_and_a_count_and_none_while_the_program_stops() {
        let connector = Connector::new(Vec::new(), Duration::ZERO);
        // Any error without a code, as of a connection that the server closed without a word.
        let lost = || -> Driver { Box::pin(async { Err("port=lost".parse::<Config>().unwrap_err()) }) };
        let (mut log, writer) = std::io::pipe().unwrap();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(Arc::new(writer));
        let listening = tracing::subscriber::set_default(subscriber.finish());
        connector.drive(lost(), oneshot::channel().1).await;
        connector.drive(lost(), oneshot::channel().1).await;
        connector.answers();
        connector.answers();
        connector.expect_losses();
        connector.drive(lost(), oneshot::channel().1).await;
        drop(listening);
        let mut lines = String::new();
        log.read_to_string(&mut lines).unwrap();
        assert!(!lines.contains("WARN") && lines.contains("lost=2"), "{lines}");
        assert_eq!(lines.lines().count(), 2, "{lines}");
    }

    #[tokio::test]
    async fn a_connection_that_takes_too_long_is_an_error_that_names_the_hosts() {
        let hosts = url::parse("postgres://192.0.2.1,192.0.2.2:1/shop").unwrap();
        let connector = Connector::new(hosts, Duration::ZERO);
        let silent = connector.open().await.err().unwrap();
        let error = error_chain(&silent);
        let names = ["192.0.2.1:5432", "192.0.2.2:1"];
        assert!(names.iter().all(|name| error.contains(name)), "{error}");
    }

    #[tokio::test]
    async fn a_connection_ends_once_another_shows_a_newer_timeline_of_its_database() {
        let on = |here: &str, number| Timeline {
            here: here.to_owned(),
            number,
        };
        // None: a server that told nothing has the first timeline that is known.
        for own in [Some(on("a", 4)), None] {
            let connector = Connector::new(Vec::new(), Duration::ZERO);
            let (known, timeline) = oneshot::channel();
            let driven = tokio::spawn(connector.drive(Box::pin(pending()), timeline));
            match own {
                Some(own) => known.send(own).unwrap(),
                None => drop(known),
            }
            for newest in [on("a", 4), on("b", 9)] {
                connector.newest.send_replace(newest);
                tokio::task::yield_now().await;
                assert!(!driven.is_finished());
            }
            connector.newest.send_replace(on("a", 5));
            driven.await.unwrap();
        }
    }
}
