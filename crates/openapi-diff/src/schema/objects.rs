//! Objects: their members, and which of them have to be there.

use serde_json::Value;

use crate::document::{elements, members};
use crate::{Comparison, Side};

pub(super) fn compare<'a>(
    comparison: &mut Comparison<'a>,
    place: &str,
    was: &'a Value,
    is: &'a Value,
    side: Side,
) {
    for (name, before) in members(&was["properties"]) {
        let place = format!("{place}.{name}");
        match is["properties"].get(name) {
            None => comparison.broken(place, "it is gone"),
            Some(after) => super::compare(comparison, &place, before, after, side),
        }
    }
    let (before, after) = (required(was), required(is));
    match side {
        Side::Taken => {
            for name in after.iter().filter(|name| !before.contains(name)) {
                comparison.broken(format!("{place}.{name}"), "it is required now");
            }
        }
        Side::Given => {
            let missing = before.iter().filter(|name| !after.contains(name));
            for name in missing.filter(|name| is["properties"].get(**name).is_some()) {
                comparison.broken(format!("{place}.{name}"), "it may be missing now");
            }
        }
    }
    additional(comparison, place, was, is, side);
}

fn required(schema: &Value) -> Vec<&str> {
    elements(&schema["required"]).filter_map(Value::as_str).collect()
}

/// Members beyond those that have a name.
fn additional<'a>(comparison: &mut Comparison<'a>, place: &str, was: &'a Value, is: &'a Value, side: Side) {
    let (before, after) = (&was["additionalProperties"], &is["additionalProperties"]);
    match (before, after) {
        (Value::Object(_), Value::Object(_)) => {
            super::compare(comparison, &format!("{place}.*"), before, after, side);
        }
        (Value::Bool(false), _) if side == Side::Taken => {}
        (_, Value::Bool(false) | Value::Object(_)) if side == Side::Taken => {
            comparison.broken(place, "other members are not taken any more");
        }
        (Value::Object(_), _) if side == Side::Given => {
            comparison.broken(place, "its other members are of any kind now");
        }
        _ => {}
    }
}
