//! Connections to the database: opened on whichever of its hosts takes them.

pub(crate) mod error;
pub(crate) mod pool;
pub(crate) mod pooler;
pub(crate) mod shared;
mod tls;
pub(crate) mod url;

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use diesel::ConnectionError;
use diesel_async::AsyncPgConnection;
use futures_util::future::BoxFuture;
use kernel::StoreError;
use tokio::{task::JoinHandle, time::Instant};
use tokio_postgres::{Client, Config, NoTls, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::error::Silence;

/// What moves the bytes of a connection, for as long as it lasts.
type Driver = BoxFuture<'static, Result<(), tokio_postgres::Error>>;

/// One of the servers that a database's URL names; it may be the primary.
pub(crate) struct Host {
    /// `db1.internal:5432`, or the folder of a unix socket.
    name: String,
    config: Config,
    /// Nothing where connections are not protected, as on a unix socket.
    tls: Option<MakeRustlsConnect>,
}

impl Host {
    async fn connect(&self) -> Result<(Client, Driver), tokio_postgres::Error> {
        if let Some(tls) = self.tls.clone() {
            let (client, connection) = self.config.connect(tls).await?;
            return Ok((client, Box::pin(connection)));
        }
        let (client, connection) = self.config.connect(NoTls).await?;
        Ok((client, Box::pin(connection)))
    }
}

/// Opens connections to one database.
pub(crate) struct Connector {
    hosts: Vec<Host>,
    timeout: Duration,
    /// The place of the host that took the last connection: the next attempt begins there, so that a dead host costs its time
    /// once and not with each connection.
    last: AtomicUsize,
    /// What to do about the last failure, where that can be told; nothing once a connection was opened.
    advice: Mutex<Option<&'static str>>,
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("no connection to the database: {}", listed(.0))]
    Refused(Vec<Refusal>),
    #[error("the new connection could not be set up")]
    SetUp(#[source] ConnectionError),
    #[error(transparent)]
    Silent(Silence),
}

/// Why a host was not taken.
#[derive(Debug)]
pub(crate) struct Refusal {
    host: String,
    /// Nothing where it gave no answer in its time.
    error: Result<tokio_postgres::Error, Silence>,
}

impl Refusal {
    /// What to do about it, where that can be told; never names the server.
    fn advice(&self) -> Option<&'static str> {
        let error = self.error.as_ref().ok()?;
        tls::advice(error).or_else(|| error.code().and_then(not_let_in))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Ok(error) => write!(f, "{}: {}", self.host, chain(error))?,
            Err(silence) => write!(f, "{}: {silence}", self.host)?,
        }
        self.advice().map_or(Ok(()), |advice| write!(f, " ({advice})"))
    }
}

fn listed(refusals: &[Refusal]) -> String {
    let each = refusals.iter().map(ToString::to_string);
    each.collect::<Vec<_>>().join("; ")
}

/// What to do about a server that is there and does not let the role in.
fn not_let_in(code: &SqlState) -> Option<&'static str> {
    match *code {
        SqlState::INVALID_PASSWORD => {
            Some("the server refuses the role's name or password: compare those in the URL with the server's")
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Some(
            "the server does not let the role in from here: look at the role's name in the URL and at the server's pg_hba.conf",
        ),
        SqlState::INVALID_CATALOG_NAME => {
            Some("the server has no database of that name: create it, or correct the name in the URL")
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            Some("the role may not connect to the database: grant it CONNECT")
        }
        _ => None,
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl From<ConnectError> for StoreError {
    fn from(error: ConnectError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// A connection, and the task on the runtime where it was opened that moves its bytes.
pub(crate) struct Link {
    connection: AsyncPgConnection,
    driver: JoinHandle<()>,
}

impl Link {
    /// The connection. Statements over the shared reference are pipelined.
    pub(crate) const fn connection(&self) -> &AsyncPgConnection {
        &self.connection
    }

    /// False once the server, or the end of the runtime, has closed the connection.
    pub(crate) fn is_open(&self) -> bool {
        !self.driver.is_finished()
    }
}

impl Drop for Link {
    /// A server that is silent would keep the driver waiting for the end of its last statement.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connector {
    pub(crate) const fn new(hosts: Vec<Host>, timeout: Duration) -> Self {
        Self {
            hosts,
            timeout,
            last: AtomicUsize::new(0),
            advice: Mutex::new(None),
        }
    }

    /// What to do where the last attempt to open a connection failed for a reason that an operator can mend.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advise(&self, advice: Option<&'static str>) {
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner) = advice;
    }

    /// Opens a connection.
    pub(crate) async fn open(&self) -> Result<Link, ConnectError> {
        let open = async {
            let (client, driver) = self.reach().await?;
            let driver = tokio::spawn(drive(driver));
            let connection = AsyncPgConnection::try_from(client).await;
            let connection = connection.map_err(ConnectError::SetUp)?;
            Ok(Link { connection, driver })
        };
        match tokio::time::timeout(self.timeout, open).await {
            Ok(result) => result,
            Err(_) => Err(ConnectError::Silent(Silence(self.timeout))),
        }
    }

    /// Opens a connection for the pool, which has time limits of its own. Its driver ends with it.
    pub(crate) async fn open_for_pool(&self) -> Result<AsyncPgConnection, ConnectionError> {
        let refused = |error| ConnectionError::BadConnection(chain(&error));
        let client = self.open_bare().await.map_err(refused)?;
        AsyncPgConnection::try_from(client).await
    }

    /// Opens a connection on which the driver itself is spoken to. What moves its bytes ends with it.
    pub(crate) async fn open_bare(&self) -> Result<Client, ConnectError> {
        let (client, driver) = self.reach().await?;
        drop(tokio::spawn(drive(driver)));
        Ok(client)
    }

    /// Tries the hosts one after another, each for its share of the time that is left.
    async fn reach(&self) -> Result<(Client, Driver), ConnectError> {
        let end = Instant::now() + self.timeout;
        let first = self.last.load(Ordering::Relaxed);
        let order = self.hosts.iter().enumerate().cycle().skip(first);
        let mut refusals = Vec::new();
        for (place, host) in order.take(self.hosts.len()) {
            let untried = u32::try_from(self.hosts.len().saturating_sub(refusals.len()));
            let share = end.saturating_duration_since(Instant::now()) / untried.unwrap_or(u32::MAX).max(1);
            let error = match tokio::time::timeout(share, host.connect()).await {
                Ok(Ok(reached)) => {
                    self.advise(None);
                    if self.last.swap(place, Ordering::Relaxed) != place {
                        tracing::info!(host = host.name, "the database is now at another host");
                    }
                    return Ok(reached);
                }
                Ok(Err(error)) => Ok(error),
                Err(_) => Err(Silence(share)),
            };
            refusals.push(Refusal {
                host: host.name.clone(),
                error,
            });
        }
        self.advise(refusals.iter().find_map(Refusal::advice));
        Err(ConnectError::Refused(refusals))
    }
}

async fn drive(connection: Driver) {
    match connection.await {
        Ok(()) => {}
        // The server is being stopped, and says so. What that means for the service is told by whoever watches the database.
        Err(error) if error.code() == Some(&SqlState::ADMIN_SHUTDOWN) => {
            tracing::info!("the database server is being stopped and closed a connection");
        }
        Err(error) => {
            tracing::warn!(error = chain(&error), "a connection to the database was lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_let_in_is_told_what_to_look_at() {
        let password = not_let_in(&SqlState::INVALID_PASSWORD).unwrap();
        assert!(password.contains("password"), "{password}");
        let name = not_let_in(&SqlState::INVALID_CATALOG_NAME).unwrap();
        assert!(name.contains("database of that name"), "{name}");
        assert_eq!(not_let_in(&SqlState::TOO_MANY_CONNECTIONS), None);
    }
}
