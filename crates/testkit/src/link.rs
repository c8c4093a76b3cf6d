//! A way to a database that a test can block, for a server that is there but does not answer, that it can make long and narrow,
//! and on which it can lose what is said at a COMMIT.

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

/// What one direction of a connection holds at most before somebody has to wait.
const UNDER_WAY: usize = 1 << 20;

/// A connection that breaks at its COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostCommit {
    /// The server commits, and its answer gets lost.
    Done,
    /// The COMMIT itself gets lost, so the server rolls back.
    Undone,
}

/// Forwards connections to a test's database until it is blocked; what is sent meanwhile waits.
#[derive(Debug)]
pub struct Link {
    url: String,
    way: Way,
    _folder: TempDir,
}

/// What all connections share.
#[derive(Debug, Clone)]
struct Way {
    open: Arc<watch::Sender<bool>>,
    losing: Arc<watch::Sender<Option<Losing>>>,
    pace: Arc<watch::Sender<Pace>>,
}

/// How slow a way is, in each direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// How long everything is under way.
    pub delay: Duration,
    /// How much longer some of it is, at most.
    pub jitter: Duration,
    /// How many bytes a second go through on each connection; any number where there is none.
    pub bandwidth: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Losing {
    commit: LostCommit,
    then_block: bool,
}

impl Link {
    /// An open way to the database.
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

    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on connections are taken and bytes swallowed, and nothing comes back.
    pub fn block(&self) {
        self.way.open.send_replace(false);
    }

    /// Lets everything through that has waited.
    pub fn unblock(&self) {
        self.way.open.send_replace(true);
    }

    /// From now on the way is as slow as this.
    pub fn slow_down(&self, pace: Pace) {
        self.way.pace.send_replace(pace);
    }

    /// Breaks the connection that sends the next COMMIT.
    pub fn lose(&self, commit: LostCommit) {
        let losing = Losing {
            commit,
            then_block: false,
        };
        self.way.losing.send_replace(Some(losing));
    }

    /// Breaks the connection that sends the next COMMIT, and blocks the way in the same moment.
    pub fn lose_and_block(&self, commit: LostCommit) {
        let losing = Losing {
            commit,
            then_block: true,
        };
        self.way.losing.send_replace(Some(losing));
    }

    /// Waits until a COMMIT was lost.
    pub async fn lost(&self) {
        let mut losing = self.way.losing.subscribe();
        drop(losing.wait_for(Option::is_none).await);
    }
}

impl Way {
    /// What becomes of these bytes of a client's: where they hold a COMMIT that is to be lost, how.
    fn takes_loss(&self, bytes: &[u8]) -> Option<LostCommit> {
        // The end of a statement's text, in a simple query and in a parsed one alike.
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

/// One end of a way on which what is said is under way for a while: it takes everything at once, and hands it on in its order.
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
            // What came before has to be through, and nothing overtakes.
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

/// Copies what a client says until either side ends.
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

/// Copies what the server says until either side ends, or until it answers what is to be lost.
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
