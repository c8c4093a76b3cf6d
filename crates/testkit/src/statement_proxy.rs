//! A proxy between the program and PostgreSQL that parses statements. It records them, injects a fault into a
//! chosen statement, can rewrite statements, and can be slow or unreachable.
//!
//! It executes a connection's statements one after another, even if the client pipelines them. So the server
//! has finished a statement when its fault happens.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::TestDatabase;
use crate::link::{LinkState, Pace};

/// The port in the names of sockets.
const PORT: u16 = 5432;

/// The code of an `SSLRequest`.
const TLS_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// A failure at one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// PostgreSQL rejects the statement with a serialization failure.
    FailsBefore,
    /// The statement is executed, then its transaction fails.
    FailsAfter,
    /// The connection breaks before the statement reaches the server.
    NeverArrives,
    /// The statement is executed, and the connection breaks before the answer.
    AnswerLost,
    /// The statement is executed, and the process is killed before the answer.
    ProcessDies,
    /// The statement is executed, and its answer waits for [`StatementProxy::resume`].
    Waits,
}

/// Replaces `instead_of` by `this` in the text of every statement that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewrite {
    pub this: &'static str,
    pub instead_of: &'static str,
}

/// A recorded statement: the `nth` with the text `sql`, from 0. The text is in lower case on one line,
/// without comments and quotation marks of names: a test names a piece of it, however it is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    pub nth: usize,
    /// Whether a transaction was open after the statement.
    pub in_transaction: bool,
}

/// A running proxy. It stops with the runtime of its test.
#[derive(Debug)]
pub struct StatementProxy {
    url: String,
    shared: Arc<Shared>,
    _folder: TempDir,
}

#[derive(Debug, Default)]
struct Shared {
    target: PathBuf,
    link: LinkState,
    rewrite: Option<Rewrite>,
    has_rewritten: AtomicBool,
    /// The batches of which the answer is not passed on yet.
    under_way: AtomicUsize,
    state: Mutex<State>,
    reached: watch::Sender<bool>,
    resumed: watch::Sender<bool>,
}

/// The text of [`Statement`].
fn plain(sql: &str) -> String {
    let code = sql
        .lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let words: Vec<_> = code.flat_map(str::split_whitespace).collect();
    let text = words.join(" ").replace("( ", "(").replace(" )", ")");
    text.replace('"', "").to_lowercase()
}

/// The statement into which a fault is injected.
#[derive(Debug)]
enum Target {
    Statement { sql: String, nth: usize },
    Next { end: &'static str, then_block: bool },
}

#[derive(Debug, Default)]
struct State {
    recorded: Vec<Statement>,
    /// What each recorded statement was sent with.
    batches: Vec<Vec<u8>>,
    armed: Option<(Target, Fault)>,
    process: Option<u32>,
}

impl StatementProxy {
    pub fn to(database: &TestDatabase) -> Self {
        Self::rewriting(database, None)
    }

    pub fn rewriting(database: &TestDatabase, rewrite: Option<Rewrite>) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let url = database.url_at(folder.path(), PORT);
        let socket = format!(".s.PGSQL.{PORT}");
        let listener = UnixListener::bind(folder.path().join(&socket)).expect("the socket is bound");
        let shared = Arc::new(Shared {
            target: database.socket_folder().join(socket),
            rewrite,
            ..Shared::default()
        });
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&accepting);
                let client = shared.link.connect(client);
                // Broken connections are expected.
                tokio::spawn(async move { drop(forward(client, &shared).await) });
            }
        });
        Self {
            url,
            shared,
            _folder: folder,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Clears the record, and injects the fault into this statement when it comes.
    pub fn arm(&self, statement: &Statement, fault: Fault) {
        let (sql, nth) = (statement.sql.clone(), statement.nth);
        self.set_armed(Target::Statement { sql, nth }, fault);
    }

    /// Injects the fault into the next COMMIT.
    pub fn lose_commit(&self, fault: Fault) {
        let (end, then_block) = ("commit", false);
        self.set_armed(Target::Next { end, then_block }, fault);
    }

    /// Injects the fault into the next statement of which the text ends like this, and blocks at the same
    /// moment.
    pub fn lose_and_block(&self, end: &'static str, fault: Fault) {
        let then_block = true;
        self.set_armed(Target::Next { end, then_block }, fault);
    }

    fn set_armed(&self, target: Target, fault: Fault) {
        self.shared.reached.send_replace(false);
        self.shared.resumed.send_replace(false);
        let mut state = self.shared.state();
        state.recorded.clear();
        state.batches.clear();
        state.armed = Some((target, fault));
    }

    /// From now on connections are accepted, but no bytes pass.
    pub fn block(&self) {
        self.shared.link.blocked.send_replace(true);
    }

    /// The number of batches whose answer has not been passed on.
    pub fn under_way(&self) -> usize {
        self.shared.under_way.load(Ordering::Relaxed)
    }

    /// Lets the bytes pass that have waited.
    pub fn unblock(&self) {
        self.shared.link.blocked.send_replace(false);
    }

    /// Sets the pace of all connections from now on.
    pub fn slow_down(&self, pace: Pace) {
        self.shared.link.pace.send_replace(pace);
    }

    /// Clears the record.
    pub fn record(&self) {
        let mut state = self.shared.state();
        state.recorded.clear();
        state.batches.clear();
    }

    /// The statements since the last [`Self::record`] or [`Self::arm`].
    pub fn recorded(&self) -> Vec<Statement> {
        self.shared.state().recorded.clone()
    }

    /// What was sent since the last [`Self::record`] or [`Self::arm`] with each statement of this text: its
    /// parameters as they are on the wire.
    pub fn sent_with(&self, sql: &str) -> Vec<Vec<u8>> {
        let state = self.shared.state();
        let recorded = state.recorded.iter().zip(&state.batches);
        let with_text = recorded.filter(|(statement, _)| statement.sql == sql);
        with_text.map(|(_, batch)| batch.clone()).collect()
    }

    /// Whether these bytes were sent with any statement since the last [`Self::record`] or [`Self::arm`].
    pub fn has_sent(&self, bytes: &[u8]) -> bool {
        let has = |batch: &Vec<u8>| batch.windows(bytes.len()).any(|part| part == bytes);
        self.shared.state().batches.iter().any(has)
    }

    /// Sets the process that [`Fault::ProcessDies`] kills.
    pub fn set_process(&self, process: u32) {
        self.shared.state().process = Some(process);
    }

    /// Waits until the fault has happened.
    pub async fn reached(&self) {
        until(&self.shared.reached).await;
    }

    /// Lets a statement that waits continue.
    pub fn resume(&self) {
        self.shared.resumed.send_replace(true);
    }

    /// Disarms. Returns true if the fault has not happened.
    pub fn disarm(&self) -> bool {
        self.shared.state().armed.take().is_some()
    }

    /// Whether a rewritten statement has passed.
    pub fn has_rewritten(&self) -> bool {
        self.shared.has_rewritten.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the state is whole")
    }

    /// The rewritten text; `None` for a statement that stays as it is.
    fn rewritten(&self, sql: &str) -> Option<String> {
        let Rewrite { this, instead_of } = self.rewrite?;
        sql.contains(instead_of).then(|| {
            self.has_rewritten.store(true, Ordering::Relaxed);
            sql.replace(instead_of, this)
        })
    }

    /// Records a statement, and takes the fault armed for it.
    fn next(&self, sql: &str, batch: &[u8]) -> (usize, Option<Fault>) {
        let mut state = self.state();
        let index = state.recorded.len();
        let nth = state.recorded.iter().filter(|earlier| earlier.sql == sql).count();
        state.recorded.push(Statement {
            sql: sql.to_owned(),
            nth,
            in_transaction: false,
        });
        state.batches.push(batch.to_vec());
        let fault = state.armed.take_if(|(target, _)| match target {
            Target::Statement { sql: armed, nth: of } => armed == sql && *of == nth,
            Target::Next { end, then_block } => {
                let hit = sql.ends_with(*end);
                if hit && *then_block {
                    self.link.blocked.send_replace(true);
                }
                hit
            }
        });
        (index, fault.map(|(_, fault)| fault))
    }
}

async fn until(flag: &watch::Sender<bool>) {
    // It cannot fail while its sender exists.
    drop(flag.subscribe().wait_for(|is_so| *is_so).await);
}

/// A client's messages up to the next point at which it expects an answer.
struct Batch {
    bytes: Vec<u8>,
    /// The statement that the batch executes, if any.
    sql: Option<String>,
}

/// The server's answer to a batch.
struct Reply {
    bytes: Vec<u8>,
    in_transaction: bool,
}

async fn forward(client: DuplexStream, shared: &Shared) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut server = BufReader::new(UnixStream::connect(&shared.target).await?);
    // The tests' server trusts all users of its socket: it is ready after the startup message.
    let startup = startup(&mut client).await?;
    server.write_all(&startup).await?;
    client.write_all(&answer(&mut server).await?.bytes).await?;
    let mut prepared = HashMap::new();
    loop {
        let batch = batch(&mut client, shared, &mut prepared).await?;
        let _under_way = UnderWay::new(shared);
        let Some(sql) = batch.sql else {
            server.write_all(&batch.bytes).await?;
            let reply = answer(&mut server).await?;
            client.write_all(&reply.bytes).await?;
            continue;
        };
        let (index, fault) = shared.next(&sql, &batch.bytes);
        let reply = match fault {
            Some(Fault::FailsBefore) => fail(&mut server, &sql).await?,
            Some(Fault::NeverArrives) => {
                shared.reached.send_replace(true);
                return Ok(());
            }
            _ => {
                server.write_all(&batch.bytes).await?;
                answer(&mut server).await?
            }
        };
        if let Some(statement) = shared.state().recorded.get_mut(index) {
            statement.in_transaction = reply.in_transaction;
        }
        if fault.is_some() {
            shared.reached.send_replace(true);
        }
        let reply = match fault {
            Some(Fault::FailsAfter) => fail(&mut server, &sql).await?,
            Some(Fault::AnswerLost) => return Ok(()),
            Some(Fault::ProcessDies) => {
                let process = shared
                    .state()
                    .process
                    .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
                return Ok(kill_process(process.expect("a process"), Signal::KILL)?);
            }
            Some(Fault::Waits) => {
                until(&shared.resumed).await;
                reply
            }
            _ => reply,
        };
        client.write_all(&reply.bytes).await?;
    }
}

/// A batch that is counted until it is dropped.
struct UnderWay<'a>(&'a Shared);

impl<'a> UnderWay<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.under_way.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads the startup message, which has no type byte. Declines a TLS request before it.
async fn startup(client: &mut BufReader<DuplexStream>) -> io::Result<Vec<u8>> {
    loop {
        let length = client.read_u32().await?;
        let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)? - 4];
        client.read_exact(&mut body).await?;
        if body != TLS_REQUEST {
            return Ok([&length.to_be_bytes()[..], &body].concat());
        }
        client.write_all(b"N").await?;
    }
}

/// Makes the transaction fail at the server. A COMMIT that fails ends its transaction.
async fn fail(server: &mut BufReader<UnixStream>, sql: &str) -> io::Result<Reply> {
    if sql == "commit" {
        query(server, "rollback").await?;
    }
    query(
        server,
        "do $$ begin raise exception 'a planted failure' using errcode = 'serialization_failure'; end $$",
    )
    .await
}

async fn query(server: &mut BufReader<UnixStream>, sql: &str) -> io::Result<Reply> {
    server
        .write_all(&message(b'Q', &[sql.as_bytes(), &[0]].concat())?)
        .await?;
    answer(server).await
}

/// Reads the server's messages until it is ready for the next query.
async fn answer(server: &mut BufReader<UnixStream>) -> io::Result<Reply> {
    let mut bytes = Vec::new();
    loop {
        let (kind, body) = read(server).await?;
        bytes.extend(message(kind, &body)?);
        if kind == b'Z' {
            return Ok(Reply {
                bytes,
                in_transaction: body.first() != Some(&b'I'),
            });
        }
    }
}

/// Reads the client's messages until it expects an answer.
async fn batch(
    client: &mut BufReader<DuplexStream>,
    shared: &Shared,
    prepared: &mut HashMap<Vec<u8>, String>,
) -> io::Result<Batch> {
    let mut batch = Batch {
        bytes: Vec::new(),
        sql: None,
    };
    let mut bound = None;
    loop {
        let (kind, mut body) = read(client).await?;
        let texts = body
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .take(2)
            .collect::<Vec<_>>();
        match (kind, texts.as_slice()) {
            (b'P', [name, sql]) => {
                let text = plain(str::from_utf8(sql).map_err(io::Error::other)?);
                if let Some(rewritten) = shared.rewritten(&text) {
                    let rest = body.split_off(name.len() + sql.len() + 2);
                    body = [name, &[0][..], rewritten.as_bytes(), &[0], &rest].concat();
                }
                prepared.insert(name.clone(), text);
            }
            (b'B', [_, name]) => bound = prepared.get(name).cloned(),
            (b'E', _) => batch.sql = bound.take(),
            (b'Q', [sql, ..]) => batch.sql = Some(plain(str::from_utf8(sql).map_err(io::Error::other)?)),
            _ => {}
        }
        batch.bytes.extend(message(kind, &body)?);
        if matches!(kind, b'S' | b'Q') {
            return Ok(batch);
        }
    }
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let kind = from.read_u8().await?;
    let length = from.read_u32().await?;
    let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)? - 4];
    from.read_exact(&mut body).await?;
    Ok((kind, body))
}

fn message(kind: u8, body: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
    Ok([&[kind], &length.to_be_bytes()[..], body].concat())
}
