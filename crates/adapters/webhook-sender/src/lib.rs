//! Sends webhook deliveries: resolves and checks the host, sends one request, waits for the status ([`HttpSender`]).
//!
//! Receivers are strangers, and some are hostile. Everything they can do is bounded:
//!
//! - **Addresses.** Names are resolved by DNS only, all addresses of a name must pass the address rules, and the connection
//!   goes to one of these very addresses; nothing is resolved twice. TLS verifies the host in the webhook's URL. Redirects
//!   are answers like others, proxies are not used.
//! - **Time.** Resolving, connecting and the whole attempt have deadlines from their start, so that dripping does not help.
//! - **Bytes.** 16 KiB of the answer's head, ten interim answers, 16 KiB of the body. Nothing is decompressed.
//! - **Connections.** Concurrent attempts per host, a share of them per application, idle connections in all. An attempt over
//!   the limit is handed back at once and does not count as one.
//!
//! # Retries
//!
//! If a reused connection closes within a second before any response byte, the request is sent again over a new one, within
//! the same attempt. A receiver that has processed the first request sees the delivery twice, as after any retry, with the
//! same `X-Delivery-Id`.
//!
//! # Duration of an attempt
//!
//! From the look-up of the name to the head of the answer, or to the failure. The rest of the answer is read for up to
//! another second within the attempt's deadline, to reuse the connection.

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
