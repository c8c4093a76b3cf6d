//! The site: every page, rendered, with its navigation.

use std::collections::BTreeMap;
use std::mem;
use std::sync::LazyLock;

use askama::Template;
use bytes::Bytes;
use pulldown_cmark::HeadingLevel;
use serde_json::Value;
use thiserror::Error;
use web::assets::{Asset, hash};
use web::{ServiceSettings, theme};

use crate::markdown::{self, Section};
use crate::search::{Index, LONGEST_QUERY, Passage, SearchResults};
use crate::sources::{ASIDE, Audience, ERRORS_PAGE, GUIDES, JSON, REFERENCE, SECTIONS, Source};
use crate::{changelog, sources};

/// The home page.
pub(crate) const HOME: &str = "/docs";
const HOME_TITLE: &str = "Documentation";
pub(crate) const REFERENCE_PAGE: &str = "/docs/reference";
/// What `assets/docs.js` suggests: the titles and headings that integrators read, then the others.
pub(crate) const SUGGESTIONS: &str = "/docs/suggestions.json";
/// The page of search results.
pub(crate) const SEARCH_PAGE: &str = "/docs/search";
/// The origin in released documents: that of the default configuration.
const RELEASED_ORIGIN: &str = "http://127.0.0.1:8080";

const HTML: &str = "text/html; charset=utf-8";

/// The embedded files that pages load.
static ASSETS: LazyLock<[Asset; 8]> = LazyLock::new(|| {
    [
        ("look.css", theme::STYLE),
        ("docs.css", include_str!("../assets/docs.css")),
        ("docs.js", include_str!("../assets/docs.js")),
        ("icon.svg", theme::ICON),
        (
            "highlight.js",
            include_str!("../vendor/highlight.js/highlight.min.js"),
        ),
        ("reference.css", include_str!("../assets/reference.css")),
        ("reference.js", include_str!("../assets/reference.js")),
        ("scalar.js", include_str!("../vendor/scalar/standalone.js")),
    ]
    .map(|(name, content)| Asset::new("/docs/assets", name, content))
});

/// The path of the asset with this name.
pub(crate) fn asset(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or("", |asset| asset.address.as_str())
}

/// The site could not be rendered.
#[derive(Debug, Error)]
pub(crate) enum DocsError {
    #[error("a page of the documentation could not be rendered")]
    Template(#[from] askama::Error),
    #[error("the feed of the changelog could not be written")]
    Feed(#[from] atom_syndication::Error),
    #[error("the OpenAPI document or the suggestions are not JSON")]
    Json(#[from] serde_json::Error),
}

/// A response body, ready to be sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) body: Bytes,
    pub(crate) media_type: &'static str,
    /// Without quotes.
    pub(crate) etag: String,
}

/// Every page, and the templates of pages that depend on the request.
pub(crate) struct Site {
    /// By address.
    pub(crate) documents: BTreeMap<String, Document>,
    /// Current addresses by former ones.
    pub(crate) moved: BTreeMap<String, String>,
    /// The page for an unknown address.
    pub(crate) missing: String,
    /// The page for a request whose head is refused.
    pub(crate) refused: String,
    /// The page for a search while too many wait.
    pub(crate) busy: String,
    navigation: Navigation,
    index: Index,
}

/// A page without the layout.
#[derive(Default)]
struct SitePage {
    section: &'static str,
    address: String,
    /// The label in the navigation; empty if the page is not listed.
    label: String,
    title: String,
    html: String,
    headings: Vec<Section>,
}

/// The parts that all pages share.
struct Navigation {
    service: String,
    links: Vec<Link>,
}

struct Link {
    section: &'static str,
    address: String,
    label: String,
}

#[derive(Template)]
#[template(path = "layout.html")]
struct Layout<'a> {
    navigation: &'a Navigation,
    page: &'a SitePage,
    previous: Option<&'a Link>,
    next: Option<&'a Link>,
    query: &'a str,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    service: &'a ServiceSettings,
}

#[derive(Template)]
#[template(path = "results.html")]
struct Results<'a> {
    query: &'a str,
    results: &'a SearchResults<'a>,
}

impl Site {
    /// Renders everything; `openapi` is the document that the program serves.
    pub(crate) fn new(
        service: &ServiceSettings,
        audience: Audience,
        openapi: &[u8],
    ) -> Result<Self, DocsError> {
        let public_url = &service.public_url;
        let operations = operations(&serde_json::from_slice(openapi)?);
        let reference = SitePage {
            section: REFERENCE,
            address: REFERENCE_PAGE.to_owned(),
            label: "All operations".to_owned(),
            ..SitePage::unlisted(REFERENCE, include_str!("../templates/reference.html").to_owned())
        };
        let home = SitePage {
            address: HOME.to_owned(),
            ..SitePage::unlisted(HOME_TITLE, Home { service }.render()?)
        };
        let mut pages = vec![home, reference];
        let mut passages: Vec<_> = operations.iter().map(|(_, passage)| passage.clone()).collect();
        for source in sources::pages(audience) {
            pages.push(SitePage::read(source, audience, &mut passages));
        }
        // A stable sort: within a section the order is that of the sources.
        let position = |section| SECTIONS.iter().position(|name| *name == section);
        pages.sort_by_key(|page| position(page.section));
        passages.sort_by_key(|passage| position(passage.section));
        let links = pages
            .iter()
            .filter(|page| !page.label.is_empty())
            .map(|page| Link {
                section: page.section,
                address: page.address.clone(),
                label: page.label.clone(),
            });
        let navigation = Navigation {
            service: service.name.clone(),
            links: links.collect(),
        };
        let mut documents = BTreeMap::new();
        for page in &pages {
            let html = Document::new(navigation.render(page, "")?, HTML);
            documents.insert(page.address.clone(), html);
        }
        let (aside, own): (Vec<_>, _) = passages.iter().partition(|one| ASIDE.contains(&one.section));
        let suggestions = [own, aside].map(|group| group.into_iter().map(suggestion).collect::<Vec<_>>());
        let suggestions = Document::new(serde_json::to_vec(&suggestions)?, JSON);
        documents.insert(SUGGESTIONS.to_owned(), suggestions);
        for (address, media_type, content) in sources::plain_files(audience) {
            // A released document gets this server's origin, so that it differs from `/openapi.json` only by
            // real changes.
            let content = match media_type {
                JSON => String::from_utf8_lossy(&content)
                    .replace(RELEASED_ORIGIN, public_url)
                    .into_bytes(),
                _ => content,
            };
            documents.insert(address, Document::new(content, media_type));
        }
        let feed = changelog::feed(
            public_url,
            &service.name,
            &sources::text_of(sources::CHANGELOG_FILE),
        )?;
        let feed = Document::new(feed, "application/atom+xml; charset=utf-8");
        documents.insert(changelog::FEED.to_owned(), feed);
        for asset in ASSETS.iter() {
            let document = Document::new(asset.content, asset.media_type);
            documents.insert(asset.address.clone(), document);
        }
        let failure = |title: &str, text: &str| {
            let html = format!("<h1>{title}</h1>\n<p class=\"lead\">{text}</p>\n");
            navigation.render(&SitePage::unlisted(title, html), "")
        };
        Ok(Self {
            missing: failure("Page not found", "There is no such page. Try the search.")?,
            refused: failure(
                "Invalid request",
                "The address or the headers are too large, or the Host header is not a valid host.",
            )?,
            busy: failure(
                "Search is busy",
                "Too many searches are waiting. Try again in a second.",
            )?,
            documents,
            moved: moved(&pages, &operations),
            navigation,
            index: Index::new(passages),
        })
    }

    /// The page of search results.
    pub(crate) fn search(&self, query: &str) -> askama::Result<String> {
        let query: String = query.trim().chars().take(LONGEST_QUERY).collect();
        let results = Results {
            query: &query,
            results: &self.index.search(&query),
        };
        let page = SitePage::unlisted("Search", results.render()?);
        self.navigation.render(&page, &query)
    }
}

/// Redirects of `/` and `/docs/`, which people type, and of the former pages of operations, errors and the
/// explorer.
fn moved(pages: &[SitePage], operations: &[(String, Passage)]) -> BTreeMap<String, String> {
    let mut moved = BTreeMap::from([
        ("/".to_owned(), HOME.to_owned()),
        (format!("{HOME}/"), HOME.to_owned()),
        ("/docs/explorer".to_owned(), REFERENCE_PAGE.to_owned()),
        (format!("{REFERENCE_PAGE}/security"), REFERENCE_PAGE.to_owned()),
    ]);
    for (id, passage) in operations {
        moved.insert(format!("{REFERENCE_PAGE}/{id}"), passage.address.clone());
    }
    let errors = pages.iter().filter(|page| page.address == ERRORS_PAGE);
    for heading in errors.flat_map(|page| &page.headings) {
        // `order_unpaid (409)`, or `OAuth invalid_grant (400)`.
        let code = heading.heading.trim_start_matches("OAuth ").split(' ').next();
        let former = format!("{ERRORS_PAGE}/{}", code.unwrap_or_default());
        moved
            .entry(former)
            .or_insert_with(|| format!("{ERRORS_PAGE}#{}", heading.id));
    }
    moved
}

/// A passage's name, its subtitle and its address.
fn suggestion(passage: &Passage) -> [&str; 3] {
    let (title, heading) = (passage.title.as_str(), passage.heading.as_str());
    if heading.is_empty() || passage.section == REFERENCE {
        [title, heading, &passage.address]
    } else {
        [heading, title, &passage.address]
    }
}

/// Every operation and event of the OpenAPI document, by id.
fn operations(document: &Value) -> Vec<(String, Passage)> {
    let mut all = Vec::new();
    for part in ["paths", "webhooks"] {
        let paths = document.get(part).and_then(Value::as_object);
        for (path, methods) in paths.into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                let text = |place| operation.pointer(place).and_then(Value::as_str).unwrap_or("");
                let (id, tag) = (text("/operationId"), text("/tags/0"));
                // The same anchors as `assets/reference.js` generates.
                let (method, anchor) = match part {
                    "webhooks" => ("Event".to_owned(), format!("webhook/{path}")),
                    _ => (method.to_uppercase(), id.to_owned()),
                };
                let passage = Passage {
                    address: format!("{REFERENCE_PAGE}#tag/{tag}/{anchor}"),
                    section: REFERENCE,
                    title: text("/summary").to_owned(),
                    heading: format!("{method} {path}"),
                    text: format!("{tag} {id}. {}", text("/description")),
                };
                all.push((id.to_owned(), passage));
            }
        }
    }
    all
}

impl Document {
    fn new(body: impl Into<Bytes>, media_type: &'static str) -> Self {
        let body = body.into();
        Self {
            etag: hash(&body),
            body,
            media_type,
        }
    }
}

impl SitePage {
    /// A page that the navigation does not list.
    fn unlisted(title: &str, html: String) -> Self {
        Self {
            section: HOME_TITLE,
            title: title.to_owned(),
            html,
            ..Self::default()
        }
    }

    /// Renders a file, and adds its passages to the search.
    fn read(source: Source, audience: Audience, passages: &mut Vec<Passage>) -> Self {
        let follow = |link: &str| sources::follow(&source.file, link, audience);
        let rendered = markdown::render(&source.text, follow);
        let title = match source.label {
            "" => rendered.title,
            label => label.to_owned(),
        };
        let mut headings = rendered.sections;
        let passages_of = headings.iter_mut().filter(|section| !section.text.is_empty());
        passages.extend(passages_of.map(|section| Passage {
            address: match section.id.as_str() {
                "" => source.address.clone(),
                id => format!("{}#{id}", source.address),
            },
            section: source.section,
            title: title.clone(),
            heading: section.heading.clone(),
            text: mem::take(&mut section.text),
        }));
        headings.retain(|heading| matches!(heading.level, HeadingLevel::H2 | HeadingLevel::H3));
        Self {
            section: source.section,
            address: source.address,
            label: title.clone(),
            title,
            html: rendered.html,
            headings,
        }
    }

    /// Whether the page shows the links of a section: its own, and on the home page the guides.
    fn expands(&self, section: &str) -> bool {
        self.section == section || (self.address == HOME && section == GUIDES)
    }
}

impl Navigation {
    /// The sections that have pages.
    fn sections(&self) -> impl Iterator<Item = &'static str> {
        let is_linked = |section: &&str| self.links.iter().any(|link| link.section == *section);
        SECTIONS.into_iter().filter(is_linked)
    }

    /// The complete page, with links to the previous and the next page.
    fn render(&self, page: &SitePage, query: &str) -> askama::Result<String> {
        let position = self.links.iter().position(|link| link.address == page.address);
        let link_at = |at: Option<usize>| at.and_then(|at| self.links.get(at));
        Layout {
            navigation: self,
            page,
            previous: link_at(position.and_then(|at| at.checked_sub(1))),
            next: link_at(position.and_then(|at| at.checked_add(1))),
            query,
        }
        .render()
    }
}
