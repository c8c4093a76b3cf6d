//! Finds what clients of a released OpenAPI document miss in the current one.
//!
//! What the released document says, directly or by reference, the current one says too; lists are sets, and
//! texts may change. Something new is a break where it makes a valid request invalid, or an answer one that
//! clients do not expect. A wider limit of a request is reported too, since no rule tells that it is one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Members without a promise.
const TEXTS: [&str; 7] = [
    "description",
    "summary",
    "title",
    "example",
    "examples",
    "deprecated",
    "tags",
];

/// Codes of refusals that only a request with newer members gets: no client of the released document meets them.
const CODES_OF_NEW_REQUESTS: [&str; 1] = ["stock_out_of_range"];

/// All breaks in the changelog's form: `` `Offer.brand`: it is gone ``.
pub(super) fn breaks(released: &Value, current: &Value) -> BTreeSet<String> {
    let mut comparison = Comparison {
        released,
        current,
        found: BTreeSet::new(),
    };
    for (part, side) in [
        ("/paths", Side::Operation),
        // Clients read a webhook's request.
        ("/webhooks", Side::Response),
        ("/components/securitySchemes", Side::Response),
    ] {
        let [was, is] = [released, current].map(|document| document.pointer(part).unwrap_or(&Value::Null));
        comparison.values(part, was, is, side);
    }
    // Generated clients name their types after schemas.
    for (name, _) in members(&released["components"]["schemas"]) {
        if current["components"]["schemas"].get(name).is_none() {
            comparison.found(name, "no schema has this name any more");
        }
    }
    comparison.found
}

/// What a part of the document describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Operation,
    Request,
    Response,
}

impl Side {
    fn of(self, member: &str) -> Self {
        match (self, member) {
            (Self::Operation, "parameters" | "requestBody") => Self::Request,
            (Self::Operation, "responses") => Self::Response,
            _ => self,
        }
    }
}

struct Comparison<'a> {
    released: &'a Value,
    current: &'a Value,
    found: BTreeSet<String>,
}

impl Comparison<'_> {
    fn found(&mut self, place: &str, what: impl AsRef<str>) {
        self.found.insert(format!("`{place}`: {}", what.as_ref()));
    }

    fn values(&mut self, place: &str, was: &Value, is: &Value, side: Side) {
        let name = schema_name(was).or_else(|| was["operationId"].as_str());
        let place = name.unwrap_or(place);
        let (was, is) = (resolved(self.released, was), resolved(self.current, is));
        // The value of a scope is its description.
        let is_scope = place.starts_with("/components/securitySchemes ") && place.contains(" scopes ");
        if was.is_object() && is.is_object() {
            self.objects(place, was, is, side);
        } else if was != is && !is_scope && !is_list_of_more(is, was) {
            self.found(place, format!("it was {was} and is {is}"));
        }
    }

    fn objects(&mut self, place: &str, was: &Value, is: &Value, side: Side) {
        let schema = place.strip_suffix(" properties");
        let are_named_freely = schema.is_some() || place.ends_with(" content");
        let names: BTreeSet<_> = members(was).chain(members(is)).map(|(name, _)| name).collect();
        for name in names {
            if TEXTS.contains(&name) && !are_named_freely {
                continue;
            }
            let side = side.of(name);
            let is_break = match side {
                Side::Operation => name == "security",
                Side::Request => match name {
                    "properties" => false,
                    "requestBody" => is[name]["required"] == true,
                    _ => !are_named_freely,
                },
                // Clients treat an unknown status from 400 on as its class (RFC 9110 §15). A new 2xx or 3xx
                // status is a different result.
                Side::Response if place.ends_with(" responses") => name.starts_with(['2', '3']),
                Side::Response => name == "content" && !are_named_freely,
            };
            let place = match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => format!("{place} {name}"),
            };
            match (&was[name], &is[name]) {
                (before, after) if name == "parameters" && !are_named_freely => {
                    self.parameters(&place, before, after, side);
                }
                (Value::Array(before), Value::Array(after)) => {
                    let may_grow = match (name, side) {
                        ("enum", Side::Response) => was["x-extensible"] == true,
                        ("type", Side::Response) | ("required", Side::Request) => false,
                        _ => true,
                    };
                    self.lists(&place, before, after, may_grow);
                }
                (Value::Null, _) if is_break => self.found(&place, "it is new"),
                (Value::Null, _) => {}
                (_, Value::Null) => self.found(&place, "it is gone"),
                (before, after) => self.values(&place, before, after, side),
            }
        }
    }

    fn lists(&mut self, place: &str, was: &[Value], is: &[Value], may_grow: bool) {
        for value in was.iter().filter(|value| !is.contains(value)) {
            self.found(place, format!("{value} is gone"));
        }
        let is_expected = |value: &Value| {
            let code = value.as_str().unwrap_or_default();
            may_grow || was.contains(value) || CODES_OF_NEW_REQUESTS.contains(&code)
        };
        for value in is.iter().filter(|value| !is_expected(value)) {
            self.found(place, format!("{value} is new"));
        }
    }

    fn parameters(&mut self, place: &str, was: &Value, is: &Value, side: Side) {
        let (was, mut is) = (by_name(self.released, was), by_name(self.current, is));
        for (name, was) in was {
            let place = format!("{place} {name}");
            match is.remove(&name) {
                Some(is) => self.values(&place, was, is, side),
                None => self.found(&place, "it is gone"),
            }
        }
        for (name, new) in is {
            if side == Side::Request && new["required"] == true {
                self.found(&format!("{place} {name}"), "it is required");
            }
        }
    }
}

/// Parameters by place and name.
fn by_name<'a>(document: &'a Value, parameters: &'a Value) -> BTreeMap<String, &'a Value> {
    let named = |parameter: &'a Value| {
        let parameter = resolved(document, parameter);
        let [place, name] = ["in", "name"].map(|key| parameter[key].as_str().unwrap_or_default());
        (format!("{place} {name}"), parameter)
    };
    elements(parameters).map(named).collect()
}

/// Only patterns of the parameter `fields` can be compared: `^(a|b)(,(a|b))*$` allows names from a list.
fn is_list_of_more(wide: &Value, narrow: &Value) -> bool {
    let names = |pattern: &Value| -> Option<BTreeSet<String>> {
        let (one, rest) = pattern.as_str()?.strip_prefix("^(")?.split_once(")(,(")?;
        let is_list = rest.strip_suffix("))*$")? == one && !one.contains(['(', '[', '\\', '*', '+', '?']);
        is_list.then(|| one.split('|').map(str::to_owned).collect())
    };
    match (names(wide), names(narrow)) {
        (Some(wide), Some(narrow)) => narrow.is_subset(&wide),
        _ => false,
    }
}

/// The node, or the target of its `$ref`.
fn resolved<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    let target = |reference: &str| document.pointer(reference.strip_prefix('#')?);
    node["$ref"].as_str().and_then(target).unwrap_or(node)
}

fn schema_name(node: &Value) -> Option<&str> {
    node["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn members(node: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = node.as_object().into_iter().flatten();
    members.map(|(name, member)| (name.as_str(), member))
}

fn elements(node: &Value) -> impl Iterator<Item = &Value> {
    node.as_array().into_iter().flatten()
}

/// Each edit sets one member of the document, or removes it.
#[test]
fn breaks_are_distinguished_from_additions() {
    const LIST: &str = "/paths/~1v1~1offers/get";
    let document: Value = serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
    let schema = |name: &str| format!("/components/schemas/{name}");
    let is_break = |place: &str, name: &str, value: Value| {
        let mut edited = document.clone();
        edited.pointer_mut(place).unwrap()[name] = value;
        !breaks(&document, &edited).is_empty()
    };
    let parameters = |required: bool| {
        let mut all = document.pointer(LIST).unwrap()["parameters"].clone();
        let new = json!({"name": "x", "in": "query", "required": required, "schema": {"type": "string"}});
        all.as_array_mut().unwrap().push(new);
        all
    };
    for (place, name, value) in [
        (LIST.to_owned(), "parameters", parameters(false)),
        (format!("{LIST}/responses"), "418", json!({})),
        (schema("Offer/properties"), "colour", json!({"type": "string"})),
        (
            schema("NewShipment/properties"),
            "note",
            json!({"type": "string"}),
        ),
        (schema("Offer/properties/title"), "maxLength", json!(9)),
        (schema("Offer"), "description", json!("Other words.")),
    ] {
        assert!(!is_break(&place, name, value), "{place} {name}");
    }
    for (place, name, value) in [
        ("/paths/~1v1~1offers".to_owned(), "get", Value::Null),
        (LIST.to_owned(), "parameters", parameters(true)),
        (LIST.to_owned(), "parameters", json!([])),
        (LIST.to_owned(), "security", json!([{"bearer": ["orders:read"]}])),
        (format!("{LIST}/responses"), "206", json!({})),
        (format!("{LIST}/responses"), "429", Value::Null),
        (schema("Offer/properties"), "brand", Value::Null),
        (
            schema("Offer/properties/title"),
            "type",
            json!(["string", "null"]),
        ),
        (schema("Offer"), "required", json!(["id"])),
        (schema("OfferStatus"), "enum", json!(["published", "draft"])),
        (
            schema("ShippedBy"),
            "enum",
            json!(["seller", "marketplace", "other"]),
        ),
        (
            schema("NewShipment"),
            "required",
            json!(["carrier", "tracking_number", "item_ids"]),
        ),
        (
            schema("NewShipment/properties/tracking_number"),
            "format",
            json!("x"),
        ),
        ("/webhooks".to_owned(), "order.paid", Value::Null),
    ] {
        assert!(is_break(&place, name, value), "{place} {name}");
    }
}
