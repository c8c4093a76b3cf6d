//! The table of metrics as a page of the documentation.

use std::iter;

use super::table::{Kind, Label, Meter, SECTIONS, Values};

const HEAD: &str = "\
# Metrics

<!-- Made of the program's own table: `seller-api metrics > docs/operations/METRICS.md`. -->

`GET /metrics` on the back office's listener, and at `worker.bind` of `seller-api worker`, answers in the text format of Prometheus. Labels
have the values that stand here and no others, whatever clients send. A counter begins at 0, unless one of its labels is a route or a status; whatever else
there is appears once it has a value. The queues are told by every
process alike: take the `max` over processes, not the sum.
";

/// The page, in Markdown.
pub fn markdown() -> String {
    let sections = SECTIONS.iter().flat_map(|section| {
        let head = format!(
            "\n## {}\n\n| metric | kind | labels | tells |\n|---|---|---|---|\n",
            section.title
        );
        iter::once(head).chain(section.meters.iter().map(row))
    });
    iter::once(HEAD.to_owned()).chain(sections).collect()
}

fn row(meter: &Meter) -> String {
    let kind = match meter.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let labels = meter.labels.iter().map(label).collect::<Vec<_>>();
    let labels = if labels.is_empty() {
        "–".to_owned()
    } else {
        labels.join("; ")
    };
    format!("| `{}` | {kind} | {labels} | {} |\n", meter.name, meter.help)
}

fn label(label: &Label) -> String {
    let values = match label.values {
        Values::OneOf(values) => values
            .iter()
            .map(|value| format!("`{value}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Values::Routes => "the template of a route, such as `/v1/offers/{id}`, or `-`".to_owned(),
        Values::Statuses => "the status".to_owned(),
        Values::Version => "the program's version".to_owned(),
    };
    format!("`{}`: {values}", label.name)
}
