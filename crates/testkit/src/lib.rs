//! Test support: a private PostgreSQL per test process, a database per test, the program under test, and a client for it.
//!
//! `SELLER_API_TEST_TOPOLOGY` chooses what [`TestServer::start`] starts: `single`, one process, which is the default; `fleet`, three
//! servers and two workers behind a balancer; `fleet-pgbouncer`, the same over a `PgBouncer`.
//!
//! Everything here panics with a clear message where it cannot go on: that is a failed test.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    clippy::needless_pass_by_value,
    reason = "a failed set-up is a failed test"
)]

mod balancer;
mod client;
mod clock;
mod database;
mod fleet;
mod link;
mod own_postgres;
mod pgbouncer;
mod server;
mod small_disk;
mod statement_proxy;
mod worker;

pub use balancer::Balancer;
pub use client::{Answer, Client, Request, Witness, show_answers_to};
pub use clock::TestClock;
pub use database::TestDatabase;
pub use link::{Link, LostCommit, Pace};
pub use own_postgres::OwnPostgres;
pub use pgbouncer::PgBouncer;
pub use server::{ServerOptions, TestServer, sealing_key};
pub use small_disk::{SmallDisk, may_lack_mounts, mounts_are_refused};
pub use statement_proxy::{Fault, Flaw, Statement, StatementProxy};
pub use worker::TestWorker;
