//! Opening connections.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use diesel::ConnectionError;
use diesel_async::AsyncPgConnection;
use kernel::StoreError;
use tokio::{task::JoinHandle, time::Instant};
use tokio_postgres::{Client, error::SqlState};

use crate::{
    error::Silence,
    host::{Driver, Host, Refusal, chain},
};

/// Opens connections to one database, on whichever of its hosts takes them.
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
    #[error("no connection to the database: {}", told(.0))]
    Refused(Vec<Refusal>),
    #[error("the new connection could not be set up")]
    SetUp(#[source] ConnectionError),
    #[error(transparent)]
    Silent(Silence),
}

fn told(refusals: &[Refusal]) -> String {
    let each = refusals.iter().map(ToString::to_string);
    each.collect::<Vec<_>>().join("; ")
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
        match tokio::time::timeout(self.timeout, self.open_at_leisure()).await {
            Ok(result) => result,
            Err(_) => Err(ConnectError::Silent(Silence(self.timeout))),
        }
    }

    /// Opens a connection for the pool, which has time limits of its own. Its driver ends with it.
    pub(crate) async fn open_for_pool(&self) -> Result<AsyncPgConnection, ConnectionError> {
        let refused = |error| ConnectionError::BadConnection(chain(&error));
        let (client, driver) = self.reach().await.map_err(refused)?;
        drop(tokio::spawn(drive(driver)));
        AsyncPgConnection::try_from(client).await
    }

    /// Opens a connection on which the driver itself is spoken to. What moves its bytes ends with it.
    pub(crate) async fn open_bare(&self) -> Result<Client, ConnectError> {
        let (client, driver) = self.reach().await?;
        drop(tokio::spawn(drive(driver)));
        Ok(client)
    }

    async fn open_at_leisure(&self) -> Result<Link, ConnectError> {
        let (client, driver) = self.reach().await?;
        let driver = tokio::spawn(drive(driver));
        let connection = AsyncPgConnection::try_from(client)
            .await
            .map_err(ConnectError::SetUp)?;
        Ok(Link { connection, driver })
    }

    /// Tries the hosts one after another, each for its share of the time that is left.
    async fn reach(&self) -> Result<(Client, Driver), ConnectError> {
        let end = Instant::now() + self.timeout;
        let first = self.last.load(Ordering::Relaxed);
        let order = self.hosts.iter().enumerate().cycle().skip(first);
        let mut refusals = Vec::new();
        for (place, host) in order.take(self.hosts.len()) {
            let untried = self.hosts.len().saturating_sub(refusals.len()).max(1);
            let share =
                end.saturating_duration_since(Instant::now()) / u32::try_from(untried).unwrap_or(u32::MAX);
            match host.connect(share).await {
                Ok(reached) => {
                    self.advise(None);
                    if self.last.swap(place, Ordering::Relaxed) != place {
                        tracing::info!(host = host.name, "the database is now at another host");
                    }
                    return Ok(reached);
                }
                Err(refusal) => refusals.push(refusal),
            }
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
