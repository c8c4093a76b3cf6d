//! What a server holds while many clients stay connected.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cluster::Cluster;
use crate::figures::real;
use crate::http::Connection;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::program::Program;
use crate::progress::Progress;
use crate::requests::Offers;
use crate::server::Server;
use crate::stand::Stand;

/// Requests that each connection has made before memory is read, so that its buffers exist.
const REQUESTS_EACH: usize = 3;
/// File descriptors beside the connections.
const OTHER_FILES: u64 = 256;

/// The first connection idles until the last one is there.
const PATIENT: (&str, &str) = ("SELLER_API__SERVER__KEEP_ALIVE", "10m");

/// How many of the public listener's connections idle, by the server's own word. It lets go of most of what it holds for those.
const RESTING: &str = "http_connections_resting{listener=\"api\"}";
/// How long that may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than the server's allocator keeps what was freed.
const GIVEN_BACK: Duration = Duration::from_secs(4);

/// The connections that the bar of memory is about.
const BARRED: u64 = 2_000;

/// The memory of a fresh server, without and with connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Ready, with none.
    pub(crate) before: Memory,
    /// With as many as the bar is about, or all if those are fewer.
    pub(crate) with_few: With,
    /// With all of them.
    pub(crate) with_all: With,
}

/// The memory while so many connections are open, after each has been used and all have gone to rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct With {
    /// How many connections were kept.
    pub(crate) connections: u64,
    /// What the server holds.
    pub(crate) memory: Memory,
}

/// Opens the connections on a server of their own, uses each, and reads what the server holds while all stay open and idle.
pub(crate) async fn measure(
    cluster: &Cluster,
    program: &Program,
    stand: &Stand,
    connections: u64,
    progress: Progress,
) -> anyhow::Result<Kept> {
    let step = progress.counted("keeping connections open", connections);
    raise_file_limit(connections + OTHER_FILES)?;
    let url = cluster.url(&stand.database);
    let log = cluster.scratch("connections.log");
    let server = Server::start_with(program, &url, &stand.key, &log, &[PATIENT]).await?;
    let before = Memory::of(server.pid)?;
    let requests = Offers::of_all(stand.catalogue, &stand.tokens());
    let mut random = fastrand::Rng::with_seed(1);
    let mut request = Vec::new();
    let (mut open, mut with_few) = (Vec::new(), None);
    for number in 1..=connections {
        let mut connection = Connection::open(server.public).await?;
        for _ in 0..REQUESTS_EACH {
            requests.write(&mut random, &mut request)?;
            let status = connection.exchange(&request).await?.status;
            ensure!(status == 200, "a request was answered {status}");
        }
        open.push(connection);
        step.advance(1);
        if number == BARRED {
            with_few = Some(at_rest(&server, number).await?);
        }
    }
    let with_all = at_rest(&server, connections).await?;
    // The first ones are still there: nobody was cut off meanwhile.
    for connection in open.iter_mut().take(10) {
        connection
            .exchange(&request)
            .await
            .context("a kept connection was closed")?;
    }
    drop(open);
    server.stop().await?;
    Ok(Kept {
        before,
        with_few: with_few.unwrap_or(with_all),
        with_all,
    })
}

/// What the server holds once this many connections are at rest.
async fn at_rest(server: &Server, connections: u64) -> anyhow::Result<With> {
    let began = Instant::now();
    while Metrics::of(server.back_office).await?.sum(RESTING) < real(connections) {
        ensure!(began.elapsed() < PATIENCE, "the connections do not go to rest");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(GIVEN_BACK).await;
    let memory = Memory::of(server.pid)?;
    Ok(With { connections, memory })
}

/// Raises this process's limit of open files where it is lower; servers started later inherit it.
pub(crate) fn raise_file_limit(needed: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).with_context(|| format!("{needed} open files are not allowed here"))
}
