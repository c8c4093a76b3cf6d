//! The changelog as a page, and as the releases and announcements that the feed tells of.

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

/// An item that tells ahead of what will change: marked **Incompatible**, or listed under "Deprecated".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What kind of change, and what it is about.
    pub(crate) title: String,
    /// `YYYY-MM-DD`: when it was announced.
    pub(crate) date: String,
    /// Where it stands on the page.
    pub(crate) release: String,
    /// As HTML.
    pub(crate) html: String,
}

impl Notice {
    /// What tells it from others, and stays when its release gets a version.
    pub(crate) fn name(&self) -> String {
        let mut name = self.date.clone();
        for word in self
            .title
            .to_lowercase()
            .split(|c: char| !c.is_ascii_alphanumeric())
        {
            if !word.is_empty() {
                name.push('-');
                name.push_str(word);
            }
        }
        name
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
        let mut release = Release {
            version: version.to_owned(),
            date: date.filter(|date| is_date(date)).map(str::to_owned),
            html: String::new(),
        };
        // Every release has headings of the same names, and all of them stand on one page.
        let html = markdown::render(body, &Links::from_file(FILE)).html;
        let html = html.replace(" id=\"", &format!(" id=\"{}-", release.id()));
        release.html = html.replace(" href=\"#", &format!(" href=\"#{}-", release.id()));
        Some(release)
    };
    text.split("\n## ").skip(1).filter_map(release).collect()
}

/// What was announced, in the order of the changelog.
pub(crate) fn notices() -> Vec<Notice> {
    read_notices(TEXT)
}

/// Reads the items that announce something, each of which has its date behind `announced` or, where something is deprecated from
/// its announcement on, behind `since`.
pub(crate) fn read_notices(text: &str) -> Vec<Notice> {
    let mut notices = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let version = section.split(['[', ']']).nth(1).unwrap_or_default();
        for part in section.split("\n### ") {
            let is_deprecated = part.starts_with("Deprecated\n");
            for item in items(part) {
                let kind = if item.starts_with("**Incompatible**") {
                    "Incompatible"
                } else if is_deprecated {
                    "Deprecated"
                } else {
                    continue;
                };
                let about = item.split('`').nth(1).unwrap_or_default();
                let date = |word: &str| item.split_once(word)?.1.get(..10).filter(|date| is_date(date));
                notices.extend(date("announced ").or_else(|| date("since ")).map(|date| Notice {
                    title: format!("{kind}: {about}"),
                    date: date.to_owned(),
                    release: version.to_lowercase(),
                    html: markdown::render(&item, &Links::from_file(FILE)).html,
                }));
            }
        }
    }
    notices
}

/// The items of the lists at the top level, each on one line.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        match (items.last_mut(), line.strip_prefix("- ")) {
            (_, Some(item)) => {
                is_open = true;
                items.push(item.to_owned());
            }
            (Some(item), None) if is_open && line.starts_with("  ") => {
                item.push(' ');
                item.push_str(line.trim());
            }
            _ => is_open = false,
        }
    }
    items
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
    fn what_is_announced_has_its_own_date() {
        let text = "# C\n\n## [Unreleased]\n\n### Changed\n\n- **Incompatible**, announced 2027-01-15, effective 2027-07-15, both until\n  \
                    2028-01-15: `Offer.brand`: it is gone.\n- `x` since 2027-01-01\n\n### Deprecated\n\n- `GET /v1/old` since 2027-02-01.\n\
                    - `Offer.ean`, announced 2027-02-02, since 2027-03-01.\n\n## [1.0.0] - 2026-12-01\n\n- **Incompatible** words\n";
        let told: Vec<_> = read_notices(text)
            .into_iter()
            .map(|notice| (notice.name(), notice.release, notice.html.contains("2028-01-15")))
            .collect();
        let expected = [
            ("2027-01-15-incompatible-offer-brand", true),
            ("2027-02-01-deprecated-get-v1-old", false),
            ("2027-02-02-deprecated-offer-ean", false),
        ];
        let expected = expected.map(|(name, whole)| (name.to_owned(), "unreleased".to_owned(), whole));
        assert_eq!(told, expected);
    }

    #[test]
    fn headings_of_two_releases_have_anchors_of_their_own() {
        let text =
            "# C\n\n## [Unreleased]\n\n### Added\n\n- a\n\n## [1.0.0] - 2026-12-01\n\n### Added\n\n- b\n";
        let pages = read(text).into_iter().map(|release| release.html);
        for (html, id) in pages.zip(["unreleased-added", "1.0.0-added"]) {
            assert!(html.contains(&format!("id=\"{id}\"")), "{html}");
            assert!(!html.contains("id=\"added\""), "{html}");
        }
    }

    /// An item that the feed cannot date would never be told of there.
    #[test]
    fn every_announcement_of_the_changelog_is_read() {
        let marked = TEXT.matches("\n- **Incompatible**").count();
        let deprecated = TEXT.split("\n### Deprecated\n").skip(1);
        let listed = deprecated.map(|part| items(part.split("\n#").next().unwrap_or_default()));
        let listed = listed
            .flatten()
            .filter(|item| !item.starts_with("**Incompatible**"));
        assert_eq!(notices().len(), marked + listed.count());
    }

    #[test]
    fn every_released_document_has_a_section_and_an_entry() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/released");
        let settings = crate::DocsSettings {
            public_url: "https://api.example.com".to_owned(),
            service_name: "A".to_owned(),
        };
        let feed = crate::feed::atom(&settings, &releases(), &notices());
        let mut checked = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let version = name
                .strip_prefix("openapi-")
                .and_then(|name| name.strip_suffix(".json"));
            let version = version.unwrap_or_else(|| panic!("{name}"));
            let release = releases().into_iter().find(|release| release.version == version);
            let release = release.unwrap_or_else(|| panic!("{version} has no section in {FILE}"));
            assert!(release.date.is_some(), "{version} has no date");
            assert!(
                feed.contains(&format!("<title>{version}</title>")),
                "{version}: {feed}"
            );
            checked += 1;
        }
        assert!(checked > 0);
    }

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
