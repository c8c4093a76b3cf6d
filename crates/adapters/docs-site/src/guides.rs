//! The pages that are written in Markdown: which files of the repository they are, and where they are on the site.

use std::sync::LazyLock;

use crate::examples::EXAMPLES;
use crate::markdown::{self, Links};
use crate::released::RELEASED;
use crate::site::{Draft, Kind};

/// A file and its page.
pub(crate) struct Source {
    /// Its path in the repository, by which the files link to each other.
    pub(crate) file: &'static str,
    /// Where its page is.
    pub(crate) path: String,
    /// What it is called; where empty, what its first heading says.
    label: &'static str,
    kind: Kind,
    pub(crate) text: &'static str,
}

/// The guides, found when the program is built: path in the repository and text, in the order of the navigation.
const GUIDES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/guides.rs"));

macro_rules! sources {
    ($($kind:ident $file:literal $path:literal $label:literal;)+) => {
        [$(Source {
            file: $file,
            path: $path.to_owned(),
            label: $label,
            kind: Kind::$kind,
            text: include_str!(concat!("../../../../", $file)),
        },)+]
    };
}

/// Every page that is a file as a whole, in the order of the navigation.
pub(crate) static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let guides = GUIDES.iter().map(|(file, text)| Source {
        file,
        path: format!("/{}", file.trim_end_matches(".md").trim_end_matches("/README")),
        label: "",
        kind: Kind::Guide,
        text,
    });
    let first = sources! { Guide "README.md" "/docs/first-steps" "First steps"; };
    let others = sources! {
        Operating "docs/OPERATIONS.md" "/docs/operations" "";
        Operating "docs/BACK_OFFICE.md" "/docs/back-office" "";
        Operating "docs/MAIL.md" "/docs/mail" "";
        Operating "docs/PERFORMANCE.md" "/docs/performance" "";
        Background "docs/DECISIONS.md" "/docs/decisions" "";
        Background "docs/ARCHITECTURE.md" "/docs/architecture" "";
        Background "docs/RELIABILITY.md" "/docs/reliability" "";
        Background "docs/SECURITY.md" "/docs/security-measures" "";
        Background "SECURITY.md" "/docs/security" "Reporting a weakness";
    };
    first.into_iter().chain(guides).chain(others).collect()
});

/// Files whose pages are put together elsewhere.
const ELSEWHERE: [(&str, &str); 3] = [
    ("docs/ERRORS.md", crate::errors::PATH),
    ("docs/CHANGELOG.md", crate::changelog::PATH),
    ("docs/openapi.json", "/openapi.json"),
];

/// Where a file of the repository is on the site.
pub(crate) fn page_of(file: &str) -> Option<&'static str> {
    let whole = SOURCES.iter().map(|source| (source.file, source.path.as_str()));
    let released = RELEASED
        .iter()
        .map(|released| (released.file, released.path.as_str()));
    let examples = EXAMPLES
        .iter()
        .map(|example| (example.file, example.path.as_str()));
    let mut all = whole.chain(ELSEWHERE).chain(released).chain(examples);
    all.find(|(other, _)| *other == file).map(|(_, path)| path)
}

/// Every page that is a file as a whole.
pub(crate) fn drafts() -> impl Iterator<Item = Draft> {
    SOURCES.iter().map(|source| {
        let rendered = markdown::render(source.text, &Links::from_file(source.file));
        let title = match source.label {
            "" => rendered.title,
            label => label.to_owned(),
        };
        Draft {
            path: source.path.clone(),
            label: title.clone(),
            title,
            headings: rendered.headings,
            passages: rendered.passages,
            ..Draft::new(source.kind, rendered.html)
        }
    })
}
