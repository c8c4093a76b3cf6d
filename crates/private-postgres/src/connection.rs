//! Where a running server is reached.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How to connect to a cluster: over a unix socket, without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    socket_folder: PathBuf,
}

impl Connection {
    pub(crate) fn new(socket_folder: PathBuf) -> Self {
        Self { socket_folder }
    }

    /// The folder of the socket: a client's `host`.
    pub fn socket_folder(&self) -> &Path {
        &self.socket_folder
    }

    /// The number in the socket's file name: a client's `port`. Always 5432, since the folder is the cluster's own.
    pub fn port(&self) -> u16 {
        5432
    }

    /// The superuser, which every connection may name.
    pub fn user(&self) -> &'static str {
        "postgres"
    }

    /// The connection to `database` as a URL that libpq and tokio-postgres understand, the socket's folder
    /// percent-encoded as its host (PostgreSQL documentation, "Connection URIs").
    pub fn url(&self, database: &str) -> String {
        let mut url = format!("postgres://{}@", self.user());
        encode(self.socket_folder.as_os_str().as_bytes(), &mut url);
        url.push('/');
        encode(database.as_bytes(), &mut url);
        url
    }
}

/// Percent-encodes all but the unreserved characters of RFC 3986, section 2.3.
fn encode(bytes: &[u8], into: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    #[test]
    fn url_is_understood_by_tokio_postgres() {
        let folder = "/tmp/an odd@place/50%/ż";
        let url = Connection::new(folder.into()).url("test_1/ż");
        assert!(url.starts_with("postgres://postgres@%2Ftmp%2Fan%20odd%40place%2F50%25"));
        let config: tokio_postgres::Config = url.parse().unwrap();
        assert_eq!(config.get_hosts(), [Host::Unix(folder.into())]);
        assert_eq!(config.get_dbname(), Some("test_1/ż"));
        assert_eq!(config.get_user(), Some("postgres"));
    }
}
