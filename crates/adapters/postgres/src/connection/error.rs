//! Maps database errors to `StoreError`.

use std::{error::Error, time::Duration};

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use kernel::StoreError;

use Meaning::{
    Deadlock, Denied, DiskFull, Duplicate, EndsConnection, LockTimeout, Outage, Outdated, Refused,
    StatementLost,
};

pub(crate) fn store_error(error: DieselError) -> StoreError {
    let DieselError::DatabaseError(_, information) = &error else {
        return StoreError::unexpected(error);
    };
    match meaning(&error) {
        Some(Duplicate) => StoreError::Conflict {
            constraint: constraint(information.as_ref()).to_owned(),
        },
        Some(Deadlock) => StoreError::Retryable(error.into()),
        Some(LockTimeout | Outage | EndsConnection | StatementLost) => StoreError::Unavailable(error.into()),
        Some(DiskFull) => StoreError::Unavailable(DiskIsFull(error).into()),
        Some(Outdated) => StoreError::Unavailable(SchemaOutdated(error).into()),
        Some(Refused | Denied) | None => StoreError::unexpected(error),
    }
}

/// The violated constraint. Citus forwards the message of a shard, without the field for the name, and
/// appends the shard's number to the name: `… unique constraint "offers_pkey_102008"`.
fn constraint(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> &str {
    let of_message = || information.message().split('"').nth(1).unwrap_or_default();
    let name = information.constraint_name().unwrap_or_else(of_message);
    match name.rsplit_once('_') {
        Some((name, shard)) if shard.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

/// What an error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Rejected by a constraint other than uniqueness, or in a transaction that had failed.
    Refused,
    /// A deadlock or a serialization failure.
    Deadlock,
    DiskFull,
    Denied,
    Duplicate,
    LockTimeout,
    /// The server cannot answer now.
    Outage,
    /// A pooler has led a prepared statement to a server connection that lacks it, or has another one's.
    StatementLost,
    /// All statements of this crate match its own migrations: these are not applied yet.
    Outdated,
    /// As an outage, and the connection is of no use any more: a new one may find the primary elsewhere.
    EndsConnection,
}

/// Diesel hides the SQLSTATE; until a version with its pull request 5232 is released, an error is known by
/// the first of these words of an English server that it has. With another language it is `Unexpected`: a 500
/// without the advice to retry.
const WORDS: [(&str, Meaning); 32] = [
    // Citus, 08006 and 53300: a worker is away, silent or full, in its own words behind these. The coordinator's
    // connection stays usable.
    ("connection to the remote node", Outage),
    ("could not establish any connections to the node", Outage),
    ("the total number of connections on the server is more", Outage),
    // 23505. Where Citus sent the rows to a shard by COPY, it reports another SQLSTATE.
    ("duplicate key value", Duplicate),
    // 25P02.
    ("current transaction is aborted", Refused),
    // 40P01; the second is Citus's.
    ("deadlock detected", Deadlock),
    ("involved in a distributed deadlock", Deadlock),
    // 26000, 42P05, 08P01.
    ("prepared statement \"", StatementLost),
    // 42501.
    ("permission denied for", Denied),
    ("must be owner of", Denied),
    ("violates row-level security policy", Denied),
    // 53100.
    ("No space left on device", DiskFull),
    ("wrote only", DiskFull),
    // 53200.
    ("out of memory", Outage),
    ("out of shared memory", Outage),
    // 53300.
    ("too many clients", Outage),
    ("remaining connection slots", Outage),
    // 55000.
    ("is not currently accepting connections", Outage),
    // 55P03.
    ("canceling statement due to lock timeout", LockTimeout),
    // 57014.
    ("canceling statement due to", Outage),
    // PgBouncer, 08P01.
    ("query_wait_timeout", Outage),
    ("server_login", Outage),
    // 0A000: a standby refuses `begin … read write`; to a statement that writes it says 25006, which Diesel knows.
    ("read-write mode during recovery", EndsConnection),
    // 57P01, 57P02.
    ("terminating connection", EndsConnection),
    // Citus, of a server whose postmaster was killed.
    ("postmaster was shut down", EndsConnection),
    // 57P03.
    ("the database system is", EndsConnection),
    // PgBouncer, 08P01, closes a client's connection: its server was lost, it stops, or an administrator killed the
    // database's connections.
    ("server conn crashed?", EndsConnection),
    ("server shutting down", EndsConnection),
    ("database removed", EndsConnection),
    // Its `max_prepared_statements` was raised meanwhile.
    ("prepared statement did not exist", EndsConnection),
    // 42P01, 42703, 42883 and 42P10: a table, column, function or unique index.
    ("does not exist", Outdated),
    ("there is no unique or exclusion constraint", Outdated),
];

fn meaning_of(message: &str) -> Option<Meaning> {
    let known = WORDS.iter().find(|(words, _)| message.contains(words));
    known.map(|(_, meaning)| *meaning)
}

/// A deadlock is also known by what all server languages share: the detail lists the processes of the cycle,
/// one a line, and a hint points to the log. No other error of this crate's statements has both.
fn meaning(error: &DieselError) -> Option<Meaning> {
    use DatabaseErrorKind::{
        CheckViolation, ClosedConnection, ExclusionViolation, ForeignKeyViolation, NotNullViolation,
        ReadOnlyTransaction, RestrictViolation, SerializationFailure, UnableToSendCommand, UniqueViolation,
    };
    let DieselError::DatabaseError(kind, information) = error else {
        return None;
    };
    let by_words = meaning_of(information.message());
    let lines = information.details().map_or(0, |details| details.lines().count());
    match kind {
        UniqueViolation => Some(Duplicate),
        ForeignKeyViolation | RestrictViolation | NotNullViolation | CheckViolation | ExclusionViolation => {
            Some(Refused)
        }
        SerializationFailure => Some(Deadlock),
        // A read-only server is a standby: the primary is elsewhere, or not promoted yet.
        UnableToSendCommand | ClosedConnection | ReadOnlyTransaction => by_words.or(Some(EndsConnection)),
        _ => by_words.or((information.hint().is_some() && lines >= 2).then_some(Deadlock)),
    }
}

/// True if the server rejected a COMMIT, or a statement that is its own transaction: nothing of it was
/// stored. An error sent while the server closes the connection leaves the outcome open, and has no kind of
/// its own in Diesel; so only the kinds that Diesel distinguishes count, and a few messages.
pub(crate) fn is_rolled_back(error: &DieselError) -> bool {
    matches!(
        meaning(error),
        Some(Deadlock | DiskFull | Duplicate | Refused | StatementLost)
    )
}

/// True if the connection is unusable: it is broken, its server is read-only or shutting down, or a pooler
/// closes it.
pub(crate) fn ends_connection(error: &DieselError) -> bool {
    matches!(meaning(error), Some(EndsConnection | StatementLost))
}

/// True if a pooler loses prepared statements.
pub(crate) fn is_statement_lost(error: &DieselError) -> bool {
    meaning(error) == Some(StatementLost)
}

/// True if a statement exceeded the lock timeout.
pub(crate) fn is_lock_timeout(error: &DieselError) -> bool {
    meaning(error) == Some(LockTimeout)
}

/// True if the role lacks a privilege, or the object belongs to another role.
pub(crate) fn is_permission_denied(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source())
        .any(|error| meaning_of(&error.to_string()) == Some(Denied))
}

/// The schema is missing, older than this program, or altered; the program waits for it.
#[derive(Debug, thiserror::Error)]
#[error("the database's schema is missing, older than this program, or altered")]
pub(crate) struct SchemaOutdated(#[source] DieselError);

/// The server answers, but has no room for the write.
#[derive(Debug, thiserror::Error)]
#[error("a disk of the database server is full: make room there")]
pub(crate) struct DiskIsFull(#[source] DieselError);

/// No response within the timeout.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the database gave no answer within {} ms", .0.as_millis())]
pub(crate) struct AnswerTimeout(pub(crate) Duration);

impl From<AnswerTimeout> for StoreError {
    fn from(timeout: AnswerTimeout) -> Self {
        Self::Unavailable(timeout.into())
    }
}

/// Waits for a response for at most `limit`: a server that does not respond does not enforce its statement
/// timeout either.
pub(crate) async fn with_timeout<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(AnswerTimeout(limit).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_starts_does_not_end_the_coordinators_connection() {
        let error = |message: &str| {
            DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(message.to_owned()))
        };
        let starts = "the database system is not accepting connections";
        assert!(ends_connection(&error(starts)));
        let of_worker = format!(
            "connection to the remote node postgres@10.0.0.2:5432 failed with the following error: FATAL:  {starts}"
        );
        assert!(!ends_connection(&error(&of_worker)));
        for message in [
            starts,
            &of_worker,
            "could not establish any connections to the node 10.0.0.2:5432 after 1000 ms",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        ] {
            assert!(
                matches!(store_error(error(message)), StoreError::Unavailable(_)),
                "{message}"
            );
        }
    }
}
