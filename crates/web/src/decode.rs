//! Decodes a JSON object by the contract's fields, and collects all violations.
//!
//! A handler declares the fields once. The result is a typed value, or all violations with their paths, in the order of the fields, unknown
//! ones last (D11, D14, D112).
//!
//! ```
//! use web::decode::{body, boolean, integer, list, object, one_of, text};
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
//!     name as "label": required(text().length(4..=64)),
//!     size: optional(one_of(&Size::ALL, |size| size.as_str())),
//!     weights: required(list(integer(1..=30_000_u32)).at_least(1).at_most(10)),
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
mod place;
mod shape;
#[cfg(test)]
mod tests;

pub use crate::object;
pub use object::{Fields, ObjectShape};
pub use place::Place;
pub use shape::{
    Boolean, DateTimeShape, Integer, IntegerTarget, List, OneOf, Shape, Text, boolean, date_time, integer,
    list, one_of, parsed, text,
};

use crate::json::{Json, Object};
use crate::violations::Violations;

/// Decodes a body that must be a JSON object of this shape. Invalid strict JSON, or a value that is no object, is one violation without a
/// path.
pub fn body<S: Shape>(bytes: &[u8], shape: &S) -> Result<S::Value, Violations> {
    let object = Object::parse(bytes)?;
    let mut violations = Violations::new();
    let value = shape.read(Json::Object(object), &mut Place::root(&mut violations));
    match value {
        Some(value) => violations.or(value),
        None => Err(violations),
    }
}
