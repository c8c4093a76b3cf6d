//! What the changelog announces: items marked as incompatible, with their dates (contract: Versioning, 3).
//!
//! Such an item is
//!
//! ```text
//! - **Incompatible**, announced 2027-01-15, effective 2027-07-15, both until 2028-01-15: `Offer.brand`: it is gone; read `Offer.maker`.
//! ```
//!
//! It tells each change word for word as [`Break`] does: where, and what is different there. It takes effect at least [`NOTICE`] after it
//! is announced, and the old version runs beside the new one until the third date, which is later still. What a release has
//! already broken is in the section of its version and gives no leave to break more: what stands above that section counts.

use chrono::{NaiveDate, TimeDelta};

use crate::Break;

/// How long ahead an incompatible change is announced.
pub const NOTICE: TimeDelta = TimeDelta::days(180);

const MARK: &str = "- **Incompatible**";

/// An item that announces incompatible changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// When integrators could read of it.
    pub announced: NaiveDate,
    /// When it takes effect.
    pub effective: NaiveDate,
    /// How long the old version runs beside the new one.
    pub until: NaiveDate,
    /// The changes, in the words of breaks, and whatever else it says of them.
    pub text: String,
}

/// An item is marked as incompatible, and not written as it has to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The dates are not there, or not in their form.
    #[error(
        "not `- **Incompatible**, announced <date>, effective <date>, both until <date>: …`, each date as 2027-01-15: {0}"
    )]
    Dates(String),
    /// It takes effect too soon.
    #[error("it takes effect less than {days} days after it is announced: {0}", days = NOTICE.num_days())]
    TooSoon(String),
    /// The old version ends with the new one's beginning, or before.
    #[error("the old version has no time beside the new one: {0}")]
    NotParallel(String),
    /// It does not say what changes.
    #[error("it names no place in backticks: {0}")]
    Nowhere(String),
    /// The version is released, and the changelog does not say what came with it.
    #[error("it has no section `## [{0}] - <date>`, though that version is released")]
    NoSection(String),
}

impl Announcement {
    /// Whether this change is among those that are announced, and may be made on this day.
    pub fn covers(&self, found: &Break, today: NaiveDate) -> bool {
        let told = found.to_string();
        let mut behind = self
            .text
            .match_indices(&told)
            .filter_map(|(at, told)| self.text.get(at + told.len()..));
        // `it was 1 and is 2` is not said by `it was 1 and is 20`.
        let names = behind.any(|rest| {
            let rest = rest.trim_start_matches([',', ';', '.']);
            rest.is_empty() || rest.starts_with(' ')
        });
        names && self.effective <= today
    }
}

/// What a changelog announces above the section of the version that was released last.
pub fn announcements_since(changelog: &str, released: &str) -> Result<Vec<Announcement>, Malformed> {
    let section = format!("\n## [{released}] - ");
    match changelog.split_once(&section) {
        Some((above, _)) => announcements(above),
        None => Err(Malformed::NoSection(released.to_owned())),
    }
}

/// All announcements of a changelog.
pub fn announcements(changelog: &str) -> Result<Vec<Announcement>, Malformed> {
    items(changelog)
        .into_iter()
        .filter(|item| item.starts_with(MARK))
        .map(|item| read(&item))
        .collect()
}

/// The items of its lists, each on one line.
fn items(changelog: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in changelog.lines() {
        match items.last_mut() {
            Some(item) if is_open && line.starts_with("  ") => {
                item.push(' ');
                item.push_str(line.trim());
            }
            _ => {
                is_open = line.starts_with("- ");
                items.extend(is_open.then(|| line.to_owned()));
            }
        }
    }
    items
}

fn read(item: &str) -> Result<Announcement, Malformed> {
    let (announced, effective, until, text) = dated(item).ok_or_else(|| Malformed::Dates(item.to_owned()))?;
    if effective.signed_duration_since(announced) < NOTICE {
        return Err(Malformed::TooSoon(item.to_owned()));
    }
    if until <= effective {
        return Err(Malformed::NotParallel(item.to_owned()));
    }
    if text.split('`').nth(1).is_none() {
        return Err(Malformed::Nowhere(item.to_owned()));
    }
    Ok(Announcement {
        announced,
        effective,
        until,
        text: text.to_owned(),
    })
}

fn dated(item: &str) -> Option<(NaiveDate, NaiveDate, NaiveDate, &str)> {
    let (announced, rest) = date(item.strip_prefix(MARK)?, ", announced ")?;
    let (effective, rest) = date(rest, ", effective ")?;
    let (until, rest) = date(rest, ", both until ")?;
    Some((announced, effective, until, rest.strip_prefix(": ")?))
}

/// The date behind these words, and what follows it.
fn date<'a>(text: &'a str, words: &str) -> Option<(NaiveDate, &'a str)> {
    let (date, rest) = text.strip_prefix(words)?.split_at_checked(10)?;
    Some((date.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "- **Incompatible**, announced 2027-01-15, effective 2027-07-15, both until 2028-01-15: \
                        `Offer.brand`: it is gone";

    fn broken(place: &str, what: &str) -> Break {
        Break {
            place: place.to_owned(),
            what: what.to_owned(),
        }
    }

    fn day(date: &str) -> NaiveDate {
        date.parse().unwrap()
    }

    #[test]
    fn an_announcement_names_its_dates_and_changes() {
        let changelog = format!(
            "# Changelog\n\n### Changed\n- Another.\n{GOOD},\n  and `Offer.ean`: its\n  default was 1 and is 20.\n\nText\n  `x`: it is gone\n"
        );
        let found = announcements(&changelog).unwrap();
        let [announcement] = found.as_slice() else {
            panic!("{found:?}");
        };
        let dates = [announcement.announced, announcement.effective, announcement.until];
        let dates = dates.map(|date| date.to_string());
        assert_eq!(dates, ["2027-01-15", "2027-07-15", "2028-01-15"]);
        let today = day("2027-07-15");
        for (place, what) in [
            ("Offer.brand", "it is gone"),
            ("Offer.ean", "its default was 1 and is 20"),
        ] {
            assert!(announcement.covers(&broken(place, what), today), "{place}");
            let before = day("2027-07-14");
            assert!(
                !announcement.covers(&broken(place, what), before),
                "{place} is too soon"
            );
        }
        for (place, what) in [
            ("Offer", "it is gone"),
            ("Offer.brand.name", "it is gone"),
            ("x", "it is gone"),
            ("Offer.brand", "it may be missing now"),
            ("Offer.ean", "it is gone"),
            ("Offer.ean", "its default was 1 and is 2"),
        ] {
            assert!(
                !announcement.covers(&broken(place, what), today),
                "{place}: {what}"
            );
        }
        assert_eq!(announcements("- Incompatible words\n").unwrap(), []);
    }

    #[test]
    fn what_a_release_came_with_gives_no_leave_for_more() {
        let changelog = format!(
            "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2027-08-01\n\n{GOOD}\n\n## [1.0.0] - 2026-11-20\n"
        );
        assert_eq!(announcements_since(&changelog, "1.0.0").unwrap().len(), 1);
        assert_eq!(announcements_since(&changelog, "1.1.0").unwrap(), []);
        let none = Malformed::NoSection("1.2.0".to_owned());
        assert_eq!(announcements_since(&changelog, "1.2.0"), Err(none));
    }

    #[test]
    fn a_mark_without_all_that_belongs_to_it_is_malformed() {
        type Kind = fn(String) -> Malformed;
        let cases: [(&str, &str, Kind); 6] = [
            (", announced 2027-01-15", "", Malformed::Dates),
            ("2027-07-15", "15.07.2027", Malformed::Dates),
            (", both until 2028-01-15", "", Malformed::Dates),
            ("2027-01-15", "2027-01-17", Malformed::TooSoon),
            ("2028-01-15", "2027-07-15", Malformed::NotParallel),
            ("`", "", Malformed::Nowhere),
        ];
        for (from, to, kind) in cases {
            let item = GOOD.replace(from, to);
            assert_eq!(announcements(&item), Err(kind(item.clone())));
        }
    }
}
