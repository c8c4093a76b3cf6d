//! The OpenAPI parts of an operation that the pipeline does not use. Prose is in one Markdown file per
//! operation: the summary as title, then the description, then a section for each parameter and for the
//! response.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::Bytes;

use crate::problem::Problem;
use crate::schema::Node;

/// Returns the document of all operations, as JSON on one line.
pub type ServedDocument = Arc<dyn Fn() -> Bytes + Send + Sync>;

/// The documentation of an operation.
pub struct Docs {
    /// `operationId`. Generated clients use it, so it never changes.
    pub id: &'static str,
    pub tag: &'static str,
    /// The Markdown file.
    pub prose: &'static str,
    /// The JSON request body.
    pub body: Option<JsonBody>,
    /// The request body may be absent.
    pub is_body_optional: bool,
    pub status: StatusCode,
    /// The JSON response body; none with 204.
    pub response: Option<JsonBody>,
    /// The answer has an `ETag`; a write takes `If-Match`.
    pub is_tagged: bool,
    /// Its own refusals, as answered: one for each code that does not follow from its scope, path or effect.
    pub refusals: &'static [fn() -> Problem],
}

/// A body: its schema, from the code that decodes or writes it, and an example.
pub struct JsonBody {
    pub schema: fn() -> Node,
    pub example: fn() -> Node,
}

impl JsonBody {
    pub const fn new(schema: fn() -> Node, example: fn() -> Node) -> Self {
        Self { schema, example }
    }
}

impl Docs {
    /// The documentation of an operation without bodies and refusals of its own.
    pub const fn new(id: &'static str, tag: &'static str, prose: &'static str) -> Self {
        Self {
            id,
            tag,
            prose,
            body: None,
            is_body_optional: false,
            status: StatusCode::OK,
            response: None,
            is_tagged: false,
            refusals: &[],
        }
    }

    pub fn summary(&self) -> &'static str {
        self.prose
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# "))
            .unwrap_or_default()
    }

    pub fn description(&self) -> &'static str {
        let body = self.prose.split_once('\n').map_or("", |(_, body)| body);
        body.split_once("\n## ")
            .map_or(body, |(description, _)| description)
            .trim()
    }
}

/// The section of a Markdown text with this title; empty if there is none.
pub fn section(prose: &'static str, title: &str) -> &'static str {
    let mut sections = prose.split("\n## ").skip(1);
    sections
        .find_map(|section| section.strip_prefix(title)?.strip_prefix('\n'))
        .unwrap_or_default()
        .trim()
}

/// A query parameter.
pub struct Parameter {
    pub name: &'static str,
    pub schema: fn() -> Node,
}

impl Parameter {
    pub const fn new(name: &'static str, schema: fn() -> Node) -> Self {
        Self { name, schema }
    }

    /// A parameter that no document describes.
    pub const fn undocumented(name: &'static str) -> Self {
        Self::new(name, crate::schema::string)
    }
}
