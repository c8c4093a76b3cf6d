//! Tests of the public interface: rendering, the folder, and a scripted SMTP server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod connections;
mod dialogue;
mod failures;
mod folder;
mod hostile;
mod rendering;
mod support;
mod tls;
