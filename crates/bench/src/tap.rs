//! A unix socket that passes everything on to PostgreSQL and counts what is asked there.

mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use self::wire::{Asked, Conversation, Messages};
use crate::cluster::Cluster;

/// How much is read at a time, in bytes.
const BUFFER: usize = 16 * 1024;
/// The socket's name, of the port that clients take where none is named.
const SOCKET: &str = ".s.PGSQL.5432";

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Round trips: how often a client waited for an answer and sent nothing before it had it.
    pub(crate) round_trips: u64,
    /// How often each statement was executed.
    pub(crate) statements: BTreeMap<String, u64>,
}

impl Tally {
    /// What was counted later.
    pub(crate) fn add(&mut self, later: Self) {
        self.round_trips = self.round_trips.saturating_add(later.round_trips);
        for (statement, times) in later.statements {
            let sum = self.statements.entry(statement).or_default();
            *sum = sum.saturating_add(times);
        }
    }
}

/// A tap. It closes with the value.
#[derive(Debug)]
pub(crate) struct Tap {
    folder: TempDir,
    tally: Arc<Mutex<Tally>>,
    _accepting: JoinSet<()>,
}

impl Tap {
    /// Opens one before a cluster.
    pub(crate) fn open(cluster: &Cluster) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let listener = UnixListener::bind(folder.path().join(SOCKET)).context("no socket")?;
        let tally = Arc::default();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, cluster.socket(), Arc::clone(&tally)));
        Ok(Self {
            folder,
            tally,
            _accepting: accepting,
        })
    }

    /// The folder that the socket lies in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What was asked since this was called last.
    pub(crate) fn take(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn accept(listener: UnixListener, target: PathBuf, tally: Arc<Mutex<Tally>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(pass_on(client, target.clone(), Arc::clone(&tally)));
    }
}

/// Passes on until either side ends, which ends the other one too.
async fn pass_on(mut client: UnixStream, target: PathBuf, tally: Arc<Mutex<Tally>>) -> std::io::Result<()> {
    let mut server = UnixStream::connect(target).await?;
    let (mut from_client, mut from_server) = (Vec::with_capacity(BUFFER), Vec::with_capacity(BUFFER));
    let (mut questions, mut answers) = (Messages::of_client(), Messages::of_server());
    let mut conversation = Conversation::default();
    loop {
        tokio::select! {
            // An answer counts before the question that follows it.
            biased;
            read = server.read_buf(&mut from_server) => {
                if read? == 0 {
                    return Ok(());
                }
                answers.feed(&from_server, |kind, _| conversation.answer(kind));
                client.write_all(&from_server).await?;
                from_server.clear();
            }
            read = client.read_buf(&mut from_client) => {
                if read? == 0 {
                    return Ok(());
                }
                questions.feed(&from_client, |kind, content| {
                    add(&tally, conversation.ask(kind, content));
                });
                server.write_all(&from_client).await?;
                from_client.clear();
            }
        }
    }
}

fn add(tally: &Mutex<Tally>, asked: Asked) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    tally.round_trips += u64::from(asked.round_trip);
    for statement in asked.statements {
        *tally.statements.entry(statement).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;

    #[tokio::test]
    async fn statements_and_round_trips_are_counted() {
        let cluster = Cluster::start("16MB", None).await.unwrap();
        let tap = Tap::open(&cluster).unwrap();
        let url = cluster.url_through(tap.folder(), "postgres");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let statement = client.prepare("select $1::int").await.unwrap();
        tap.take();
        for n in 0..3 {
            assert_eq!(
                client
                    .query_one(&statement, &[&n])
                    .await
                    .unwrap()
                    .get::<_, i32>(0),
                n
            );
        }
        client.batch_execute("begin; commit").await.unwrap();
        let counted = |sql: &str, times| (sql.to_owned(), times);
        let expected = Tally {
            round_trips: 4,
            statements: [
                counted("select $1::int", 3),
                counted("begin", 1),
                counted("commit", 1),
            ]
            .into(),
        };
        assert_eq!(tap.take(), expected);
    }
}
