//! Tests of sending, against receivers and a name server on loopback.

mod delivering;
mod hostile;
mod limits;
mod metrics;
mod names;
mod receiver;
mod reuse;
mod support;
mod tls;
