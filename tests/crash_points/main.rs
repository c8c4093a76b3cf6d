//! Crash points over a real PostgreSQL. A request or a worker runs once for each of its statements and each
//! kind of fault, and the client repeats it. The result must be the same as without a fault.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod background_work;
mod changes;
mod faulty_server;
mod footprint;
mod rig;
mod tokens;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
