//! Shared by all commands: start, output (results on stdout, the rest on stderr), and exit codes.

use std::fmt::Display;
use std::io;
use std::io::Write as _;
use std::process::ExitCode;

use adapter_postgres::MigrateError;
use kernel::{StoreError, TransactionError};

use crate::config::{Loaded, LogConfig, Sources};
use crate::logging;

/// The result could not be printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrintError {
    #[error("cannot print the result")]
    Found(#[source] io::Error),
    #[error("succeeded, but the result cannot be printed")]
    Done(#[source] io::Error),
}

impl PrintError {
    pub(crate) fn done(self) -> Self {
        let (Self::Found(error) | Self::Done(error)) = self;
        Self::Done(error)
    }

    /// Whether the reader of what was found closed the pipe, as `head` does. That is not a failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Found(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Prints one or several lines on stdout.
pub(crate) fn print(text: impl Display) -> Result<(), PrintError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(PrintError::Found)
}

/// Prints on stderr. A closed stderr is not a failure.
pub(crate) fn note(text: impl Display) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// An error with its own exit code, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{1}")]
pub(crate) struct ExitError(pub(crate) Exit, pub(crate) String);

/// The error of a use case, so that [`Exit::of`] finds its cause.
pub(crate) fn use_case_error<R: Into<anyhow::Error>>(failure: usecases::Failure<R>) -> anyhow::Error {
    match failure {
        usecases::Failure::Refused(refusal) => refusal.into(),
        usecases::Failure::Store(error) => error.into(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Failed,
    Usage,
    NotFound,
    Unavailable,
    Unknown,
}

impl Exit {
    /// The result of a command that failed with this error.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Failed)
    }

    fn of_cause(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(ExitError(exit, _)) = error.downcast_ref() {
            return Some(*exit);
        }
        if let Some(
            MigrateError::Unreachable(_) | MigrateError::Forbidden(_) | MigrateError::AnotherSchema { .. },
        ) = error.downcast_ref()
        {
            return Some(Self::Unavailable);
        }
        if let Some(PrintError::Done(_)) = error.downcast_ref() {
            return Some(Self::Unknown);
        }
        let store = match error.downcast_ref::<TransactionError>() {
            Some(TransactionError::Unknown(_)) => return Some(Self::Unknown),
            Some(TransactionError::Store(store)) => Some(store),
            None => error.downcast_ref::<StoreError>(),
        };
        matches!(store, Some(StoreError::Unavailable(_))).then_some(Self::Unavailable)
    }
}

impl From<Exit> for ExitCode {
    /// The codes are explained in `cli/help.txt`.
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Unavailable => 4,
            Exit::Unknown => 5,
        })
    }
}

/// Runs an async command on its own runtime. Tasks that are still running at its end are dropped.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// Loads the configuration of a short command, and logs only warnings unless a level is configured.
pub(crate) fn load_for_command(sources: Sources) -> anyhow::Result<Loaded> {
    let loaded = sources.load()?;
    let level = match loaded.source("log.level") {
        Some(_) => loaded.config.log.level.clone(),
        None => "warn".to_owned(),
    };
    logging::start(&LogConfig {
        level,
        ..loaded.config.log
    });
    for warning in loaded.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_database_is_seen_behind_other_errors() {
        let lost = TransactionError::Store(StoreError::Unavailable("away".into()));
        let error = use_case_error(usecases::Failure::<anyhow::Error>::Store(lost));
        assert_eq!(Exit::of(&error.context("cannot go on")), Exit::Unavailable);
    }
}
