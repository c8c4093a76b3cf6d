//! The files of the site, and their addresses.

use rust_embed::Embed;

/// The sections of the navigation, in order.
pub(crate) const SECTIONS: [&str; 6] = [GUIDES, REFERENCE, ERRORS, CHANGELOG, OPERATIONS, BACKGROUND];
pub(crate) const GUIDES: &str = "Guides";
pub(crate) const REFERENCE: &str = "API reference";
const ERRORS: &str = "Errors";
const CHANGELOG: &str = "Changelog";
const OPERATIONS: &str = "Running the service";
const BACKGROUND: &str = "Background";

/// Sections that search results show below what integrators read, each by itself.
pub(crate) const ASIDE: [&str; 3] = [OPERATIONS, BACKGROUND, CHANGELOG];

/// Who reads the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Developers of programs that use the API, and everybody else on the internet: guides, reference, errors
    /// and changelog.
    Integrators,
    /// Also operators and developers of the service: all pages.
    Operators,
}

impl Audience {
    fn reads(self, section: &str) -> bool {
        self == Self::Operators || ![OPERATIONS, BACKGROUND].contains(&section)
    }
}

pub(crate) const JSON: &str = "application/json";

pub(crate) const ERRORS_PAGE: &str = "/docs/errors";
pub(crate) const CHANGELOG_PAGE: &str = "/docs/changelog";
pub(crate) const CHANGELOG_FILE: &str = "docs/CHANGELOG.md";

/// Pages with an explicit address: section, file, name below `/docs`, and label (empty: the first heading).
/// If a file moves, change its line here; if a folder moves, change its constant below.
const PAGES: [(&str, &str, &str, &str); 19] = [
    (ERRORS, "docs/guide/errors.md", "errors", "All codes"),
    (CHANGELOG, CHANGELOG_FILE, "changelog", "What changed"),
    (OPERATIONS, README, "first-steps", "First steps"),
    (OPERATIONS, "docs/operations/README.md", "operations", ""),
    (OPERATIONS, "docs/operations/runbook.md", "runbook", ""),
    (OPERATIONS, "docs/operations/configuration.md", "config", ""),
    (OPERATIONS, "docs/operations/backup.md", "backup", ""),
    (OPERATIONS, "docs/operations/metrics.md", "metrics", ""),
    (OPERATIONS, "docs/operations/citus.md", "citus", ""),
    (OPERATIONS, "docs/marketplace/back-office.md", "back-office", ""),
    (OPERATIONS, "docs/marketplace/mail.md", "mail", ""),
    (OPERATIONS, "docs/development/performance.md", "performance", ""),
    (OPERATIONS, "docs/operations/CHANGELOG.md", "ops-changelog", ""),
    (BACKGROUND, "docs/development/decisions.md", "decisions", ""),
    (BACKGROUND, "docs/development/architecture.md", "architecture", ""),
    (BACKGROUND, "docs/development/reliability.md", "reliability", ""),
    (BACKGROUND, "docs/development/testing.md", "testing", ""),
    (BACKGROUND, MEASURES, "security-measures", ""),
    (BACKGROUND, SECURITY, "security", "Reporting a weakness"),
];
/// Every other Markdown file below these folders is a guide; its address is its path.
const GUIDE: &str = "docs/guide/";
const EXAMPLES: &str = "docs/examples/";
/// The navigation lists the guides in the order of this page.
const GUIDE_LIST: &str = "docs/guide/README.md";

const README: &str = "README.md";
const SECURITY: &str = "SECURITY.md";
const MEASURES: &str = "docs/development/security.md";

/// `docs/` of the repository, without the output of example runs, which may contain secrets.
#[derive(Embed)]
#[folder = "../../../docs"]
#[include = "*.md"]
#[include = "examples/*.py"]
#[include = "examples/*.ts"]
#[include = "examples/*/package*.json"]
#[include = "examples/*/tsconfig.json"]
#[include = "released/*.json"]
#[include = "pictures/*.png"]
#[exclude = "*/node_modules/*"]
#[exclude = "*/dist/*"]
#[exclude = "*/__pycache__/*"]
struct DocsFolder;

/// A Markdown file and its page.
pub(crate) struct Source {
    pub(crate) section: &'static str,
    /// The path in the repository.
    pub(crate) file: String,
    pub(crate) address: String,
    /// The label in the navigation; if empty, the first heading.
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

/// Every page made from one Markdown file, in the order of the navigation within each section.
pub(crate) fn pages(audience: Audience) -> Vec<Source> {
    let source = |section, file: &str, label| Source {
        section,
        file: file.to_owned(),
        address: address(file, audience).unwrap_or_default(),
        label,
        text: text_of(file),
    };
    let list = text_of(GUIDE_LIST);
    let mut guides: Vec<_> = files().filter(|file| is_guide(file)).collect();
    guides.sort_by_cached_key(|file| {
        let link = match file.strip_prefix(GUIDE) {
            Some(name) => format!("({name})"),
            None => "(../examples/README.md)".to_owned(),
        };
        (file != GUIDE_LIST, list.find(&link).unwrap_or(usize::MAX))
    });
    let of_table = PAGES.iter().filter(|(section, ..)| audience.reads(section));
    let mut pages: Vec<_> = of_table
        .map(|(section, file, _, label)| source(section, file, label))
        .collect();
    pages.extend(guides.iter().map(|file| source(GUIDES, file, "")));
    pages
}

/// Files that are served unchanged: address, media type and content.
pub(crate) fn plain_files(audience: Audience) -> impl Iterator<Item = (String, &'static str, Vec<u8>)> {
    let known = files().filter_map(move |file| Some((address(&file, audience)?, file)));
    known.filter_map(|(address, file)| {
        let media_type = match file.rsplit_once('.')?.1 {
            "md" => return None,
            "png" => "image/png",
            "json" if !file.starts_with(EXAMPLES) => JSON,
            _ => "text/plain; charset=utf-8",
        };
        let content = DocsFolder::get(file.trim_start_matches("docs/"))?
            .data
            .into_owned();
        Some((address, media_type, content))
    })
}

/// The target of a file's link on the site; `None` if the site does not show the target.
pub(crate) fn follow(from: &str, link: &str, audience: Audience) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") || link.starts_with("http://") {
        return Some(link.to_owned());
    }
    let (file, anchor) = link.find('#').map_or((link, ""), |at| link.split_at(at));
    let mut path: Vec<&str> = from.split('/').collect();
    path.pop();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => drop(path.pop()),
            name => path.push(name),
        }
    }
    Some(address(&path.join("/"), audience)? + anchor)
}

/// The address on the site of a repository file.
fn address(file: &str, audience: Audience) -> Option<String> {
    if let Some((section, _, name, _)) = own_page(file) {
        return audience.reads(section).then(|| format!("/docs/{name}"));
    }
    if let Some(page) = file.strip_suffix(".md") {
        return is_guide(file).then(|| format!("/{}", page.trim_end_matches("/README")));
    }
    match file.strip_prefix("docs/")? {
        "openapi.json" => Some("/openapi.json".to_owned()),
        name => DocsFolder::get(name).map(|_| format!("/{file}")),
    }
}

/// The line of a file in `PAGES`.
fn own_page(file: &str) -> Option<&'static (&'static str, &'static str, &'static str, &'static str)> {
    PAGES.iter().find(|(_, page, ..)| *page == file)
}

fn is_guide(file: &str) -> bool {
    let is_below = file.starts_with(GUIDE) || file.starts_with(EXAMPLES);
    is_below && file.strip_suffix(".md").is_some() && own_page(file).is_none()
}

/// The path in the repository of every embedded file.
fn files() -> impl Iterator<Item = String> {
    DocsFolder::iter().map(|name| format!("docs/{name}"))
}

/// The unchanged text of a repository file.
pub(crate) fn text_of(file: &str) -> String {
    match file {
        README => include_str!("../../../../README.md").to_owned(),
        SECURITY => include_str!("../../../../SECURITY.md").to_owned(),
        _ => {
            let embedded = DocsFolder::get(file.trim_start_matches("docs/"));
            embedded.map_or_else(String::new, |file| {
                String::from_utf8_lossy(&file.data).into_owned()
            })
        }
    }
}
