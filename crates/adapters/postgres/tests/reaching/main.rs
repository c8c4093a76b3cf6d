//! Which server is connected to, and how: TLS, several hosts, servers that only read.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect has failed"
)]

mod hosts;
mod support;
mod tls;
