//! The program's `serve`, as a process of its own.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tokio::process::Child;

use crate::http::Connection;
use crate::program::Program;
use crate::requests::Listener;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a starting server is looked at.
const POLL: Duration = Duration::from_millis(1);
/// How long a server may take to end.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// Limits that no load here reaches.
const LIFTED: [(&str, &str); 3] = [
    ("SELLER_API__RATE_LIMIT__DEFAULT", "10000000"),
    ("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", "10000000"),
    ("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", "10000000"),
];

/// A running server. It is killed with the value, unless it was stopped before.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
    /// The process id.
    pub(crate) pid: u32,
    /// The public listener.
    pub(crate) public: SocketAddr,
    /// The back office's listener.
    pub(crate) back_office: SocketAddr,
    /// From the start of the process to the first answer that says it is ready.
    pub(crate) ready_after: Duration,
}

impl Server {
    /// Starts one over a migrated database and waits until it is ready. It logs into the file `log`.
    pub(crate) async fn start(
        program: &Program,
        database_url: &str,
        key: &str,
        log: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_with(program, database_url, key, log, &[]).await
    }

    /// The same with further settings, by the names of their environment variables.
    pub(crate) async fn start_with(
        program: &Program,
        database_url: &str,
        key: &str,
        log: &Path,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let file = File::options().append(true).create(true).open(log)?;
        file.set_len(0)?;
        let begun = Instant::now();
        let child = program
            .command(database_url)
            .arg("serve")
            .env("SELLER_API__SERVER__BIND", "127.0.0.1:0")
            .env("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0")
            .env("SELLER_API__KEYS__SEALING", key)
            .env("SELLER_API__LOG__FORMAT", "json")
            .envs(LIFTED)
            .envs(settings.iter().copied())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("the server does not start")?;
        let pid = child.id().context("the server has ended")?;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let log = log.to_owned();
        let mut server = Self {
            child,
            log,
            pid,
            public: nowhere,
            back_office: nowhere,
            ready_after: Duration::ZERO,
        };
        match tokio::time::timeout(PATIENCE, server.become_ready()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.context(server.log_end())),
            Err(_) => bail!("the server is not ready after {PATIENCE:?}: {}", server.log_end()),
        }
        server.ready_after = begun.elapsed();
        Ok(server)
    }

    async fn become_ready(&mut self) -> anyhow::Result<()> {
        loop {
            if let Some((public, back_office)) = listening(&std::fs::read_to_string(&self.log)?) {
                (self.public, self.back_office) = (public, back_office);
                break;
            }
            self.still_runs()?;
            tokio::time::sleep(POLL).await;
        }
        let mut connection = Connection::open(self.back_office).await?;
        while connection.json("GET", "/readyz", &[], None).await?.0 != 200 {
            self.still_runs()?;
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// The address of one of its listeners.
    pub(crate) const fn address(&self, listener: Listener) -> SocketAddr {
        match listener {
            Listener::Public => self.public,
            Listener::BackOffice => self.back_office,
        }
    }

    fn still_runs(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the server ended with {status}"),
        }
    }

    /// Empties the log, which has a line for each request.
    pub(crate) fn clear_log(&self) -> anyhow::Result<()> {
        File::options().write(true).open(&self.log)?.set_len(0)?;
        Ok(())
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Stops it as an operator would, and waits for its end.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(Pid::from_raw)
            .context("no process id")?;
        rustix::process::kill_process(pid, Signal::TERM)?;
        let status = tokio::time::timeout(LAST_WORDS, self.child.wait())
            .await
            .context("the server does not end when asked to")??;
        anyhow::ensure!(
            status.success(),
            "the server ended with {status}: {}",
            self.log_end()
        );
        Ok(())
    }
}

/// The two addresses in the log, once the server says that it listens.
fn listening(log: &str) -> Option<(SocketAddr, SocketAddr)> {
    log.lines().find_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        let fields = event.get("fields")?;
        (fields.get("message")? == "listening").then_some(())?;
        let address = |name| fields.get(name)?.as_str()?.parse().ok();
        Some((address("public")?, address("backoffice")?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_addresses_in_the_log() {
        let log = "not json\n{\"fields\":{\"message\":\"starting\"}}\n\
                   {\"fields\":{\"message\":\"listening\",\"public\":\"127.0.0.1:81\",\"backoffice\":\"127.0.0.1:82\"}}\n";
        let (public, back_office) = listening(log).unwrap();
        assert_eq!((public.port(), back_office.port()), (81, 82));
        assert_eq!(listening("{\"fields\":{}}\n"), None);
    }
}
