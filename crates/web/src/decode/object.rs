//! Objects: their fields, each required, optional or nullable. No other fields are accepted.

use super::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::{Json, Object};
use crate::schema::{self, Node};

/// The shape of an object, declared as the struct that it decodes to. Each field calls a method of
/// [`Fields`]. Its name in JSON is the struct field's, or the one after `as`. A trailing method without
/// arguments converts the value.
///
/// `name: …, name: … => value` decodes to any value of the fields.
#[macro_export]
macro_rules! object {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    ($type:ident {
        $($field:ident $(as $name:literal)?: $method:ident($shape:expr $(, $more:expr)*) $(.$then:ident())?),+ $(,)?
    }) => {
        $crate::object!(
            $($field $(as $name)?: $method($shape $(, $more)*) $(.$then())?),+ => $type { $($field),+ }
        )
    };
    ($($field:ident $(as $name:literal)?: $method:ident($shape:expr $(, $more:expr)*) $(.$then:ident())?),+ => $value:expr) => {
        $crate::decode::ObjectShape::new(move |fields| {
            // Every field is decoded, even after a violation in an earlier one.
            $(let $field = fields.$method($crate::object!(@name $field $($name)?), &$shape $(, $more)*);)+
            $(let $field = $field?$(.$then())?;)+
            Some($value)
        })
    };
}

/// The shape of an object; [`object!`](crate::object!) declares one.
pub struct ObjectShape<F> {
    decode: F,
    some: bool,
}

impl<T, F: Fn(&mut Fields<'_, '_>) -> Option<T>> ObjectShape<F> {
    /// `decode` asks for the same fields every time, in the contract's order.
    pub const fn new(decode: F) -> Self {
        Self { decode, some: false }
    }

    /// The object may not be empty: `{}` is one violation without a path (D112).
    #[must_use]
    pub fn not_empty(self) -> Self {
        Self { some: true, ..self }
    }

    /// The names of the fields, in order.
    fn names(&self) -> Vec<&'static str> {
        self.members().iter().map(|member| member.name).collect()
    }

    fn members(&self) -> Vec<Member> {
        let mut members = Vec::new();
        let _: Option<T> = (self.decode)(&mut Fields(Source::Nothing(&mut members)));
        members
    }
}

impl<T, F: Fn(&mut Fields<'_, '_>) -> Option<T>> Shape for ObjectShape<F> {
    type Value = T;

    fn expected(&self) -> String {
        format!("an object with {}", quoted(self.names()))
    }

    /// Requests may not have other members.
    fn schema(&self) -> Node {
        let members = self.members();
        let required = members.iter().filter(|member| member.is_required);
        let required: Vec<_> = required.map(|member| member.name).collect();
        let members = members.into_iter().map(|member| (member.name, member.schema));
        let schema = schema::open_object(members, &required).with("additionalProperties", false);
        if self.some {
            schema.with("minProperties", 1)
        } else {
            schema
        }
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        let Json::Object(mut object) = json else {
            return wrong_kind(self, &json, place);
        };
        if self.some && object.is_empty() {
            return place.refuse(format!("Send at least one of {}.", quoted(self.names())));
        }
        let value = (self.decode)(&mut Fields(Source::Object(&mut object, place)));
        for name in object.names() {
            place.field(name).refuse_unknown(|| match self.names() {
                names if names.is_empty() => "Unknown field; this object has no fields.".to_owned(),
                names => format!("Unknown field. Known fields: {}.", quoted(names)),
            });
        }
        value
    }
}

/// "`price`, `stock`, `status`"
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The fields of an object. Each method takes one and decodes it, or returns `None` after recording a
/// violation.
pub struct Fields<'a, 'p>(Source<'a, 'p>);

enum Source<'a, 'p> {
    /// The members that are left of an object, and its place.
    Object(&'a mut Object, &'a mut Place<'p>),
    /// The fields are only listed.
    Nothing(&'a mut Vec<Member>),
}

struct Member {
    name: &'static str,
    is_required: bool,
    schema: Node,
}

impl Fields<'_, '_> {
    /// A field that must be present and not `null`.
    pub fn required<S: Shape>(&mut self, name: &'static str, shape: &S) -> Option<S::Value> {
        let (json, mut place) = self.take(name, || (true, shape.schema()))?;
        match json {
            None => place.refuse(format!("This field is required: send {}.", shape.expected())),
            Some(Json::Null) => place.refuse(format!("Must not be null: send {}.", shape.expected())),
            Some(json) => shape.read(json, &mut place),
        }
    }

    /// A field that must be present, or must be absent if its value is already known.
    pub fn unless_known<S: Shape>(
        &mut self,
        name: &'static str,
        shape: &S,
        known: Option<S::Value>,
    ) -> Option<S::Value> {
        known.or_else(|| self.required(name, shape))
    }

    /// A field that may be absent, which decodes to `None`, but not `null`.
    pub fn optional<S: Shape>(&mut self, name: &'static str, shape: &S) -> Option<Option<S::Value>> {
        let (json, mut place) = self.take(name, || (false, shape.schema()))?;
        match json {
            None => Some(None),
            Some(Json::Null) => place.refuse(format!(
                "Must not be null: send {}, or omit the field.",
                shape.expected()
            )),
            Some(json) => shape.read(json, &mut place).map(Some),
        }
    }

    /// A field that may be absent or `null`; both decode to `None`.
    pub fn nullable<S: Shape>(&mut self, name: &'static str, shape: &S) -> Option<Option<S::Value>> {
        self.resettable(name, shape, None)
    }

    /// As [`Self::nullable`], or an unknown field.
    pub fn nullable_if_known<S: Shape>(
        &mut self,
        name: &'static str,
        shape: &S,
        is_known: bool,
    ) -> Option<Option<S::Value>> {
        if is_known {
            self.nullable(name, shape)
        } else {
            Some(None)
        }
    }

    /// A field that may be absent, which decodes to `None`, or `null`, which decodes to `of_null`.
    pub fn resettable<S: Shape>(
        &mut self,
        name: &'static str,
        shape: &S,
        of_null: impl Into<Option<S::Value>>,
    ) -> Option<Option<S::Value>> {
        let (json, mut place) = self.take(name, || (false, shape.schema().or_null()))?;
        match json {
            None => Some(None),
            Some(Json::Null) => Some(of_null.into()),
            Some(json) => shape.read(json, &mut place).map(Some),
        }
    }

    /// The fields of `shape`, beside the others of this object; the name is not in the JSON.
    pub fn flattened<T, F>(&mut self, _: &'static str, shape: &ObjectShape<F>) -> Option<T>
    where
        F: Fn(&mut Fields<'_, '_>) -> Option<T>,
    {
        (shape.decode)(self)
    }

    /// Removes the field from the object; without one, lists whether the field is required, and its schema.
    fn take(
        &mut self,
        name: &'static str,
        describe: impl FnOnce() -> (bool, Node),
    ) -> Option<(Option<Json>, Place<'_>)> {
        match &mut self.0 {
            Source::Object(object, place) => Some((object.take(name), place.field(name))),
            Source::Nothing(members) => {
                let (is_required, schema) = describe();
                members.push(Member {
                    name,
                    is_required,
                    schema,
                });
                None
            }
        }
    }
}
