//! Arrays of one shape.

use super::place::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::Json;

/// An array whose elements all have this shape.
pub const fn list<S: Shape>(element: S) -> List<S> {
    List {
        element,
        least: 0,
        most: usize::MAX,
    }
}

/// See [`list`].
pub struct List<S> {
    element: S,
    least: usize,
    most: usize,
}

impl<S: Shape> List<S> {
    /// Fewer elements are refused, at the array's own path.
    #[must_use]
    pub fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// More elements are refused, at the array's own path and without looking at them (D124).
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    fn bounds(&self) -> String {
        match (self.least, self.most) {
            (0, usize::MAX) => String::new(),
            (0, most) => format!("at most {most}"),
            (least, usize::MAX) => format!("at least {least}"),
            (least, most) => format!("{least} to {most}"),
        }
    }
}

impl<S: Shape> Shape for List<S> {
    type Value = Vec<S::Value>;

    fn expected(&self) -> String {
        match self.bounds() {
            bounds if bounds.is_empty() => "an array".to_owned(),
            bounds => format!("an array of {bounds} elements"),
        }
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<Self::Value> {
        let Json::Array(elements) = json else {
            return wrong_kind(self, &json, place);
        };
        let count = elements.len();
        if count < self.least || count > self.most {
            return place.refuse(format!("Must have {} elements; this has {count}.", self.bounds()));
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
