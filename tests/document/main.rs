//! The OpenAPI document in other tools: linters, client generators, and a property-based tester.
//!
//! Clients are generated from the document that a sandbox serves, type-checked, and make a complete trade:
//! token, paged offers, a change with an idempotency key, a subscription, a shipped order, typed errors.
//! `.ci/run` or `tests/document/install` installs the tools below the target folder. Without them the tests
//! report that and are skipped, unless `CI` is set.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod clients;
mod everything;
mod lints;
mod released;
mod tools;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
