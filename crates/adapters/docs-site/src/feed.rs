//! The feed of the changelog (Atom, RFC 4287): an entry for each released version, and one for each announcement of what will
//! change.
//!
//! What is not released yet has no date and would change under its readers, so it is no entry; what is announced has one, and whoever
//! subscribes is to hear of it then. The ids are addresses below the
//! public URL, which is the service's identity elsewhere too (the OAuth issuer), and never change.

use std::fmt::Write as _;

use crate::DocsSettings;
use crate::changelog::{self, Notice, Release};

/// Where the feed is.
pub(crate) const PATH: &str = "/docs/changelog.atom";

/// A feed has to tell when it was changed last (RFC 4287 §4.1.1), one without entries too: then, when the API was announced.
const BEGINNING: &str = "2026-11-20";

/// What a reader shows of a release or an announcement.
struct Entry<'a> {
    date: &'a str,
    title: &'a str,
    /// Behind the address of the page.
    id: String,
    anchor: String,
    html: &'a str,
}

/// The feed, the latest first.
pub(crate) fn atom(settings: &DocsSettings, releases: &[Release], notices: &[Notice]) -> String {
    let base = xml(&settings.public_url);
    let name = xml(&settings.service_name);
    let entries = entries(releases, notices);
    let updated = entries.first().map_or(BEGINNING, |entry| entry.date);
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
    for entry in entries {
        let (id, title, date) = (xml(&entry.id), xml(entry.title), entry.date);
        let anchor = xml(&entry.anchor);
        let _ = write!(
            feed,
            r#"<entry xml:base="{base}{page}">
<id>{base}{page}{id}</id>
<title>{title}</title>
<updated>{date}T00:00:00Z</updated>
<link rel="alternate" type="text/html" href="{base}{page}#{anchor}"/>
<content type="html">{}</content>
</entry>
"#,
            xml(&absolute(entry.html, &settings.public_url))
        );
    }
    feed + "</feed>\n"
}

fn entries<'a>(releases: &'a [Release], notices: &'a [Notice]) -> Vec<Entry<'a>> {
    let of_releases = releases.iter().filter_map(|release| {
        Some(Entry {
            date: release.date.as_deref()?,
            title: &release.version,
            id: format!("#{}", release.id()),
            anchor: release.id(),
            html: &release.html,
        })
    });
    let of_notices = notices.iter().map(|notice| Entry {
        date: &notice.date,
        title: &notice.title,
        id: format!("/announced/{}", notice.name()),
        anchor: notice.release.clone(),
        html: &notice.html,
    });
    let mut entries: Vec<_> = of_notices.chain(of_releases).collect();
    // Stable: what has the same date stays in the order of the changelog.
    entries.sort_by(|one, other| other.date.cmp(one.date));
    entries
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

    fn text_of(node: &roxmltree::Node<'_, '_>, name: &str) -> Vec<String> {
        text(node, name).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn an_entry_for_each_release() {
        let releases = changelog::read(
            "# C\n\n## [Unreleased]\n\n- later\n\n## [1.1.0] - 2026-12-01\n\n- `b` < [e](ERRORS.md)\n\n## [1.0.0] - 2026-11-25\n\n- a\n",
        );
        let feed = atom(&settings(), &releases, &[]);
        let document = roxmltree::Document::parse(&feed).unwrap();
        let root = document.root_element();
        for entry in root.children().filter(|child| child.has_tag_name("entry")) {
            let base = ("http://www.w3.org/XML/1998/namespace", "base");
            assert_eq!(
                entry.attribute(base),
                Some("https://api.example.com/docs/changelog")
            );
        }
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
    fn an_announcement_is_an_entry_that_stays_when_it_is_released() {
        let item = "- **Incompatible**, announced 2027-01-15, effective 2027-07-15, both until 2028-01-15: `A.b`: it is gone.";
        let told = |section: &str| {
            let text = format!("# C\n\n## [{section}\n\n{item}\n\n## [1.0.0] - 2026-11-20\n\n- a\n");
            let (releases, notices) = (changelog::read(&text), changelog::read_notices(&text));
            let feed = atom(&settings(), &releases, &notices);
            let document = roxmltree::Document::parse(&feed).unwrap();
            let root = document.root_element();
            let entries = root.children().filter(|child| child.has_tag_name("entry"));
            let of = |name| {
                entries
                    .clone()
                    .flat_map(|entry| text_of(&entry, name))
                    .collect::<Vec<_>>()
            };
            (of("id"), of("title"), of("updated"))
        };
        let page = "https://api.example.com/docs/changelog";
        let own = format!("{page}/announced/2027-01-15-incompatible-a-b");
        let (ids, titles, updated) = told("Unreleased]");
        assert_eq!(ids, [own.clone(), format!("{page}#1.0.0")]);
        assert_eq!(titles, ["Incompatible: A.b", "1.0.0"]);
        assert_eq!(updated, ["2027-01-15T00:00:00Z", "2026-11-20T00:00:00Z"]);
        let (ids, ..) = told("1.1.0] - 2027-08-01");
        assert_eq!(ids, [format!("{page}#1.1.0"), own, format!("{page}#1.0.0")]);
    }

    #[test]
    fn a_feed_without_releases_is_a_feed() {
        let feed = atom(&settings(), &[], &[]);
        let document = roxmltree::Document::parse(&feed).unwrap();
        assert_eq!(
            text(&document.root_element(), "updated"),
            ["2026-11-20T00:00:00Z"]
        );
    }
}
