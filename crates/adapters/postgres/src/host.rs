//! One of the servers that a database's URL names.

use std::{fmt, time::Duration};

use futures_util::future::BoxFuture;
use tokio_postgres::{Client, Config, NoTls, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{error::Silence, tls};

/// What moves the bytes of a connection, for as long as it lasts.
pub(crate) type Driver = BoxFuture<'static, Result<(), tokio_postgres::Error>>;

/// A server that may be the primary.
pub(crate) struct Host {
    /// `db1.internal:5432`, or the folder of a unix socket.
    pub(crate) name: String,
    pub(crate) config: Config,
    /// Nothing where connections are not protected, as on a unix socket.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

impl Host {
    /// Opens a connection to this server, and checks that it may write where the configuration says so.
    pub(crate) async fn connect(&self, limit: Duration) -> Result<(Client, Driver), Refusal> {
        let why = match tokio::time::timeout(limit, self.connect_at_leisure()).await {
            Ok(Ok(reached)) => return Ok(reached),
            Ok(Err(error)) => Why::Refused(error),
            Err(_) => Why::Silent(Silence(limit)),
        };
        Err(Refusal {
            host: self.name.clone(),
            why,
        })
    }

    async fn connect_at_leisure(&self) -> Result<(Client, Driver), tokio_postgres::Error> {
        if let Some(tls) = self.tls.clone() {
            let (client, connection) = self.config.connect(tls).await?;
            return Ok((client, Box::pin(connection)));
        }
        let (client, connection) = self.config.connect(NoTls).await?;
        Ok((client, Box::pin(connection)))
    }
}

/// Why a server was not taken.
#[derive(Debug)]
pub(crate) struct Refusal {
    host: String,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Refused(tokio_postgres::Error),
    Silent(Silence),
}

impl Refusal {
    /// What to do about it, where that can be told; never names the server.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match &self.why {
            Why::Refused(error) => tls::advice(error).or_else(|| error.code().and_then(not_let_in)),
            Why::Silent(_) => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Refused(error) => {
                write!(f, "{}: {}", self.host, chain(error))?;
                self.advice().map_or(Ok(()), |advice| write!(f, " ({advice})"))
            }
            Why::Silent(silence) => write!(f, "{}: {silence}", self.host),
        }
    }
}

/// What to do about a server that is there and does not let the role in.
fn not_let_in(code: &SqlState) -> Option<&'static str> {
    let advice = [
        (
            SqlState::INVALID_PASSWORD,
            "the server refuses the role's name or password: compare those in the URL with the server's",
        ),
        (
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "the server does not let the role in from here: look at the role's name in the URL and at the server's pg_hba.conf",
        ),
        (
            SqlState::INVALID_CATALOG_NAME,
            "the server has no database of that name: create it, or correct the name in the URL",
        ),
        (
            SqlState::INSUFFICIENT_PRIVILEGE,
            "the role may not connect to the database: grant it CONNECT",
        ),
    ];
    let found = advice.into_iter().find(|(known, _)| known == code);
    found.map(|(_, advice)| advice)
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
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
