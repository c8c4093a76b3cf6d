//! Tests of decoding: messages, paths, and the values of optional fields. `tests/contract` covers what the
//! contract's bodies accept.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::problem::{Entry, MAX_ENTRIES};

/// "path: message" of every violation, one on each line.
fn violations<S: Shape>(json: &str, shape: &S) -> String {
    let entries = body(json.as_bytes(), shape).map_or_else(Violations::into_entries, |_| Vec::new());
    let line = |entry: &Entry| format!("{}: {}", entry.path().unwrap_or("-"), entry.message());
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_message_says_what_to_send_instead() {
    let price =
        || object!(amount: required(integer(0..=100)), currency: required(text()) => (amount, currency));
    let item = || object!(quantity: required(integer(1..=9_u8)), sku: nullable(text()) => (quantity, sku));
    let status = || one_of(&["published", "draft"], |name| name);
    let shape = object!(
        price: optional(price()),
        stock: optional(integer(1..=i32::MAX)),
        status: optional(status()),
        name: optional(text_of(4..=6)),
        exact: optional(text_of(3..=3)),
        short: optional(text_of(0..=1)),
        flag: optional(boolean()),
        at: optional(date_time()),
        ids: optional(list(text_of(1..=2), 1..=3)),
        items: optional(list(item(), 0..=usize::MAX)),
        ean: nullable(text()),
        limit: resettable(integer(1..=9_u8), 0)
        => (price, stock, status, name, exact, short, flag, at, ids, items, ean, limit)
    )
    .not_empty();
    for (json, expected) in [
        ("", "-: Invalid JSON: empty."),
        ("[]", "-: The JSON must be an object, not an array."),
        (
            "{}",
            "-: Send at least one of `price`, `stock`, `status`, `name`, `exact`, `short`, `flag`, `at`, `ids`, `items`, `ean`, `limit`.",
        ),
        (
            r#"{"price":5}"#,
            "price: Must be an object with `amount`, `currency`, not an integer.",
        ),
        (
            r#"{"x":1,"status":"gone","stock":0,"price":{"amount":"5","currency":null,"tax":2}}"#,
            "price.amount: Must be an integer from 0 to 100, not a string.\n\
             price.currency: Must not be null: send a string.\n\
             stock: Out of range: must be from 1 to 2147483647.\n\
             status: Must be one of `published`, `draft`.\n\
             price.tax: Unknown field. Known fields: `amount`, `currency`.\n\
             x: Unknown field. Known fields: `price`, `stock`, `status`, `name`, `exact`, `short`, `flag`, `at`, `ids`, `items`, `ean`, `limit`.",
        ),
        (
            r#"{"price":{"currency":"PLN"},"stock":null}"#,
            "price.amount: This field is required: send an integer from 0 to 100.\n\
             stock: Must not be null: send an integer from 1 to 2147483647, or omit the field.",
        ),
        (
            r#"{"stock":1.0}"#,
            "stock: Must be an integer from 1 to 2147483647, not a number with a fraction or an exponent.",
        ),
        (
            r#"{"stock":99999999999999999999}"#,
            "stock: Out of range: must be from 1 to 2147483647.",
        ),
        (
            r#"{"status":[]}"#,
            "status: Must be one of `published`, `draft`, not an array.",
        ),
        (r#"{"name":"żółw"}"#, ""),
        (r#"{"name":"żółwiem"}"#, "name: Must have 4 to 6 characters."),
        (
            r#"{"name":false}"#,
            "name: Must be a string of 4 to 6 characters, not a boolean.",
        ),
        (r#"{"exact":"ab"}"#, "exact: Must have exactly 3 characters."),
        (r#"{"short":"ab"}"#, "short: Must have at most 1 character."),
        (r#"{"flag":"true"}"#, "flag: Must be true or false, not a string."),
        (r#"{"ids":[]}"#, "ids: Must have 1 to 3 elements; this has 0."),
        (
            r#"{"ids":["",1,null,2]}"#,
            "ids: Must have 1 to 3 elements; this has 4.",
        ),
        (
            r#"{"ids":"a"}"#,
            "ids: Must be an array of 1 to 3 elements, not a string.",
        ),
        (
            r#"{"ids":["a",null,7]}"#,
            "ids[1]: Must not be null: send a string of 1 to 2 characters.\n\
             ids[2]: Must be a string of 1 to 2 characters, not an integer.",
        ),
        (
            r#"{"items":[{"quantity":1},{"quantity":0,"sku":null,"x":1},{}]}"#,
            "items[1].quantity: Out of range: must be from 1 to 9.\n\
             items[2].quantity: This field is required: send an integer from 1 to 9.\n\
             items[1].x: Unknown field. Known fields: `quantity`, `sku`.",
        ),
        (r#"{"ean":5}"#, "ean: Must be a string, not an integer."),
        (r#"{"limit":0}"#, "limit: Out of range: must be from 1 to 9."),
    ] {
        assert_eq!(violations(json, &shape), expected, "{json}");
    }
    assert!(violations(r#"{"at":"2026-01-01"}"#, &shape).starts_with("at: Must be an RFC 3339 date-time"));
}

#[test]
fn a_resettable_field_distinguishes_absence_from_null() {
    let shape = object!(ean: nullable(text()), limit: resettable(integer(1..=9_u8), 0) => (ean, limit));
    for (json, expected) in [
        ("{}", (None, None)),
        (r#"{"ean":null,"limit":null}"#, (None, Some(0))),
        (r#"{"ean":"5","limit":5}"#, (Some("5".to_owned()), Some(5))),
    ] {
        assert_eq!(body(json.as_bytes(), &shape).unwrap(), expected);
    }
}

#[test]
fn a_field_that_is_not_known_yet_is_refused_and_named_nowhere() {
    let shape = |is_known| {
        object!(
            ean: nullable(text()),
            note: nullable_if_known(text(), is_known)
            => (ean, note)
        )
    };
    for (json, expected) in [
        ("{}", None),
        (r#"{"note":null}"#, None),
        (r#"{"note":"a"}"#, Some("a")),
    ] {
        let (_, note) = body(json.as_bytes(), &shape(true)).unwrap();
        assert_eq!(note.as_deref(), expected);
    }
    assert_eq!(body(b"{}", &shape(false)).unwrap(), (None, None));
    let unknown = "note: Unknown field. Known fields: `ean`.";
    for json in [r#"{"note":null}"#, r#"{"note":7}"#] {
        assert_eq!(violations(json, &shape(false)), unknown);
    }
}

#[test]
fn a_check_can_refuse_a_value_or_a_part_of_it() {
    let even = |n| {
        if n % 2 == 0 {
            Ok(n / 2)
        } else {
            Err("must be even")
        }
    };
    let halved = object!(n: required(integer(0..=10_i64).checked(even)) => n);
    assert_eq!(body(br#"{"n":8}"#, &halved).unwrap(), 4);
    assert_eq!(violations(r#"{"n":7}"#, &halved), "n: Must be even.");
    let distinct = object!(ids: required(list(integer(0..=9), 0..=usize::MAX)) => ids);
    let distinct =
        distinct.refined(
            |ids: Vec<i64>, place| match (1..ids.len()).find(|&n| ids[..n].contains(&ids[n])) {
                Some(n) => place.field("ids").element(n).refuse("Must not be repeated."),
                None => Some(ids),
            },
        );
    assert_eq!(body(br#"{"ids":[1,2]}"#, &distinct).unwrap(), [1, 2]);
    assert_eq!(
        violations(r#"{"ids":[1,2,1]}"#, &distinct),
        "ids[2]: Must not be repeated."
    );
}

#[test]
fn a_list_is_read_no_further_than_its_answer_goes() {
    let read = AtomicUsize::new(0);
    let count = |_: String| {
        read.fetch_add(1, Ordering::Relaxed);
        Err::<String, _>("must be another one")
    };
    let names = object!(names: required(list(text().checked(count), 1..=usize::MAX)) => names);
    let json = serde_json::json!({"names": vec!["x".repeat(16); 1_000]}).to_string();
    assert_eq!(violations(&json, &names).lines().count(), MAX_ENTRIES);
    assert_eq!(read.load(Ordering::Relaxed), MAX_ENTRIES);
}
