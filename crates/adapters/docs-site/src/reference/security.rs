//! The page of the security schemes: how requests say who they come from.

use std::fmt::Write as _;

use askama::Template;
use web::schema::Node;

use super::document::{Tree, members, text};
use super::heading;
use crate::markdown::{self, Passage};
use crate::site::{Draft, Kind};

/// Where the page is.
pub(crate) const PATH: &str = "/docs/reference/security";

/// A way to say who asks.
pub(crate) struct Scheme {
    name: String,
    /// Such as `http bearer`.
    kind: String,
    /// As HTML.
    about: String,
    flows: Vec<Flow>,
    /// What may be asked for, and what it is for.
    scopes: Vec<(String, String)>,
}

/// A way to an access token.
struct Flow {
    name: String,
    /// What is there, and where it is.
    urls: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "security.html")]
struct Page<'a> {
    schemes: &'a [Scheme],
}

const URLS: [(&str, &str); 3] = [
    ("authorizationUrl", "Authorization"),
    ("tokenUrl", "Token"),
    ("refreshUrl", "Refresh"),
];

impl Scheme {
    /// All of the document.
    pub(super) fn all(tree: Tree<'_>) -> Vec<Self> {
        let schemes = tree
            .members("components")
            .find(|(name, _)| *name == "securitySchemes");
        let schemes = schemes.into_iter().flat_map(|(_, schemes)| members(schemes));
        schemes.map(|(name, node)| Self::read(name, node)).collect()
    }

    fn read(name: &str, node: &Node) -> Self {
        let flows: Vec<_> = node.get("flows").into_iter().flat_map(members).collect();
        let mut scopes: Vec<(String, String)> = Vec::new();
        for (scope, about) in flows
            .iter()
            .filter_map(|(_, flow)| flow.get("scopes"))
            .flat_map(members)
        {
            if !scopes.iter().any(|(known, _)| known == scope) {
                scopes.push((scope.to_owned(), super::document::plain(about)));
            }
        }
        Self {
            name: name.to_owned(),
            kind: format!("{} {}", text(node, "type"), text(node, "scheme"))
                .trim_end()
                .to_owned(),
            about: markdown::fragment(text(node, "description")),
            flows: flows
                .into_iter()
                .map(|(name, flow)| Flow::read(name, flow))
                .collect(),
            scopes,
        }
    }

    fn passage(&self) -> Passage {
        let mut said = format!("{} {}", self.kind, crate::search::text_of(&self.about));
        for flow in &self.flows {
            let urls = flow.urls.iter().map(|(what, url)| format!(" {what} {url}"));
            let _ = write!(said, " {}{}", flow.name, urls.collect::<String>());
        }
        for (scope, about) in &self.scopes {
            let _ = write!(said, " {scope} {about}");
        }
        Passage {
            id: self.name.clone(),
            heading: self.name.clone(),
            text: said,
        }
    }
}

impl Flow {
    fn read(name: &str, node: &Node) -> Self {
        let url = |(key, what)| Some((what, text(node, key).to_owned())).filter(|(_, url)| !url.is_empty());
        Self {
            name: name.to_owned(),
            urls: URLS.into_iter().filter_map(url).collect(),
        }
    }
}

/// The page.
pub(super) fn draft(schemes: &[Scheme]) -> askama::Result<Draft> {
    Ok(Draft {
        path: PATH.to_owned(),
        label: "Security schemes".to_owned(),
        title: "Security schemes".to_owned(),
        headings: schemes.iter().map(|scheme| heading(&scheme.name)).collect(),
        passages: schemes.iter().map(Scheme::passage).collect(),
        ..Draft::new(Kind::Reference, Page { schemes }.render()?)
    })
}
