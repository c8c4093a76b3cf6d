//! Query strings and percent-encoding: what is let in keeps its rules, and is what other decoders make of it.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use web::query::{self, LARGEST_LIMIT};
use web::{percent, timestamps};

use crate::held::are_entries;
use crate::{Target, targets::texts};

const NAMES: [&str; 6] = ["limit", "after", "fields", "updated_after", "state", "text"];
const FIELDS: &[&str] = &["id", "title", "price", "stock", "status", "updated_at"];

pub(crate) const TARGET: Target = Target {
    name: "queries",
    run,
    seeds: || {
        texts(&[
            "",
            "limit=1000&updated_after=2026-01-01T00:00:00+02:00",
            "after=AAAA-_&limit=-5&fields=id,title,id",
            "fields=price%2Cstock&state=on&text=%C5%BC+%2B",
            "limit=+5&limit=6&unknown=%zz&%66ields=id",
            "&&=&=a&a",
        ])
    },
    words: &[
        "limit=",
        "fields=",
        "updated_after=",
        "title,",
        "%6c",
        "&limit=1",
        "2026-02-30T24:00:60.5Z",
        "state=off",
        "%",
    ],
    grows: &[
        ("", "k#=1&", ""),
        ("fields=", "id,", "id"),
        ("limit=", "9", ""),
        ("text=", "%41", ""),
    ],
};

fn run(bytes: &[u8]) {
    let Ok(raw) = std::str::from_utf8(bytes) else {
        return;
    };
    decodes_as_others_do(raw);
    let read = query::read(raw, &NAMES, |query| {
        (
            query.limit(),
            query.fields(FIELDS),
            query.date_time("updated_after"),
            query.one_of("state", &[true, false], |on| if on { "on" } else { "off" }),
            (
                query.text("text").map(Cow::into_owned),
                query.text("after").map(Cow::into_owned),
            ),
        )
    });
    match read {
        Ok((limit, fields, at, _, (text, _))) => {
            assert!((1..=LARGEST_LIMIT).contains(&limit));
            let names: Vec<_> = fields.names().collect();
            assert!(
                names.contains(&"id") && names.iter().all(|name| FIELDS.contains(name) && fields.has(name))
            );
            assert_eq!(
                fields.is_all(),
                !raw.split('&').any(|pair| is_named(pair, "fields"))
            );
            assert!(at.is_none_or(|at| timestamps::Timestamp::new(at).as_str().len() == 27));
            assert!(text.is_none_or(|text| !text.contains('\0')));
        }
        Err(violations) => are_entries(&violations.into_entries(), bytes.len()),
    }
}

fn is_named(pair: &str, name: &str) -> bool {
    let given = pair.split('=').next().unwrap_or_default();
    percent::decode(given).as_deref() == Some(name)
}

/// A strict decoder refuses some of what a lenient one takes, and changes nothing in the rest.
fn decodes_as_others_do(raw: &str) {
    let Some(decoded) = percent::decode(raw) else {
        let lenient = percent_decode_str(raw).decode_utf8();
        let is_broken = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() != 2;
        let broken = raw.split('%').skip(1).any(is_broken);
        assert!(broken || lenient.is_err() || lenient.is_ok_and(|text| text.contains('\0')));
        return;
    };
    assert_eq!(percent_decode_str(raw).decode_utf8().as_ref(), Ok(&decoded));
    let again = utf8_percent_encode(&decoded, NON_ALPHANUMERIC).to_string();
    assert_eq!(percent::decode(&again), Some(decoded));
}
