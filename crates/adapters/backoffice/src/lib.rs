//! The marketplace-side API on its own listener: sellers, their offers, applications and personal tokens, the bulk feed,
//! orders, the feed of changes, and what operations need to watch a process.
//!
//! `routes.rs` has one line for each call, `pipeline.rs` the way that every request takes. The import's core,
//! [`Importer`], needs no HTTP and serves the command line too.

mod feed;
mod idempotency;
mod importer;
mod meters;
mod money;
mod operation;
mod operations;
mod operator;
mod pipeline;
mod refusal;
mod reply;
mod request;
mod routes;
mod ruled;
mod state;
#[cfg(test)]
mod tests;

pub use importer::{ImportError, ImportReport, Importer, RejectedLine};
pub use routes::calls;
pub use state::{BackOffice, BackOfficeSettings, Health, NotReady, configure};
