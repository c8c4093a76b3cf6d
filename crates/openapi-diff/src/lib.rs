//! What changed between two OpenAPI 3.1 documents that existing clients would notice, and whether the changelog announced it
//! (contract: Versioning).
//!
//! A client sends what was documented and reads what was documented. So what is taken may only become more, and what is given
//! may only keep its promises: an operation, a parameter, a status, a code or a field that goes away is a break, and so are a
//! type that changes, a rule for requests that gets stricter, a value that answers have never had. Additions are none, and
//! neither are words: summaries, descriptions, examples.
//!
//! ```
//! use serde_json::json;
//!
//! let released = json!({"paths": {"/v1/me": {"get": {"operationId": "getMe", "responses": {}}}}});
//! let current = json!({"paths": {"/v1/me": {"get": {"operationId": "readMe", "responses": {}}}}});
//! let breaks = openapi_diff::breaks(&released, &current);
//! assert_eq!(breaks[0].to_string(), "`getMe`: its operationId is `readMe` now");
//! ```

pub mod changelog;
mod document;
mod operations;
mod schema;
mod security;

use std::fmt;

use serde_json::Value;

use crate::document::Document;

/// Something that an existing client would notice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Break {
    /// Where: `listOffers query status`, `listOffers 200 X-Trace-Id`, or within a schema `Offer.price`.
    pub place: String,
    /// What is different there, in words.
    pub what: String,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.place, self.what)
    }
}

/// All breaks between a document that was released and the current one, in order of their places.
pub fn breaks(released: &Value, current: &Value) -> Vec<Break> {
    let mut comparison = Comparison {
        released: Document(released),
        current: Document(current),
        found: Vec::new(),
        compared: Vec::new(),
    };
    operations::compare(&mut comparison);
    security::compare_schemes(&mut comparison);
    schema::compare_names(&mut comparison);
    let mut found = comparison.found;
    found.sort();
    found.dedup();
    found
}

/// Who sends what a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The client sends it.
    Taken,
    /// The client reads it: answers, and what webhooks bring.
    Given,
}

/// Two documents, and what was found so far.
struct Comparison<'a> {
    released: Document<'a>,
    current: Document<'a>,
    found: Vec<Break>,
    /// Pairs of named schemas that were compared; schemas may refer to themselves.
    compared: Vec<(&'a str, &'a str, Side)>,
}

impl Comparison<'_> {
    fn broken(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.found.push(Break {
            place: place.into(),
            what: what.into(),
        });
    }
}
