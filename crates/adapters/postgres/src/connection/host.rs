//! The servers in the database URL, and why one is not used.

use std::fmt;

use diesel::ConnectionError;
use futures_util::future::BoxFuture;
use kernel::{StoreError, error_chain};
use tokio_postgres::{Client, Config, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::AnswerTimeout;
use super::tls;

/// The future that performs a connection's I/O while it lasts.
pub(super) type Driver = BoxFuture<'static, Result<(), tokio_postgres::Error>>;

/// One of the servers in the database URL; it may be the primary.
pub(crate) struct Host {
    /// `db1.internal:5432`, or the directory of a Unix socket.
    pub(super) name: String,
    pub(super) config: Config,
    /// Unused if `config` disables TLS.
    pub(super) tls: MakeRustlsConnect,
}

impl Host {
    pub(super) async fn connect(&self) -> Result<(Client, Driver), tokio_postgres::Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        Ok((client, Box::pin(connection)))
    }
}

/// The rejections of a role, by whichever name or password it logs in.
const OF_ROLE: [SqlState; 2] = [
    SqlState::INVALID_PASSWORD,
    SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
];

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
    pub(super) host: String,
    pub(super) error: Unusable,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
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
    pub(super) fn is_of_role(&self) -> bool {
        self.rejection().is_some_and(|code| OF_ROLE.contains(&code))
    }

    /// Whether the connection was closed without a reason.
    pub(super) fn is_closed(&self) -> bool {
        self.refusal().is_some_and(tokio_postgres::Error::is_closed)
    }

    /// Advice about this failure, if there is any; never names the server.
    pub(super) fn advice(&self) -> Option<&'static str> {
        if matches!(self.error, Unusable::Replaced) {
            return Some("if this server is the intended primary, or a restored backup, restart the process");
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

/// Whether advice is about the role's name, password or login.
pub(super) fn is_of_role(advice: &str) -> bool {
    OF_ROLE.iter().any(|code| login_advice(code) == Some(advice))
}

/// True if an error of a statement ended its connection.
pub(super) fn ends(error: &tokio_postgres::Error) -> bool {
    error.is_closed()
        || error
            .as_db_error()
            .is_some_and(|error| error.severity() == "FATAL")
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
        (
            "not permitted to log in",
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        ),
        (
            "no pg_hba.conf entry",
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        ),
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
        SqlState::INVALID_PASSWORD => Some(
            "the server refuses the role's name or password: compare those in the URL with the server's, and the role's VALID UNTIL",
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let locked_out =
            "server login has been failing, cached error: role \"shop\" is not permitted to log in";
        assert_eq!(
            of_pooler(locked_out),
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        );
        let full = "no more connections allowed (max_client_conn)";
        assert_eq!(of_pooler(full), SqlState::TOO_MANY_CONNECTIONS);
        assert_eq!(of_pooler("client_login_timeout"), SqlState::PROTOCOL_VIOLATION);
        let other = cause(&SqlState::ADMIN_SHUTDOWN, "SASL authentication failed");
        assert_eq!(other, SqlState::ADMIN_SHUTDOWN);
    }
}
