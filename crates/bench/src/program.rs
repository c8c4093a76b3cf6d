//! Runs the program: its short commands to their end, `serve` and `worker` as processes.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use crate::cluster::Cluster;
use crate::http::Connection;

const NAME: &str = "seller-api";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between checks whether the program is ready.
const POLL: Duration = Duration::from_millis(1);
/// Limits are raised out of reach but still counted. Webhooks may go to loopback.
const SETTINGS: [(&str, &str); 6] = [
    ("SELLER_API__RATE_LIMIT__DEFAULT", "10000000"),
    ("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", "10000000"),
    ("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", "10000000"),
    ("SELLER_API__WEBHOOKS__ADDRESSES", "any"),
    // A worker would take the deliveries of another build's worker.
    ("SELLER_API__SERVER__WORKERS", "none"),
    ("SELLER_API__LOG__FORMAT", "json"),
];

/// A build of the program.
#[derive(Clone, Debug)]
pub(crate) struct Program(PathBuf);

impl Program {
    /// The program at this path. Without a path, cargo builds it and it is the one beside this executable.
    pub(crate) async fn locate(given: Option<&Path>) -> anyhow::Result<Self> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => build(&["--package", NAME]).await?.join(NAME),
        };
        ensure!(path.is_file(), "{} does not exist", path.display());
        Ok(Self(path))
    }

    fn command(&self, url: &str) -> Command {
        let mut command = Command::new(&self.0);
        command
            .env("DATABASE_URL", url)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end and returns its output.
    pub(crate) async fn output(&self, url: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(url).args(arguments).output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{NAME} {} failed: {errors}",
            arguments.join(" ")
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Builds what cargo's arguments select, in this executable's profile. Returns the folder of executables.
pub(crate) async fn build(arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this executable is unknown")?;
    let folder = own.parent().context("this executable lies in no folder")?;
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet"])
            .args(arguments)
            .kill_on_drop(true);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let status = build.status().await.context("cargo does not start")?;
        ensure!(status.success(), "cargo build {} failed", arguments.join(" "));
    }
    Ok(folder.to_owned())
}

/// A migrated database and the key that seals its columns.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) name: String,
    url: String,
    key: String,
}

impl Database {
    pub(crate) async fn create(cluster: &Cluster, program: &Program, name: &str) -> anyhow::Result<Self> {
        let create = format!("create database {name}");
        cluster.sql("postgres", &create).await?;
        let url = cluster.url(name);
        program.output(&url, &["migrate"]).await?;
        let key = program.output(&url, &["admin", "keys", "generate"]).await?;
        Ok(Self {
            name: name.to_owned(),
            url,
            key,
        })
    }
}

/// A running `serve` or `worker`. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) program: Program,
    child: Child,
    log: PathBuf,
    pub(crate) pid: u32,
    pub(crate) public: SocketAddr,
    /// The back office, whose probes a worker has too.
    pub(crate) backoffice: SocketAddr,
    pub(crate) ready_after: Duration,
}

impl Server {
    /// Starts `serve` or `worker` and waits until it is ready.
    pub(crate) async fn start(
        command: &str,
        program: &Program,
        cluster: &Cluster,
        database: &Database,
    ) -> anyhow::Result<Self> {
        let (public, backoffice) = (free_address()?, free_address()?);
        let log = cluster.scratch_file(&format!("{}-{command}-{}.log", database.name, public.port()));
        let file = File::options().append(true).create(true).open(&log)?;
        let begun = Instant::now();
        let child = program
            .command(&database.url)
            .arg(command)
            .env("SELLER_API__SERVER__BIND", public.to_string())
            .env("SELLER_API__SERVER__BACKOFFICE_BIND", backoffice.to_string())
            .env("SELLER_API__WORKER__BIND", backoffice.to_string())
            .env("SELLER_API__KEYS__SEALING", &database.key)
            .envs(SETTINGS)
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("the program does not start")?;
        let mut server = Self {
            program: program.clone(),
            pid: child.id().context("the program has ended")?,
            child,
            log,
            public,
            backoffice,
            ready_after: Duration::ZERO,
        };
        match tokio::time::timeout(START_TIMEOUT, server.become_ready()).await {
            Ok(ready) => ready.with_context(|| server.log_end())?,
            Err(_) => bail!("not ready after {START_TIMEOUT:?}: {}", server.log_end()),
        }
        server.ready_after = begun.elapsed();
        Ok(server)
    }

    async fn become_ready(&mut self) -> anyhow::Result<()> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the program ended with {status}");
            }
            if let Ok(mut connection) = Connection::open(self.backoffice).await
                && let Ok(response) = connection.get("/readyz").await
                && response.status == 200
            {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// How many statements the program has sent, by its metrics.
    pub(crate) async fn statements(&self) -> anyhow::Result<f64> {
        let mut probes = Connection::open(self.backoffice).await?;
        let metrics = std::str::from_utf8(probes.get("/metrics").await?.expect(200)?)?;
        let counts = metrics.lines().filter_map(|line| {
            line.strip_prefix("database_statement_duration_seconds_count")?
                .split(' ')
                .nth(1)
        });
        counts.map(|count| Ok(count.parse::<f64>()?)).sum()
    }

    /// Truncates the log: one line per request would fill the disk.
    pub(crate) fn clear_log(&self) -> anyhow::Result<()> {
        Ok(File::options().write(true).open(&self.log)?.set_len(0)?)
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.len().saturating_sub(5);
        lines.get(last..).unwrap_or_default().join("\n")
    }

    /// Stops the process by SIGTERM.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        rustix::process::kill_process(pid.context("no process id")?, Signal::TERM)?;
        let ended = tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await;
        let status = ended.context("the program does not end on SIGTERM")??;
        ensure!(
            status.success(),
            "the program ended with {status}: {}",
            self.log_end()
        );
        Ok(())
    }
}

/// A loopback address with a port that was free a moment ago.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
