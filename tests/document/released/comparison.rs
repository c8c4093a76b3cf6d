//! Finds the differences between a released OpenAPI document and the current one that break existing clients.
//!
//! Valid requests stay valid, and responses keep their promises: removing an operation, parameter, status,
//! code or field is a break, and so is a changed type, a stricter rule for requests or a looser one for
//! responses. Additions and texts (summaries, descriptions, examples) are not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Keywords without a promise, and those that [`Comparison::keywords`] handles separately.
const SKIPPED: [&str; 9] = [
    "description",
    "title",
    "examples",
    "deprecated",
    "x-extensible",
    "properties",
    "required",
    "items",
    "const",
];

/// Codes of refusals that only a request with newer members gets: no client of the released document meets them.
const CODES_OF_NEW_REQUESTS: [&str; 1] = ["stock_out_of_range"];

/// All breaks in the changelog's form: `` `Offer.brand`: it is gone ``.
pub(super) fn breaks(released: &Value, current: &Value) -> BTreeSet<String> {
    let mut comparison = Comparison {
        released,
        current,
        found: BTreeSet::new(),
        compared: BTreeSet::new(),
    };
    comparison.operations("paths", Side::Request);
    comparison.operations("webhooks", Side::Response);
    let (was, is) = (&released["components"], &current["components"]);
    comparison.security_schemes("securitySchemes", &was["securitySchemes"], &is["securitySchemes"]);
    // Generated clients name their types after schemas.
    for (name, _) in members(&was["schemas"]) {
        if is["schemas"].get(name).is_none() {
            comparison.found(name, "no schema has this name any more");
        }
    }
    comparison.found
}

/// Where a value occurs. Clients read a webhook's request, so it is a `Response`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Request,
    Response,
}

struct Comparison<'a> {
    released: &'a Value,
    current: &'a Value,
    found: BTreeSet<String>,
    /// Pairs of compared schemas. Each pair is compared once, since schemas may be recursive.
    compared: BTreeSet<(&'a str, &'a str, Side)>,
}

/// Properties, parameters or headers by name: whether each is required, and its schema.
type Fields<'a> = BTreeMap<String, (bool, &'a Value)>;

impl<'a> Comparison<'a> {
    fn found(&mut self, place: &str, what: impl AsRef<str>) {
        self.found.insert(format!("`{place}`: {}", what.as_ref()));
    }

    fn operations(&mut self, section: &str, side: Side) {
        for (path, was) in members(&self.released[section]) {
            for (method, was) in members(was).filter(|(method, _)| METHODS.contains(method)) {
                let name = was["operationId"].as_str().unwrap_or(path);
                match self.current[section].get(path).and_then(|item| item.get(method)) {
                    None => self.found(name, "it is gone"),
                    Some(is) => self.operation(name, was, is, side),
                }
            }
        }
    }

    fn operation(&mut self, name: &str, was: &'a Value, is: &'a Value, side: Side) {
        if was["operationId"] != is["operationId"] {
            self.found(name, format!("its operationId is {} now", is["operationId"]));
        }
        let (before, after) = (parameters(self.released, was), parameters(self.current, is));
        self.fields(&format!("{name} "), &before, &after, side);
        self.body(name, was, is, side);
        if side == Side::Request {
            self.security(name, was, is);
            self.responses(name, &was["responses"], &is["responses"]);
        }
    }

    /// Each combination of schemes and scopes that allowed a call still does.
    fn security(&mut self, name: &str, was: &Value, is: &Value) {
        let anonymous = [Value::Object(serde_json::Map::new())];
        let combinations = |operation: &Value| match operation["security"].as_array() {
            Some(listed) if !listed.is_empty() => listed.clone(),
            _ => anonymous.to_vec(),
        };
        for way in combinations(was) {
            let asks_no_more = |now: &Value| {
                members(now)
                    .all(|(scheme, scopes)| way.get(scheme).is_some_and(|held| is_subset(scopes, held)))
            };
            if !combinations(is).iter().any(asks_no_more) {
                self.found(name, format!("the credentials {way} do not suffice any more"));
            }
        }
    }

    fn body(&mut self, name: &str, was: &'a Value, is: &'a Value, side: Side) {
        let was = resolved(self.released, &was["requestBody"]);
        let is = resolved(self.current, &is["requestBody"]);
        let place = format!("{name} body");
        self.required(&place, was["required"] == true, is["required"] == true, side);
        self.content(&place, was, is, side);
    }

    fn responses(&mut self, name: &str, was: &'a Value, is: &'a Value) {
        for (status, was) in members(was) {
            let place = format!("{name} {status}");
            let Some(is) = is.get(status) else {
                self.found(&place, "it is gone");
                continue;
            };
            let (was, is) = (resolved(self.released, was), resolved(self.current, is));
            let (before, after) = (headers(self.released, was), headers(self.current, is));
            self.fields(&format!("{place} "), &before, &after, Side::Response);
            self.content(&place, was, is, Side::Response);
        }
        // Clients treat an unknown status from 400 on as its class (RFC 9110 §15). A new 2xx or 3xx status is
        // a different result.
        for (status, _) in members(is) {
            if was.get(status).is_none() && status.starts_with(['2', '3']) {
                self.found(&format!("{name} {status}"), "it is a new good answer");
            }
        }
    }

    fn content(&mut self, place: &str, was: &'a Value, is: &'a Value, side: Side) {
        for (media_type, was) in members(&was["content"]) {
            match is["content"].get(media_type) {
                None => self.found(place, format!("`{media_type}` is gone")),
                Some(is) => self.schema(place, &was["schema"], &is["schema"], side),
            }
        }
        if side == Side::Response && was["content"].is_null() && !is["content"].is_null() {
            self.found(place, "it has a body now");
        }
    }

    fn required(&mut self, place: &str, was: bool, is: bool, side: Side) {
        match side {
            Side::Request if is && !was => self.found(place, "it is required now"),
            Side::Response if was && !is => self.found(place, "it may be missing now"),
            _ => {}
        }
    }

    fn fields(&mut self, prefix: &str, was: &Fields<'a>, is: &Fields<'a>, side: Side) {
        for (name, (was_required, was)) in was {
            let place = format!("{prefix}{name}");
            let Some((is_required, is)) = is.get(name).filter(|(_, is)| was.is_null() || !is.is_null())
            else {
                self.found(&place, "it is gone");
                continue;
            };
            self.required(&place, *was_required, *is_required, side);
            self.schema(&place, was, is, side);
            // The handling of a removed code is dead code.
            if side == Side::Response && ["code", "error"].contains(&name.as_str()) {
                let (was, is) = (resolved(self.released, was), resolved(self.current, is));
                if !is_subset(&values(was), &values(is)) {
                    self.found(
                        &place,
                        format!("the codes were {} and are {}", values(was), values(is)),
                    );
                }
            }
        }
        for (name, (is_required, _)) in is.iter().filter(|(name, _)| !was.contains_key(*name)) {
            self.required(&format!("{prefix}{name}"), false, *is_required, side);
        }
    }

    fn schema(&mut self, place: &str, was: &'a Value, is: &'a Value, side: Side) {
        let mut place = place;
        if let (Some(before), Some(after)) = (schema_name(was), schema_name(is)) {
            place = before;
            if !self.compared.insert((before, after, side)) {
                return;
            }
        }
        let (was, is) = (resolved(self.released, was), resolved(self.current, is));
        let (before, after) = (alternatives(was), alternatives(is));
        if before == [was] && after == [is] {
            return self.keywords(place, was, is, side);
        }
        let (was_null, is_null) = (takes_null(&before), takes_null(&after));
        match side {
            Side::Request if was_null && !is_null => self.found(place, "`null` is not taken any more"),
            Side::Response if is_null && !was_null => self.found(place, "it may be `null` now"),
            _ => {}
        }
        let not_null = |all: Vec<&'a Value>| {
            all.into_iter()
                .filter(|one| one["type"] != "null")
                .collect::<Vec<_>>()
        };
        let (before, after) = (not_null(before), not_null(after));
        if before.len() != after.len() {
            return self.found(place, "its alternatives changed");
        }
        for (was, is) in before.into_iter().zip(after) {
            self.schema(place, was, is, side);
        }
    }

    fn keywords(&mut self, place: &str, was: &'a Value, is: &'a Value, side: Side) {
        self.fields(&format!("{place}."), &properties(was), &properties(is), side);
        if let (Some(was), Some(is)) = (was.get("items"), is.get("items")) {
            self.schema(&format!("{place}[]"), was, is, side);
        } else if was["items"] != is["items"] {
            self.found(
                place,
                format!("`items` was {} and is {}", was["items"], is["items"]),
            );
        }
        let names = members(was).chain(members(is)).map(|(name, _)| name);
        let names: BTreeSet<_> = names
            .filter(|name| !SKIPPED.contains(name))
            .chain(["enum"])
            .collect();
        for name in names {
            let value = |schema: &Value| {
                if name == "enum" {
                    values(schema)
                } else {
                    schema[name].clone()
                }
            };
            let (before, mut after) = (value(was), value(is));
            if let (Side::Response, Value::Array(values)) = (side, &mut after) {
                values.retain(|value| !CODES_OF_NEW_REQUESTS.iter().any(|code| value == code));
            }
            // Clients know that such an enumeration may grow.
            let is_extensible = name == "enum" && was["x-extensible"] == true;
            let holds = match side {
                Side::Request => admits(name, &after, &before),
                Side::Response => is_extensible || admits(name, &before, &after),
            };
            if !holds {
                self.found(place, format!("`{name}` was {before} and is {after}"));
            }
        }
    }

    /// Schemes, their flows, URLs and scopes stay; new ones may be added.
    fn security_schemes(&mut self, place: &str, was: &Value, is: &Value) {
        for (name, was) in members(was).filter(|(name, _)| *name != "description") {
            let place = format!("{place} {name}");
            match is.get(name) {
                None => self.found(&place, "it is gone"),
                Some(is) if was.is_object() => self.security_schemes(&place, was, is),
                // The value of a scope is its description.
                Some(is) if was != is && !place.contains(" scopes ") => {
                    self.found(&place, format!("it was {was} and is {is}"));
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether the constraint `wide` allows everything that `narrow` does. A missing constraint is null.
fn admits(keyword: &str, wide: &Value, narrow: &Value) -> bool {
    let bounds = wide.as_f64().zip(narrow.as_f64());
    wide == narrow
        || match keyword {
            "type" | "enum" => wide.is_null() || is_subset(narrow, wide),
            "minimum" | "minLength" | "minItems" | "minProperties" => {
                wide.is_null() || bounds.is_some_and(|(wide, narrow)| wide <= narrow)
            }
            "maximum" | "maxLength" | "maxItems" | "maxProperties" => {
                wide.is_null() || bounds.is_some_and(|(wide, narrow)| wide >= narrow)
            }
            "pattern" => wide.is_null() || is_list_of_more(wide, narrow),
            "format" => wide.is_null(),
            "uniqueItems" => *wide != true,
            "additionalProperties" => wide.is_null() || *wide == true || *narrow == false,
            // `default` and all keywords without a rule must not change.
            _ => false,
        }
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

/// Whether each element of `less` is in `more`. Either may be a single value. An integer is a number.
fn is_subset(less: &Value, more: &Value) -> bool {
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let more = listed(more);
    let has = |value: &Value| more.contains(value) || (value == "integer" && more.contains(&"number".into()));
    listed(less).iter().all(has)
}

fn values(schema: &Value) -> Value {
    match schema.get("const") {
        Some(value) => Value::Array(vec![value.clone()]),
        None => schema["enum"].clone(),
    }
}

fn alternatives(schema: &Value) -> Vec<&Value> {
    let several = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    several.map_or_else(|| vec![schema], |several| elements(several).collect())
}

fn takes_null(alternatives: &[&Value]) -> bool {
    let null = "null".into();
    alternatives
        .iter()
        .any(|schema| is_subset(&null, &schema["type"]))
}

/// Includes required properties without a schema.
fn properties(schema: &Value) -> Fields<'_> {
    let required: BTreeSet<_> = elements(&schema["required"]).filter_map(Value::as_str).collect();
    let declared = members(&schema["properties"]).map(|(name, _)| name);
    let named = |name: &str| {
        (
            name.to_owned(),
            (required.contains(name), &schema["properties"][name]),
        )
    };
    declared.chain(required.iter().copied()).map(named).collect()
}

fn parameters<'a>(document: &'a Value, operation: &'a Value) -> Fields<'a> {
    let resolve = |parameter| resolved(document, parameter);
    let named = |parameter: &'a Value| {
        let text = |key: &str| {
            parameter[key]
                .as_str()
                .expect("parameters have a name and a place")
        };
        let name = format!("{} {}", text("in"), text("name"));
        (name, (parameter["required"] == true, &parameter["schema"]))
    };
    elements(&operation["parameters"])
        .map(resolve)
        .map(named)
        .collect()
}

fn headers<'a>(document: &'a Value, response: &'a Value) -> Fields<'a> {
    let named = |(name, header): (&str, &'a Value)| {
        let header = resolved(document, header);
        (name.to_owned(), (header["required"] == true, &header["schema"]))
    };
    members(&response["headers"]).map(named).collect()
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
