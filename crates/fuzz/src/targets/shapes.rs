//! A table of fields of every kind, and any body: what is let in keeps the table's rules, what is not is told in a few entries.

use chrono::{DateTime, Utc};
use url::Url;
use web::decode::{
    Shape, body, boolean, date_time, integer, list, nullable, object, one_of, optional, required, resettable,
    text, uri,
};

use crate::held::are_entries;
use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "shapes",
    run,
    seeds: || {
        texts(&[
            r#"{"label": "fragile", "count": 17, "size": "small", "at": "2026-01-31T12:00:00Z", "weights": [200, 17], "note": null,
                "link": "https://example.com/x?y#z", "inner": {"name": "n", "deep": [{"x": true}]}, "reset": null}"#,
            r#"{"label": "1234", "weights": []}"#,
            r#"{"label": 1, "count": "5", "size": "huge", "at": 5, "weights": [1.5, null, 0], "unknown": {}}"#,
        ])
    },
    words: &[
        "\"label\":",
        "\"count\":",
        "\"size\":",
        "\"at\":",
        "\"weights\":",
        "\"note\":",
        "\"link\":",
        "\"inner\":",
        "\"deep\":",
        "\"reset\":",
        "\"small\"",
        "\"2026-01-31T12:00:00+14:00\"",
        "[0]",
    ],
    grows: &[
        ("{", "\"k#\":1,", "\"label\":0}"),
        ("{\"weights\":[", "#,", "0]}"),
        ("{\"inner\":{\"name\":\"n\",\"deep\":[", "{\"x\":#},", "0]}}"),
    ],
};

#[derive(Clone, Copy, PartialEq)]
enum Size {
    Small,
    Large,
}

impl Size {
    const ALL: [Self; 2] = [Self::Small, Self::Large];

    fn as_str(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }
}

type Inner = Option<(String, Option<Vec<(bool,)>>)>;
type Read = (
    String,
    Option<u8>,
    Option<Size>,
    Option<DateTime<Utc>>,
    Vec<u32>,
    Option<String>,
    Option<String>,
    Inner,
    Option<i64>,
);

fn table() -> impl Shape<Value = Read> {
    let inner = object((
        required("name", text()),
        optional("deep", list(object((required("x", boolean()),))).at_most(3)),
    ));
    object((
        required(
            "label",
            text()
                .length(4..=64)
                .matching(str::is_ascii, "of ASCII characters only"),
        ),
        optional("count", integer(1..=200_u8)),
        optional("size", one_of(&Size::ALL, Size::as_str)),
        optional("at", date_time()),
        required("weights", list(integer(1..=30_000_u32)).at_least(1).at_most(10)),
        nullable("note", text()),
        optional("link", uri(|text| Url::parse(text).is_ok())),
        optional("inner", inner),
        resettable("reset", integer(5..=i64::MAX), -1),
    ))
}

fn run(bytes: &[u8]) {
    match body(bytes, &table()) {
        Ok((label, count, _, _, weights, note, _, inner, reset)) => {
            assert!(label.is_ascii() && (4..=64).contains(&label.len()));
            assert!(count.is_none_or(|count| (1..=200).contains(&count)));
            assert!(
                (1..=10).contains(&weights.len())
                    && weights.iter().all(|weight| (1..=30_000).contains(weight))
            );
            assert!(note.is_none_or(|note| !note.contains('\0')));
            assert!(
                inner
                    .and_then(|(_, deep)| deep)
                    .is_none_or(|deep| deep.len() <= 3)
            );
            assert!(reset.is_none_or(|reset| reset == -1 || reset >= 5));
        }
        Err(violations) => are_entries(&violations.into_entries(), bytes.len()),
    }
}
