//! Statistics of repeated measurements, and Markdown tables.

use std::fmt;

/// Median, minimum and maximum of several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    /// All zero if there are no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
        Self {
            min: at(0),
            median: f64::midpoint(at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2)),
            max: at(sorted.len().saturating_sub(1)),
        }
    }

    pub(crate) fn median(self) -> f64 {
        self.median
    }

    /// Rounded to whole numbers: `52 310 (50 020–53 400)`.
    pub(crate) fn whole(self) -> String {
        let [median, min, max] = [self.median, self.min, self.max].map(whole);
        format!("{median} ({min}–{max})")
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.min, self.max)
    }
}

/// `count` as a floating-point number.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, where a double is still exact"
)]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// A whole number with spaces between its thousands: `52 310`.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table. The first column is text, all others are numbers.
#[derive(Debug)]
pub(crate) struct Table(String);

impl Table {
    /// `titles` are those of all columns but the first, separated by `|`. The first column has no title.
    pub(crate) fn new(titles: &str) -> Self {
        let rule = "--:|".repeat(titles.split('|').count());
        Self(format!("| | {titles} |\n|---|{rule}\n"))
    }

    /// Adds a row; `|` separates its cells.
    pub(crate) fn row(&mut self, cells: fmt::Arguments<'_>) {
        self.0.extend(["| ", &cells.to_string(), " |\n"]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
