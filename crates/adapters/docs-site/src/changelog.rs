//! The changelog as a page, and as the releases that the feed tells of.

use askama::Template;

use crate::markdown::{self, Heading, Links, Passage};
use crate::site::{Draft, Kind};

/// Where the page is.
pub(crate) const PATH: &str = "/docs/changelog";

const FILE: &str = "docs/CHANGELOG.md";
const TEXT: &str = include_str!("../../../../docs/CHANGELOG.md");

/// What changed with one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Such as `1.2.0`, or `Unreleased`.
    pub(crate) version: String,
    /// `YYYY-MM-DD`; none for what is not released yet.
    pub(crate) date: Option<String>,
    /// As HTML.
    pub(crate) html: String,
}

impl Release {
    /// Its anchor on the page.
    pub(crate) fn id(&self) -> String {
        self.version.to_lowercase()
    }
}

#[derive(Template)]
#[template(path = "changelog.html")]
struct Page<'a> {
    intro: String,
    releases: &'a [Release],
    feed: &'static str,
}

/// What changed, the latest first.
pub(crate) fn releases() -> Vec<Release> {
    read(TEXT)
}

/// Reads a changelog as Keep a Changelog 1.1.0 has it: `## [1.2.0] - 2026-12-01`, perhaps with `[YANKED]` behind it.
pub(crate) fn read(text: &str) -> Vec<Release> {
    let release = |section: &str| {
        let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
        let (version, rest) = heading.strip_prefix('[')?.split_once(']')?;
        let date = rest.trim_start_matches([' ', '-']).get(..10);
        Some(Release {
            version: version.to_owned(),
            date: date.filter(|date| is_date(date)).map(str::to_owned),
            html: markdown::render(body, &Links::from_file(FILE)).html,
        })
    };
    text.split("\n## ").skip(1).filter_map(release).collect()
}

fn is_date(text: &str) -> bool {
    text.chars().enumerate().all(|(at, c)| match at {
        4 | 7 => c == '-',
        _ => c.is_ascii_digit(),
    })
}

/// The page.
pub(crate) fn draft() -> askama::Result<Draft> {
    let releases = releases();
    let intro = TEXT.split("\n## ").next().unwrap_or_default();
    let intro = intro.split_once('\n').map_or("", |(_, rest)| rest);
    let page = Page {
        intro: markdown::render(intro, &Links::from_file(FILE)).html,
        releases: &releases,
        feed: crate::feed::PATH,
    };
    let passage = |release: &Release| Passage {
        id: release.id(),
        heading: release.version.clone(),
        text: crate::search::text_of(&release.html),
    };
    let heading = |release: &Release| Heading {
        level: 2,
        id: release.id(),
        text: release.version.clone(),
    };
    Ok(Draft {
        path: PATH.to_owned(),
        label: "What changed".to_owned(),
        title: "Changelog".to_owned(),
        headings: releases.iter().map(heading).collect(),
        passages: releases.iter().map(passage).collect(),
        ..Draft::new(Kind::Changelog, page.render()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_versions_dates_and_what_changed() {
        let text = "# Changelog\n\nAll.\n\n## [Unreleased]\n\n- a\n\n## [1.1.0] - 2026-12-01 [YANKED]\n\n### Added\n\n- b\n\n## [1.0.0] - soon\n";
        let told: Vec<_> = read(text)
            .into_iter()
            .map(|release| (release.version, release.date, release.html.contains("<li>")))
            .collect();
        let dated = Some("2026-12-01".to_owned());
        assert_eq!(
            told,
            [
                ("Unreleased".to_owned(), None, true),
                ("1.1.0".to_owned(), dated, true),
                ("1.0.0".to_owned(), None, false)
            ]
        );
    }
}
