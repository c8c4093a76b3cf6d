//! The product's `serve`, as a separate process over a test's database.

use std::{future::ready, ops::Deref, path::Path, process::Command, time::Duration};

use accounts::NewOperatorToken;
use adapter_postgres::{Database, DatabaseSettings};
use adapter_sealing::{KeyRing, SystemRandomness};
use usecases::{LockSet, operator_tokens::create_operator_token, transact};

use crate::fleet::{Fleet, Topology};
use crate::process::START_TIMEOUT;
use crate::{Client, Process, TestDatabase, wait_until};

/// Which workers a server runs.
pub(crate) const WORKERS: &str = "SELLER_API__SERVER__WORKERS";
const LOG_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub struct ServerOptions {
    program: std::path::PathBuf,
    /// Words before the program on the command line.
    before: Vec<String>,
    environment: Vec<(String, String)>,
    sealing_key: String,
    in_one_process: bool,
}

impl ServerOptions {
    /// The program at `path`, with a fresh sealing key, no wait for proxies at its stop, and defaults for
    /// everything else.
    pub fn new(program: impl AsRef<Path>) -> Self {
        let sealing_key = sealing_key();
        Self {
            program: program.as_ref().to_owned(),
            before: Vec::new(),
            environment: vec![("SELLER_API__SERVER__DRAIN".to_owned(), "0s".to_owned())],
            sealing_key,
            in_one_process: false,
        }
    }

    /// Sets a configuration key by its environment variable, such as `SELLER_API__RATE_LIMIT__DEFAULT`.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.environment.push((key.to_owned(), value.to_string()));
        self
    }

    /// Starts the program through another one, given as these words, which replaces itself with it (exec) in
    /// the same process.
    #[must_use]
    pub fn by(mut self, words: &[&str]) -> Self {
        self.before = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Starts one process in any topology: for tests of one process's state, such as its metrics.
    #[must_use]
    pub fn in_one_process(mut self) -> Self {
        self.in_one_process = true;
        self
    }

    /// Sets a key unless it is set.
    pub(crate) fn unless_set(self, key: &str, value: &str) -> Self {
        if self.value(key).is_some() {
            self
        } else {
            self.set(key, value)
        }
    }

    /// False if the test runs its own workers only.
    pub(crate) fn wants_workers(&self) -> bool {
        self.value(WORKERS) != Some("none")
    }

    fn value(&self, key: &str) -> Option<&str> {
        let set = self.environment.iter().rev();
        set.into_iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// A command of the program, with these options, over the database at `url`.
    pub(crate) fn command(&self, name: &str, url: &str) -> Command {
        let mut words = self
            .before
            .iter()
            .map(AsRef::as_ref)
            .chain([self.program.as_os_str()]);
        let mut command = Command::new(words.next().expect("the program is the last word"));
        command
            .args(words)
            .arg(name)
            .env("DATABASE_URL", url)
            .env("SELLER_API__KEYS__SEALING", &self.sealing_key)
            .env("SELLER_API__LOG__FORMAT", "json")
            .envs([TestDatabase::layout_variable()])
            .envs(self.environment.iter().cloned());
        command
    }
}

/// A fresh sealing key in the configuration's format.
pub fn sealing_key() -> String {
    KeyRing::generate(&SystemRandomness::new())
}

/// A running server, or several that look like one (see the crate's description). Dropping it kills them.
/// Signals, the process id and the exit code are those of the first.
#[derive(Debug)]
pub struct TestServer {
    process: Process,
    fleet: Option<Fleet>,
    /// URL of the public listener, without a trailing slash.
    pub base_url: String,
    /// URL of the back office's listener, without a trailing slash.
    pub backoffice_url: String,
    /// A token for the back office. Empty after [`Self::listen`].
    pub operator_token: String,
}

impl TestServer {
    /// Starts the processes of the topology over the database and waits until they are ready.
    pub async fn start(options: &ServerOptions, database: &TestDatabase) -> Self {
        let pooled = match Topology::chosen() {
            _ if options.in_one_process => return Self::one(options, database.url(), database).await,
            Topology::Single | Topology::Citus => return Self::one(options, database.url(), database).await,
            Topology::Fleet => false,
            Topology::FleetPgBouncer => true,
        };
        let operator_token = operator_token(database).await;
        let (mut server, fleet) = Fleet::start(options, database, pooled).await;
        let [public, backoffice] = fleet.addresses().map(str::to_owned);
        server.base_url = public;
        server.backoffice_url = backoffice;
        server.operator_token = operator_token;
        server.fleet = Some(fleet);
        server
    }

    /// Starts one more process beside this one. It is not behind the balancer.
    pub async fn another(&self, options: &ServerOptions, database: &TestDatabase) -> Self {
        let pooled = self.fleet.as_ref().and_then(Fleet::database_url);
        Self::one(options, pooled.unwrap_or(database.url()), database).await
    }

    async fn one(options: &ServerOptions, url: &str, database: &TestDatabase) -> Self {
        let operator_token = operator_token(database).await;
        let mut server = Self::listen(options, url).await;
        server.operator_token = operator_token;
        server.ready().await;
        server
    }

    /// Waits until the server reports ready.
    pub async fn ready(&self) {
        self.readiness(200).await;
    }

    /// Waits until the server reports that it is not ready.
    pub async fn not_ready(&self) {
        self.readiness(503).await;
    }

    async fn readiness(&self, status: u16) {
        let (client, url) = (Client::new(), format!("{}/readyz", self.backoffice_url));
        let is_reached = || {
            let request = client.get(&url);
            async move { request.send().await.status == status }
        };
        let failure = || format!("readiness does not become {status}:\n{}", self.log());
        wait_until(START_TIMEOUT, is_reached, failure).await;
    }

    /// Starts the program over the database at `url`, in any state, and waits only until the program listens.
    pub async fn listen(options: &ServerOptions, url: &str) -> Self {
        let mut command = options.command("serve", url);
        command
            .env("SELLER_API__SERVER__BIND", "127.0.0.1:0")
            .env("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0")
            .envs(options.environment.iter().cloned());
        let mut process = Process::start(&mut command);
        let [base_url, backoffice_url] = process.addresses(["public", "backoffice"]).await;
        Self {
            process,
            fleet: None,
            base_url,
            backoffice_url,
            operator_token: String::new(),
        }
    }

    /// Everything that the servers have logged so far, server by server.
    pub fn log(&self) -> String {
        self.process.log() + &self.fleet.as_ref().map(Fleet::log).unwrap_or_default()
    }

    /// Waits until `holds` is true of the log, and returns the log. Lines arrive a little after the answers
    /// that they belong to.
    pub async fn log_with(&self, holds: impl Fn(&str) -> bool) -> String {
        let failure = || format!("the log does not have the expected lines:\n{}", self.log());
        wait_until(LOG_TIMEOUT, || ready(holds(&self.log())), failure).await;
        self.log()
    }

    /// Kills all servers (SIGKILL) and waits until they have exited.
    pub fn kill(&mut self) {
        self.process.kill();
        if let Some(fleet) = &mut self.fleet {
            fleet.kill();
        }
    }

    /// Waits until the process exits and returns its exit code.
    pub async fn exit_code(self) -> Option<i32> {
        self.process.exit_code().await
    }
}

impl Deref for TestServer {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

async fn operator_token(database: &TestDatabase) -> String {
    let settings = DatabaseSettings {
        url: database.url().to_owned(),
        pool_size: 1,
        connect_timeout: Duration::from_secs(5),
        acquire_timeout: Duration::from_secs(5),
        statement_timeout: Duration::from_secs(5),
        layout: TestDatabase::layout(),
        default_rate_limit: std::num::NonZeroU32::MIN,
    };
    let units = Database::new(settings).expect("the URL is fine").units();
    let new = NewOperatorToken {
        name: "tests".to_owned(),
        ..NewOperatorToken::default()
    };
    let locks = LockSet::default();
    let created = transact(&*units, &locks, &new, |tx, new| {
        Box::pin(async move { create_operator_token(tx, &SystemRandomness::new(), new.clone()).await })
    });
    let (_, token) = created.await.expect("the operator token is stored");
    token.reveal().to_owned()
}
