//! Tests against receivers and DNS servers on loopback addresses.

mod delivering;
mod hostile;
mod limits;
mod names;
mod reuse;
mod support;
mod tls;
