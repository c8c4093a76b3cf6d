//! The shapes that values can have, and the ways to combine them. A shape both decodes a value and describes
//! its schema, so that the document always matches the decoder.

use std::cell::RefCell;
use std::collections::HashSet;
use std::convert::identity;
use std::fmt::Display;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::Place;
use super::object::quoted;
use crate::json::Json;
use crate::problem::to_sentence;
use crate::schema::{self, Node, string};
use crate::timestamps;

/// What a JSON value must look like, and what it decodes to.
///
/// A shape never sees `null` as a field's value: the methods of [`Fields`](super::Fields) handle it.
pub trait Shape: Sized {
    type Value;

    /// A noun phrase that fits "send …" and "must be …", such as "an integer from 0 to 10".
    fn expected(&self) -> String;

    /// The schema: a value that does not match it is rejected. A matching value may still break a rule that
    /// no schema can express; [`Shape::map_schema`] describes such rules.
    fn schema(&self) -> Node;

    /// Decodes a value. If it is wrong, records every violation at its place and returns `None`.
    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<Self::Value>;

    /// The same shape with additions to its schema.
    fn map_schema(self, more: impl Fn(Node) -> Node) -> impl Shape<Value = Self::Value> {
        Adapted {
            shape: self,
            more,
            check: |value: Self::Value, _: &mut Place<'_>| Some(value),
        }
    }

    /// The same shape with a description.
    fn describe(self, description: &str) -> impl Shape<Value = Self::Value> {
        self.map_schema(move |schema| schema.describe(description))
    }

    /// The same shape as a named schema, which the document refers to by its name.
    fn named(self, name: &str) -> impl Shape<Value = Self::Value> {
        self.map_schema(move |schema| schema.named(name))
    }

    /// The same shape with its values converted by `change`.
    fn map<T>(self, change: impl Fn(Self::Value) -> T) -> impl Shape<Value = T> {
        self.refined(move |value, _| Some(change(value)))
    }

    /// The same shape whose values must also pass `check`. Its error is a phrase: "must be a UUID".
    fn checked<T, E: Display>(self, check: impl Fn(Self::Value) -> Result<T, E>) -> impl Shape<Value = T> {
        self.refined(move |value, place| {
            check(value).map_or_else(|error| place.refuse(to_sentence(&error)), Some)
        })
    }

    /// The shape of an element that a list may have once; `message` refuses a repeated one. A shape like this
    /// reads one list.
    fn distinct(self, message: &'static str) -> impl Shape<Value = Self::Value>
    where
        Self::Value: Clone + Eq + Hash,
    {
        let seen = RefCell::new(HashSet::new());
        self.refined(move |value: Self::Value, place| {
            if seen.borrow_mut().insert(value.clone()) {
                Some(value)
            } else {
                place.refuse(message)
            }
        })
    }

    /// The same shape whose values must also pass `check`, which may record violations at inner places:
    /// `place.field("items").element(3).refuse("…")`. It returns `None` if and only if it has recorded one.
    fn refined<T>(self, check: impl Fn(Self::Value, &mut Place<'_>) -> Option<T>) -> impl Shape<Value = T> {
        Adapted {
            shape: self,
            more: identity::<Node>,
            check,
        }
    }
}

/// See [`Shape::map_schema`] and [`Shape::refined`].
struct Adapted<S, M, C> {
    shape: S,
    more: M,
    check: C,
}

impl<S, T, M, C> Shape for Adapted<S, M, C>
where
    S: Shape,
    M: Fn(Node) -> Node,
    C: Fn(S::Value, &mut Place<'_>) -> Option<T>,
{
    type Value = T;

    fn expected(&self) -> String {
        self.shape.expected()
    }

    fn schema(&self) -> Node {
        (self.more)(self.shape.schema())
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        let value = self.shape.read(json, place)?;
        (self.check)(value, place)
    }
}

/// Records a violation: the value is of the wrong kind.
pub(super) fn wrong_kind<T>(shape: &impl Shape, json: &Json, place: &mut Place<'_>) -> Option<T> {
    place.refuse(format!("Must be {}, not {}.", shape.expected(), json.kind()))
}

/// A shape made of functions.
struct FunctionShape<E, S, R> {
    expected: E,
    schema: S,
    read: R,
}

/// Why a value does not have a [`FunctionShape`] shape.
enum Wrong {
    Kind(Json),
    /// Holds the message.
    Value(String),
}

impl<T, E, S, R> Shape for FunctionShape<E, S, R>
where
    E: Fn() -> String,
    S: Fn() -> Node,
    R: Fn(Json) -> Result<T, Wrong>,
{
    type Value = T;

    fn expected(&self) -> String {
        (self.expected)()
    }

    fn schema(&self) -> Node {
        (self.schema)()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        match (self.read)(json) {
            Ok(value) => Some(value),
            Err(Wrong::Kind(json)) => wrong_kind(self, &json, place),
            Err(Wrong::Value(message)) => place.refuse(message),
        }
    }
}

/// A JSON integer in this range, both ends included. `1999.0`, `1e3` and `"5"` are not integers (D10).
pub fn integer<T: TryFrom<i64> + Into<i64> + Copy + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Shape<Value = T> {
    let (least, most) = (*range.start(), *range.end());
    FunctionShape {
        expected: move || format!("an integer from {least} to {most}"),
        schema: move || schema::integer(least.into(), most.into()),
        read: move |json: Json| {
            let number = match json {
                Json::Integer(number) => T::try_from(number).ok(),
                Json::HugeInteger => None,
                other => return Err(Wrong::Kind(other)),
            };
            let out_of_range = || Wrong::Value(format!("Out of range: must be from {least} to {most}."));
            number
                .filter(|number| range.contains(number))
                .ok_or_else(out_of_range)
        },
    }
}

/// `true` or `false`.
pub fn boolean() -> impl Shape<Value = bool> {
    FunctionShape {
        expected: || "true or false".to_owned(),
        schema: schema::boolean,
        read: |json: Json| match json {
            Json::Bool(value) => Ok(value),
            other => Err(Wrong::Kind(other)),
        },
    }
}

/// One of `values`, each written as the string that `name` returns for it.
pub fn one_of<T: Copy + 'static>(
    values: &'static [T],
    name: impl Fn(T) -> &'static str + Copy,
) -> impl Shape<Value = T> {
    let names = move || values.iter().map(move |value| name(*value));
    word(
        move || format!("one of {}", quoted(names())),
        move || string().one_of(names()),
        move |text| values.iter().copied().find(|value| name(*value) == text),
    )
}

/// An RFC 3339 date-time with `Z` or an offset (D21).
pub fn date_time() -> impl Shape<Value = DateTime<Utc>> {
    word(
        || timestamps::EXPECTED.to_owned(),
        schema::date_time,
        timestamps::parse,
    )
}

/// A string that `find` knows.
fn word<T>(
    expected: impl Fn() -> String + Copy,
    schema: impl Fn() -> Node,
    find: impl Fn(&str) -> Option<T>,
) -> impl Shape<Value = T> {
    FunctionShape {
        expected,
        schema,
        read: move |json: Json| match json {
            Json::String(text) => {
                let unknown = || Wrong::Value(format!("Must be {}.", expected()));
                find(&text).ok_or_else(unknown)
            }
            other => Err(Wrong::Kind(other)),
        },
    }
}

/// Any string; further rules are added to it.
pub fn text() -> impl Shape<Value = String> {
    text_of(0..=usize::MAX)
}

/// A string of this length in characters (Unicode scalar values).
pub fn text_of(length: RangeInclusive<usize>) -> impl Shape<Value = String> {
    let (least, most) = (*length.start(), *length.end());
    let bounds = move || counted(least, most, "character");
    // Counting stops once a text is too long.
    let fits = move |text: &str| length.contains(&text.chars().take(most.saturating_add(1)).count());
    FunctionShape {
        expected: move || {
            bounds().map_or_else(|| "a string".to_owned(), |bounds| format!("a string of {bounds}"))
        },
        schema: move || {
            let schema = bounded(string(), "minLength", least, 0);
            bounded(schema, "maxLength", most, usize::MAX)
        },
        read: move |json: Json| match json {
            Json::String(text) if fits(&text) => Ok(text),
            Json::String(_) => {
                let bounds = bounds().unwrap_or_default();
                Err(Wrong::Value(format!("Must have {bounds}.")))
            }
            other => Err(Wrong::Kind(other)),
        },
    }
}

/// A string that is the text of a `T`, such as an id.
pub fn parsed<T: FromStr<Err: Display>>() -> impl Shape<Value = T> {
    text().checked(|text: String| text.parse())
}

/// An array of elements of this shape, as many as `count` has. Fewer or more are refused at the array's path,
/// undecoded (D124).
pub fn list<S: Shape>(element: S, count: RangeInclusive<usize>) -> impl Shape<Value = Vec<S::Value>> {
    List { element, count }
}

/// See [`list`].
struct List<S> {
    element: S,
    count: RangeInclusive<usize>,
}

impl<S: Shape> List<S> {
    fn bounds(&self) -> Option<String> {
        counted(*self.count.start(), *self.count.end(), "element")
    }
}

impl<S: Shape> Shape for List<S> {
    type Value = Vec<S::Value>;

    fn expected(&self) -> String {
        self.bounds()
            .map_or_else(|| "an array".to_owned(), |bounds| format!("an array of {bounds}"))
    }

    fn schema(&self) -> Node {
        let schema = schema::array(self.element.schema());
        let schema = bounded(schema, "minItems", *self.count.start(), 0);
        bounded(schema, "maxItems", *self.count.end(), usize::MAX)
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<Self::Value> {
        let Json::Array(elements) = json else {
            return wrong_kind(self, &json, place);
        };
        let count = elements.len();
        if !self.count.contains(&count) {
            let bounds = self.bounds().unwrap_or_default();
            return place.refuse(format!("Must have {bounds}; this has {count}."));
        }
        let mut values = Vec::with_capacity(count);
        for (index, json) in elements.into_iter().enumerate() {
            // The answer has no room for more: the rest would be described in vain.
            if place.violations.is_full() {
                return None;
            }
            let mut place = place.element(index);
            values.push(match json {
                Json::Null => place.refuse(format!("Must not be null: send {}.", self.element.expected())),
                json => self.element.read(json, &mut place),
            });
        }
        values.into_iter().collect()
    }
}

/// "4 to 64 characters", "at least 1 element"; `None` if any count is allowed.
fn counted(least: usize, most: usize, noun: &str) -> Option<String> {
    let (words, number) = match (least, most) {
        (0, usize::MAX) => return None,
        (_, usize::MAX) => (format!("at least {least}"), least),
        (0, _) => (format!("at most {most}"), most),
        _ if least == most => (format!("exactly {least}"), least),
        _ => (format!("{least} to {most}"), most),
    };
    Some(format!("{words} {noun}{}", if number == 1 { "" } else { "s" }))
}

/// Adds the keyword for a bound, if there is one.
fn bounded(schema: Node, keyword: &str, bound: usize, none: usize) -> Node {
    match i64::try_from(bound) {
        Ok(number) if bound != none => schema.with(keyword, number),
        _ => schema,
    }
}
