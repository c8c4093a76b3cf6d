//! Load over HTTP: many keep-alive connections, each of which sends one request after another.
//!
//! Everything runs as tasks of the runtime's only thread. This is the closed loop: a connection sends its next request
//! when it has its answer, so the rate is what the server can do at this concurrency, and the latencies are those of a
//! server that is always busy.

mod closed;
mod latency;

pub(crate) use closed::{Interval, Load, run};
pub(crate) use latency::Latency;
