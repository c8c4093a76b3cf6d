//! What a value must look like, and the ways to make one shape of another.

use std::fmt::Display;

use super::place::Place;
use crate::json::Json;

/// What a JSON value must look like, and what it becomes.
///
/// `null` never reaches a shape as a field's value: [`required`](super::required) and
/// [`optional`](super::optional) refuse it, [`nullable`](super::nullable) makes it nothing, and to
/// [`resettable`](super::resettable) it is a value of its own.
pub trait Shape {
    /// What a good value becomes.
    type Value;

    /// A noun phrase that fits "send …" and "must be …": "an integer from 0 to 10".
    fn expected(&self) -> String;

    /// Reads a value; where it is wrong, every violation is recorded at its place and nothing returned.
    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<Self::Value>;

    /// The shape whose values are those of this one, changed by `change`.
    fn map<T, F: Fn(Self::Value) -> T>(self, change: F) -> Mapped<Self, F>
    where
        Self: Sized,
    {
        Mapped { shape: self, change }
    }

    /// The shape whose values also pass `check`. The error is the message, a sentence: "Must be a UUID.".
    fn checked<T, E: Display, F: Fn(Self::Value) -> Result<T, E>>(self, check: F) -> Checked<Self, F>
    where
        Self: Sized,
    {
        Checked { shape: self, check }
    }

    /// The shape whose values also pass `check`, which may refuse them at places inside:
    /// `place.field("items").element(3).refuse("…")`. It returns nothing exactly when it has refused.
    fn refined<T, F: Fn(Self::Value, &mut Place<'_>) -> Option<T>>(self, check: F) -> Refined<Self, F>
    where
        Self: Sized,
    {
        Refined { shape: self, check }
    }
}

/// See [`Shape::map`].
pub struct Mapped<S, F> {
    shape: S,
    change: F,
}

impl<S, F> Mapped<S, F> {
    pub(super) const fn inner(&self) -> &S {
        &self.shape
    }
}

impl<S: Shape, T, F: Fn(S::Value) -> T> Shape for Mapped<S, F> {
    type Value = T;

    fn expected(&self) -> String {
        self.shape.expected()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        self.shape.read(json, place).map(&self.change)
    }
}

/// See [`Shape::checked`].
pub struct Checked<S, F> {
    shape: S,
    check: F,
}

impl<S, F> Checked<S, F> {
    pub(super) const fn inner(&self) -> &S {
        &self.shape
    }
}

impl<S: Shape, T, E: Display, F: Fn(S::Value) -> Result<T, E>> Shape for Checked<S, F> {
    type Value = T;

    fn expected(&self) -> String {
        self.shape.expected()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        let value = self.shape.read(json, place)?;
        (self.check)(value).map_or_else(|error| place.refuse(error.to_string()), Some)
    }
}

/// See [`Shape::refined`].
pub struct Refined<S, F> {
    shape: S,
    check: F,
}

impl<S, F> Refined<S, F> {
    pub(super) const fn inner(&self) -> &S {
        &self.shape
    }
}

impl<S: Shape, T, F: Fn(S::Value, &mut Place<'_>) -> Option<T>> Shape for Refined<S, F> {
    type Value = T;

    fn expected(&self) -> String {
        self.shape.expected()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<T> {
        let value = self.shape.read(json, place)?;
        (self.check)(value, place)
    }
}

/// Refuses a value of the wrong kind.
pub(super) fn wrong_kind<T>(shape: &impl Shape, json: &Json, place: &mut Place<'_>) -> Option<T> {
    place.refuse(format!("Must be {}, not {}.", shape.expected(), json.kind()))
}
