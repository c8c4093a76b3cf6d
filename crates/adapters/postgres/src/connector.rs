//! Opening connections.

use std::time::Duration;

use diesel::ConnectionError;
use diesel_async::AsyncPgConnection;
use kernel::StoreError;
use tokio::task::JoinHandle;
use tokio_postgres::{Config, NoTls, error::SqlState};

use crate::error::Silence;

/// Opens connections to one database.
pub(crate) struct Connector {
    config: Config,
    timeout: Duration,
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("no connection to the database")]
    Refused(#[source] tokio_postgres::Error),
    #[error("the new connection could not be set up")]
    SetUp(#[source] ConnectionError),
    #[error(transparent)]
    Silent(Silence),
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
    pub(crate) const fn new(config: Config, timeout: Duration) -> Self {
        Self { config, timeout }
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
        let refused = |error| ConnectionError::BadConnection(chain(&ConnectError::Refused(error)));
        let (client, connection) = self.config.connect(NoTls).await.map_err(refused)?;
        drop(tokio::spawn(drive(connection)));
        AsyncPgConnection::try_from(client).await
    }

    async fn open_at_leisure(&self) -> Result<Link, ConnectError> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(ConnectError::Refused)?;
        let driver = tokio::spawn(drive(connection));
        let connection = AsyncPgConnection::try_from(client)
            .await
            .map_err(ConnectError::SetUp)?;
        Ok(Link { connection, driver })
    }
}

async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
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

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
