//! The framework of every HTTP listener: declared operations, their routes, one pipeline of ordered checks,
//! idempotency, and their parts: error shape and codes, strict JSON, query strings, limits, trace ids.
//! Resources that both listeners show are declared here too.
//!
//! [`listener::Listener`] defines what one listener adds: its callers, its checks of a caller, its
//! operations. A request enters through [`front::Front`] and is answered by [`pipeline::answer`].

pub mod access_log;
pub mod assets;
pub mod authorization;
pub mod body;
pub mod client_ip;
pub mod code;
pub mod deadline;
pub mod decode;
pub mod error;
pub mod form;
pub mod front;
pub mod head;
pub mod idempotency;
pub mod json;
pub mod listener;
pub mod media_type;
pub mod meters;
pub mod observer;
pub mod openapi;
pub mod operation;
pub mod path;
pub mod pipeline;
pub mod places;
pub mod problem;
pub mod query;
pub mod reply;
pub mod request;
pub mod request_span;
pub mod resources;
pub mod response;
pub mod route;
pub mod schema;
mod single_header;
pub mod tasks;
pub mod timestamps;
pub mod trace_id;
pub mod view;
mod violations;
pub mod write;

pub use client_ip::{ClientAddress, TrustedProxies};
pub use code::Code;
pub use error::{Error, MapRefusal};
pub use json::Json;
pub use listener::ServiceSettings;
pub use observer::Observer;
pub use problem::{Entry, Problem, to_sentence};
pub use request_span::RequestSpan;
pub use single_header::if_match;
pub use tasks::{Panicked, Tasks};
pub use trace_id::TraceId;
pub use violations::{Violations, both};

/// The look of the product in a browser: one style sheet and one icon for the panel and the documentation.
pub mod theme {
    /// Light and dark colours, type, page frame, blocks and forms.
    pub const STYLE: &str = include_str!("../assets/look.css");

    /// The icon in the browser's tab (SVG).
    pub const ICON: &str = include_str!("../assets/icon.svg");
}
