//! Bodies that are checked by the domain's rules, and bodies that must be empty.
//!
//! The decoder finds wrong types. The domain, which checks a whole record, finds broken rules. Both are
//! reported together, in field order, once per field (D14).

use std::fmt::Display;
use std::str::FromStr;

use kernel::BrokenRules;
use web::decode::{Fields, ObjectShape, Place, Shape};
use web::json::{Json, Object};
use web::media_type::MediaType;
use web::operation::Incoming;
use web::{Entry, Violations, to_sentence};

/// The id in the path of a request that needs an empty query, and no body or an empty object.
pub(crate) fn id_alone<T: FromStr>(incoming: &Incoming<'_>) -> Result<Option<T>, Violations> {
    if incoming.body.is_empty() {
        incoming.no_query()?;
    } else {
        incoming.json_alone(&ObjectShape::new(|_| Some(())))?;
    }
    Ok(incoming.id(0))
}

/// Requires an empty query, and a JSON body of this shape that keeps the domain's rules.
pub(crate) fn body<D, T, R: Display, F: Fn(&mut Fields<'_, '_>) -> Option<D>>(
    incoming: &Incoming<'_>,
    draft: &ObjectShape<F>,
    check: impl FnOnce(D) -> Result<T, BrokenRules<R>>,
) -> Result<T, Violations> {
    let read = incoming.body_as(
        MediaType::Json.require(incoming.headers()),
        incoming.no_query(),
        |body| read(body, draft, check),
    );
    read.map(|((), body)| body)
}

/// Decodes a body that must be an object of this shape, and checks it.
fn read<D, T, R: Display, F: Fn(&mut Fields<'_, '_>) -> Option<D>>(
    body: &[u8],
    draft: &ObjectShape<F>,
    check: impl FnOnce(D) -> Result<T, BrokenRules<R>>,
) -> Result<T, Violations> {
    let order = draft.names();
    let mut found = Violations::new();
    let body = Json::Object(Object::parse(body)?);
    let given = draft.read(body, &mut Place::root(&mut found));
    let mut entries = found.into_entries();
    match given.map(check) {
        Some(Ok(checked)) if entries.is_empty() => return Ok(checked),
        Some(Err(broken)) => entries.extend(unreported(&broken, &entries)),
        Some(Ok(_)) | None => {}
    }
    let rank = |entry: &Entry| {
        order
            .iter()
            .position(|name| Some(*name) == entry.path().map(field))
    };
    entries.sort_by_key(|entry| rank(entry).unwrap_or(order.len()));
    let mut violations = Violations::new();
    for entry in entries {
        violations.push(entry);
    }
    Err(violations)
}

/// The broken rules of fields that have no entry yet.
fn unreported<R: Display>(broken: &BrokenRules<R>, reported: &[Entry]) -> Vec<Entry> {
    let is_reported = |path: &str| {
        reported
            .iter()
            .any(|entry| entry.path().map(field) == Some(field(path)))
    };
    broken
        .iter()
        .filter(|(path, _)| !is_reported(path))
        .map(|(path, reason)| Entry::validation(path.to_owned(), to_sentence(reason)))
        .collect()
}

/// The top-level field of a path.
fn field(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// Entries for broken rules that are found after the body was decoded.
pub(crate) fn entries<R: Display>(broken: &BrokenRules<R>) -> Vec<Entry> {
    unreported(broken, &[])
}
