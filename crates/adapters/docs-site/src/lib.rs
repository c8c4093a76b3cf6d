//! The documentation under `/docs` of the public listener: the guides, the API reference, the errors, the changelog with its
//! feed, and a search over all of it.
//!
//! Everything is embedded in the program and rendered once, at the start ([`Docs::new`]). Pages load nothing from another
//! origin, and all but the API reference are whole without scripts. The reference is Scalar (vendored) over `/openapi.json`.

mod assets;
mod changelog;
mod listener;
mod markdown;
mod search;
mod site;
mod sources;

#[cfg(test)]
mod tests;

pub use listener::{Docs, configure};
pub use site::{DocsError, DocsSettings};
