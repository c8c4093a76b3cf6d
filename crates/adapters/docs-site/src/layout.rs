//! What stands around every page: head, search, navigation, table of contents, the ways to the pages before and after.

use askama::Template;

use crate::markdown::{Heading, Passage};
use crate::reference::Reference;
use crate::search::Found;
use crate::security::Policy;
use crate::site::{Draft, Kind};
use crate::{DocsSettings, assets};

/// Where the documentation begins.
pub(crate) const HOME: &str = "/docs";
/// What the page for an unknown path says.
pub(crate) const MISSING: &str = "There is no such page. Try the search, or the contents.";
/// What the page for too large a request says.
pub(crate) const UNREADABLE: &str = "The address or the headers of the request are too large.";

/// What all pages have in common.
pub(crate) struct Frame {
    service: String,
    sections: Vec<Section>,
    style: [String; 2],
    script: String,
    icon: String,
}

/// A part of the navigation.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    groups: Vec<Group>,
}

/// Links under a name, which may be empty.
struct Group {
    name: String,
    links: Vec<Link>,
}

/// A link to a page.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) path: String,
    pub(crate) label: String,
    /// A mark before the label.
    pub(crate) method: String,
}

impl Section {
    pub(crate) fn new(name: &'static str, group: &str, link: Link) -> Self {
        let mut section = Self {
            name,
            groups: Vec::new(),
        };
        section.add(group, link);
        section
    }

    pub(crate) fn add(&mut self, group: &str, link: Link) {
        match self.groups.last_mut() {
            Some(last) if last.name == group => last.links.push(link),
            _ => self.groups.push(Group {
                name: group.to_owned(),
                links: vec![link],
            }),
        }
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.groups.iter().flat_map(|group| &group.links)
    }

    /// Whether the section is open on the page at this path; on the first page the guides are.
    fn is_open(&self, path: &str) -> bool {
        let here = |link: &Link| link.path == path || path.starts_with(&format!("{}/", link.path));
        self.links().any(here) || (path == HOME && self.name == Kind::Guide.name())
    }
}

#[derive(Template)]
#[template(path = "layout.html")]
struct Layout<'a> {
    frame: &'a Frame,
    title: &'a str,
    /// What comes before the title in the browser's tab: the kind of page.
    kind: &'a str,
    path: &'a str,
    content: &'a str,
    headings: &'a [Heading],
    around: [Option<&'a Link>; 2],
    query: &'a str,
    explorer: Option<[String; 3]>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    base: &'a str,
    service: &'a str,
    reference: &'a Reference,
}

#[derive(Template)]
#[template(path = "results.html")]
struct Results<'a> {
    query: &'a str,
    found: &'a [Found<'a>],
}

/// The page at `/docs`.
pub(crate) fn home(settings: &DocsSettings, reference: &Reference) -> askama::Result<Draft> {
    let content = Home {
        base: &settings.public_url,
        service: &settings.service_name,
        reference,
    };
    Ok(Draft {
        path: HOME.to_owned(),
        title: Kind::Home.name().to_owned(),
        passages: vec![Passage::default()],
        ..Draft::new(Kind::Home, content.render()?)
    })
}

impl Frame {
    pub(crate) fn new(settings: &DocsSettings, sections: Vec<Section>) -> Self {
        Self {
            service: settings.service_name.clone(),
            sections,
            style: [assets::LOOK.path.clone(), assets::STYLE.path.clone()],
            script: assets::SCRIPT.path.clone(),
            icon: assets::ICON.path.clone(),
        }
    }

    /// A page of the site.
    pub(crate) fn page(&self, draft: &Draft) -> askama::Result<String> {
        let links: Vec<_> = self.sections.iter().flat_map(Section::links).collect();
        let here = links.iter().position(|link| link.path == draft.path);
        let beside = |at: Option<usize>| at.and_then(|at| links.get(at)).copied();
        let explorer = (draft.policy == Policy::Explorer).then(|| {
            let files = [&*assets::SWAGGER_STYLE, &*assets::SWAGGER, &*assets::EXPLORER];
            files.map(|file| file.path.clone())
        });
        Layout {
            title: &draft.title,
            kind: draft.kind.name(),
            path: &draft.path,
            content: &draft.content,
            headings: &draft.headings,
            around: [
                beside(here.and_then(|at| at.checked_sub(1))),
                beside(here.and_then(|at| at.checked_add(1))),
            ],
            explorer,
            ..self.bare()
        }
        .render()
    }

    /// A page that tells why there is no other.
    pub(crate) fn failure(&self, title: &str, text: &str) -> askama::Result<String> {
        let content = format!("<h1>{title}</h1>\n<p class=\"lead\">{text}</p>\n");
        Layout {
            title,
            content: &content,
            ..self.bare()
        }
        .render()
    }

    /// The page of what a search found.
    pub(crate) fn results(&self, query: &str, found: &[Found<'_>]) -> askama::Result<String> {
        let content = Results { query, found }.render()?;
        Layout {
            title: "Search",
            content: &content,
            query,
            ..self.bare()
        }
        .render()
    }

    fn bare(&self) -> Layout<'_> {
        Layout {
            frame: self,
            title: "",
            kind: Kind::Home.name(),
            path: "",
            content: "",
            headings: &[],
            around: [None, None],
            query: "",
            explorer: None,
        }
    }
}
