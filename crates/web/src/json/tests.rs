//! Tests of strict JSON.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn parse(text: &str) -> Result<Json, JsonError> {
    Json::parse(text.as_bytes())
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn objects_keep_their_order() {
    let object = Object::parse(br#" {"b": [1, null], "a": {"c": "\u017c"}, "": true} "#).unwrap();
    assert_eq!(object.names().collect::<Vec<_>>(), ["b", "a", ""]);
    assert_eq!(
        object.get("b"),
        Some(&Json::Array(vec![Json::Integer(1), Json::Null]))
    );
    assert_eq!(
        object.get("a"),
        Some(&Json::Object(Object(vec![(
            "c".into(),
            Json::String("ż".into())
        )])))
    );
    assert_eq!(object.get(""), Some(&Json::Bool(true)));
    assert_eq!(object.get("d"), None);
}

#[test]
fn integers_stay_apart_from_other_numbers() {
    for (text, number) in [
        ("0", Json::Integer(0)),
        ("-0", Json::Integer(0)),
        ("1999", Json::Integer(1999)),
        ("9223372036854775807", Json::Integer(i64::MAX)),
        ("-9223372036854775808", Json::Integer(i64::MIN)),
        ("9223372036854775808", Json::HugeInteger),
        ("-9223372036854775809", Json::HugeInteger),
        ("123456789012345678901234567890", Json::HugeInteger),
        ("1999.0", Json::Fraction),
        ("-0.0", Json::Fraction),
        ("1e3", Json::Fraction),
        ("1E+400", Json::Fraction),
        ("\"5\"", Json::String("5".into())),
    ] {
        assert_eq!(parse(text), Ok(number), "{text}");
    }
}

#[test]
fn duplicate_keys_are_compared_unescaped() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"x":[{"b":{"a":1,"c":2,"a":3}}]}"#,
    ] {
        assert_eq!(parse(text), Err(JsonError::DuplicateKey("a".into())), "{text}");
    }
    assert!(parse(r#"{"a":{"a":1},"b":{"a":1},"A":1}"#).is_ok());
}

#[test]
fn nul_is_refused_in_values_and_keys() {
    for text in [r#""\u0000""#, r#"{"a":["x\u0000y"]}"#, r#"{"\u0000":1}"#] {
        assert_eq!(parse(text), Err(JsonError::Nul), "{text}");
    }
    assert_eq!(parse(r#""\\u0000""#), Ok(Json::String("\\u0000".into())));
}

#[test]
fn the_encoding_is_utf_8_without_a_mark() {
    assert_eq!(Json::parse(b"\"\xff\""), Err(JsonError::NotUtf8));
    assert_eq!(Json::parse(b"\"\xed\xa0\x80\""), Err(JsonError::NotUtf8));
    assert_eq!(Json::parse(b"\xef\xbb\xbf{}"), Err(JsonError::ByteOrderMark));
    assert_eq!(
        Json::parse(b"{\0}").map_err(|error| matches!(error, JsonError::Syntax(_))),
        Err(true)
    );
    assert_eq!(parse(r#""\ud83d\ude00""#), Ok(Json::String("😀".into())));
    for lone in [r#""\ud83d""#, r#"{"\ude00":1}"#, r#"["\ud83dx"]"#] {
        assert_eq!(parse(lone), Err(JsonError::LoneSurrogate), "{lone}");
    }
}

#[test]
fn depth_is_limited() {
    assert!(parse(&nested(MOST_DEPTH)).is_ok());
    assert_eq!(parse(&nested(MOST_DEPTH + 1)), Err(JsonError::TooDeep));
    assert_eq!(parse(&nested(100_000)), Err(JsonError::TooDeep));
    let mixed = format!("{}1{}", r#"{"a":["#.repeat(16), "]}".repeat(16));
    assert!(parse(&mixed).is_ok());
    assert_eq!(parse(&format!("[{mixed}]")), Err(JsonError::TooDeep));
}

#[test]
fn broken_text_says_where() {
    for text in [
        "{", "{}x", "{} {}", "{a:1}", "[1,]", "01", "1.", "nul", "'a'", "\"\t\"", r#""\x""#, "NaN", "+1",
    ] {
        assert!(
            matches!(parse(text), Err(JsonError::Syntax(_))),
            "{text}: {:?}",
            parse(text)
        );
    }
    let message = parse("{\"a\":}").unwrap_err().to_string();
    assert_eq!(
        message,
        "This is not valid JSON: expected value at line 1 column 6."
    );
    assert_eq!(parse(" \r\n"), Err(JsonError::Empty));
}

#[test]
fn a_body_is_an_object() {
    for (text, kind) in [
        ("[]", "an array"),
        ("null", "null"),
        ("1", "an integer"),
        ("\"\"", "a string"),
    ] {
        assert_eq!(Object::parse(text.as_bytes()), Err(JsonError::NotAnObject(kind)));
    }
}

#[test]
fn a_refusal_is_one_entry_without_a_path() {
    let entries = Violations::from(JsonError::TooDeep).into_entries();
    assert_eq!(entries.len(), 1);
    assert!(entries.iter().all(|entry| entry.path().is_none()));
}

/// Whether our tree equals that of `serde_json` for the same text; for texts without floats.
fn same(ours: &Json, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(a), Value::Bool(b)) => a == b,
        (Json::Integer(a), Value::Number(b)) => b.as_i64() == Some(*a),
        (Json::String(a), Value::String(b)) => a == b,
        (Json::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Value::Object(b)) => {
            a.0.len() == b.len()
                && a.0
                    .iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => false,
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[^\0]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[^\0]{0,4}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Random text close to JSON: its characters, drawn often enough to form objects, and any others.
fn scribbles() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "\"\\u0061\"", "1", "-", "0", ".5", "e9", "null", "true",
            " ", "\"", "\\", "\\u0000", "\\ud800", "\u{feff}", "99999999999999999999",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_good_reads_as_serde_json_reads_it(value in values()) {
        let ours = Json::parse(value.to_string().as_bytes());
        prop_assert!(ours.as_ref().is_ok_and(|ours| same(ours, &value)), "{:?}", ours);
    }

    #[test]
    fn only_the_listed_refusals_set_it_apart_from_serde_json(text in scribbles()) {
        let theirs = serde_json::from_str::<Value>(&text);
        match parse(&text) {
            Ok(_) => prop_assert!(theirs.map_or_else(|error| error.to_string().contains("out of range"), |_| true)),
            Err(JsonError::DuplicateKey(_) | JsonError::Nul | JsonError::TooDeep) => {}
            Err(error) => prop_assert!(theirs.is_err(), "{}", error),
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = Json::parse(&bytes);
        prop_assert!(ours.is_err() || serde_json::from_slice::<Value>(&bytes).is_ok());
    }
}
