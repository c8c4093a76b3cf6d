//! The ports over PostgreSQL: the unit of work, the stores and readers, the gate, and the migrations.
//!
//! The kinds of connection; the first three are opened on first use and reopened after they have died:
//! - a **pool** for transactions, and for rare single statements, and a smaller one for the process's
//!   workers;
//! - a **shared** one in each server thread for the gate, each reader and each statement of the token
//!   endpoint: while one statement is under way, further questions queue and then go out as one batch. A
//!   reader of offers or orders has a second one for its lists: their pages are batched too; items by their
//!   ids are pipelined. Changes of offers have two for the whole process, outcomes of lost commits one;
//! - a second, small **pool** for slow reads: lists by `updated_after`, and of deliveries;
//! - one for a **single task**: migrations, adoption, resealing, checks of a pooler and of the role.
//!
//! The database URL may name several servers. Each connection goes to the one that accepts writes; a
//! connection is dropped once a statement finds that its server no longer does.
//!
//! All times that processes compare come from `api_now()` in SQL. A read, or the start of a transaction,
//! waits for the database for at most [`ANSWER_TIMEOUT`] and then fails with
//! [`kernel::StoreError::Unavailable`]. A statement within a transaction has the timeout of the settings.

mod accounts;
mod backlog;
mod batch;
mod connection;
mod database;
mod feed;
mod follow_ups;
mod gate;
mod idempotency;
mod identity;
mod journal;
mod layout;
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
mod schema;
mod schema_state;
mod sealed;
mod sealing;
mod searched;
mod slow_reads;
mod sql;
mod statement;
mod turns;
mod undelivered;
mod unit_of_work;
mod webhooks;

pub use backlog::{Backlog, QUEUE_LIMIT, Queues, Workers};
pub use connection::{
    Connector, Identity,
    url::{DatabaseUrlError, check_url},
};
pub use database::{Database, DatabaseSettings, WORKER_CONNECTIONS};
pub use identity::{Adoption, Arrival};
pub use layout::{Layout, distribute};
pub use migrations::{MigrateError, MissingMigration, finish, migrate, missing_migrations};
pub use retention::{Cleared, Expired};
pub use schema_state::SchemaState;
pub use sealed::{Resealed, WEBHOOK_SECRETS, sealed_columns};
pub use undelivered::WebhookLists;

/// The longest time that a read, or the start of a transaction, waits for the database, including opening a
/// connection.
pub const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(2500);
