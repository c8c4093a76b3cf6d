//! The OpenAPI document as others read it: linters, generators of clients, and a tool that tries everything it says.
//!
//! Every client is generated from what a sandbox serves, type-checked, and goes a whole trade with it: token, offers by pages, a
//! change with an idempotency key, a subscription, an order that is shipped, and refusals by their types. What is needed is installed
//! beneath the target folder (`.ci/run` does it, `tests/document/install` alone as well). Where it is missing the tests say so and are
//! skipped, unless `CI` is set.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod clients;
mod everything;
mod lints;
mod released;
mod tools;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
