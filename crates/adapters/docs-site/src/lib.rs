//! The documentation under `/docs` of the public listener: guides, API reference, errors, changelog with a
//! feed, and a search over all of it; for operators also the pages about running the service.
//!
//! Everything is embedded in the program and rendered once, at the first request. Pages load nothing from
//! other origins, and all but the API reference work without scripts. The reference is Scalar (vendored),
//! which reads `/openapi.json`.

mod changelog;
mod listener;
mod markdown;
mod search;
mod site;
mod sources;

#[cfg(test)]
mod tests;

pub use listener::{Docs, configure};
pub use sources::Audience;
