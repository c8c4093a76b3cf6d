//! Tests against receivers and DNS servers on loopback addresses.

mod delivering;
mod hostile;
mod limits;
mod metrics;
mod names;
mod receiver;
mod reuse;
mod support;
mod tls;
