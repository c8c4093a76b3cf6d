//! Bounds, patterns and uniqueness.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Comparison, Side};

const LEAST: [&str; 5] = [
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
];
const MOST: [&str; 5] = [
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
];

pub(super) fn compare(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value, side: Side) {
    for keyword in LEAST {
        bound(comparison, (place, keyword), was, is, (side, f64::gt));
    }
    for keyword in MOST {
        bound(comparison, (place, keyword), was, is, (side, f64::lt));
    }
    patterns(comparison, place, was, is, side);
    let unique = |schema: &Value| schema["uniqueItems"] == true;
    match side {
        Side::Taken if !unique(was) && unique(is) => {
            comparison.broken(place, "its elements have to be unique now");
        }
        Side::Given if unique(was) && !unique(is) => {
            comparison.broken(place, "its elements may repeat now");
        }
        _ => {}
    }
}

/// What is sent must not be bounded more narrowly, what is read not more widely.
fn bound(
    comparison: &mut Comparison<'_>,
    (place, keyword): (&str, &str),
    was: &Value,
    is: &Value,
    (side, is_narrower): (Side, fn(&f64, &f64) -> bool),
) {
    let (before, after) = (was[keyword].as_f64(), is[keyword].as_f64());
    let (bound, other) = match side {
        Side::Taken => (after, before),
        Side::Given => (before, after),
    };
    let broken = match (bound, other) {
        (Some(bound), Some(other)) => is_narrower(&bound, &other),
        (Some(_), None) => true,
        (None, _) => false,
    };
    if broken {
        let (before, after) = (&was[keyword], &is[keyword]);
        comparison.broken(place, format!("`{keyword}` was {before} and is {after}"));
    }
}

fn patterns(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value, side: Side) {
    let (before, after) = (was["pattern"].as_str(), is["pattern"].as_str());
    let broken = match (side, before, after) {
        (Side::Taken, _, None) | (Side::Given, None, _) => false,
        (Side::Taken, Some(before), Some(after)) if before != after => !takes_more(before, after),
        _ => before != after,
    };
    if broken {
        let (before, after) = (&was["pattern"], &is["pattern"]);
        comparison.broken(place, format!("its pattern was {before} and is {after}"));
    }
}

/// Of two different patterns no rule can tell which takes more, unless both are lists of names, as `fields` is.
fn takes_more(before: &str, after: &str) -> bool {
    match (names(before), names(after)) {
        (Some(before), Some(after)) => before.is_subset(&after),
        _ => false,
    }
}

/// The names of `^(a|b)(,(a|b))*$`.
fn names(pattern: &str) -> Option<BTreeSet<&str>> {
    let (one, rest) = pattern.strip_prefix("^(")?.split_once(")(,(")?;
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let repeats = rest.strip_suffix("))*$")? == one;
    let names: BTreeSet<_> = one.split('|').collect();
    (repeats && names.iter().all(|name| is_name(name))).then_some(names)
}
