//! Tests of decoding: values, messages, paths and their order.

use super::*;
use crate::problem::Entry;

/// "path: message" of every violation.
fn violations<S: Shape>(text: &str, shape: &S) -> Vec<String> {
    let Err(violations) = body(text.as_bytes(), shape) else {
        return Vec::new();
    };
    let line = |entry: &Entry| format!("{}: {}", entry.path().unwrap_or("-"), entry.message());
    violations.into_entries().iter().map(line).collect()
}

fn one<S: Shape>(json: &str, shape: S) -> Result<S::Value, String> {
    let object = object((required("f", shape),)).map(|(value,)| value);
    body(format!("{{\"f\":{json}}}").as_bytes(), &object).map_err(|violations| {
        let entries = violations.into_entries();
        assert_eq!(entries.iter().map(Entry::path).collect::<Vec<_>>(), [Some("f")]);
        entries.first().unwrap().message().to_owned()
    })
}

fn patch() -> impl Shape<Value = (Option<(i64, String)>, Option<i32>, Option<&'static str>)> {
    let price = object((
        required("amount", integer(0..=9_007_199_254_740_991)),
        required("currency", text()),
    ));
    object((
        optional("price", price),
        optional("stock", integer(0..=i32::MAX)),
        optional("status", one_of(&["published", "draft"], |name| name)),
    ))
    .not_empty()
}

#[test]
fn what_is_sent_is_read() {
    let whole = br#"{"status":"draft","price":{"currency":"PLN","amount":1999},"stock":0}"#;
    assert_eq!(
        body(whole, &patch()).unwrap(),
        (Some((1999, "PLN".into())), Some(0), Some("draft"))
    );
    assert_eq!(body(br#"{"stock":7}"#, &patch()).unwrap(), (None, Some(7), None));
}

#[test]
fn everything_wrong_is_told_in_the_order_of_the_table_unknown_fields_last() {
    let text = r#"{"new":1,"status":"gone","stock":-1,"price":{"amount":"5","currency":"PLN","tax":23}}"#;
    assert_eq!(
        violations(text, &patch()),
        [
            "price.amount: Must be an integer from 0 to 9007199254740991, not a string.",
            "stock: Out of range: must be from 0 to 2147483647.",
            "status: Must be one of `published`, `draft`.",
            "price.tax: Unknown field. The fields here are `amount`, `currency`.",
            "new: Unknown field. The fields here are `price`, `stock`, `status`.",
        ]
    );
}

#[test]
fn absent_null_and_wrong_type_have_messages_of_their_own() {
    assert_eq!(
        violations(
            r#"{"price":{"currency":null},"stock":null,"status":[]}"#,
            &patch()
        ),
        [
            "price.amount: This field is required: send an integer from 0 to 9007199254740991.",
            "price.currency: Must not be null: send a string.",
            "stock: Must not be null: send an integer from 0 to 2147483647, or leave the field out.",
            "status: Must be one of `published`, `draft`, not an array.",
        ]
    );
    let wrong_object = violations(r#"{"price":1999}"#, &patch());
    assert_eq!(
        wrong_object,
        ["price: Must be an object with `amount`, `currency`, not an integer."]
    );
}

#[test]
fn the_body_as_a_whole_has_no_path() {
    assert_eq!(
        violations("{}", &patch()),
        ["-: Send at least one of `price`, `stock`, `status`."]
    );
    assert_eq!(
        violations("[]", &patch()),
        ["-: The JSON must be an object, not an array."]
    );
    assert_eq!(violations("", &patch()), ["-: The JSON is empty."]);
    assert_eq!(violations(r#"{"stock":1,"stock":1}"#, &patch()).len(), 1);
    assert_eq!(violations(r#"{"x":1}"#, &patch()).len(), 1);
}

#[test]
fn integers_are_json_integers_in_range() {
    let small = || integer(1..=30_000_u16);
    assert_eq!(one("1", small()), Ok(1));
    assert_eq!(one("30000", small()), Ok(30_000));
    for out in ["0", "30001", "-1", "65536", "9999999999999999999999"] {
        assert_eq!(
            one(out, small()),
            Err("Out of range: must be from 1 to 30000.".into()),
            "{out}"
        );
    }
    for other in ["1.0", "1e3"] {
        let message = "Must be an integer from 1 to 30000, not a number with a fraction or an exponent.";
        assert_eq!(one(other, small()), Err(message.into()), "{other}");
    }
    assert!(one("\"5\"", small()).is_err());
    assert!(one("true", small()).is_err());
}

#[test]
fn strings_are_measured_in_characters() {
    let shape = || text().length(4..=6);
    assert_eq!(one("\"żółw\"", shape()), Ok("żółw".into()));
    assert_eq!(one("\"żółwie\"", shape()), Ok("żółwie".into()));
    assert_eq!(
        one("\"żół\"", shape()),
        Err("Must have 4 to 6 characters.".into())
    );
    assert_eq!(
        one("\"żółwiem\"", shape()),
        Err("Must have 4 to 6 characters.".into())
    );
    let wrong = "Must be a string of 4 to 6 characters, not a boolean.";
    assert_eq!(one("false", shape()), Err(wrong.into()));
    assert_eq!(
        one("\"\"", text().length(1..=usize::MAX)),
        Err("Must have at least 1 character.".into())
    );
    assert_eq!(
        one("\"ab\"", text().length(0..=1)),
        Err("Must have at most 1 character.".into())
    );
    assert_eq!(
        one("\"ab\"", text().length(3..=3)),
        Err("Must have exactly 3 characters.".into())
    );
}

#[test]
fn booleans_and_date_times() {
    assert_eq!(one("true", boolean()), Ok(true));
    assert_eq!(
        one("\"true\"", boolean()),
        Err("Must be true or false, not a string.".into())
    );
    let at = one("\"2026-01-01T00:00:00+02:00\"", date_time()).unwrap();
    assert_eq!(
        crate::timestamps::Timestamp::new(at).as_str(),
        "2025-12-31T22:00:00.000000Z"
    );
    assert!(
        one("\"2026-01-01\"", date_time())
            .unwrap_err()
            .starts_with("Must be an RFC 3339 date-time")
    );
    assert!(
        one("1767225600", date_time())
            .unwrap_err()
            .ends_with("not an integer.")
    );
}

#[test]
fn a_list_names_its_elements_or_itself() {
    let ids = || list(text().length(1..=2)).at_least(1).at_most(3);
    let shape = object((required("item_ids", ids()),));
    assert_eq!(
        body(br#"{"item_ids":["a","bb"]}"#, &shape).unwrap(),
        (vec!["a".to_owned(), "bb".to_owned()],)
    );
    assert_eq!(
        violations(r#"{"item_ids":[]}"#, &shape),
        ["item_ids: Must have 1 to 3 elements; this has 0."]
    );
    assert_eq!(
        violations(r#"{"item_ids":["",1,null,2]}"#, &shape),
        ["item_ids: Must have 1 to 3 elements; this has 4."]
    );
    assert_eq!(
        violations(r#"{"item_ids":["a",null,7]}"#, &shape),
        [
            "item_ids[1]: Must not be null: send a string of 1 to 2 characters.",
            "item_ids[2]: Must be a string of 1 to 2 characters, not an integer.",
        ]
    );
    let message = violations(r#"{"item_ids":"a"}"#, &shape);
    assert_eq!(
        message,
        ["item_ids: Must be an array of 1 to 3 elements, not a string."]
    );
}

#[test]
fn paths_go_through_lists_of_objects() {
    let item = object((required("quantity", integer(1..=9_u8)), nullable("sku", text())));
    let shape = object((required("items", list(item)),));
    let text = r#"{"items":[{"quantity":1},{"quantity":0,"sku":null,"x":1},{}]}"#;
    let found = violations(text, &shape);
    let paths: Vec<_> = found.iter().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(paths, ["items[1].quantity", "items[2].quantity", "items[1].x"]);
}

#[test]
fn nullable_fields_may_be_absent_or_null() {
    let shape = object((nullable("ean", text()),));
    assert_eq!(body(b"{}", &shape).unwrap(), (None,));
    assert_eq!(body(br#"{"ean":null}"#, &shape).unwrap(), (None,));
    assert_eq!(body(br#"{"ean":"5"}"#, &shape).unwrap(), (Some("5".into()),));
    assert_eq!(
        violations(r#"{"ean":5}"#, &shape),
        ["ean: Must be a string, not an integer."]
    );
}

#[test]
fn resettable_fields_tell_absence_from_null() {
    let shape = object((resettable("limit", integer(1..=9_u8), 0),));
    assert_eq!(body(b"{}", &shape).unwrap(), (None,));
    assert_eq!(body(br#"{"limit":null}"#, &shape).unwrap(), (Some(0),));
    assert_eq!(body(br#"{"limit":5}"#, &shape).unwrap(), (Some(5),));
    assert_eq!(
        violations(r#"{"limit":0}"#, &shape),
        ["limit: Out of range: must be from 1 to 9."]
    );
}

#[test]
fn checks_of_the_callers_own_refuse_here_or_inside() {
    let even = || {
        integer(0..=10).checked(|n| {
            if n % 2 == 0 {
                Ok(n / 2)
            } else {
                Err("Must be even.")
            }
        })
    };
    assert_eq!(one("8", even()), Ok(4));
    assert_eq!(one("7", even()), Err("Must be even.".into()));

    let distinct = object((required("ids", list(integer(0..=9))),)).refined(|(ids,), place| {
        match (1..ids.len()).find(|&n| ids[..n].contains(&ids[n])) {
            Some(n) => place.field("ids").element(n).refuse("Must not be repeated."),
            None => Some(ids),
        }
    });
    assert_eq!(body(br#"{"ids":[1,2]}"#, &distinct).unwrap(), [1, 2]);
    assert_eq!(
        violations(r#"{"ids":[1,2,1]}"#, &distinct),
        ["ids[2]: Must not be repeated."]
    );
}

#[test]
fn no_more_is_told_than_a_response_carries() {
    let shape = object((required("ids", list(integer(0..=9))),));
    let bad = vec!["-1"; 50].join(",");
    let found = violations(&format!("{{\"ids\":[{bad}],\"x\":1}}"), &shape);
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|line| line.starts_with("ids[")));
}

#[test]
fn a_table_of_fields_is_told_as_it_is_read() {
    let shape = object((
        required(
            "label",
            text()
                .length(4..=64)
                .map_schema(|schema| schema.with("pattern", "^[a-z]+$")),
        ),
        optional("size", one_of(&["small", "large"], |size| size)),
        required("weights", list(integer(1..=30_000_i64)).at_least(1)),
        nullable("note", text()),
    ))
    .not_empty();
    assert_eq!(
        shape.schema().to_string(),
        concat!(
            r#"{"type":"object","required":["label","weights"],"properties":{"#,
            r#""label":{"type":"string","minLength":4,"maxLength":64,"pattern":"^[a-z]+$"},"#,
            r#""size":{"type":"string","enum":["small","large"]},"#,
            r#""weights":{"type":"array","items":{"type":"integer","format":"int32","minimum":1,"maximum":30000},"#,
            r#""minItems":1},"note":{"type":["string","null"]}},"additionalProperties":false,"minProperties":1}"#,
        )
    );
}
