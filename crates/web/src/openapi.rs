//! The OpenAPI parts of an operation that the pipeline does not use. Prose is in one Markdown file per
//! operation: the summary as title, then the description, then a section for each parameter and for the
//! response.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::Bytes;

use crate::deprecation::Deprecation;
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
    /// What `{id}` in the path identifies: its description, and the id in examples.
    pub resource: Option<(&'static str, &'static str)>,
    /// The same for the path's second variable.
    pub part: Option<(&'static str, &'static str)>,
    /// The JSON request body.
    pub body: Option<JsonBody>,
    pub status: StatusCode,
    /// The JSON response body; none with 204.
    pub response: Option<JsonBody>,
    /// The answer has an `ETag`; a write takes `If-Match`.
    pub is_tagged: bool,
    /// The deprecation of the operation.
    pub deprecated: Option<&'static Deprecation>,
    /// Its own refusals, as answered: one for each code that does not follow from its scope, path or effect.
    pub refusals: &'static [fn() -> Problem],
}

/// A body: its schema, from the code that decodes or writes it, and an example.
pub struct JsonBody {
    pub schema: fn() -> Node,
    pub example: fn() -> Node,
}

impl Docs {
    pub const fn new(id: &'static str, tag: &'static str, prose: &'static str) -> Self {
        Self {
            id,
            tag,
            prose,
            resource: None,
            part: None,
            body: None,
            status: StatusCode::OK,
            response: None,
            is_tagged: false,
            deprecated: None,
            refusals: &[],
        }
    }

    /// Sets what the path's first variable identifies; the second time, its second one.
    #[must_use]
    pub const fn about(mut self, description: &'static str, example: &'static str) -> Self {
        if self.resource.is_none() {
            self.resource = Some((description, example));
        } else {
            self.part = Some((description, example));
        }
        self
    }

    #[must_use]
    pub const fn takes(mut self, schema: fn() -> Node, example: fn() -> Node) -> Self {
        self.body = Some(JsonBody { schema, example });
        self
    }

    #[must_use]
    pub const fn answers(mut self, status: StatusCode, schema: fn() -> Node, example: fn() -> Node) -> Self {
        self.status = status;
        self.response = Some(JsonBody { schema, example });
        self
    }

    #[must_use]
    pub const fn answers_nothing(mut self) -> Self {
        self.status = StatusCode::NO_CONTENT;
        self
    }

    #[must_use]
    pub const fn tagged(mut self) -> Self {
        self.is_tagged = true;
        self
    }

    #[must_use]
    pub const fn refuses(mut self, refusals: &'static [fn() -> Problem]) -> Self {
        self.refusals = refusals;
        self
    }

    #[must_use]
    pub const fn deprecated(mut self, notice: &'static Deprecation) -> Self {
        self.deprecated = Some(notice);
        self
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

    /// The section with this title; empty if there is none.
    pub fn section(&self, title: &str) -> &'static str {
        section(self.prose, title)
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
