//! Deliveries to webhooks: the host resolved and judged, one request sent, the status awaited ([`HttpSender`]).
//!
//! Receivers are strangers, and some are hostile. What they can do is bounded on each side:
//!
//! - **Where it goes.** A name is resolved by the domain name system alone, all of its addresses have to pass the address
//!   rules, and the connection goes to one of these very addresses; nothing is resolved twice. TLS vouches for the host of
//!   the webhook's URL. Redirects are answers like others, proxies are not known.
//! - **How long it takes.** Name, connection and the whole attempt have deadlines that count from their begin, so that it
//!   is of no use to drip.
//! - **How much is read.** 16 KiB of the answer's head, ten interim answers, 16 KiB of the body. Nothing is unpacked.
//! - **How much is held.** A number of attempts at a time to one host, a share of it for one application, and a number of
//!   kept connections in all. What finds no
//!   place at its host is handed back at once: it has not begun, and was no attempt.
//!
//! # Repetition
//!
//! A connection that was kept may turn out to be closed when the next request goes over it. If that shows within a second
//! and not one byte came back, the request is sent again over a new connection within the same attempt. A receiver that has taken the first one all the same
//! sees the delivery twice, as it may by any retry: `X-Delivery-Id` is the same.
//!
//! # What an attempt's time counts
//!
//! From the look-up of the name to the head of the answer or the failure. The rest of the
//! answer is read for up to a second more, never beyond the attempt's deadline, for the sake of the connection alone.

mod allowance;
mod connection;
mod crowd;
mod dialer;
mod failure;
mod kept;
mod meters;
mod resolver;
mod sender;
mod settings;
#[cfg(test)]
mod tests;

pub use sender::HttpSender;
pub use settings::{SenderSettings, SettingsError};
