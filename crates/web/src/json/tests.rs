//! Tests of strict JSON.

use std::time::Instant;

use super::*;

fn parse(text: &str) -> Result<Json, JsonError> {
    Json::parse(text.as_bytes())
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn integers_are_distinguished_from_other_numbers() {
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
fn the_number_of_values_is_limited_by_the_length() {
    let empty = |objects: usize| format!("[{}{{}}]", "{},".repeat(objects - 1));
    // The array is a value, too.
    assert!(parse(&empty(1_200)).is_ok());
    let length = empty(1_300).len();
    assert_eq!(parse(&empty(1_300)), Err(JsonError::TooManyValues { length }));
    let stocks: Vec<_> = (0..1_000)
        .map(|n| format!(r#"{{"id":"{n:036}","stock":{n}}}"#))
        .collect();
    assert!(parse(&format!("[{}]", stocks.join(","))).is_ok());
}

#[test]
fn depth_is_limited() {
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(parse(&nested(MAX_DEPTH + 1)), Err(JsonError::TooDeep));
    assert_eq!(parse(&nested(100_000)), Err(JsonError::TooDeep));
    let mixed = format!("{}1{}", r#"{"a":["#.repeat(16), "]}".repeat(16));
    assert!(parse(&mixed).is_ok());
    assert_eq!(parse(&format!("[{mixed}]")), Err(JsonError::TooDeep));
}

#[test]
fn no_level_is_read_again_for_those_above_it() {
    let long = "x".repeat(60_000);
    let fastest = |levels: usize| {
        let text = format!("{}\"{long}\"{}", "[".repeat(levels), "]".repeat(levels));
        let time = |_| {
            let began = Instant::now();
            parse(&text).unwrap();
            began.elapsed()
        };
        (0..20).map(time).min().unwrap()
    };
    let (flat, deep) = (fastest(1), fastest(MAX_DEPTH));
    assert!(deep < 5 * flat, "{flat:?} and {deep:?}");
}

#[test]
fn strings_marks_and_whitespace_are_told_apart() {
    let text = " {\t\"a\\\"]},:\\\\\" : [ ] , \"\\ud83d\\ude00\":\r\n{ }\n} ";
    let members = vec![
        ("a\"]},:\\".to_owned(), Json::Array(vec![])),
        ("😀".to_owned(), Json::Object(Object::default())),
    ];
    assert_eq!(parse(text), Ok(Json::Object(Object(members))));
    for text in [r#""\ud800""#, r#"{"\udc00":1}"#, r#"["\ud800\u0041"]"#] {
        assert_eq!(parse(text), Err(JsonError::LoneSurrogate), "{text}");
    }
}
