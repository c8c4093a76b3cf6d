//! The Atom feed of the changelog: an entry for each released version, and one for each announcement.
//!
//! An announcement is an item marked **Incompatible** or listed under "Deprecated" that has a date after
//! `announced` or `since`. Other unreleased items have no date and no entry.

use std::cmp::Reverse;

use atom_syndication::{Content, Entry, Error, Feed, Link, Person, WriteConfig};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveTime};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use crate::markdown;
use crate::sources::{self, Audience, CHANGELOG_FILE, CHANGELOG_PAGE};

pub(crate) const FEED: &str = "/docs/changelog.atom";

/// When the API was announced: the date of a feed without entries (RFC 4287 §4.1.1 requires one).
const BEGINNING: &str = "2026-11-20";

pub(crate) fn feed(public_url: &str, service_name: &str, changelog: &str) -> Result<Vec<u8>, Error> {
    let page = format!("{public_url}{CHANGELOG_PAGE}");
    let mut entries = Vec::new();
    for section in changelog.split("\n## ").skip(1) {
        let Some((version, rest)) = section.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let anchor = format!("{page}#{}", version.to_lowercase());
        announcements(section, &page, &anchor, &mut entries);
        let (heading, body) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some(date) = date(heading.trim_start_matches([' ', '-'])) {
            entries.push(entry(&page, anchor.clone(), version, date, &anchor, body));
        }
    }
    // A stable sort: entries of the same date keep the order of the changelog.
    entries.sort_by_key(|entry| Reverse(entry.updated));
    let address = format!("{public_url}{FEED}");
    let feed = Feed {
        id: address.clone(),
        title: format!("{service_name}: changelog").into(),
        updated: entries
            .first()
            .map(|entry| entry.updated)
            .or_else(|| date(BEGINNING))
            .unwrap_or_default(),
        authors: vec![Person {
            name: service_name.to_owned(),
            ..Person::default()
        }],
        links: vec![
            link("self", address, "application/atom+xml"),
            link("alternate", page.clone(), "text/html"),
        ],
        entries,
        base: Some(page),
        lang: Some("en".to_owned()),
        ..Feed::default()
    };
    feed.write_with_config(Vec::new(), WriteConfig::default())
}

/// Adds the announcements in a release's section. The id of an announcement has no version, so it stays when
/// its release gets one.
fn announcements(section: &str, page: &str, anchor: &str, entries: &mut Vec<Entry>) {
    let (mut is_deprecated, mut depth) = (false, 0_usize);
    for (event, range) in Parser::new(section).into_offset_iter() {
        let text = section.get(range).unwrap_or_default();
        match event {
            Event::Start(Tag::Heading {
                level: HeadingLevel::H3,
                ..
            }) => is_deprecated = text.contains("Deprecated"),
            Event::Start(Tag::List(_)) => depth = depth.saturating_add(1),
            Event::End(TagEnd::List(_)) => depth = depth.saturating_sub(1),
            Event::Start(Tag::Item) if depth == 1 => {
                let item = text.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
                let kind = if item.starts_with("**Incompatible**") {
                    "Incompatible"
                } else if is_deprecated {
                    "Deprecated"
                } else {
                    continue;
                };
                let date_after = |word: &str| date(item.split_once(word)?.1);
                if let Some(date) = date_after("announced ").or_else(|| date_after("since ")) {
                    let about = item.split('`').nth(1).unwrap_or_default();
                    let id = format!("{page}/announced/{}/{about}", date.date_naive()).replace(' ', "-");
                    entries.push(entry(page, id, &format!("{kind}: {about}"), date, anchor, &item));
                }
            }
            _ => {}
        }
    }
}

fn entry(
    page: &str,
    id: String,
    title: &str,
    date: DateTime<FixedOffset>,
    anchor: &str,
    text: &str,
) -> Entry {
    let follow = |link: &str| sources::follow(CHANGELOG_FILE, link, Audience::Integrators);
    let html = markdown::render(text, follow).html;
    let origin = page.trim_end_matches(CHANGELOG_PAGE);
    Entry {
        id,
        title: title.into(),
        updated: date,
        links: vec![link("alternate", anchor.to_owned(), "text/html")],
        content: Some(Content {
            value: Some(html.replace(" href=\"/", &format!(" href=\"{origin}/"))),
            content_type: Some("html".to_owned()),
            ..Content::default()
        }),
        ..Entry::default()
    }
}

fn link(rel: &str, href: String, media_type: &str) -> Link {
    Link {
        rel: rel.to_owned(),
        href,
        mime_type: Some(media_type.to_owned()),
        ..Link::default()
    }
}

/// The date at the start of a text, at midnight.
fn date(text: &str) -> Option<DateTime<FixedOffset>> {
    let (date, _) = NaiveDate::parse_and_remainder(text, "%Y-%m-%d").ok()?;
    Some(date.and_time(NaiveTime::MIN).and_utc().fixed_offset())
}
