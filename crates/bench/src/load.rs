//! Load over HTTP, over many keep-alive connections.
//!
//! Everything runs as tasks of the runtime's only thread. In the closed loop a connection sends its next request when it has
//! its answer, so the rate is what the server can do at this concurrency, and the latencies are those of a server that is
//! always busy. In the open loop requests come at a given rate, whatever the server does.

mod closed;
mod latency;
pub(crate) mod open;
mod timer;

pub(crate) use closed::{Interval, Load, run};
pub(crate) use latency::Latency;
