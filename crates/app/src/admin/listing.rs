//! Prints lists: tables for people, JSON lines for programs.

use std::fmt::Display;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::id;
use crate::command::{PrintError, note, print};

/// A timestamp for programs.
pub(super) use web::timestamps::Timestamp;

pub(crate) trait Listed {
    /// The members of the object that the table shows.
    const COLUMNS: &'static str;

    /// The whole row, for programs.
    fn object(&self) -> Value;

    /// The text of a cell, if it differs from the object's member.
    fn cell(&self, _member: &str) -> Option<String> {
        None
    }
}

/// For whom the result is.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Format {
    /// One JSON object a line instead of a table
    #[arg(long, global = true)]
    json: bool,
}

pub(super) const MAX_PAGE: u16 = 1000;

/// Which rows of a list are shown, newest first.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct PageArgs {
    /// How many rows at most, 1 to 1000
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_PAGE)))]
    pub(super) limit: u16,
    /// Only rows older than the one with this id
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(super) before: Option<Uuid>,
}

impl Format {
    pub(crate) fn list<T: Listed>(self, rows: &[T]) -> Result<(), PrintError> {
        let head = T::COLUMNS.split(' ').map(heading).collect();
        self.rows(Some(head), rows)
    }

    /// Prints further rows of a list.
    pub(super) fn further<T: Listed>(self, rows: &[T]) -> Result<(), PrintError> {
        self.rows(None, rows)
    }

    fn rows<T: Listed>(self, head: Option<Vec<String>>, rows: &[T]) -> Result<(), PrintError> {
        if self.json {
            return rows
                .iter()
                .try_for_each(|row| print(escaped(&row.object().to_string())));
        }
        let lines: Vec<_> = head.into_iter().chain(rows.iter().map(cells)).collect();
        aligned(&lines).iter().try_for_each(print)
    }

    /// Prints a page of a list; for people also how to get the next page.
    pub(super) fn page<T: Listed>(
        self,
        rows: &[T],
        page: PageArgs,
        id: impl FnOnce(&T) -> Uuid,
    ) -> Result<(), PrintError> {
        self.list(rows)?;
        let last = rows.last().filter(|_| rows.len() == usize::from(page.limit));
        if let Some(last) = last.filter(|_| !self.json) {
            note(format_args!("there may be more: --before {}", id(last)));
        }
        Ok(())
    }

    /// The object for programs, a sentence for people.
    pub(crate) fn said(self, object: &Value, sentence: impl Display) -> Result<(), PrintError> {
        if self.json {
            print(escaped(&object.to_string()))
        } else {
            print(sentence)
        }
    }

    /// As [`Self::said`], of a change that was made. For several, `printed = printed.and(…)` prints each and keeps the first
    /// failure.
    pub(crate) fn changed(self, object: &Value, sentence: impl Display) -> Result<(), PrintError> {
        self.said(object, sentence).map_err(PrintError::done)
    }
}

/// The heading of a column: `CREATED` of `created_at`.
fn heading(member: &str) -> String {
    let name = member.strip_suffix("_at").unwrap_or(member);
    name.replace('_', " ").to_uppercase()
}

fn cells<T: Listed>(row: &T) -> Vec<String> {
    let object = row.object();
    let cell = |member| {
        let shown = || text(object.get(member).unwrap_or(&Value::Null));
        row.cell(member).unwrap_or_else(shown)
    };
    T::COLUMNS.split(' ').map(cell).collect()
}

/// A member for people: timestamps with seconds.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => {
            DateTime::parse_from_rfc3339(text).map_or_else(|_| text.clone(), |at| to_second(at.to_utc()))
        }
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Lines with aligned columns.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let visible = |row: &Vec<String>| row.iter().map(|cell| visible(cell)).collect::<Vec<_>>();
    let rows = rows.iter().map(visible).collect::<Vec<_>>();
    let mut widths = Vec::new();
    for row in &rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Replaces terminal control characters and invisible characters by `?`: others chose the text.
pub(crate) fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if is_visible(c) { c } else { '?' })
        .collect()
}

/// JSON with invisible characters as escapes: programs read the same value, and a terminal acts on none of them.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::new();
    for c in json.chars() {
        if is_visible(c) {
            text.push(c);
        } else {
            let units = &mut [0; 2];
            text.extend(c.encode_utf16(units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// False for control and format characters (including those that change the writing direction), line
/// separators and unassigned characters. The standard library escapes these, and also quotes and `\`, so that
/// they can be read back. A combining accent is visible after its letter.
fn is_visible(c: char) -> bool {
    let after_a_letter = ['x', c].iter().collect::<String>();
    matches!(c, '"' | '\'' | '\\') || after_a_letter.escape_debug().count() == 2
}

/// A timestamp for people.
fn to_second(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = ["NO NAME ID", "1 Żółć a", "100 K ", "2 \u{1b}[2J\u{7}x b"];
        let rows = rows.map(|row| row.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let lines = ["NO   NAME    ID", "1    Żółć    a", "100  K", "2    ?[2J?x  b"];
        assert_eq!(aligned(&rows), lines);
    }

    #[test]
    fn names_have_no_terminal_controls_and_no_invisible_characters() {
        for hidden in
            "\u{7f}\u{9b}\u{202e}\u{2066}\u{61c}\u{200b}\u{200f}\u{feff}\u{ad}\u{2028}\u{e0041}\u{fff9}"
                .chars()
        {
            assert_eq!(visible(&format!("a{hidden}b")), "a?b", "{hidden:?}");
            let named = json!({ "name": format!("a{hidden}\"b") });
            let text = escaped(&named.to_string());
            assert!(
                text.is_ascii() && serde_json::from_str::<Value>(&text).unwrap() == named,
                "{text}"
            );
        }
        for seen in ["Żółć e\u{301}", "O'Neil \"K\" \\", "日本 \u{5d0}\u{627}", "🫖"] {
            assert_eq!(visible(seen), seen);
            let named = json!({ "name": seen });
            assert_eq!(escaped(&named.to_string()), named.to_string());
        }
    }
}
