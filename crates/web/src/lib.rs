//! The kernel of every HTTP listener: operations as declarations, their routes, one pipeline with its order of checks,
//! idempotency, and what those are made of: error shape and codes, strict JSON, query strings, limits, trace ids.
//!
//! [`listener::Listener`] says what one listener brings of its own: who calls, what is checked of a caller, which operations
//! there are. A request comes in through [`front::Front`], passes [`pipeline::answer`] and leaves.

pub mod access_log;
pub mod authorization;
pub mod body;
pub mod client_ip;
pub mod code;
pub mod deadline;
pub mod decode;
pub mod deprecation;
pub mod error;
pub mod form;
pub mod front;
pub mod head;
pub mod idempotency;
pub mod json;
pub mod listener;
pub mod media_type;
pub mod meters;
pub mod openapi;
pub mod operation;
pub mod pipeline;
pub mod problem;
pub mod query;
pub mod reply;
pub mod request;
pub mod request_span;
pub mod response;
pub mod route;
pub mod schema;
pub mod tasks;
pub mod timestamps;
pub mod trace_id;
pub mod traceparent;
mod violations;
pub mod write;

pub use client_ip::{ClientAddress, TrustedProxies};
pub use code::Code;
pub use error::{Error, MapRefusal};
pub use json::Json;
pub use problem::{Entry, Problem, to_sentence};
pub use request_span::RequestSpan;
pub use tasks::{TaskPanicked, Tasks};
pub use trace_id::TraceId;
pub use violations::{Violations, both};

/// How the product looks in a browser: one style sheet and one icon for the panel and the documentation.
pub mod look {
    /// Colours for light and dark, type, the frame of a page, its blocks and forms.
    pub const STYLE: &str = include_str!("../assets/look.css");

    /// The icon in the browser's tab (SVG).
    pub const ICON: &str = include_str!("../assets/icon.svg");
}
