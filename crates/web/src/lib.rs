//! What every HTTP listener of the product shares: trace ids, spans and meters of requests, the table of error codes, the error
//! shape, strict JSON, decoding with all errors together, query strings, body and head limits, client addresses, replies.
//!
//! It knows neither the domain nor the use cases: a listener brings its own tables and turns what is decoded here
//! into the words of its domain.

pub mod access_log;
pub mod basic;
pub mod bearer;
pub mod body;
pub mod client_ip;
pub mod code;
pub mod decode;
pub mod deprecation;
pub mod failure;
pub mod form;
pub mod guarded;
pub mod head;
pub mod idempotency_key;
pub mod json;
pub mod look;
pub mod media_type;
pub mod meters;
pub mod percent;
pub mod problem;
pub mod query;
pub mod reply;
pub mod request_span;
pub mod schema;
pub mod sentence;
pub mod tasks;
pub mod timestamps;
pub mod trace_id;
pub mod traceparent;
mod violations;

pub use client_ip::{ClientAddress, TrustedProxies};
pub use code::Code;
pub use json::Json;
pub use problem::{Entry, Problem};
pub use request_span::RequestSpan;
pub use tasks::{TaskPanicked, Tasks};
pub use trace_id::TraceId;
pub use violations::{Violations, both, three};
