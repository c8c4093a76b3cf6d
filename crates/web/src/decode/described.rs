//! What the document says of the shapes that requests are decoded by: the same values tell both.

use std::fmt::Display;

use super::fields::{Field, FieldSet, Optional, Required};
use super::place::Place;
use super::scalars::{Integer, IntegerTarget, OneOf};
use super::shape::{Checked, Mapped, Refined, Shape};
use super::text::Text;
use super::{List, ObjectShape};
use crate::json::Json;
use crate::schema::{self, Node, string};

/// A shape that can be told as a JSON Schema. What a check adds has to be said beside it, by [`Described::saying`].
pub trait Described: Shape {
    /// The schema: whatever it does not admit is refused. What it admits may be refused by rules that no schema tells.
    fn schema(&self) -> Node;

    /// The same shape with more about its schema.
    fn saying<F: Fn(Node) -> Node>(self, more: F) -> Saying<Self, F>
    where
        Self: Sized,
    {
        Saying { shape: self, more }
    }
}

/// See [`Described::saying`].
pub struct Saying<S, F> {
    shape: S,
    more: F,
}

impl<S: Shape, F> Shape for Saying<S, F> {
    type Value = S::Value;

    fn expected(&self) -> String {
        self.shape.expected()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<S::Value> {
        self.shape.read(json, place)
    }
}

impl<S: Described, F: Fn(Node) -> Node> Described for Saying<S, F> {
    fn schema(&self) -> Node {
        (self.more)(self.shape.schema())
    }
}

impl<S: Described, T, F: Fn(S::Value) -> T> Described for Mapped<S, F> {
    fn schema(&self) -> Node {
        self.inner().schema()
    }
}

impl<S: Described, T, E: Display, F: Fn(S::Value) -> Result<T, E>> Described for Checked<S, F> {
    fn schema(&self) -> Node {
        self.inner().schema()
    }
}

impl<S: Described, T, F: Fn(S::Value, &mut Place<'_>) -> Option<T>> Described for Refined<S, F> {
    fn schema(&self) -> Node {
        self.inner().schema()
    }
}

impl<T: IntegerTarget + Copy + Into<i64>> Described for Integer<T> {
    fn schema(&self) -> Node {
        let range = self.range();
        schema::integer((*range.start()).into(), (*range.end()).into())
    }
}

impl<T: Copy, F: Fn(T) -> &'static str> Described for OneOf<T, F> {
    fn schema(&self) -> Node {
        string().one_of(self.names())
    }
}

impl Described for Text {
    fn schema(&self) -> Node {
        let length = self.length_range();
        let schema = bounded(string(), "minLength", *length.start(), 0);
        bounded(schema, "maxLength", *length.end(), usize::MAX)
    }
}

impl<S: Described> Described for List<S> {
    fn schema(&self) -> Node {
        let count = self.count();
        let schema = bounded(
            schema::array(self.element().schema()),
            "minItems",
            *count.start(),
            0,
        );
        bounded(schema, "maxItems", *count.end(), usize::MAX)
    }
}

impl<F: DescribedFields> Described for ObjectShape<F> {
    /// Requests have these members and no others.
    fn schema(&self) -> Node {
        let members = self.fields().members();
        let required: Vec<_> = members
            .iter()
            .filter(|member| member.required)
            .map(|member| member.name)
            .collect();
        let members = members.into_iter().map(|member| (member.name, member.schema));
        let schema = schema::open_object(members, &required).with("additionalProperties", false);
        if self.is_some() {
            schema.with("minProperties", 1)
        } else {
            schema
        }
    }
}

/// A keyword for a bound, where there is one.
fn bounded(schema: Node, keyword: &str, bound: usize, none: usize) -> Node {
    match i64::try_from(bound) {
        Ok(number) if bound != none => schema.with(keyword, number),
        _ => schema,
    }
}

/// A member of an object that is told as a schema.
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it must be.
    pub schema: Node,
}

/// A field that can be told.
pub trait DescribedField: Field {
    /// It as a member of an object.
    fn member(&self) -> Member;
}

impl<S: Described> DescribedField for Required<S> {
    fn member(&self) -> Member {
        Member {
            name: self.name(),
            required: true,
            schema: self.shape().schema(),
        }
    }
}

impl<S: Described> DescribedField for Optional<S> {
    fn member(&self) -> Member {
        Member {
            name: self.name(),
            required: false,
            schema: self.shape().schema(),
        }
    }
}

/// A table of fields that can be told.
pub trait DescribedFields: FieldSet {
    /// The members, in their order.
    fn members(&self) -> Vec<Member>;
}

macro_rules! described_fields {
    ($($field:ident)+) => {
        impl<$($field: DescribedField),+> DescribedFields for ($($field,)+) {
            fn members(&self) -> Vec<Member> {
                #[expect(non_snake_case, reason = "one name serves as type and as variable")]
                let ($($field,)+) = self;
                vec![$($field.member()),+]
            }
        }
    };
}

described_fields!(A);
described_fields!(A B);
described_fields!(A B C);
described_fields!(A B C D);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{integer, list, object, one_of, optional, required, text};

    #[test]
    fn a_table_of_fields_is_told_as_it_is_read() {
        let shape = object((
            required(
                "label",
                text()
                    .length(4..=64)
                    .saying(|schema| schema.with("pattern", "^[a-z]+$")),
            ),
            optional("size", one_of(&["small", "large"], |size| size)),
            required("weights", list(integer(1..=30_000_i64)).at_least(1)),
        ))
        .not_empty();
        assert_eq!(
            shape.schema().to_string(),
            concat!(
                r#"{"type":"object","required":["label","weights"],"properties":{"#,
                r#""label":{"type":"string","minLength":4,"maxLength":64,"pattern":"^[a-z]+$"},"#,
                r#""size":{"type":"string","enum":["small","large"]},"#,
                r#""weights":{"type":"array","items":{"type":"integer","format":"int32","minimum":1,"maximum":30000},"#,
                r#""minItems":1}},"additionalProperties":false,"minProperties":1}"#,
            )
        );
    }
}
