//! Test support: a private PostgreSQL per test process, a database per test, the product's processes, and an
//! HTTP client.
//!
//! `SELLER_API_TEST_TOPOLOGY` selects what [`TestServer::start`] starts: `single`, one process (the default);
//! `fleet`, three servers and two workers behind a balancer; `fleet-pgbouncer`, the same with a `PgBouncer`
//! before the database; `citus`, one process over a Citus cluster of a coordinator and two workers.
//!
//! Everything here panics with a clear message when it fails: the test has failed then.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    clippy::needless_pass_by_value,
    reason = "a failed set-up is a failed test"
)]

mod balancer;
mod citus;
mod client;
mod clock;
mod database;
mod fleet;
mod http_server;
mod link;
mod own_postgres;
mod pgbouncer;
mod process;
mod server;
mod small_disk;
mod smtp_server;
mod statement_proxy;
mod worker;

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{LazyLock, atomic};
use std::time::Duration;

use tokio::time::{sleep, timeout};

pub use adapter_postgres::Layout;
pub use balancer::Balancer;
pub use citus::OwnCitus;
pub use client::{Answer, AnswerHook, Client, Request, set_answer_hook};
pub use clock::{ManualClock, TestClock, instant};
pub use database::{TestDatabase, lock_waits};
pub use http_server::{HttpServer, Received, answer_all, read_request, response, signature, take_head};
pub use link::Pace;
pub use own_postgres::OwnPostgres;
pub use pgbouncer::PgBouncer;
pub use process::Process;
pub use server::{ServerOptions, TestServer, sealing_key};
pub use small_disk::{SmallDisk, may_lack_mounts, mounts_are_refused};
pub use smtp_server::{SmtpAction, SmtpScript, SmtpServer};
pub use statement_proxy::{Fault, Rewrite, Statement, StatementProxy};
pub use worker::TestWorker;

/// Reports that a test is skipped because of `missing`, which CI, too, may lack.
pub fn report_skipped(missing: &str) {
    // Writes to stderr itself: the test harness shows `eprintln!` output only of failed tests.
    drop(writeln!(std::io::stderr(), "\n!!! SKIPPED: {missing}\n"));
}

/// A loopback address for one test. Its ports stay the test's own while it does not listen, and ports below
/// 1024 are free.
pub fn own_loopback() -> Ipv4Addr {
    // Each process begins somewhere else, and gives none twice.
    static NEXT: LazyLock<atomic::AtomicU16> = LazyLock::new(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        atomic::AtomicU16::new(listener.local_addr().expect("an address").port())
    });
    let [high, low] = NEXT.fetch_add(1, atomic::Ordering::Relaxed).to_be_bytes();
    Ipv4Addr::new(127, 83, high, low)
}

/// Polls until `holds`. Panics with `failure` after the limit.
pub(crate) async fn wait_until<F: Future<Output = bool>>(
    limit: Duration,
    holds: impl Fn() -> F,
    failure: impl FnOnce() -> String,
) {
    let reached = timeout(limit, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    let is_reached = reached.await.is_ok();
    assert!(is_reached, "{}", failure());
}
