//! Tests of query strings.

use proptest::prelude::*;

use super::*;

const NAMES: [Parameter; 5] = [
    Parameter::undocumented("limit"),
    Parameter::undocumented("after"),
    Parameter::undocumented("fields"),
    Parameter::undocumented("status"),
    Parameter::undocumented("updated_after"),
];
const TABLE: &[&str] = &["id", "title", "price", "stock"];

/// The paths of the violations.
fn wrong(raw: &str) -> Vec<String> {
    let all = read(raw, &NAMES, |q| {
        q.date_time("updated_after");
        q.one_of("status", &["published", "draft"], |name| name);
        q.fields(TABLE);
        q.parsed("after", |text| {
            if text == "good" {
                Ok(())
            } else {
                Err("Must be a cursor.")
            }
        });
        q.limit();
    });
    let entries = all.map_or_else(Violations::into_entries, |()| Vec::new());
    entries
        .iter()
        .map(|entry| entry.path().unwrap().to_owned())
        .collect()
}

fn limit(raw: &str) -> Option<u16> {
    read(raw, &NAMES, Query::limit).ok()
}

#[test]
fn nothing_is_needed() {
    for raw in ["", "&", "&&"] {
        assert!(wrong(raw).is_empty(), "{raw}");
    }
    assert!(read("", &[], |_| ()).is_ok());
}

#[test]
fn everything_wrong_is_told_in_the_contracts_order() {
    let raw = "new=1&updated_after=2026-01-01&status=gone&fields=&after=&limit=abc&x";
    assert_eq!(
        wrong(raw),
        ["limit", "after", "fields", "status", "updated_after", "new", "x"]
    );
}

#[test]
fn a_name_is_given_once() {
    assert_eq!(wrong("limit=1&limit=1"), ["limit"]);
    assert_eq!(wrong("limit=1&status=draft&%6cimit=abc&limit=2"), ["limit"]);
    assert_eq!(wrong("Limit=1"), ["Limit"]);
    assert_eq!(wrong("limit[]=1"), ["limit[]"]);
    assert_eq!(wrong("=1"), [""]);
}

#[test]
fn the_encoding_is_checked() {
    for raw in ["after=%", "after=%zz", "after=%ff", "after=go%00od"] {
        assert_eq!(wrong(raw), ["after"], "{raw}");
    }
    assert_eq!(wrong("%zz=1"), ["%zz"]);
    assert!(wrong("%61fter=g%6Fod").is_empty());
}

#[test]
fn a_limit_is_clamped() {
    for (raw, expected) in [
        ("", 50),
        ("limit=1", 1),
        ("limit=200", 200),
        ("limit=201", 200),
        ("limit=0", 1),
        ("limit=-0", 1),
        ("limit=-17", 1),
        ("limit=007", 7),
        ("limit=99999999999999999999999999", 200),
        ("limit=-99999999999999999999999999", 1),
        ("limit=%35", 5),
    ] {
        assert_eq!(limit(raw), Some(expected), "{raw}");
    }
    for raw in [
        "limit",
        "limit=",
        "limit=abc",
        "limit=1.5",
        "limit=+5",
        "limit=%2B5",
        "limit=5%20",
        "limit=1e2",
        "limit=--1",
        "limit=٣",
    ] {
        assert_eq!(limit(raw), None, "{raw}");
    }
}

#[test]
fn fields_are_names_of_the_table() {
    let select = |raw| read(raw, &NAMES, |q| q.fields(TABLE)).ok();
    let names = |raw| {
        let selection: Selection = select(raw)?;
        let chosen = TABLE
            .iter()
            .enumerate()
            .filter(|(index, _)| selection.has_index(*index));
        Some(chosen.map(|(_, name)| *name).collect::<Vec<_>>())
    };
    assert_eq!(names(""), Some(TABLE.to_vec()));
    assert_eq!(names("fields=price"), Some(vec!["id", "price"]));
    assert_eq!(
        names("fields=stock,price%2Cstock,id"),
        Some(vec!["id", "price", "stock"])
    );
    for raw in [
        "fields=",
        "fields=price,",
        "fields=,",
        "fields=Price",
        "fields=price.amount",
        "fields=price, id",
    ] {
        assert_eq!(select(raw), None, "{raw}");
    }
}

#[test]
fn date_times_take_a_plus_raw_or_encoded() {
    let at = |raw| read(raw, &NAMES, |q| q.date_time("updated_after")).ok().flatten();
    let expected = timestamps::parse("2025-12-31T22:00:00Z");
    assert_eq!(at("updated_after=2026-01-01T00:00:00+02:00"), expected);
    assert_eq!(at("updated_after=2026-01-01T00%3A00%3A00%2B02%3A00"), expected);
    assert_eq!(at("updated_after=2025-12-31T22:00:00.000000Z"), expected);
    assert_eq!(wrong("updated_after=2026-01-01"), ["updated_after"]);
}

#[test]
fn enumerations_list_what_is_allowed() {
    let status = |raw| {
        read(raw, &NAMES, |q| {
            q.one_of("status", &["published", "draft"], |name| name)
        })
    };
    assert_eq!(status("status=draft").unwrap(), Some("draft"));
    assert_eq!(status("").unwrap(), None);
    let entries = status("status=Draft").unwrap_err().into_entries();
    assert_eq!(
        entries.first().unwrap().message(),
        "Must be one of `published`, `draft`."
    );
}

#[test]
fn a_flood_of_unknown_names_is_cut() {
    let raw = (0..1000).map(|n| format!("x{n}=1")).collect::<Vec<_>>().join("&");
    assert_eq!(wrong(&raw).len(), 20);
}

proptest! {
    #[test]
    fn any_integer_is_a_limit_and_nothing_else(text in "[-+]?[0-9]{0,30}[.e x]?") {
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let is_integer = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        let found = limit(&format!("limit={text}"));
        prop_assert_eq!(found.is_some(), is_integer);
        if let (Some(found), Ok(number)) = (found, text.parse::<i128>()) {
            prop_assert_eq!(i128::from(found), number.clamp(1, 200));
        }
    }

    #[test]
    fn no_query_makes_it_panic(raw in "[ -~é]{0,60}") {
        let _ = wrong(&raw);
    }
}
