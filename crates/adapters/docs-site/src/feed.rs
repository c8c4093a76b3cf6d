//! The feed of the changelog (Atom, RFC 4287): an entry for each released version.
//!
//! What is not released yet has no date and would change under its readers, so it is no entry. The ids are addresses below the
//! public URL, which is the service's identity elsewhere too (the OAuth issuer), and never change.

use std::fmt::Write as _;

use crate::DocsSettings;
use crate::changelog::{self, Release};

/// Where the feed is.
pub(crate) const PATH: &str = "/docs/changelog.atom";

/// A feed has to tell when it was changed last (RFC 4287 §4.1.1), one without entries too: then, when the API was announced.
const BEGINNING: &str = "2026-11-20";

/// The feed.
pub(crate) fn atom(settings: &DocsSettings, releases: &[Release]) -> String {
    let base = xml(&settings.public_url);
    let name = xml(&settings.service_name);
    let dated = releases
        .iter()
        .filter_map(|release| Some((release, release.date.as_deref()?)));
    let updated = dated.clone().map(|(_, date)| date).max().unwrap_or(BEGINNING);
    let page = changelog::PATH;
    let mut feed = format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">
<id>{base}{PATH}</id>
<title>{name}: changelog</title>
<updated>{updated}T00:00:00Z</updated>
<author><name>{name}</name></author>
<link rel="self" type="application/atom+xml" href="{base}{PATH}"/>
<link rel="alternate" type="text/html" href="{base}{page}"/>
"#
    );
    for (release, date) in dated {
        let (version, anchor) = (xml(&release.version), xml(&release.id()));
        let _ = write!(
            feed,
            r#"<entry>
<id>{base}{page}#{anchor}</id>
<title>{version}</title>
<updated>{date}T00:00:00Z</updated>
<link rel="alternate" type="text/html" href="{base}{page}#{anchor}"/>
<content type="html">{}</content>
</entry>
"#,
            xml(&absolute(&release.html, &settings.public_url))
        );
    }
    feed + "</feed>\n"
}

/// Links within the site, as readers elsewhere can follow them.
fn absolute(html: &str, base: &str) -> String {
    html.replace("href=\"/", &format!("href=\"{base}/"))
}

/// Text within XML, in attributes too.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> DocsSettings {
        DocsSettings {
            public_url: "https://api.example.com".to_owned(),
            service_name: "A & B".to_owned(),
        }
    }

    fn text<'a>(node: &roxmltree::Node<'a, '_>, name: &str) -> Vec<&'a str> {
        let children = node
            .children()
            .filter(|child| child.has_tag_name(("http://www.w3.org/2005/Atom", name)));
        children.filter_map(|child| child.text()).collect()
    }

    #[test]
    fn an_entry_for_each_release() {
        let releases = changelog::read(
            "# C\n\n## [Unreleased]\n\n- later\n\n## [1.1.0] - 2026-12-01\n\n- `b` < [e](ERRORS.md)\n\n## [1.0.0] - 2026-11-25\n\n- a\n",
        );
        let feed = atom(&settings(), &releases);
        let document = roxmltree::Document::parse(&feed).unwrap();
        let root = document.root_element();
        assert_eq!(text(&root, "id"), ["https://api.example.com/docs/changelog.atom"]);
        assert_eq!(text(&root, "title"), ["A & B: changelog"]);
        assert_eq!(text(&root, "updated"), ["2026-12-01T00:00:00Z"]);
        let entries: Vec<_> = root
            .children()
            .filter(|child| child.has_tag_name("entry"))
            .collect();
        let ids: Vec<_> = entries.iter().flat_map(|entry| text(entry, "id")).collect();
        let page = "https://api.example.com/docs/changelog";
        assert_eq!(ids, [format!("{page}#1.1.0"), format!("{page}#1.0.0")]);
        let content = text(&entries[0], "content");
        assert_eq!(
            content,
            ["\n<ul>\n<li><code>b</code> &lt; <a href=\"https://api.example.com/docs/errors\">e</a></li>\n</ul>\n".trim_start()]
        );
    }

    #[test]
    fn a_feed_without_releases_is_a_feed() {
        let feed = atom(&settings(), &[]);
        let document = roxmltree::Document::parse(&feed).unwrap();
        assert_eq!(
            text(&document.root_element(), "updated"),
            ["2026-11-20T00:00:00Z"]
        );
    }
}
