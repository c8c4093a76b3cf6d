//! The ports over PostgreSQL: the unit of work, the stores and readers, the gate, and the migrations.
//!
//! Three kinds of connection, each opened when it is first needed and again when it has died:
//! - a **pool** for transactions, and for single statements that are rare;
//! - a **shared** one for each gate and each reader, that is for each server thread: while one statement is under way on it, the
//!   next questions wait and then go as one. A reader has another one for its lists, which are pipelined;
//! - the **migrations'** own.
//!
//! The database's URL may name several servers: each connection goes to the one that takes writes, and one on which a statement
//! found that it no longer does is left.
//!
//! Whatever processes compare is timed by `api_now()` in SQL. Whoever reads or begins a transaction waits for the
//! database for [`ANSWER_WITHIN`] and no longer, and then gets [`kernel::StoreError::Unavailable`]; a statement of a
//! transaction may take the time that the settings give it.

mod accounts;
mod backlog;
mod batch;
mod connection;
mod database;
mod feed;
mod gate;
mod idempotency;
mod listing;
mod mails;
mod migrations;
mod oauth;
mod observe;
mod offers;
mod orders;
mod outbox;
mod parcels;
mod rate_limits;
mod retention;
mod schema_state;
mod sealed;
mod sealing;
mod sql;
mod unit_of_work;
mod webhooks;

pub use backlog::{Backlog, QUEUE_LIMIT, Queues};
pub use connection::{
    pool::PoolState,
    url::{DatabaseUrlError, check_url},
};
pub use database::{Database, DatabaseSettings};
pub use migrations::{MigrateError, MigrationReport, MigrationStep, migrate};
pub use retention::{Cleared, ClearedRecords, ErasedBuyers};
pub use schema_state::SchemaState;
pub use sealed::{Resealed, SealedSample, SealedValues, WEBHOOK_SECRETS};

/// The longest that a read, or the begin of a transaction, waits for the database, opening a connection included.
pub const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_millis(2500);
