//! The report of an import.

use serde::Serialize;
use usecases::feed_offers::Counts;
use web::{Entry, Violations};

/// The most rejected lines listed; all are counted (D100).
const MAX_LISTED: usize = 10_000;

/// Estimated bytes of the report beyond which only the first error of each line is listed: an unknown column
/// is an error in every line.
const MAX_BYTES: usize = 8 * 1_024 * 1_024;

/// The longest listed path or message, in characters: both can quote a name from a line.
const MAX_QUOTE_LENGTH: usize = 300;

/// `{created, updated, unchanged, rejected_total, rejected: [{line, errors}]}`. Blank lines are not counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ImportReport {
    /// Lines that created an offer.
    pub created: u64,
    /// Lines that changed an offer.
    pub updated: u64,
    /// Lines that changed nothing.
    pub unchanged: u64,
    /// Lines that were not applied.
    pub rejected_total: u64,
    /// The first 10 000 rejected lines.
    pub rejected: Vec<RejectedLine>,
    #[serde(skip)]
    bytes: usize,
}

/// A line that was not applied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RejectedLine {
    /// The line number, from 1; blank lines count.
    pub line: u64,
    /// The violations, in the common error shape.
    pub errors: Vec<Entry>,
}

impl ImportReport {
    pub(super) fn add(&mut self, counts: Counts) {
        self.created += counts.created;
        self.updated += counts.updated;
        self.unchanged += counts.unchanged;
    }

    pub(super) fn reject(&mut self, line: u64, violations: impl Into<Violations>) {
        self.rejected_total += 1;
        if self.rejected.len() < MAX_LISTED {
            let entries = violations.into().into_entries();
            let most = if self.bytes < MAX_BYTES { entries.len() } else { 1 };
            let errors: Vec<_> = entries.iter().take(most).map(shortened).collect();
            self.bytes += errors.iter().map(size).sum::<usize>();
            self.rejected.push(RejectedLine { line, errors });
        }
    }
}

fn shortened(entry: &Entry) -> Entry {
    let path = entry.path().map(short);
    let short = Entry::new(entry.code(), short(entry.message()));
    match path {
        Some(path) => short.at(path),
        None => short,
    }
}

/// Its estimated bytes in memory and in the answer: 200 beside its texts.
fn size(entry: &Entry) -> usize {
    200 + entry.message().len() + entry.path().map_or(0, str::len)
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quote_of_a_rejected_line_is_shortened() {
        let mut report = ImportReport::default();
        report.reject(7, Entry::validation("ż".repeat(301), "ż".repeat(300)));
        report.reject(8, Entry::whole("It broke."));
        let entries: Vec<_> = report.rejected.iter().flat_map(|line| &line.errors).collect();
        assert_eq!(entries[0].path(), Some(format!("{}…", "ż".repeat(300)).as_str()));
        assert_eq!(entries[0].message(), "ż".repeat(300));
        assert_eq!(*entries[1], Entry::whole("It broke."));
    }

    #[test]
    fn a_report_of_very_many_errors_lists_the_first_of_each_line() {
        let mut report = ImportReport::default();
        for line in 1..=20_000 {
            let mut unknown = Violations::default();
            for n in 0..20 {
                unknown.push(Entry::validation(format!("column-{n}"), "x".repeat(100)));
            }
            report.reject(line, unknown);
        }
        let errors = |line: usize| report.rejected[line].errors.len();
        assert_eq!((errors(0), errors(9_999), report.rejected.len()), (20, 1, 10_000));
        assert_eq!(report.rejected_total, 20_000);
        assert!(serde_json::to_vec(&report).unwrap().len() < 2 * MAX_BYTES);
    }
}
