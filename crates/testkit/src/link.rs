//! A way to a database that a test can block, for a server that is there but does not answer.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::watch,
};

use crate::TestDatabase;

/// Forwards connections to a test's database until it is blocked; what is sent meanwhile waits.
#[derive(Debug)]
pub struct Link {
    url: String,
    open: watch::Sender<bool>,
    _folder: TempDir,
}

impl Link {
    /// An open way to the database.
    pub fn to(database: &TestDatabase) -> Self {
        let config: tokio_postgres::Config = database.url().parse().expect("the URL of a test's database");
        let Some(tokio_postgres::config::Host::Unix(target)) = config.get_hosts().first() else {
            panic!("the test's cluster listens on a unix socket");
        };
        let target = target.join(".s.PGSQL.5432");
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("the socket is bound");
        let host = folder
            .path()
            .to_str()
            .expect("a path in UTF-8")
            .replace('/', "%2F");
        let (user, name) = (
            config.get_user().expect("a user"),
            config.get_dbname().expect("a name"),
        );
        let url = format!("postgres://{user}@{host}/{name}");
        let (open, gate) = watch::channel(true);
        tokio::spawn(accept(listener, target, gate));
        Self {
            url,
            open,
            _folder: folder,
        }
    }

    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on connections are taken and bytes swallowed, and nothing comes back.
    pub fn block(&self) {
        self.open.send_replace(false);
    }

    /// Lets everything through that has waited.
    pub fn unblock(&self) {
        self.open.send_replace(true);
    }
}

async fn accept(listener: UnixListener, target: PathBuf, gate: watch::Receiver<bool>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(forward(client, target.clone(), gate.clone()));
    }
}

async fn forward(client: UnixStream, target: PathBuf, gate: watch::Receiver<bool>) {
    let Ok(server) = UnixStream::connect(target).await else {
        return;
    };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        () = pump(from_client, to_server, gate.clone()) => {}
        () = pump(from_server, to_client, gate) => {}
    }
}

/// Copies until either side ends.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut gate: watch::Receiver<bool>,
) {
    let mut buffer = Vec::with_capacity(16 * 1024);
    while matches!(from.read_buf(&mut buffer).await, Ok(1..)) {
        if gate.wait_for(|open| *open).await.is_err() || to.write_all(&buffer).await.is_err() {
            return;
        }
        buffer.clear();
    }
}
