//! The ports over PostgreSQL: the unit of work, the stores and readers, the gate, and the migrations.
//!
//! Three kinds of connection, each opened when it is first needed and again when it has died:
//! - a **pool** for transactions and rare reads;
//! - a **shared** one for each gate and each reader, that is for each server thread: while one statement is under way on it, the
//!   next questions wait and then go as one. A reader has another one for its lists, which are pipelined;
//! - the **migrations'** own.
//!
//! The database's URL may name several servers: each connection goes to the one that takes writes, and one on which a statement
//! found that it no longer does is left.
//!
//! Whatever processes compare is timed by `api_now()` in SQL. Whoever reads or begins a transaction waits for the
//! database for [`ANSWER_WITHIN`] and no longer, and is then told [`kernel::StoreError::Unavailable`]; a statement of a
//! transaction may take the time that the settings give it.

mod accounts;
mod batch;
mod catalogue;
mod claims;
mod connector;
mod database;
mod error;
mod feed;
mod gate;
mod grants;
mod host;
mod instance;
mod listing;
mod meters;
mod migrations;
mod outbox;
mod panel;
mod pending;
mod pool_state;
mod pooler;
mod queue;
mod queues;
mod reads;
mod retention;
mod schema;
mod schema_state;
mod sealed;
mod sealing;
mod settings;
mod shared_connection;
mod spans;
mod statement;
mod tls;
mod trade;
mod transaction;
mod unit_of_work;
mod url;
mod webhooks;

pub use database::Database;
pub use migrations::{MigrateError, MigrationReport, MigrationStep, migrate};
pub use pool_state::PoolState;
pub use queues::{Backlog, QUEUE_LIMIT, Queues};
pub use retention::{Cleared, ClearedRecords, ErasedBuyers};
pub use schema_state::SchemaState;
pub use sealed::{Resealed, SealedColumn, SealedPlace, SealedSample, SealedValues};
pub use settings::{DatabaseSettings, DatabaseUrlError};
pub use url::check_url;

/// The longest that a read, or the begin of a transaction, waits for the database, opening a connection included.
pub const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_millis(2500);
