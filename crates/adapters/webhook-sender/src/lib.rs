//! Sends webhook deliveries ([`HttpSender`]): resolves and checks the host, sends one request, waits for the
//! status.
//!
//! Receivers are not trusted. All that they can do is limited:
//!
//! - **Addresses.** Names are resolved by DNS only. All addresses of a name must pass the address rules, and
//!   the connection goes to one of these addresses; nothing is resolved twice. TLS verifies the host in the
//!   webhook's URL. A redirect is an answer like any other. Proxies are not used.
//! - **Time.** Resolving, connecting and the whole attempt have deadlines from their start, so a slow trickle
//!   does not extend them.
//! - **Bytes.** 16 KiB of the answer's head, ten interim responses, 16 KiB of the body, 256 KiB of TLS that
//!   carries them. Nothing is decompressed.
//! - **Connections.** Concurrent attempts per host, a share of them per application, idle connections in
//!   total. An attempt over the limit is postponed at once and does not count as an attempt.
//!
//! # Retries
//!
//! If a reused connection closes within a second before any response byte, the request is sent again over a
//! new connection, within the same attempt. A receiver that has processed the first request gets the delivery
//! twice, as after any retry, with the same `X-Delivery-Id`.
//!
//! # Duration of an attempt
//!
//! From the start of name resolution to the head of the answer, or to the failure. The rest of the answer is
//! read for up to another second within the attempt's deadline, so that the connection can be reused.

mod connection;
mod connection_pool;
mod dialer;
mod failure;
mod host_limiter;
mod read_limit;
mod resolver;
mod sender;
mod settings;
#[cfg(test)]
mod tests;

pub use sender::HttpSender;
pub use settings::{SenderSettings, SettingsError};
