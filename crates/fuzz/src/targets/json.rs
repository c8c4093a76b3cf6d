//! Strict JSON: what is let in is what `serde_json` reads too, and reads the same when it is written again.

use std::collections::HashSet;

use serde_json::Value;
use web::Json;
use web::json::{JsonError, MOST_DEPTH, Object};

use crate::held::is_printable;
use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "json",
    run,
    seeds: || {
        texts(&[
            "{}",
            r#"{"price": {"amount": 12900, "currency": "PLN"}, "stock": 14, "status": null}"#,
            r#"[1, -2, 3.5, 1e3, 99999999999999999999, true, false, null, "ż\u017c\ud83e\udd80\n"]"#,
            r#"{"a": [[[[{"b": []}]]]], "a\u0062": 1}"#,
            "\"\\u0000\"",
            "\u{feff}{}",
            " \n\t17 ",
        ])
    },
    words: &[
        "\"a\":",
        "\\u0041",
        "[",
        "{\"a\":",
        "\\ud83e\\udd80",
        "1E+1",
        "tru",
    ],
    grows: &[
        ("{", "\"k#\":1,", "\"z\":0}"),
        ("[", "#,", "0]"),
        ("[", "\"\\u0041\",", "0]"),
        (
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
            "#,",
            "0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        ),
        ("{\"a\":", "{\"a\":", ""),
    ],
};

fn run(bytes: &[u8]) {
    let lenient = serde_json::from_slice::<Value>(bytes);
    match Json::parse(bytes) {
        // Looking each name up costs the square of how many there are; reading them must not.
        Ok(_) if bytes.len() > 32 * 1024 => {}
        Ok(json) => {
            match &lenient {
                Ok(lenient) => is_the_same(&json, lenient, MOST_DEPTH),
                // Numbers beyond f64 are read here without their value.
                Err(error) => assert!(error.to_string().starts_with("number out of range"), "{error}"),
            }
            let again = written(&json);
            assert_eq!(Json::parse(again.as_bytes()).as_ref(), Ok(&json), "{again}");
            assert_eq!(Object::parse(bytes).is_ok(), matches!(json, Json::Object(_)));
        }
        Err(error) => {
            is_printable(&error.to_string(), bytes.len());
            // What is refused for its grammar is no JSON to others either.
            let grammar = matches!(
                error,
                JsonError::NotUtf8
                    | JsonError::ByteOrderMark
                    | JsonError::Empty
                    | JsonError::Syntax(_)
                    | JsonError::LoneSurrogate
            );
            assert!(
                !grammar || lenient.is_err(),
                "{error}, and serde_json reads {lenient:?}"
            );
        }
    }
}

/// The same value, no deeper than so, without NUL.
fn is_the_same(json: &Json, lenient: &Value, levels: usize) {
    match (json, lenient) {
        (Json::Null, Value::Null) | (Json::Fraction | Json::HugeInteger, Value::Number(_)) => {}
        (Json::Bool(one), Value::Bool(other)) => assert_eq!(one, other),
        // `-0` is an integer here and -0.0 there.
        (Json::Integer(one), Value::Number(other)) => {
            assert!(other.as_i64() == Some(*one) || *one == 0, "{one} {other}");
        }
        (Json::String(one), Value::String(other)) => {
            assert_eq!(one, other);
            assert!(!one.contains('\0'));
        }
        (Json::Array(one), Value::Array(other)) => {
            assert!(levels > 0 && one.len() == other.len());
            for (one, other) in one.iter().zip(other) {
                is_the_same(one, other, levels - 1);
            }
        }
        (Json::Object(one), Value::Object(other)) => {
            let names: HashSet<&str> = one.names().collect();
            assert!(levels > 0 && names.len() == one.names().count() && names.len() == other.len());
            for name in names {
                assert!(!name.contains('\0'));
                is_the_same(one.get(name).unwrap(), &other[name], levels - 1);
            }
        }
        (one, other) => panic!("{one:?} is {other:?} to serde_json"),
    }
}

fn written(json: &Json) -> String {
    let text = |text: &str| Value::from(text).to_string();
    match json {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Integer(number) => number.to_string(),
        Json::HugeInteger => "99999999999999999999".to_owned(),
        Json::Fraction => "1.5".to_owned(),
        Json::String(value) => text(value),
        Json::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(written).collect();
            format!("[{}]", elements.join(","))
        }
        Json::Object(object) => {
            let member = |name: &str| Some(format!("{}:{}", text(name), written(object.get(name)?)));
            let members: Vec<_> = object.names().filter_map(member).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}
