//! Arrays of one shape.

use std::ops::RangeInclusive;

use super::bounds::counted;
use super::place::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::Json;

/// An array whose elements all have this shape.
pub const fn list<S: Shape>(element: S) -> List<S> {
    List {
        element,
        count: 0..=usize::MAX,
    }
}

/// See [`list`].
pub struct List<S> {
    element: S,
    count: RangeInclusive<usize>,
}

impl<S: Shape> List<S> {
    /// Fewer elements are refused, at the array's own path.
    #[must_use]
    pub fn at_least(self, least: usize) -> Self {
        Self {
            count: least..=*self.count.end(),
            ..self
        }
    }

    /// More elements are refused, at the array's own path and without looking at them (D124).
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        Self {
            count: *self.count.start()..=most,
            ..self
        }
    }

    pub(super) const fn element(&self) -> &S {
        &self.element
    }

    pub(super) const fn count(&self) -> &RangeInclusive<usize> {
        &self.count
    }

    fn bounds(&self) -> Option<String> {
        counted(&self.count, "element")
    }
}

impl<S: Shape> Shape for List<S> {
    type Value = Vec<S::Value>;

    fn expected(&self) -> String {
        self.bounds()
            .map_or_else(|| "an array".to_owned(), |bounds| format!("an array of {bounds}"))
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
        let mut values = Some(Vec::with_capacity(count));
        for (index, json) in elements.into_iter().enumerate() {
            let value = self.read_element(json, &mut place.element(index));
            values = values.zip(value).map(|(mut values, value)| {
                values.push(value);
                values
            });
        }
        values
    }
}

impl<S: Shape> List<S> {
    fn read_element(&self, json: Json, place: &mut Place<'_>) -> Option<S::Value> {
        if json == Json::Null {
            return place.refuse(format!("Must not be null: send {}.", self.element.expected()));
        }
        self.element.read(json, place)
    }
}
