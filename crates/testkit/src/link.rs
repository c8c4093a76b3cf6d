//! A connection path to a database that a test can block (a server that is reachable but does not answer), slow down, or break at a
//! COMMIT.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::{mpsc, watch},
    time::Instant,
};

use crate::{TestDatabase, database::ProxySocket};

/// Bytes buffered in one direction of a connection. A sender waits when the buffer is full.
const UNDER_WAY: usize = 1 << 20;

/// How a connection breaks at its COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostCommit {
    /// The server commits, but its answer is lost.
    Done,
    /// The COMMIT is lost, so the server rolls back.
    Undone,
}

/// Forwards connections to a test's database. While it is blocked, bytes wait.
#[derive(Debug)]
pub struct Link {
    url: String,
    way: Way,
    _folder: TempDir,
}

/// State shared by all connections.
#[derive(Debug, Clone)]
struct Way {
    open: Arc<watch::Sender<bool>>,
    losing: Arc<watch::Sender<Option<Losing>>>,
    pace: Arc<watch::Sender<Pace>>,
}

/// Latency and bandwidth of each direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Latency of all bytes.
    pub delay: Duration,
    /// Additional random latency, at most this.
    pub jitter: Duration,
    /// Bytes a second on each connection; `None` for no limit.
    pub bandwidth: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Losing {
    commit: LostCommit,
    then_block: bool,
}

impl Link {
    /// An unblocked link to the database.
    pub fn to(database: &TestDatabase) -> Self {
        let socket = ProxySocket::of(database);
        let (url, target) = (socket.url.clone(), socket.target.clone());
        let way = Way {
            open: Arc::new(watch::Sender::new(true)),
            losing: Arc::new(watch::Sender::new(None)),
            pace: Arc::default(),
        };
        tokio::spawn(accept(socket.listener, target, way.clone()));
        Self {
            url,
            way,
            _folder: socket.folder,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on the link accepts connections and bytes, but forwards nothing.
    pub fn block(&self) {
        self.way.open.send_replace(false);
    }

    /// Forwards everything that has waited.
    pub fn unblock(&self) {
        self.way.open.send_replace(true);
    }

    /// Sets the pace of all connections from now on.
    pub fn slow_down(&self, pace: Pace) {
        self.way.pace.send_replace(pace);
    }

    pub fn lose(&self, commit: LostCommit) {
        let losing = Losing {
            commit,
            then_block: false,
        };
        self.way.losing.send_replace(Some(losing));
    }

    /// Breaks the connection that sends the next COMMIT, and blocks the link at the same moment.
    pub fn lose_and_block(&self, commit: LostCommit) {
        let losing = Losing {
            commit,
            then_block: true,
        };
        self.way.losing.send_replace(Some(losing));
    }

    pub async fn lost(&self) {
        let mut losing = self.way.losing.subscribe();
        drop(losing.wait_for(Option::is_none).await);
    }
}

impl Way {
    /// Whether these bytes of a client hold the COMMIT to lose, and how to lose it.
    fn takes_loss(&self, bytes: &[u8]) -> Option<LostCommit> {
        // A statement's text ends like this in a simple query and in a Parse message.
        let commits = bytes
            .windows(7)
            .any(|word| word.eq_ignore_ascii_case(b"commit\0"));
        let mut taken = None;
        if commits {
            self.losing.send_if_modified(|losing| {
                taken = losing.take();
                taken.is_some()
            });
        }
        let Losing { commit, then_block } = taken?;
        if then_block {
            self.open.send_replace(false);
        }
        Some(commit)
    }
}

async fn accept(listener: UnixListener, target: PathBuf, way: Way) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(forward(client, target.clone(), way.clone()));
    }
}

async fn forward(client: UnixStream, target: PathBuf, way: Way) {
    let Ok(server) = UnixStream::connect(target).await else {
        return;
    };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let (to_client, to_server) = (slowly(to_client, way.clone()), slowly(to_server, way.clone()));
    let lost = AtomicBool::new(false);
    tokio::select! {
        () = ask(from_client, to_server, &way, &lost) => {}
        () = answer(from_server, to_client, &way, &lost) => {}
    }
}

/// Delays what is written to `to`. The returned writer accepts bytes at once; they arrive in order.
fn slowly(mut to: impl AsyncWrite + Unpin + Send + 'static, way: Way) -> impl AsyncWrite + Unpin {
    let (near, mut far) = tokio::io::duplex(UNDER_WAY);
    let (sent, mut arriving) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        let mut free = Instant::now();
        loop {
            let mut bytes = Vec::with_capacity(16 * 1024);
            if !matches!(far.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
            let pace = *way.pace.borrow();
            let chance = RandomState::new().build_hasher().finish() % 1_000;
            let late = pace
                .jitter
                .mul_f64(f64::from(u32::try_from(chance).unwrap_or(0)) / 1_000.0);
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let passing = pace
                .bandwidth
                .map_or(Duration::ZERO, |most| Duration::from_secs(1) * length / most);
            // Bytes wait for those before them, and never overtake them.
            free = free.max(Instant::now()) + passing;
            if sent.send((free + pace.delay + late, bytes)).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((due, bytes)) = arriving.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    near
}

/// Copies the client's bytes until either side closes.
async fn ask(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: &Way,
    lost: &AtomicBool,
) {
    let (mut buffer, mut gate) = (Vec::with_capacity(16 * 1024), way.open.subscribe());
    while matches!(from.read_buf(&mut buffer).await, Ok(1..)) {
        match way.takes_loss(&buffer) {
            Some(LostCommit::Undone) => return,
            Some(LostCommit::Done) => lost.store(true, Ordering::Release),
            None if gate.wait_for(|open| *open).await.is_err() => return,
            None => {}
        }
        if to.write_all(&buffer).await.is_err() {
            return;
        }
        buffer.clear();
    }
}

/// Copies the server's bytes until either side closes, or until the server answers the COMMIT whose answer is lost.
async fn answer(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: &Way,
    lost: &AtomicBool,
) {
    let (mut buffer, mut gate) = (Vec::with_capacity(16 * 1024), way.open.subscribe());
    while matches!(from.read_buf(&mut buffer).await, Ok(1..)) {
        if lost.load(Ordering::Acquire)
            || gate.wait_for(|open| *open).await.is_err()
            || to.write_all(&buffer).await.is_err()
        {
            return;
        }
        buffer.clear();
    }
}
