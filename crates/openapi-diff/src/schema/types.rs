//! Types, formats, and the values that there are.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::elements;
use crate::{Comparison, Side};

/// Marks an enumeration of which clients know that it grows (contract: fields described as extensible).
const EXTENSIBLE: &str = "x-extensible";

pub(super) fn compare(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value, side: Side) {
    compare_types(comparison, place, was, is, side);
    compare_values(comparison, place, was, is, side);
    let (before, after) = (&was["format"], &is["format"]);
    let format_matters = match side {
        Side::Taken => !after.is_null(),
        Side::Given => !before.is_null(),
    };
    if format_matters && before != after {
        comparison.broken(place, format!("its format was {before} and is {after}"));
    }
    if was["default"] != is["default"] {
        let (before, after) = (&was["default"], &is["default"]);
        comparison.broken(place, format!("its default was {before} and is {after}"));
    }
}

fn compare_types(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value, side: Side) {
    let (before, after) = (types(was), types(is));
    let broken = match side {
        Side::Taken => !covers(&after, &before),
        Side::Given => !covers(&before, &after),
    };
    if broken {
        let told = |types: &[&str]| match types {
            [] => "any".to_owned(),
            types => types.join(" or "),
        };
        comparison.broken(
            place,
            format!("its type was {} and is {}", told(&before), told(&after)),
        );
    }
}

/// The names of the types; none stands for any.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        several => elements(several).filter_map(Value::as_str).collect(),
    }
}

/// Whether every value of the types `less` is one of `more`.
fn covers(more: &[&str], less: &[&str]) -> bool {
    let one = |name: &&str| more.contains(name) || (*name == "integer" && more.contains(&"number"));
    more.is_empty() || (!less.is_empty() && less.iter().all(one))
}

fn compare_values(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value, side: Side) {
    let (before, after) = (values(was), values(is));
    match (side, before, after) {
        (Side::Taken, None, Some(_)) => comparison.broken(place, "it is one of few values now"),
        (Side::Taken, Some(before), Some(after)) => {
            for gone in before.difference(&after) {
                comparison.broken(place, format!("the value {gone} is not taken any more"));
            }
        }
        (Side::Given, Some(_), _) if was[EXTENSIBLE] == true => {}
        (Side::Given, Some(_), None) => comparison.broken(place, "it may be any value now"),
        (Side::Given, Some(before), Some(after)) => {
            for new in after.difference(&before) {
                comparison.broken(place, format!("the value {new} is new"));
            }
        }
        (Side::Taken, _, None) | (Side::Given, None, _) => {}
    }
}

/// The values that there are, as JSON; nothing where they are not listed.
fn values(schema: &Value) -> Option<BTreeSet<String>> {
    if let Some(value) = schema.get("const") {
        return Some(BTreeSet::from([value.to_string()]));
    }
    let listed = schema.get("enum")?;
    Some(elements(listed).map(Value::to_string).collect())
}
