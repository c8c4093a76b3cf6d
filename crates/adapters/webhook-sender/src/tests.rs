//! Tests of sending, against receivers and a name server on loopback.

mod delivering;
mod hostile;
mod keeping;
mod limits;
mod measured;
mod name_servers;
mod names;
mod receiver;
mod support;
mod tls;
