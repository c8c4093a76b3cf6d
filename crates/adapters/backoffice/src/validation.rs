//! Bodies that are checked by the domain's rules, and bodies that must be empty.
//!
//! The decoder finds wrong types. The domain, which checks a whole record, finds broken rules. Both are reported together, in field order,
//! once per field (D14).

use std::fmt::Display;

use kernel::{Invalid, Violations as Broken};
use web::decode::{Field, FieldSet, Place, Shape, object};
use web::json::{Json, Object};
use web::media_type::require_json;
use web::operation::Incoming;
use web::schema::Node;
use web::{Entry, Violations, to_sentence};

/// Requires an empty query, and no body or an empty object.
pub(crate) fn empty(incoming: &Incoming<'_>) -> Result<(), Violations> {
    if incoming.body.is_empty() {
        return incoming.no_query();
    }
    let nothing = |body: &[u8]| {
        let mut found = Violations::new();
        for name in Object::parse(body)?.names() {
            let _: Option<()> = Place::root(&mut found)
                .field(name)
                .refuse("Unknown field; there are none here.");
        }
        found.or(())
    };
    let read = incoming.body_as(require_json(incoming.headers()), incoming.no_query(), nothing);
    read.map(|((), ())| ())
}

/// Requires an empty query, and a JSON body with these fields that keeps the domain's rules.
pub(crate) fn body<F: FieldSet, T, R: Display>(
    incoming: &Incoming<'_>,
    fields: F,
    check: impl FnOnce(F::Values) -> Result<T, Broken<R>>,
) -> Result<T, Violations> {
    let read = incoming.body_as(require_json(incoming.headers()), incoming.no_query(), |body| {
        read(body, fields, check)
    });
    read.map(|((), body)| body)
}

/// Decodes a body that must be an object with these fields, and checks it.
fn read<F: FieldSet, T, R: Display>(
    body: &[u8],
    fields: F,
    check: impl FnOnce(F::Values) -> Result<T, Broken<R>>,
) -> Result<T, Violations> {
    let order = fields.names();
    let mut found = Violations::new();
    let body = Json::Object(Object::parse(body)?);
    let given = object(fields).read(body, &mut Place::root(&mut found));
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

/// Turns the error of a domain rule into a sentence.
pub(crate) fn rule<G, T>(check: impl Fn(G) -> Result<T, Invalid>) -> impl Fn(G) -> Result<T, String> {
    move |given| check(given).map_err(|reason| to_sentence(&reason))
}

/// A field that gives its type's default if it is refused, so that the other fields are still checked.
pub(crate) struct OrDefault<F>(pub(crate) F);

impl<F: Field<Value: Default>> Field for OrDefault<F> {
    type Value = F::Value;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is_required(&self) -> bool {
        self.0.is_required()
    }

    fn schema(&self) -> Node {
        self.0.schema()
    }

    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<F::Value> {
        Some(self.0.read(object, place).unwrap_or_default())
    }
}

/// The broken rules of fields that have no entry yet.
fn unreported<R: Display>(broken: &Broken<R>, reported: &[Entry]) -> Vec<Entry> {
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
pub(crate) fn entries<R: Display>(broken: &Broken<R>) -> Vec<Entry> {
    unreported(broken, &[])
}
