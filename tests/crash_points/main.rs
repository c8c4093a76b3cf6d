//! Every crash point over the real PostgreSQL: what a request or a worker does is played once for each of its statements and
//! each kind of fault, the client repeats it, and what is left has to be what an undisturbed run leaves.
//!
//! That this finds what it is for is shown by planted flaws, in `flaws`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod background_work;
mod flaws;
mod rig;
mod tokens;
mod trade;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
