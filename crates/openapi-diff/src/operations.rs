//! Operations and webhooks: what they are called, what they take, what they answer.

use serde_json::Value;

use crate::document::{Operation, members, text};
use crate::{Comparison, Side, schema, security};

/// Compares everything below `paths` and `webhooks`.
pub(crate) fn compare(comparison: &mut Comparison<'_>) {
    for (section, sent_by) in [("paths", Side::Taken), ("webhooks", Side::Given)] {
        let current = comparison.current.operations(section);
        for (key @ (path, method), released) in comparison.released.operations(section) {
            let name = text(released.json, "operationId")
                .map_or_else(|| format!("{} {path}", method.to_uppercase()), str::to_owned);
            match current.get(&key) {
                None => comparison.broken(name, "it is gone"),
                Some(current) => operation(comparison, &name, (released, *current), sent_by),
            }
        }
    }
}

type Pair<'a> = (Operation<'a>, Operation<'a>);

fn operation<'a>(comparison: &mut Comparison<'a>, name: &str, pair: Pair<'a>, sent_by: Side) {
    let (released, current) = pair;
    let id = |operation: Operation<'a>| text(operation.json, "operationId").unwrap_or_default();
    if id(released) != id(current) {
        comparison.broken(name, format!("its operationId is `{}` now", id(current)));
    }
    parameters(comparison, name, pair, sent_by);
    body(comparison, name, pair, sent_by);
    if sent_by == Side::Taken {
        security::compare(comparison, name, released.json, current.json);
        responses(comparison, name, released.json, current.json);
    }
}

fn parameters<'a>(comparison: &mut Comparison<'a>, name: &str, (released, current): Pair<'a>, sent_by: Side) {
    let released = comparison.released.parameters(released);
    let current = comparison.current.parameters(current);
    let is_required = |parameter: &Value| parameter["required"] == true;
    for (key @ (location, parameter), was) in &released {
        let place = format!("{name} {location} {parameter}");
        let Some(is) = current.get(key) else {
            comparison.broken(place, "it is gone");
            continue;
        };
        match sent_by {
            Side::Taken if !is_required(was) && is_required(is) => {
                comparison.broken(&place, "it is required now");
            }
            Side::Given if is_required(was) && !is_required(is) => {
                comparison.broken(&place, "it may be missing now");
            }
            _ => {}
        }
        for keyword in ["style", "explode", "allowReserved", "allowEmptyValue"] {
            if was[keyword] != is[keyword] {
                comparison.broken(&place, format!("`{keyword}` changed"));
            }
        }
        schema::compare(comparison, &place, &was["schema"], &is["schema"], sent_by);
    }
    if sent_by == Side::Taken {
        let new = current.iter().filter(|(key, _)| !released.contains_key(*key));
        for ((location, parameter), _) in new.filter(|(_, parameter)| is_required(parameter)) {
            comparison.broken(
                format!("{name} {location} {parameter}"),
                "it is new, and required",
            );
        }
    }
}

fn body<'a>(comparison: &mut Comparison<'a>, name: &str, (released, current): Pair<'a>, sent_by: Side) {
    let was = comparison.released.resolved(&released.json["requestBody"]);
    let is = comparison.current.resolved(&current.json["requestBody"]);
    let place = format!("{name} body");
    if was.is_object() && !is.is_object() {
        return comparison.broken(place, "it is gone");
    }
    match sent_by {
        Side::Taken if was["required"] != true && is["required"] == true => {
            comparison.broken(&place, "it is required now");
        }
        Side::Given if was["required"] == true && is["required"] != true => {
            comparison.broken(&place, "it may be missing now");
        }
        _ => {}
    }
    content(comparison, &place, was, is, sent_by);
}

fn responses<'a>(comparison: &mut Comparison<'a>, name: &str, released: &'a Value, current: &'a Value) {
    let (released, current) = (&released["responses"], &current["responses"]);
    for (status, was) in members(released) {
        let place = format!("{name} {status}");
        let Some(is) = current.get(status) else {
            comparison.broken(place, "it is gone");
            continue;
        };
        let was = comparison.released.resolved(was);
        let is = comparison.current.resolved(is);
        headers(comparison, &place, was, is);
        content(comparison, &place, was, is, Side::Given);
        codes(comparison, &place, was, is);
    }
    // Clients treat an unknown status of 400 and above as its class (RFC 9110 §15); a new good answer is another result.
    let is_good = |status: &str| status.starts_with(['2', '3']);
    let new = members(current).filter(|(status, _)| released.get(*status).is_none() && is_good(status));
    for (status, _) in new {
        comparison.broken(format!("{name} {status}"), "it is a new good answer");
    }
}

fn headers<'a>(comparison: &mut Comparison<'a>, place: &str, was: &'a Value, is: &'a Value) {
    for (header, was) in members(&was["headers"]) {
        let place = format!("{place} {header}");
        let Some(is) = is["headers"].get(header) else {
            comparison.broken(place, "it is gone");
            continue;
        };
        let was = comparison.released.resolved(was);
        let is = comparison.current.resolved(is);
        if was["required"] == true && is["required"] != true {
            comparison.broken(&place, "it may be missing now");
        }
        schema::compare(comparison, &place, &was["schema"], &is["schema"], Side::Given);
    }
}

fn content<'a>(comparison: &mut Comparison<'a>, place: &str, was: &'a Value, is: &'a Value, side: Side) {
    for (kind, was) in members(&was["content"]) {
        match is["content"].get(kind) {
            None => comparison.broken(place, format!("`{kind}` is gone")),
            Some(is) => schema::compare(comparison, place, &was["schema"], &is["schema"], side),
        }
    }
    let had_content = members(&was["content"]).next().is_some();
    if !had_content && side == Side::Given && members(&is["content"]).next().is_some() {
        comparison.broken(place, "it has a body now");
    }
}

/// Codes of errors are documented as examples of their names; one that is no longer answered leaves its handling dead.
fn codes(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value) {
    let known = schema::codes(comparison.current, is);
    for code in schema::codes(comparison.released, was) {
        if !known.contains(&code) {
            comparison.broken(place, format!("the code `{code}` is gone"));
        }
    }
}
