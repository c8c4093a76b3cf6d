//! What failures of the database mean to a port.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use diesel_async::pooled_connection::deadpool::PoolError;
use kernel::StoreError;

/// The failure of a statement.
pub(crate) fn store_error(error: DieselError) -> StoreError {
    let DieselError::DatabaseError(kind, information) = &error else {
        return StoreError::unexpected(error);
    };
    match kind {
        DatabaseErrorKind::UniqueViolation => StoreError::Conflict {
            constraint: information.constraint_name().unwrap_or_default().to_owned(),
        },
        DatabaseErrorKind::SerializationFailure => StoreError::Retryable(error.into()),
        // A server that only reads is a standby: the primary is elsewhere, or not yet there.
        DatabaseErrorKind::UnableToSendCommand
        | DatabaseErrorKind::ClosedConnection
        | DatabaseErrorKind::ReadOnlyTransaction => StoreError::Unavailable(error.into()),
        _ if is_deadlock(information.as_ref()) => StoreError::Retryable(error.into()),
        _ if is_outage(information.as_ref()) => StoreError::Unavailable(error.into()),
        _ if is_unmigrated(information.as_ref()) => StoreError::Unavailable(Box::new(Unmigrated(error))),
        _ => StoreError::unexpected(error),
    }
}

/// True for SQLSTATE 40P01. Diesel keeps the code to itself and tells only some apart, so this goes by what comes along in
/// every language of the server: the detail names the processes of the circle, one a line, and a hint points to the log.
/// Among the statements of this crate no other error has both.
fn is_deadlock(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    let lines = information.details().map_or(0, |details| details.lines().count());
    information.message() == "deadlock detected" || (information.hint().is_some() && lines >= 2)
}

/// True where the server said no to a COMMIT, or to a statement that is a transaction of its own: nothing of it stands. What it
/// says while it ends a connection comes too late to tell, and has no kind of its own in Diesel; so the kinds that can be told
/// apart count, and nothing else.
pub(crate) fn is_surely_undone(error: &DieselError) -> bool {
    use DatabaseErrorKind::{
        CheckViolation, ExclusionViolation, ForeignKeyViolation, NotNullViolation, RestrictViolation,
        SerializationFailure, UniqueViolation,
    };
    let DieselError::DatabaseError(kind, information) = error else {
        return false;
    };
    match kind {
        UniqueViolation | ForeignKeyViolation | RestrictViolation | SerializationFailure
        | NotNullViolation | CheckViolation | ExclusionViolation => true,
        _ => is_aborted(information.as_ref()) || is_deadlock(information.as_ref()),
    }
}

/// SQLSTATE 25P02, by the words that an English server has for it.
fn is_aborted(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    information.message().contains("current transaction is aborted")
}

/// True for SQLSTATE 57014, 55P03, 57P01 to 57P03, 53100 to 53300 and for what PgBouncer says when it has no server. Diesel
/// keeps these codes to itself, so this goes by the words. A server that speaks another language than English makes such a
/// failure an unexpected one: answered as a 500 all the same, without the advice to come back.
fn is_outage(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    const WORDS: [&str; 13] = [
        "canceling statement due to",
        "terminating connection",
        "the database system is",
        "too many clients",
        "remaining connection slots",
        "No space left on device",
        "out of memory",
        "out of shared memory",
        "is not currently accepting connections",
        "connection to server lost",
        "query_wait_timeout",
        "server_login",
        READS_ONLY,
    ];
    WORDS.iter().any(|words| information.message().contains(words))
}

/// What a standby says to `BEGIN … READ WRITE` (SQLSTATE 0A000). To a statement that writes it says 25006, which Diesel knows.
const READS_ONLY: &str = "read-write mode during recovery";

/// True where a connection is of no more use: it has broken, or its server only reads, or is ending (SQLSTATE 25006, 57P01 to
/// 57P03). The next one may find the primary elsewhere.
pub(crate) fn ends_connection(error: &DieselError) -> bool {
    let DieselError::DatabaseError(kind, information) = error else {
        return false;
    };
    match kind {
        DatabaseErrorKind::UnableToSendCommand
        | DatabaseErrorKind::ClosedConnection
        | DatabaseErrorKind::ReadOnlyTransaction => true,
        _ => ["terminating connection", "the database system is", READS_ONLY]
            .iter()
            .any(|words| information.message().contains(words)),
    }
}

/// True where a statement waited for a lock as long as it may (SQLSTATE 55P03), by the words that an English server has for it.
pub(crate) fn is_lock_timeout(error: &DieselError) -> bool {
    matches!(error, DieselError::DatabaseError(_, information) if information.message().contains("lock timeout"))
}

/// True for SQLSTATE 42P01, 42703 and 42883, by the words that an English server has for them: a table, a column or a function is
/// not there. The statements of this crate all fit its own migrations, so these are not there yet.
fn is_unmigrated(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    let message = information.message();
    let lacks = ["relation ", "column ", "function "]
        .iter()
        .any(|kind| message.starts_with(kind));
    lacks && message.ends_with("does not exist")
}

/// True for SQLSTATE 42501, by the words that an English server has for it: the role may not do what was asked, or something
/// belongs to another role.
pub(crate) fn is_forbidden(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source()).any(|error| {
        let text = error.to_string();
        text.contains("permission denied for") || text.contains("must be owner of")
    })
}

/// The schema is not there, or is older than this program; the program waits for it.
#[derive(Debug, thiserror::Error)]
#[error("the database's schema is missing or older than this program")]
pub(crate) struct Unmigrated(#[source] DieselError);

/// The failure to get a connection, which is always one to reach the database.
pub(crate) fn pool_error(error: PoolError) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

/// Nothing came within the time that was given.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the database gave no answer within {} ms", .0.as_millis())]
pub(crate) struct Silence(pub(crate) Duration);

impl From<Silence> for StoreError {
    fn from(silence: Silence) -> Self {
        Self::Unavailable(Box::new(silence))
    }
}

/// Waits for an answer, but not for longer than `limit`: a server that is silent does not time its statements out either.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(Silence(limit).into()))
}

/// One failure that several callers are told of.
#[derive(Debug, Clone)]
pub(crate) struct SharedFailure(Arc<StoreError>);

impl SharedFailure {
    pub(crate) fn new(error: StoreError) -> Self {
        Self(Arc::new(error))
    }

    /// The failure for one of the callers, of the same kind.
    pub(crate) fn for_one(&self) -> StoreError {
        match self.0.as_ref() {
            StoreError::Retryable(_) => StoreError::Retryable(Box::new(self.clone())),
            StoreError::Unavailable(_) => StoreError::Unavailable(Box::new(self.clone())),
            StoreError::Conflict { constraint } => StoreError::Conflict {
                constraint: constraint.clone(),
            },
            StoreError::Corrupt { row, reason } => StoreError::Corrupt {
                row: row.clone(),
                reason: reason.clone(),
            },
            StoreError::Unexpected(_) => StoreError::unexpected(self.clone()),
        }
    }
}

impl fmt::Display for SharedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the statement that was sent for several callers failed")
    }
}

impl Error for SharedFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
