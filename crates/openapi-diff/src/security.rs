//! Who may call: the schemes, and what each operation asks for.

use serde_json::Value;

use crate::Comparison;
use crate::document::{at, elements, members};

/// Compares what an operation asks for: each way in that there was has to be enough still.
pub(crate) fn compare(comparison: &mut Comparison<'_>, name: &str, released: &Value, current: &Value) {
    let was = ways_in(released, comparison.released.0);
    let is = ways_in(current, comparison.current.0);
    for way in was {
        let suffices = is.iter().any(|now| asks_no_more(now, &way));
        if !suffices {
            comparison.broken(name, format!("{} does not suffice any more", told(&way)));
        }
    }
}

/// Each set of schemes that lets a caller in; where nothing is asked for, the empty one. An operation that does not say takes the
/// document's.
fn ways_in(operation: &Value, document: &Value) -> Vec<Value> {
    let security = operation.get("security").or_else(|| document.get("security"));
    let ways: Vec<_> = security.into_iter().flat_map(elements).cloned().collect();
    if ways.is_empty() {
        vec![Value::Object(serde_json::Map::new())]
    } else {
        ways
    }
}

/// Whether every scheme and scope of `now` is among those of `was`.
fn asks_no_more(now: &Value, was: &Value) -> bool {
    members(now).all(|(scheme, scopes)| {
        was.get(scheme)
            .is_some_and(|held| elements(scopes).all(|scope| elements(held).any(|held| held == scope)))
    })
}

fn told(way: &Value) -> String {
    let schemes: Vec<_> = members(way)
        .map(|(scheme, scopes)| {
            let scopes: Vec<_> = elements(scopes).filter_map(Value::as_str).collect();
            format!("`{scheme}` with [{}]", scopes.join(", "))
        })
        .collect();
    if schemes.is_empty() {
        "a call without credentials".to_owned()
    } else {
        schemes.join(" and ")
    }
}

/// Compares the schemes themselves: their kinds, flows, addresses and scopes.
pub(crate) fn compare_schemes(comparison: &mut Comparison<'_>) {
    let path = ["components", "securitySchemes"];
    let released = at(comparison.released.0, &path);
    let current = at(comparison.current.0, &path);
    for (name, was) in members(released) {
        let is = at(current, &[name]);
        let place = format!("securitySchemes {name}");
        if is.is_null() {
            comparison.broken(place, "it is gone");
            continue;
        }
        for keyword in ["type", "scheme", "in", "name", "openIdConnectUrl"] {
            if was[keyword] != is[keyword] {
                comparison.broken(&place, format!("`{keyword}` changed"));
            }
        }
        for (flow, was) in members(&was["flows"]) {
            compare_flow(
                comparison,
                &format!("{place} {flow}"),
                was,
                at(is, &["flows", flow]),
            );
        }
    }
}

fn compare_flow(comparison: &mut Comparison<'_>, place: &str, was: &Value, is: &Value) {
    if is.is_null() {
        return comparison.broken(place, "it is gone");
    }
    for address in ["authorizationUrl", "tokenUrl", "refreshUrl"] {
        if was[address] != is[address] {
            comparison.broken(place, format!("`{address}` changed"));
        }
    }
    for (scope, _) in members(&was["scopes"]) {
        if is["scopes"].get(scope).is_none() {
            comparison.broken(place, format!("the scope `{scope}` is gone"));
        }
    }
}
