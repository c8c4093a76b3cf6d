//! JSON Schema (2020-12) and the other parts of an OpenAPI document, as trees that keep their order.
//!
//! A schema that has a name is built in its place, wherever that is; [`Components`] collects the named ones and leaves
//! references.
//!
//! ```
//! use web::schema::{Components, Node, integer, object, string};
//!
//! let money = object(&[("amount", integer(0, 10)), ("currency", string().one_of(["PLN"]).named("Currency"))]);
//! let offer = object(&[("price", money.named("Money").or_null())]).named("Offer");
//!
//! let mut components = Components::default();
//! assert_eq!(components.hoist(offer).to_string(), r##"{"$ref":"#/components/schemas/Offer"}"##);
//! let names: Vec<_> = components.schemas().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["Currency", "Money", "Offer"]);
//! ```

mod components;
mod deprecated;
mod kinds;
mod node;

pub use components::Components;
pub use kinds::{array, boolean, date_time, integer, object, open_object, partial_object, string, uri, uuid};
pub use node::{Map, Node};
