//! Connections to the database, opened on the first of its hosts that accepts one; the search begins with the
//! host used last.

pub(crate) mod error;
pub(crate) mod pool;
pub(crate) mod pooler;
pub(crate) mod shared;
mod tls;
pub(crate) mod url;

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use diesel::ConnectionError;
use diesel::sql_types::{Bool, Nullable, Text};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use futures_util::future::BoxFuture;
use kernel::{StoreError, error_chain};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::select;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;
use tokio_postgres::{Client, Config, SimpleQueryMessage, SimpleQueryRow, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;

use self::error::AnswerTimeout;
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

/// The future that performs a connection's I/O while it lasts.
type Driver = BoxFuture<'static, Result<(), tokio_postgres::Error>>;

/// READ COMMITTED, whatever the default of role or server is.
pub(crate) const BEGIN: &str = "begin isolation level read committed read write";
/// For maintenance, which may take long.
pub(crate) const BEGIN_UNLIMITED: &str = "begin isolation level read committed read write; set local statement_timeout = 0; \
    set local lock_timeout = 0; set local idle_in_transaction_session_timeout = 0";
/// Why nothing is read from a database whose rows were written in another one.
pub(crate) const NOT_ADOPTED: &str =
    "the rows are another database's: `seller-api admin adopt-database` makes them this one's own";

/// The most connections of a process that cancel statements.
const CANCELLATIONS: usize = 2;

/// One of the servers in the database URL; it may be the primary.
pub(crate) struct Host {
    /// `db1.internal:5432`, or the directory of a Unix socket.
    name: String,
    config: Config,
    /// Unused if `config` disables TLS.
    tls: MakeRustlsConnect,
}

impl Host {
    async fn connect(&self) -> Result<(Client, Driver), tokio_postgres::Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        Ok((client, Box::pin(connection)))
    }
}

/// How the servers of a database are reached.
pub struct Connector {
    hosts: Vec<Host>,
    timeout: Duration,
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
    /// Whether the schema was last found finished.
    pub(crate) finished: Arc<AtomicBool>,
    /// Places of cancellations, each of which opens a connection: many callers may give up at once.
    cancellations: Arc<Semaphore>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("no connection to the database: {}", list(.0))]
    NoHost(Vec<HostFailure>),
    #[error("the new connection could not be set up")]
    SetUp(#[source] ConnectionError),
}

/// Why a host was not used.
#[derive(Debug)]
pub(crate) struct HostFailure {
    host: String,
    error: Unusable,
}

#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Refused(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Silent(#[from] AnswerTimeout),
    #[error("a former primary: another server has replaced it since")]
    Replaced,
}

impl HostFailure {
    const fn refusal(&self) -> Option<&tokio_postgres::Error> {
        match &self.error {
            Unusable::Refused(error) => Some(error),
            Unusable::Silent(_) | Unusable::Replaced => None,
        }
    }

    /// Why the server has rejected the login, if it has.
    fn rejection(&self) -> Option<SqlState> {
        let rejection = self.refusal()?.as_db_error()?;
        Some(cause(rejection.code(), rejection.message()))
    }

    /// Whether the server rejects new logins of the role; open connections may still work.
    fn is_of_role(&self) -> bool {
        let of_role = [
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        ];
        self.rejection().is_some_and(|code| of_role.contains(&code))
    }

    /// Advice about this failure, if there is any; never names the server.
    fn advice(&self) -> Option<&'static str> {
        if matches!(self.error, Unusable::Replaced) {
            return Some("if this server is meant, after all or as a restored backup, restart the process");
        }
        let of_tls = self.refusal().and_then(tls::advice);
        of_tls.or_else(|| login_advice(&self.rejection()?))
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.host, error_chain(&self.error))?;
        self.advice().map_or(Ok(()), |advice| write!(f, " ({advice})"))
    }
}

fn list(failures: &[HostFailure]) -> String {
    let each = failures.iter().map(ToString::to_string);
    each.collect::<Vec<_>>().join("; ")
}

/// The code of a rejection. PgBouncer sends 08P01 for every rejection, its own and the server's, so the
/// message decides.
fn cause(code: &SqlState, message: &str) -> SqlState {
    let of_pooler = [
        ("authentication failed", SqlState::INVALID_PASSWORD),
        ("no such user", SqlState::INVALID_PASSWORD),
        ("no such database", SqlState::INVALID_CATALOG_NAME),
        ("no more connections allowed", SqlState::TOO_MANY_CONNECTIONS),
    ];
    let mut by_message = of_pooler
        .into_iter()
        .filter(|_| *code == SqlState::PROTOCOL_VIOLATION);
    let by_message = by_message.find(|(words, _)| message.contains(words));
    by_message.map_or_else(|| code.clone(), |(_, cause)| cause)
}

/// Advice about a server that is reachable but rejects the role.
fn login_advice(code: &SqlState) -> Option<&'static str> {
    match *code {
        SqlState::INVALID_PASSWORD => {
            Some("the server refuses the role's name or password: compare those in the URL with the server's")
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Some(
            "the server does not let the role in from here: look at the role's name in the URL, whether it has LOGIN, and at the server's pg_hba.conf",
        ),
        SqlState::INVALID_CATALOG_NAME => {
            Some("the server has no database of that name: create it, or correct the name in the URL")
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            Some("the role may not connect to the database: grant it CONNECT")
        }
        SqlState::TOO_MANY_CONNECTIONS => Some(
            "all its connections are taken: raise the server's max_connections, the role's or the database's CONNECTION LIMIT, or PgBouncer's \
             max_client_conn, lower database.pool_size of the processes, or put a PgBouncer between",
        ),
        _ => None,
    }
}

impl From<ConnectError> for StoreError {
    fn from(error: ConnectError) -> Self {
        Self::Unavailable(error.into())
    }
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
            last: AtomicUsize::new(0),
            newest: watch::Sender::default(),
            advice: Mutex::new(None),
            is_done: Arc::default(),
            lost: Arc::default(),
            is_foreign: AtomicBool::new(false),
            finished: Arc::default(),
            cancellations: Arc::new(Semaphore::new(CANCELLATIONS)),
        }
    }

    /// While set, nothing is read or written for callers: the rows are another database's, and not adopted
    /// yet. See [`Identity::is_own`].
    pub fn set_foreign(&self, is_foreign: bool) {
        self.is_foreign.store(is_foreign, Ordering::Relaxed);
    }

    /// Fails while the database is not adopted.
    pub(crate) fn require_own(&self) -> Result<(), StoreError> {
        if self.is_foreign.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable(NOT_ADOPTED.into()));
        }
        Ok(())
    }

    /// The names of all hosts, for the operator.
    pub fn hosts(&self) -> String {
        let names = self.hosts.iter().map(|host| host.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// From now on a lost connection is no warning in the log: the program needs none any more.
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

    /// Opens a connection for the pool. Its driver ends with its last statement.
    pub(crate) async fn open_for_pool(&self) -> Result<AsyncPgConnection, ConnectionError> {
        let refused = |error| ConnectionError::BadConnection(error_chain(&error));
        let open = self.open().await.map_err(refused)?;
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

    /// Tries the hosts in turn; each gets its share of the remaining time. `looks`: whether the identity of the
    /// database is looked at, see [`Self::accept`].
    async fn connect_to_any(&self, looks: bool) -> Result<(Client, AbortOnDropHandle<()>), ConnectError> {
        let end = Instant::now() + self.timeout;
        let first = self.last.load(Ordering::Relaxed);
        let order = self.hosts.iter().enumerate().cycle().skip(first);
        let mut failures = Vec::new();
        for (index, host) in order.take(self.hosts.len()) {
            let untried = u32::try_from(self.hosts.len().saturating_sub(failures.len()));
            let share = end.saturating_duration_since(Instant::now()) / untried.unwrap_or(u32::MAX).max(1);
            let error = match tokio::time::timeout(share, self.connect(host, looks)).await {
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
        *self.advice.lock() = failures.iter().find_map(HostFailure::advice);
        Err(ConnectError::NoHost(failures))
    }

    async fn connect(&self, host: &Host, looks: bool) -> Result<(Client, AbortOnDropHandle<()>), Unusable> {
        let (client, connection) = host.connect().await?;
        let (own, of_driver) = oneshot::channel();
        let driver = AbortOnDropHandle::new(tokio::spawn(self.drive(connection, of_driver)));
        // Before the tables are there, there is nothing to look at.
        let found = if looks {
            client.simple_query(IDENTITY.text).await.unwrap_or_default()
        } else {
            Vec::new()
        };
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
    /// Looks whether the rows are the database's own: another one may have taken the place of the one before.
    /// Whoever looks at the identity from time to time unsets what this sets. Looks as well whether the schema is
    /// finished, so that nobody who has read from the database takes it for unfinished.
    fn accept(&self, row: &SimpleQueryRow, own: oneshot::Sender<Timeline>) -> Result<(), Unusable> {
        let number = row.get("timeline").map(|hex| u32::from_str_radix(hex, 16));
        if let (Some(here), Some(Ok(number))) = (row.get("here"), number) {
            let here = here.to_owned();
            let timeline = Timeline { here, number };
            self.newest.send_if_modified(|newest| {
                let is_newer = newest.here != timeline.here || newest.is_older_than(&timeline);
                if newest.is_older_than(&timeline) {
                    tracing::info!(
                        timeline = timeline.number,
                        "another server has become the primary: connections to the former one end"
                    );
                }
                if is_newer {
                    newest.clone_from(&timeline);
                }
                is_newer
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
            // Where it is not known, that of the first connection of which it is.
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

    #[test]
    fn login_errors_have_advice() {
        let password = login_advice(&SqlState::INVALID_PASSWORD).unwrap();
        assert!(password.contains("password"), "{password}");
        let name = login_advice(&SqlState::INVALID_CATALOG_NAME).unwrap();
        assert!(name.contains("database of that name"), "{name}");
        let full = login_advice(&SqlState::TOO_MANY_CONNECTIONS).unwrap();
        assert!(full.contains("max_connections"), "{full}");
        assert_eq!(login_advice(&SqlState::ADMIN_SHUTDOWN), None);
    }

    #[test]
    fn rejections_of_a_pooler_are_known_by_their_message() {
        let of_pooler = |message| cause(&SqlState::PROTOCOL_VIOLATION, message);
        assert_eq!(
            of_pooler("SASL authentication failed"),
            SqlState::INVALID_PASSWORD
        );
        let repeated =
            "server login has been failing, cached error: password authentication failed for user \"shop\"";
        assert_eq!(of_pooler(repeated), SqlState::INVALID_PASSWORD);
        assert_eq!(
            of_pooler("no such database: shop"),
            SqlState::INVALID_CATALOG_NAME
        );
        let full = "no more connections allowed (max_client_conn)";
        assert_eq!(of_pooler(full), SqlState::TOO_MANY_CONNECTIONS);
        assert_eq!(of_pooler("client_login_timeout"), SqlState::PROTOCOL_VIOLATION);
        let other = cause(&SqlState::ADMIN_SHUTDOWN, "SASL authentication failed");
        assert_eq!(other, SqlState::ADMIN_SHUTDOWN);
    }
}
