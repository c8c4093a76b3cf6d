//! Integers, booleans, enumerations and date-times.

use std::fmt::Display;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};

use super::object::quoted;
use super::place::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::Json;
use crate::timestamps;

/// The integer types that a field can be read into.
pub trait IntegerTarget: TryFrom<i64> + PartialOrd + Display {}

impl<T: TryFrom<i64> + PartialOrd + Display> IntegerTarget for T {}

/// A JSON integer of this range, both ends included: `1999.0`, `1e3` and `"5"` are none (D10).
pub const fn integer<T: IntegerTarget>(range: RangeInclusive<T>) -> Integer<T> {
    Integer { range }
}

/// See [`integer`].
pub struct Integer<T> {
    range: RangeInclusive<T>,
}

impl<T> Integer<T> {
    pub(super) const fn range(&self) -> &RangeInclusive<T> {
        &self.range
    }
}

impl<T: IntegerTarget> Shape for Integer<T> {
    type Value = T;

    fn expected(&self) -> String {
        format!("an integer from {} to {}", self.range.start(), self.range.end())
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        let number = match json {
            Json::Integer(number) => T::try_from(number).ok(),
            Json::HugeInteger => None,
            other => return wrong_kind(self, &other, place),
        };
        let (least, most) = (self.range.start(), self.range.end());
        number
            .filter(|number| self.range.contains(number))
            .or_else(|| place.refuse(format!("Out of range: must be from {least} to {most}.")))
    }
}

/// `true` or `false`.
pub const fn boolean() -> Boolean {
    Boolean
}

/// See [`boolean`].
pub struct Boolean;

impl Shape for Boolean {
    type Value = bool;

    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<bool> {
        match json {
            Json::Bool(value) => Some(value),
            other => wrong_kind(self, &other, place),
        }
    }
}

/// One of `values`, each sent as the string that `name` gives it.
pub const fn one_of<T: Copy, F: Fn(T) -> &'static str>(values: &'static [T], name: F) -> OneOf<T, F> {
    OneOf { values, name }
}

/// See [`one_of`].
pub struct OneOf<T: 'static, F> {
    values: &'static [T],
    name: F,
}

impl<T: Copy, F: Fn(T) -> &'static str> OneOf<T, F> {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.iter().map(|value| (self.name)(*value))
    }

    pub(crate) fn find(&self, text: &str) -> Option<T> {
        self.values
            .iter()
            .copied()
            .find(|value| (self.name)(*value) == text)
    }
}

impl<T: Copy, F: Fn(T) -> &'static str> Shape for OneOf<T, F> {
    type Value = T;

    fn expected(&self) -> String {
        format!(
            "one of {}",
            quoted(self.values.iter().map(|value| (self.name)(*value)))
        )
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        let Json::String(text) = json else {
            return wrong_kind(self, &json, place);
        };
        self.find(&text)
            .or_else(|| place.refuse(format!("Must be {}.", self.expected())))
    }
}

/// An RFC 3339 date-time with `Z` or an offset (D21).
pub const fn date_time() -> DateTimeShape {
    DateTimeShape
}

/// See [`date_time`].
pub struct DateTimeShape;

impl Shape for DateTimeShape {
    type Value = DateTime<Utc>;

    fn expected(&self) -> String {
        timestamps::EXPECTED.to_owned()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<Self::Value> {
        let Json::String(text) = json else {
            return wrong_kind(self, &json, place);
        };
        timestamps::parse(&text).or_else(|| place.refuse(format!("Must be {}.", self.expected())))
    }
}
