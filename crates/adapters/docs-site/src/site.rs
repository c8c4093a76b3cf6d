//! The site: every page, rendered, with the navigation between them.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::examples::EXAMPLES;
use crate::layout::{Frame, Link, Section};
use crate::markdown::{Heading, Passage};
use crate::reference::{Reference, explorer};
use crate::released::RELEASED;
use crate::search::{self, Index};
use crate::security::Policy;
use crate::{DocsError, DocsSettings, assets, changelog, errors, feed, guides, layout, reference};

/// A page that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) body: Bytes,
    pub(crate) media_type: &'static str,
    /// Stands for the content, in `ETag`.
    pub(crate) mark: String,
    pub(crate) policy: Policy,
}

/// What a page belongs to. In the order of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Home,
    Guide,
    Reference,
    Error,
    Changelog,
    Operating,
    Background,
}

impl Kind {
    /// What the navigation and the search call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Home => "Documentation",
            Self::Guide => "Guides",
            Self::Reference => "API reference",
            Self::Error => "Errors",
            Self::Changelog => "Changelog",
            Self::Operating => "Running the service",
            Self::Background => "Background",
        }
    }
}

/// A page before it stands in the frame.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// What it stands under in the navigation, within its kind.
    pub(crate) group: String,
    /// What the navigation calls it; where empty, it does not stand there.
    pub(crate) label: String,
    /// A mark before the label: the method of an operation.
    pub(crate) method: String,
    pub(crate) title: String,
    pub(crate) content: String,
    pub(crate) headings: Vec<Heading>,
    pub(crate) passages: Vec<Passage>,
    pub(crate) policy: Policy,
}

impl Draft {
    pub(crate) fn new(kind: Kind, content: String) -> Self {
        Self {
            path: String::new(),
            kind,
            group: String::new(),
            label: String::new(),
            method: String::new(),
            title: String::new(),
            content,
            headings: Vec::new(),
            passages: Vec::new(),
            policy: Policy::Page,
        }
    }
}

/// Every page, and what is needed to make those that depend on the request.
pub(crate) struct Site {
    pages: BTreeMap<String, Document>,
    frame: Frame,
    index: Index,
    missing: String,
    unreadable: String,
}

impl Site {
    pub(crate) fn new(settings: &DocsSettings, openapi: &str) -> Result<Self, DocsError> {
        let reference = Reference::read(openapi);
        let mut drafts = vec![layout::home(settings, &reference)?];
        drafts.extend(guides::drafts());
        drafts.extend(reference::drafts(&reference)?);
        drafts.extend(errors::drafts(&reference)?);
        drafts.push(changelog::draft()?);
        drafts.sort_by_key(|draft| draft.kind);
        let frame = Frame::new(settings, sections(&drafts));
        let mut pages = BTreeMap::new();
        for draft in &drafts {
            let html = frame.page(draft)?;
            pages.insert(draft.path.clone(), Document::html(html, draft.policy));
        }
        let feed = feed::atom(settings, &changelog::releases(), &changelog::notices());
        pages.insert(feed::PATH.to_owned(), Document::feed(feed));
        for released in RELEASED.iter() {
            pages.insert(released.path.clone(), Document::json(released.json(settings)));
        }
        for example in EXAMPLES.iter() {
            pages.insert(example.path.clone(), Document::text(example.text.to_owned()));
        }
        let explored = Document::json(explorer::document(openapi));
        pages.insert(explorer::PATH.to_owned(), explored);
        Ok(Self {
            missing: frame.failure("Page not found", layout::MISSING)?,
            unreadable: frame.failure("Too large a request", layout::UNREADABLE)?,
            index: Index::new(&drafts),
            pages,
            frame,
        })
    }

    /// The page at this path.
    pub(crate) fn find(&self, path: &str) -> Option<&Document> {
        self.pages.get(path)
    }

    /// What the search finds.
    pub(crate) fn search(&self, query: &str) -> String {
        let query: String = query.trim().chars().take(search::LONGEST_QUERY).collect();
        let found = self.index.search(&query);
        self.frame.results(&query, &found).unwrap_or_default()
    }

    /// The page that tells that there is none.
    pub(crate) fn missing(&self) -> String {
        self.missing.clone()
    }

    /// The page for a request whose head is larger than is read.
    pub(crate) fn unreadable(&self) -> String {
        self.unreadable.clone()
    }

    /// Every path that has a page.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.pages
            .iter()
            .map(|(path, document)| (path.as_str(), document))
    }
}

impl Document {
    fn html(html: String, policy: Policy) -> Self {
        Self::new(html, "text/html; charset=utf-8", policy)
    }

    fn json(text: String) -> Self {
        Self::new(text, "application/json", Policy::Page)
    }

    fn text(text: String) -> Self {
        Self::new(text, "text/plain; charset=utf-8", Policy::Page)
    }

    fn feed(xml: String) -> Self {
        Self::new(xml, "application/atom+xml; charset=utf-8", Policy::Page)
    }

    fn new(text: String, media_type: &'static str, policy: Policy) -> Self {
        Self {
            mark: assets::mark(text.as_bytes()),
            body: text.into(),
            media_type,
            policy,
        }
    }
}

/// The navigation: pages that have a label, by kind and group, in their order.
fn sections(drafts: &[Draft]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for draft in drafts.iter().filter(|draft| !draft.label.is_empty()) {
        let link = Link {
            path: draft.path.clone(),
            label: draft.label.clone(),
            method: draft.method.clone(),
        };
        match sections.last_mut() {
            Some(section) if section.name == draft.kind.name() => section.add(&draft.group, link),
            _ => sections.push(Section::new(draft.kind.name(), &draft.group, link)),
        }
    }
    sections
}
