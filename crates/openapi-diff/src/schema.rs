//! Schemas: whether what was sent is still taken, and whether what is given is still what was promised.

mod limits;
mod objects;
mod types;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::{Document, at, elements, members};
use crate::{Comparison, Side};

/// Words and marks, which no client acts on.
const ANNOTATIONS: [&str; 8] = [
    "$ref",
    "description",
    "title",
    "examples",
    "example",
    "deprecated",
    "$comment",
    "externalDocs",
];

/// Keywords that have rules here.
const JUDGED: [&str; 23] = [
    "type",
    "enum",
    "const",
    "format",
    "default",
    "pattern",
    "uniqueItems",
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
];

/// Compares two schemas. A named one is a place of its own, and is compared once.
pub(crate) fn compare<'a>(
    comparison: &mut Comparison<'a>,
    place: &str,
    was: &'a Value,
    is: &'a Value,
    side: Side,
) {
    let mut place = place;
    if let (Some(was), Some(is)) = (Document::schema_name(was), Document::schema_name(is)) {
        let pair = (was, is, side);
        if comparison.compared.contains(&pair) {
            return;
        }
        comparison.compared.push(pair);
        place = was;
    }
    let was = comparison.released.resolved(was);
    let is = comparison.current.resolved(is);
    if !was.is_object() || !is.is_object() {
        if was != is {
            comparison.broken(place, "its schema changed");
        }
        return;
    }
    match (alternatives(was), alternatives(is)) {
        (Some(was), Some(is)) => compare_alternatives(comparison, place, &was, &is, side),
        (None, None) => compare_plain(comparison, place, was, is, side),
        (Some(was), None) => compare_alternatives(comparison, place, &was, &[is], side),
        (None, Some(is)) => compare_alternatives(comparison, place, &[was], &is, side),
    }
}

/// The schemas between which a value may choose.
fn alternatives(schema: &Value) -> Option<Vec<&Value>> {
    let several = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
    Some(elements(several).collect())
}

/// Compares one alternative with the other where there is but one besides `null` on either side, so that what is found has its
/// exact place. Otherwise each that was taken has to be taken still by one, and each that is given to be one that was given.
fn compare_alternatives<'a>(
    comparison: &mut Comparison<'a>,
    place: &str,
    was: &[&'a Value],
    is: &[&'a Value],
    side: Side,
) {
    let split = |all: &[&'a Value]| -> (Vec<&'a Value>, bool) {
        let rest: Vec<_> = all.iter().copied().filter(|one| one["type"] != "null").collect();
        let may_be_null = rest.len() < all.len()
            || rest
                .iter()
                .any(|one| elements(&one["type"]).any(|name| name == "null"));
        (rest, may_be_null)
    };
    let ((was, was_null), (is, is_null)) = (split(was), split(is));
    match side {
        Side::Taken if was_null && !is_null => comparison.broken(place, "`null` is not taken any more"),
        Side::Given if !was_null && is_null => comparison.broken(place, "it may be `null` now"),
        _ => {}
    }
    if let ([was], [is]) = (was.as_slice(), is.as_slice()) {
        return compare(comparison, place, was, is, side);
    }
    let (each, among) = match side {
        Side::Taken => (&was, &is),
        Side::Given => (&is, &was),
    };
    for one in each {
        let fits = among.iter().any(|other| match side {
            Side::Taken => is_compatible(comparison, one, other, side),
            Side::Given => is_compatible(comparison, other, one, side),
        });
        if !fits {
            comparison.broken(place, "one of its alternatives changed");
        }
    }
}

fn is_compatible<'a>(comparison: &Comparison<'a>, was: &'a Value, is: &'a Value, side: Side) -> bool {
    let mut alone = Comparison {
        released: comparison.released,
        current: comparison.current,
        found: Vec::new(),
        compared: Vec::new(),
    };
    compare(&mut alone, "", was, is, side);
    alone.found.is_empty()
}

fn compare_plain<'a>(
    comparison: &mut Comparison<'a>,
    place: &str,
    was: &'a Value,
    is: &'a Value,
    side: Side,
) {
    types::compare(comparison, place, was, is, side);
    limits::compare(comparison, place, was, is, side);
    objects::compare(comparison, place, was, is, side);
    if was.get("items").is_some() || is.get("items").is_some() {
        let any = &Value::Bool(true);
        let of = |schema: &'a Value| schema.get("items");
        match (of(was), of(is)) {
            (Some(was), Some(is)) => compare(comparison, &format!("{place}[]"), was, is, side),
            (None, Some(is)) if side == Side::Taken && is != any => {
                comparison.broken(format!("{place}[]"), "its elements have a rule now");
            }
            (Some(_), None) if side == Side::Given => {
                comparison.broken(format!("{place}[]"), "its elements are of any kind now");
            }
            _ => {}
        }
    }
    let keywords: BTreeSet<_> = members(was)
        .chain(members(is))
        .map(|(keyword, _)| keyword)
        .collect();
    for keyword in keywords {
        let known = ANNOTATIONS.contains(&keyword) || JUDGED.contains(&keyword) || keyword.starts_with("x-");
        if !known && was[keyword] != is[keyword] {
            comparison.broken(place, format!("`{keyword}` changed, for which there is no rule"));
        }
    }
}

/// Generated clients name their types after schemas.
pub(crate) fn compare_names(comparison: &mut Comparison<'_>) {
    let current = at(comparison.current.0, &["components", "schemas"]);
    let released = at(comparison.released.0, &["components", "schemas"]);
    for (name, _) in members(released) {
        if current.get(name).is_none() {
            comparison.broken(name, "no schema has this name any more");
        }
    }
}

/// The codes of an error's response, in the shape of `/v1` or of `/oauth`.
pub(crate) fn codes<'a>(document: Document<'a>, response: &'a Value) -> Vec<&'a str> {
    let mut codes = Vec::new();
    for (_, content) in members(&response["content"]) {
        let schema = document.resolved(&content["schema"]);
        let errors = document.resolved(at(schema, &["properties", "errors"]));
        let entry = document.resolved(&errors["items"]);
        let places = [(entry, "code"), (schema, "error")];
        for (shape, name) in places {
            let code = document.resolved(at(shape, &["properties", name]));
            codes.extend(elements(&code["enum"]).filter_map(Value::as_str));
            codes.extend(code["const"].as_str());
        }
    }
    codes
}
