//! Objects: a table of fields and nothing else.

use super::fields::FieldSet;
use super::place::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::Json;

/// An object with these fields and no others. Its value is the tuple of theirs; [`Shape::map`] makes a struct of it.
pub const fn object<F: FieldSet>(fields: F) -> ObjectShape<F> {
    ObjectShape { fields, some: false }
}

/// See [`object`].
pub struct ObjectShape<F> {
    fields: F,
    some: bool,
}

impl<F: FieldSet> ObjectShape<F> {
    /// The object may not be empty: `{}` is refused as a whole (D112).
    #[must_use]
    pub fn not_empty(self) -> Self {
        Self { some: true, ..self }
    }
}

impl<F> ObjectShape<F> {
    pub(super) const fn fields(&self) -> &F {
        &self.fields
    }

    pub(super) const fn is_some(&self) -> bool {
        self.some
    }
}

impl<F: FieldSet> Shape for ObjectShape<F> {
    type Value = F::Values;

    fn expected(&self) -> String {
        format!("an object with {}", quoted(self.fields.names()))
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<F::Values> {
        let Json::Object(mut object) = json else {
            return wrong_kind(self, &json, place);
        };
        if self.some && object.is_empty() {
            return place.refuse(format!("Send at least one of {}.", quoted(self.fields.names())));
        }
        let values = self.fields.read(&mut object, place);
        for name in object.names() {
            let known = || {
                format!(
                    "Unknown field. The fields here are {}.",
                    quoted(self.fields.names())
                )
            };
            place.field(name).refuse_unknown(known);
        }
        values
    }
}

/// "`price`, `stock`, `status`"
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for name in names {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push('`');
        list.push_str(name);
        list.push('`');
    }
    list
}
