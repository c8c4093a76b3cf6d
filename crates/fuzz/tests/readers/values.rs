//! Bodies, queries and forms: JSON, the rules of fields, percent-encoding, date-times.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::{Serializer, parse};
use web::decode::{Shape, body, boolean, integer, list, object, one_of, text, text_of};
use web::form::Form;
use web::json::{JsonError, MAX_DEPTH};
use web::openapi::Parameter;
use web::query::{self, Selection};
use web::timestamps::{self, Timestamp};
use web::{Json, form};

use crate::{always, always_text, are_entries, is_linear, is_printable};

#[test]
fn strict_json_agrees_with_serde_json_on_the_grammar() {
    let samples = [
        "{}",
        r#"{"price": {"amount": 12900, "currency": "PLN"}, "stock": 14, "status": null, "a\u0062": {"a": "\u0041"}}"#,
        r#"[1, -2, 3.5, 1e3, 1E+1, 99999999999999999999, true, false, null, "ż\u017c\ud83e\udd80\n"]"#,
        r#"{"a": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[{"b": []}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"#,
        "\"\\u0000\"",
        "\u{feff}{}",
        " \n\t17 ",
    ];
    always(&samples, |bytes| {
        let lenient = serde_json::from_slice::<Value>(bytes);
        match (Json::parse(bytes), lenient) {
            (Ok(json), Ok(lenient)) => is_the_same(&json, &lenient, MAX_DEPTH),
            // Our parser accepts numbers beyond f64, without their value.
            (Ok(_), Err(error)) => assert!(error.to_string().starts_with("number out of range"), "{error}"),
            (Err(error), lenient) => {
                is_printable(&error.to_string(), bytes.len());
                let is_own_rule = matches!(
                    error,
                    JsonError::DuplicateKey(_)
                        | JsonError::Nul
                        | JsonError::TooDeep
                        | JsonError::TooManyValues { .. }
                );
                assert!(
                    is_own_rule || lenient.is_err(),
                    "{error}, and serde_json reads {lenient:?}"
                );
            }
        }
    });
    let shapes = [
        ["{", "\"k#\":1,", "\"z\":0}"],
        ["[", "#,\"\\u0041\",", "0]"],
        [
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
            "#,",
            "0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        ],
        ["{\"a\":", "{\"a\":", ""],
        ["\"", "\\ud83e\\udd80", "\""],
    ];
    is_linear(&shapes, Json::parse);
}

fn is_the_same(json: &Json, lenient: &Value, levels: usize) {
    let is_text = |text: &str| assert!(!text.contains('\0'));
    match (json, lenient) {
        (Json::Null, Value::Null) | (Json::Fraction | Json::HugeInteger, Value::Number(_)) => {}
        (Json::Bool(one), Value::Bool(other)) => assert_eq!(one, other),
        // `-0` is an integer in our parser and -0.0 in the other.
        (Json::Integer(one), Value::Number(other)) => assert!(other.as_i64() == Some(*one) || *one == 0),
        (Json::String(one), Value::String(other)) => {
            assert_eq!(one, other);
            is_text(one);
        }
        (Json::Array(one), Value::Array(other)) => {
            assert!(levels > 0 && one.len() == other.len());
            one.iter()
                .zip(other)
                .for_each(|(one, other)| is_the_same(one, other, levels - 1));
        }
        (Json::Object(one), Value::Object(other)) => {
            assert!(levels > 0 && one.names().count() == other.len());
            for (name, value) in one.clone().into_members() {
                is_text(&name);
                is_the_same(&value, &other[&name], levels - 1);
            }
        }
        (one, other) => panic!("{one:?} is {other:?} to serde_json"),
    }
}

#[test]
fn an_accepted_body_keeps_the_rules_of_its_fields() {
    let large = || one_of(&[true, false], |large| if large { "large" } else { "small" });
    let link = || text().checked(|link: String| Url::parse(&link).map(|_| link));
    let deep = || list(object!(x: required(boolean()) => x), 0..=3);
    let inner = || object!(name: required(text()), deep: optional(deep()) => (name, deep));
    let shape = object!(
        label: required(text_of(4..=64)),
        count: optional(integer(1..=200_u8)),
        large: optional(large()),
        weights: required(list(integer(1..=30_000_u32), 1..=10)),
        note: nullable(text()),
        link: optional(link()),
        inner: optional(inner()),
        reset: resettable(integer(5..=i64::MAX), -1)
        => (label, count, large, weights, note, link, inner, reset)
    );
    let samples = [
        r#"{"label": "fragile", "count": 17, "large": "small", "weights": [200, 17], "note": null,
            "link": "https://example.com/x?y#z", "inner": {"name": "n", "deep": [{"x": true}]}, "reset": null}"#,
        r#"{"label": "1234", "weights": []}"#,
        r#"{"label": 1, "count": "5", "large": "huge", "weights": [1.5, null, 0], "unknown": {}}"#,
    ];
    always(&samples, |bytes| match body(bytes, &shape) {
        Ok((label, count, _, weights, note, _, inner, reset)) => {
            assert!((4..=64).contains(&label.chars().count()));
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
    });
    let shapes = [
        ["{", "\"k#\":1,", "\"label\":0}"],
        ["{\"weights\":[", "#,", "0]}"],
        ["{\"inner\":{\"name\":\"n\",\"deep\":[", "{\"x\":#},", "0]}}"],
    ];
    is_linear(&shapes, |bytes| body(bytes, &shape));
}

#[test]
fn an_accepted_query_keeps_the_rules_of_its_parameters() {
    const FIELDS: &[&str] = &["id", "title", "price", "stock", "updated_at"];
    const KNOWN: [Parameter; 5] = [
        Parameter::undocumented("limit"),
        Parameter::undocumented("after"),
        Parameter::undocumented("fields"),
        Parameter::undocumented("updated_after"),
        Parameter::undocumented("state"),
    ];
    let read = |raw: &str| {
        query::read(raw, &KNOWN, |query| {
            let state = query.one_of("state", &[true, false], |on| if on { "on" } else { "off" });
            let after = query.text("after").map(std::borrow::Cow::into_owned);
            (
                query.limit(),
                query.fields(FIELDS),
                query.date_time("updated_after"),
                state,
                after,
            )
        })
    };
    let samples = [
        "limit=1000&updated_after=2026-01-01T00:00:00+02:00",
        "after=AAAA-_&limit=-5&fields=id,title,id",
        "fields=price%2Cstock&state=on&after=%C5%BC+%2B",
        "limit=+5&limit=6&unknown=%zz&%66ields=id&updated_after=2026-02-30T24:00:60.5Z",
        "&&=&=a&a",
    ];
    always_text(&samples, |raw| match read(raw) {
        Ok((limit, fields, _, _, after)) => {
            assert!((1..=kernel::MAX_PAGE_SIZE).contains(&limit));
            assert!(fields.has_index(0), "the id is always chosen");
            let is_given = parse(raw.as_bytes()).any(|(name, _)| name == "fields");
            assert_eq!(fields == Selection::ALL, !is_given);
            assert!(after.is_none_or(|after| !after.contains('\0')));
        }
        Err(violations) => are_entries(&violations.into_entries(), raw.len()),
    });
    let shapes = [
        ["", "k#=1&", ""],
        ["fields=", "id,", "id"],
        ["limit=", "9", ""],
        ["after=", "%41", ""],
    ];
    is_linear(&shapes, |bytes| read(&String::from_utf8_lossy(bytes)));
}

#[test]
fn strict_percent_decoding_agrees_with_lenient_decoding() {
    always_text(&["a%2Fb+c", "%C5%BC%zz", "%00", "%ff", "%"], |raw| {
        let lenient = percent_decode_str(raw).decode_utf8();
        if let Some(decoded) = form::percent_decode(raw) {
            assert_eq!(lenient.as_ref(), Ok(&decoded));
            return;
        }
        let is_broken = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() != 2;
        let has_broken = raw.split('%').skip(1).any(is_broken);
        assert!(has_broken || lenient.is_err() || lenient.is_ok_and(|text| text.contains('\0')));
    });
}

#[test]
fn a_form_survives_a_round_trip_and_agrees_with_the_url_crate() {
    let samples = [
        "grant_type=client_credentials&client_id=psa_00000000000000000000000000000abc&client_secret=pss_x&scope=offers%3Aread+orders%3Aread",
        "a=%&b=%zz&c=%00&d=%ff==",
        "x&x=&=y&&x=%2B+%C5%BC",
        "redirect_uris=https%3A%2F%2Fa%0D%0Ahttps%3A%2F%2Fb&scopes=a&scopes=b",
    ];
    always(&samples, |bytes| {
        let Ok(form) = Form::parse(bytes) else {
            return;
        };
        let pairs: Vec<_> = form.pairs().collect();
        let lenient: Vec<_> = parse(bytes).collect();
        assert!(
            pairs.iter().copied().eq(lenient
                .iter()
                .map(|(name, value)| (name.as_ref(), value.as_ref())))
        );
        assert!(
            pairs
                .iter()
                .all(|(name, value)| !name.contains('\0') && !value.contains('\0'))
        );
        if let Some(name) = form.repeated(None) {
            assert!(pairs.iter().filter(|(other, _)| *other == name).count() > 1);
        }
        assert!(
            pairs
                .first()
                .is_none_or(|(name, value)| form.get(name) == Some(value))
        );
        let again = Serializer::new(String::new()).extend_pairs(&pairs).finish();
        assert_eq!(Form::parse(again.as_bytes()), Ok(form));
    });
    let shapes = [
        ["", "k#=1&", ""],
        ["a=", "+", ""],
        ["a=", "%41", ""],
        ["", "a&", ""],
        ["", "=", ""],
    ];
    is_linear(&shapes, Form::parse);
}

#[test]
fn a_date_time_survives_a_round_trip_to_the_microsecond() {
    let samples = [
        "2026-01-31T12:00:00Z",
        "2026-01-31t12:00:00.123456789+02:00",
        "0000-01-01T00:00:00+23:59",
        "9999-12-31T23:59:60-23:59",
        "2026-02-29 24:00:00-00:00",
        "1969-12-31T23:59:59.9999999Z",
    ];
    always_text(&samples, |text| {
        let Some(at) = timestamps::parse(text) else {
            return;
        };
        let written = Timestamp::new(at);
        assert!(
            written.as_str().len() == 27 && written.as_str().is_ascii() && written.as_str().ends_with('Z')
        );
        let again = timestamps::parse(written.as_str()).unwrap();
        assert_eq!(Timestamp::new(again).as_str(), written.as_str());
        let [first, last] =
            ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"].map(|end| end.parse().unwrap());
        // A leap second is written as the one after it.
        let is_leap = at.timestamp_subsec_nanos() >= 1_000_000_000;
        let missing = (at.clamp(first, last) - again).num_microseconds().unwrap();
        assert!(
            missing == 0 || (is_leap && missing.abs() <= 1_000_000),
            "{at} {again}"
        );
    });
}
