//! Objects: a table of fields, each required, optional or nullable. No other fields are accepted.

use super::place::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::{Json, Object};
use crate::schema::{self, Node};

/// An object with exactly these fields. Its value is the tuple of their values; [`Shape::map`] turns it into a struct.
pub const fn object<F: FieldSet>(fields: F) -> ObjectShape<F> {
    ObjectShape { fields, some: false }
}

/// See [`object`].
pub struct ObjectShape<F> {
    fields: F,
    some: bool,
}

impl<F: FieldSet> ObjectShape<F> {
    /// The object may not be empty: `{}` is one violation without a path (D112).
    #[must_use]
    pub fn not_empty(self) -> Self {
        Self { some: true, ..self }
    }
}

impl<F: FieldSet> Shape for ObjectShape<F> {
    type Value = F::Values;

    fn expected(&self) -> String {
        format!("an object with {}", quoted(self.fields.names()))
    }

    /// Requests may not have other members.
    fn schema(&self) -> Node {
        let members = self.fields.members();
        let required: Vec<_> = members
            .iter()
            .filter(|(_, required, _)| *required)
            .map(|(name, ..)| *name)
            .collect();
        let members = members.into_iter().map(|(name, _, schema)| (name, schema));
        let schema = schema::open_object(members, &required).with("additionalProperties", false);
        if self.some {
            schema.with("minProperties", 1)
        } else {
            schema
        }
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

/// An entry in a table of fields.
pub trait Field {
    /// The shape's value, or an `Option` of it.
    type Value;

    fn name(&self) -> &'static str;

    fn is_required(&self) -> bool;

    fn schema(&self) -> Node;

    /// Removes the field from `object` and decodes it; `place` is the object's.
    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<Self::Value>;
}

/// A field that must be present and not `null`.
pub const fn required<S: Shape>(name: &'static str, shape: S) -> Required<S> {
    Required { name, shape }
}

/// A field that may be absent, which decodes to `None`, but not `null`.
pub const fn optional<S: Shape>(name: &'static str, shape: S) -> Optional<S> {
    let null = Null::Refused;
    Optional { name, shape, null }
}

/// A field that may be absent or `null`; both decode to `None`.
pub const fn nullable<S: Shape>(name: &'static str, shape: S) -> Optional<S> {
    let null = Null::Absent;
    Optional { name, shape, null }
}

/// A field that may be absent, which decodes to `None`, or `null`, which decodes to `of_null`.
pub const fn resettable<S: Shape<Value: Clone>>(
    name: &'static str,
    shape: S,
    of_null: S::Value,
) -> Optional<S> {
    let null = Null::Means(of_null);
    Optional { name, shape, null }
}

/// See [`required`].
pub struct Required<S> {
    name: &'static str,
    shape: S,
}

/// See [`optional`], [`nullable`] and [`resettable`].
pub struct Optional<S: Shape> {
    name: &'static str,
    shape: S,
    null: Null<S::Value>,
}

/// What `null` decodes to in a field that may be absent.
enum Null<V> {
    Refused,
    Absent,
    Means(V),
}

impl<S: Shape> Field for Required<S> {
    type Value = S::Value;

    fn name(&self) -> &'static str {
        self.name
    }

    fn is_required(&self) -> bool {
        true
    }

    fn schema(&self) -> Node {
        self.shape.schema()
    }

    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<S::Value> {
        let mut place = place.field(self.name);
        match object.take(self.name) {
            None => place.refuse(format!("This field is required: send {}.", self.shape.expected())),
            Some(Json::Null) => place.refuse(format!("Must not be null: send {}.", self.shape.expected())),
            Some(json) => self.shape.read(json, &mut place),
        }
    }
}

impl<S: Shape<Value: Clone>> Field for Optional<S> {
    type Value = Option<S::Value>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn is_required(&self) -> bool {
        false
    }

    fn schema(&self) -> Node {
        match self.null {
            Null::Refused => self.shape.schema(),
            Null::Absent | Null::Means(_) => self.shape.schema().or_null(),
        }
    }

    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<Option<S::Value>> {
        let mut place = place.field(self.name);
        match (object.take(self.name), &self.null) {
            (None, _) | (Some(Json::Null), Null::Absent) => Some(None),
            (Some(Json::Null), Null::Means(value)) => Some(Some(value.clone())),
            (Some(Json::Null), Null::Refused) => place.refuse(format!(
                "Must not be null: send {}, or leave the field out.",
                self.shape.expected()
            )),
            (Some(json), _) => self.shape.read(json, &mut place).map(Some),
        }
    }
}

/// A table of fields: a tuple of up to twelve, in the contract's order.
pub trait FieldSet {
    type Values;

    /// The names, in order.
    fn names(&self) -> Vec<&'static str>;

    /// Name, whether it is required, and schema of each field, in order.
    fn members(&self) -> Vec<(&'static str, bool, Node)>;

    /// Decodes every field, even after a violation in an earlier one.
    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<Self::Values>;
}

macro_rules! field_set {
    ($($field:ident)+) => {
        impl<$($field: Field),+> FieldSet for ($($field,)+) {
            type Values = ($($field::Value,)+);

            fn names(&self) -> Vec<&'static str> {
                #[expect(non_snake_case, reason = "one name serves as type and as variable")]
                let ($($field,)+) = self;
                vec![$($field.name()),+]
            }

            fn members(&self) -> Vec<(&'static str, bool, Node)> {
                #[expect(non_snake_case, reason = "one name serves as type and as variable")]
                let ($($field,)+) = self;
                vec![$(($field.name(), $field.is_required(), $field.schema())),+]
            }

            fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<Self::Values> {
                #[expect(non_snake_case, reason = "one name serves as type and as variable")]
                let ($($field,)+) = self;
                #[expect(non_snake_case, reason = "one name serves as type and as variable")]
                let ($($field,)+) = ($($field.read(object, place),)+);
                Some(($($field?,)+))
            }
        }
    };
}

field_set!(A);
field_set!(A B);
field_set!(A B C);
field_set!(A B C D);
field_set!(A B C D E);
field_set!(A B C D E F);
field_set!(A B C D E F G);
field_set!(A B C D E F G H);
field_set!(A B C D E F G H I);
field_set!(A B C D E F G H I J);
field_set!(A B C D E F G H I J K);
field_set!(A B C D E F G H I J K L);
