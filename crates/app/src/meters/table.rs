//! Every metric of the program: its name, its kind, what it tells, and its labels, each with all the values that it can have.
//! The metrics themselves are in a file for each part.

mod database;
mod process;
mod requests;
mod webhooks;
mod work;

use metrics::Unit;

use Kind::{Counter, Gauge, Histogram};
use Values::{OneOf, Routes, Statuses, Version};

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// By the conventions of Prometheus: base units, which the name ends with; counters end with `_total`.
    pub name: &'static str,
    /// How its value moves.
    pub kind: Kind,
    /// What it tells, as one sentence.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [Label],
}

/// How a value moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Up alone, from the start of the process.
    Counter,
    /// Up and down.
    Gauge,
    /// Many values, counted by bounds: `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// A label.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// The values that it can have.
    pub values: Values,
}

/// The values that a label can have: never what a client makes up.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these.
    OneOf(&'static [&'static str]),
    /// The template of a route of the listener, such as `/v1/offers/{id}`, or `-` where no route matched.
    Routes,
    /// A status of HTTP.
    Statuses,
    /// A version of the program.
    Version,
}

/// A part of the table.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// Its metrics.
    pub meters: &'static [Meter],
}

const fn label(name: &'static str, values: &'static [&'static str]) -> Label {
    Label {
        name,
        values: OneOf(values),
    }
}

const fn meter(name: &'static str, kind: Kind, help: &'static str, labels: &'static [Label]) -> Meter {
    Meter {
        name,
        kind,
        help,
        labels,
    }
}

/// The whole table.
pub const SECTIONS: [Section; 5] = [
    Section {
        title: "Requests",
        meters: requests::METERS,
    },
    Section {
        title: "The database",
        meters: database::METERS,
    },
    Section {
        title: "Webhooks",
        meters: webhooks::METERS,
    },
    Section {
        title: "Mails, parcels and other work",
        meters: work::METERS,
    },
    Section {
        title: "The process",
        meters: process::METERS,
    },
];

/// How the names begin that a library counts by itself.
const OF_THE_LIBRARY: &str = "process_";

/// Every metric.
pub fn meters() -> impl Iterator<Item = &'static Meter> {
    SECTIONS.iter().flat_map(|section| section.meters)
}

impl Meter {
    /// The name of its unit's base, where it has one.
    fn unit(&self) -> Option<Unit> {
        let name = self.name.trim_end_matches("_total");
        if name.ends_with("_seconds") {
            Some(Unit::Seconds)
        } else if name.ends_with("_bytes") {
            Some(Unit::Bytes)
        } else {
            None
        }
    }

    /// Tells the recorder what the metric is.
    pub(super) fn describe(&self) {
        match (self.kind, self.unit()) {
            (Counter, Some(unit)) => metrics::describe_counter!(self.name, unit, self.help),
            (Counter, None) => metrics::describe_counter!(self.name, self.help),
            (Gauge, Some(unit)) => metrics::describe_gauge!(self.name, unit, self.help),
            (Gauge, None) => metrics::describe_gauge!(self.name, self.help),
            (Histogram, Some(unit)) => metrics::describe_histogram!(self.name, unit, self.help),
            (Histogram, None) => metrics::describe_histogram!(self.name, self.help),
        }
    }

    /// Has a counter begin at 0 for all that it may count. Prometheus sees no increase where a series begins with its first event, and
    /// what happens once a month would never be told of.
    pub(super) fn begin(&self) {
        if self.kind == Counter && !self.name.starts_with(OF_THE_LIBRARY) {
            for labels in self.combinations() {
                metrics::counter!(self.name, labels).increment(0);
            }
        }
    }

    /// Every combination of its labels' values; none where one of them has values that are not listed.
    pub(super) fn combinations(&self) -> Vec<Vec<metrics::Label>> {
        self.labels.iter().fold(vec![Vec::new()], |combined, label| {
            let values = match label.values {
                OneOf(values) => values,
                Routes | Statuses | Version => &[],
            };
            let with = |value: &&'static str| metrics::Label::from_static_parts(label.name, value);
            combined
                .iter()
                .flat_map(|before| values.iter().map(move |value| (before, value)))
                .map(|(before, value)| before.iter().cloned().chain([with(value)]).collect())
                .collect()
        })
    }
}

impl Values {
    /// Whether a label may have this value.
    pub fn hold(&self, value: &str) -> bool {
        match self {
            OneOf(values) => values.contains(&value),
            Routes => value == "-" || value.starts_with('/'),
            Statuses => value
                .parse()
                .is_ok_and(|status: u16| (100..=599).contains(&status)),
            Version => value.starts_with(|first: char| first.is_ascii_digit()),
        }
    }
}
