//! The API reference: a page for each operation and each event, made of the OpenAPI document that the program serves.

mod curl;
mod document;
pub(crate) mod explorer;
mod operation;
mod schema;
mod security;

use askama::Template;

use crate::markdown::{self, Heading, Passage};
use crate::security::Policy;
use crate::site::{Draft, Kind};
use document::{Tree, text};
pub(crate) use operation::Operation;
use web::schema::Node;

/// Where the reference begins.
pub(crate) const PATH: &str = "/docs/reference";
/// Where requests can be tried.
pub(crate) const EXPLORER: &str = "/docs/explorer";

/// What the document says, in the order in which it says it.
pub(crate) struct Reference {
    /// The description of the whole, as HTML.
    about: String,
    version: String,
    schemes: Vec<security::Scheme>,
    pub(crate) groups: Vec<Group>,
}

/// The operations of one tag, or the events.
pub(crate) struct Group {
    pub(crate) name: String,
    /// As HTML.
    pub(crate) about: String,
    pub(crate) operations: Vec<Operation>,
}

#[derive(Template)]
#[template(path = "reference.html")]
struct Overview<'a> {
    reference: &'a Reference,
}

#[derive(Template)]
#[template(path = "operation.html")]
struct OperationPage<'a> {
    operation: &'a Operation,
}

#[derive(Template)]
#[template(path = "explorer.html")]
struct Explorer;

impl Reference {
    /// Reads the document.
    pub(crate) fn read(openapi: &str) -> Self {
        let document = Node::parse(openapi);
        let tree = Tree::new(&document);
        let info = document.get("info");
        let mut groups: Vec<_> = tree
            .list("tags")
            .iter()
            .map(|tag| Group {
                name: text(tag, "name").to_owned(),
                about: markdown::fragment(text(tag, "description")),
                operations: Vec::new(),
            })
            .collect();
        let mut read = Vec::new();
        for (path, methods) in tree.members("paths") {
            for (method, operation) in document::members(methods) {
                read.push(Operation::read(tree, method, path, operation));
            }
        }
        for (name, methods) in tree.members("webhooks") {
            if let Some(event) = methods.get("post") {
                read.push(Operation::event(tree, name, event));
            }
        }
        for operation in read {
            if let Some(group) = groups.iter_mut().find(|group| group.name == operation.tag) {
                group.operations.push(operation);
            }
        }
        groups.retain(|group| !group.operations.is_empty());
        Self {
            about: markdown::fragment(info.map_or("", |info| text(info, "description"))),
            version: info.map_or("", |info| text(info, "version")).to_owned(),
            schemes: security::Scheme::all(tree),
            groups,
        }
    }

    /// Every operation and event.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.groups.iter().flat_map(|group| &group.operations)
    }

    /// The operations that a code can come from.
    pub(crate) fn with_code(&self, code: &str) -> Vec<&Operation> {
        let can = |operation: &&Operation| operation.codes().any(|other| other == code);
        self.operations().filter(can).collect()
    }
}

/// The pages of the reference.
pub(crate) fn drafts(reference: &Reference) -> askama::Result<Vec<Draft>> {
    let overview = Draft {
        path: PATH.to_owned(),
        label: "Overview".to_owned(),
        title: "API reference".to_owned(),
        headings: reference
            .groups
            .iter()
            .map(|group| heading(&group.name))
            .collect(),
        ..Draft::new(Kind::Reference, Overview { reference }.render()?)
    };
    let explorer = Draft {
        path: EXPLORER.to_owned(),
        label: "Explorer".to_owned(),
        title: "Explorer".to_owned(),
        policy: Policy::Explorer,
        passages: vec![Passage {
            text: "Try requests in the browser, with a token of yours pasted in. Swagger UI.".to_owned(),
            ..Passage::default()
        }],
        ..Draft::new(Kind::Reference, Explorer.render()?)
    };
    let mut drafts = vec![overview, explorer, security::draft(&reference.schemes)?];
    for group in &reference.groups {
        for operation in &group.operations {
            drafts.push(Draft {
                path: operation.page(),
                group: group.name.clone(),
                label: operation.label().to_owned(),
                method: operation.method.clone(),
                title: operation.summary.clone(),
                headings: operation.sections().into_iter().map(heading).collect(),
                passages: operation.passages(),
                ..Draft::new(Kind::Reference, OperationPage { operation }.render()?)
            });
        }
    }
    Ok(drafts)
}

/// A heading of a template, whose id is its text in lower case.
fn heading(text: &str) -> Heading {
    Heading {
        level: 2,
        id: text.to_lowercase(),
        text: text.to_owned(),
    }
}
