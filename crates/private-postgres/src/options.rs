//! What an owner can choose about its cluster, and the server settings which follow from that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Connection;

/// What a crash of the machine may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: PostgreSQL's own defaults, real fsync.
    #[default]
    Durable,
    /// Everything: no fsync and no more write-ahead log than needed. For data that nobody will miss.
    Ephemeral,
}

/// How to run a cluster; made by [`Options::new`] and the methods that follow.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) folder: PathBuf,
    pub(crate) binaries: Option<PathBuf>,
    pub(crate) durability: Durability,
    pub(crate) max_connections: u16,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) fresh: bool,
    pub(crate) throw_away: bool,
    pub(crate) primary: Option<Connection>,
    pub(crate) start_timeout: Duration,
}

impl Options {
    /// A durable cluster in `folder`, which is made where missing and belongs to the cluster alone: 200 connections,
    /// one minute to become ready.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            binaries: None,
            durability: Durability::Durable,
            max_connections: 200,
            settings: Vec::new(),
            fresh: false,
            throw_away: false,
            primary: None,
            start_timeout: Duration::from_mins(1),
        }
    }

    /// The folder that holds `postgres` and `initdb`, instead of looking for one.
    #[must_use]
    pub fn binaries(mut self, folder: impl Into<PathBuf>) -> Self {
        self.binaries = Some(folder.into());
        self
    }

    /// What a crash of the machine may cost.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How many clients the server admits at once.
    #[must_use]
    pub fn max_connections(mut self, count: u16) -> Self {
        self.max_connections = count;
        self
    }

    /// A setting of the server (`shared_buffers`, `1GB`); the last one of a name counts, over the crate's own too.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Whether to delete what earlier owners left in the folder, before the start.
    #[must_use]
    pub fn fresh(mut self, fresh: bool) -> Self {
        self.fresh = fresh;
        self
    }

    /// Whether the data end with their owner.
    #[must_use]
    pub fn throw_away(mut self, throw_away: bool) -> Self {
        self.throw_away = throw_away;
        self
    }

    /// The cluster to copy where the folder holds no data yet, and to follow then as its standby, until
    /// [`promote`](crate::Cluster::promote). It has to run, as the same account, as [`Durability::Durable`], and with no more
    /// connections than this one.
    #[must_use]
    pub fn standby_of(mut self, primary: Connection) -> Self {
        self.primary = Some(primary);
        self
    }

    /// How long the server may take to become ready, crash recovery included.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// The `name=value` pairs for the server's command line, in order of rising precedence.
    pub(crate) fn server_settings(&self, socket_folder: &Path) -> Vec<String> {
        let mut settings: Vec<String> = COMMON.iter().map(ToString::to_string).collect();
        settings.push(format!("unix_socket_directories=\"{}\"", socket_folder.display()));
        settings.push(format!("max_connections={}", self.max_connections));
        if self.durability == Durability::Ephemeral {
            settings.extend(EPHEMERAL.iter().map(ToString::to_string));
        }
        settings.extend(
            self.settings
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        settings
    }
}

/// Huge pages are off because a container may see pages it is not allowed to touch.
const COMMON: &[&str] = &[
    "listen_addresses=",
    "port=5432",
    "logging_collector=off",
    "log_destination=stderr",
    "log_line_prefix=%m [%p] ",
    "log_timezone=UTC",
    "timezone=UTC",
    "log_checkpoints=off",
    "huge_pages=off",
];

/// Autovacuum would disturb copies of a template database, and measurements of plans; who needs statistics asks for
/// them.
const EPHEMERAL: &[&str] = &[
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_wal_size=256MB",
    "autovacuum=off",
    "jit=off",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_settings_come_last() {
        let options = Options::new("/x")
            .durability(Durability::Ephemeral)
            .setting("fsync", "on");
        let settings = options.server_settings(Path::new("/socket"));
        let last = settings.iter().rfind(|setting| setting.starts_with("fsync="));
        assert_eq!(last.unwrap(), "fsync=on");
        assert!(settings.contains(&"listen_addresses=".to_owned()));
    }

    #[test]
    fn durable_is_the_default() {
        let settings = Options::new("/x").server_settings(Path::new("/socket"));
        assert!(!settings.iter().any(|setting| setting.starts_with("fsync=")));
    }
}
