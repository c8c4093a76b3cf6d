//! Decodes a JSON object by the contract's fields, and collects all violations.
//!
//! A handler declares the fields once. The result is a typed value, or all violations with their paths, in
//! the order of the fields, unknown ones last (D11, D14, D112).
//!
//! ```
//! use web::decode::{body, boolean, integer, list, object, one_of, text, text_of};
//!
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! enum Size { Small, Large }
//! impl Size {
//!     const ALL: [Self; 2] = [Self::Small, Self::Large];
//!     fn as_str(self) -> &'static str {
//!         match self { Self::Small => "small", Self::Large => "large" }
//!     }
//! }
//!
//! #[derive(Debug, PartialEq)]
//! struct Parcel { name: String, size: Option<Size>, weights: Vec<u32>, note: Option<String>, is_gift: bool }
//!
//! let parcel = object!(Parcel {
//!     name as "label": required(text_of(4..=64)),
//!     size: optional(one_of(&Size::ALL, |size| size.as_str())),
//!     weights: required(list(integer(1..=30_000_u32), 1..=10)),
//!     note: nullable(text()),
//!     is_gift: optional(boolean()).unwrap_or_default(),
//! });
//!
//! let good = body(br#"{"label": "fragile", "weights": [200, 17], "note": null}"#, &parcel);
//! let expected = Parcel { name: "fragile".into(), size: None, weights: vec![200, 17], note: None, is_gift: false };
//! assert_eq!(good.unwrap(), expected);
//!
//! let bad = body(br#"{"colour": "red", "size": "huge", "weights": [200, 1.5, 0]}"#, &parcel);
//! let entries = bad.unwrap_err().into_entries();
//! let paths: Vec<_> = entries.iter().map(|entry| entry.path().unwrap()).collect();
//! assert_eq!(paths, ["label", "size", "weights[1]", "weights[2]", "colour"]);
//! assert_eq!(entries[1].message(), "Must be one of `small`, `large`.");
//! ```

mod object;
mod shape;
#[cfg(test)]
mod tests;

use std::fmt;

pub use crate::object;
pub use object::{Fields, ObjectShape};
pub use shape::{Shape, boolean, date_time, integer, list, one_of, parsed, text, text_of};

use crate::json::{Json, Object};
use crate::problem::Entry;
use crate::violations::{Message, Violations};

/// Decodes a body that must be a JSON object of this shape. Invalid strict JSON, or a value that is no
/// object, is one violation without a path.
pub fn body<S: Shape>(bytes: &[u8], shape: &S) -> Result<S::Value, Violations> {
    let object = Object::parse(bytes)?;
    let mut violations = Violations::default();
    let value = shape.read(Json::Object(object), &mut Place::root(&mut violations));
    match value {
        Some(value) => violations.or(value),
        None => Err(violations),
    }
}

/// A place in a body. It knows its path, formatted only for a violation, and the list of violations.
pub struct Place<'a> {
    /// None: the body as a whole.
    path: Option<Path<'a>>,
    violations: &'a mut Violations,
}

struct Path<'a> {
    outer: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The body as a whole.
    pub fn root(violations: &'a mut Violations) -> Self {
        Self {
            path: None,
            violations,
        }
    }

    /// The field with this name, in the object at this place.
    pub fn field<'b>(&'b mut self, name: &'b str) -> Place<'b> {
        self.inner(Segment::Name(name))
    }

    /// The element at this index, in the array at this place.
    pub fn element(&mut self, index: usize) -> Place<'_> {
        self.inner(Segment::Index(index))
    }

    /// Records a violation at this place. Returns `None`, so that a reader can end with it.
    pub fn refuse<T>(&mut self, message: impl Into<Message>) -> Option<T> {
        self.violations.push(entry(self.path.as_ref(), message));
        None
    }

    /// Records an unknown field at this place; reported after all other violations.
    pub(super) fn refuse_unknown(&mut self, message: impl FnOnce() -> String) {
        let path = self.path.as_ref();
        self.violations.push_unknown(|| entry(path, message()));
    }

    fn inner<'b>(&'b mut self, segment: Segment<'b>) -> Place<'b> {
        Place {
            path: Some(Path {
                outer: self.path.as_ref(),
                segment,
            }),
            violations: self.violations,
        }
    }
}

fn entry(path: Option<&Path<'_>>, message: impl Into<Message>) -> Entry {
    let entry = Entry::whole(message);
    match path {
        Some(path) => entry.at(path.to_string()),
        None => entry,
    }
}

impl fmt::Display for Path<'_> {
    /// `price.amount`, `item_ids[2]` (D14).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outer) = self.outer {
            outer.fmt(f)?;
        }
        match self.segment {
            Segment::Name(name) if self.outer.is_some() => write!(f, ".{name}"),
            Segment::Name(name) => f.write_str(name),
            Segment::Index(index) => write!(f, "[{index}]"),
        }
    }
}
