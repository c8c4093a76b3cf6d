//! JSON Schema (2020-12) and the other parts of an OpenAPI document, as trees that keep the order of members.
//!
//! A named schema is built where it is used; [`Components`] collects the named schemas and replaces them by
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

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The members of an object, in order.
pub type Map = IndexMap<String, Node>;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, derive_more::From)]
#[serde(untagged)]
pub enum Node {
    Null,
    #[from]
    Bool(bool),
    /// A number; the documents have no others.
    #[from]
    Integer(i64),
    #[from]
    Text(String),
    #[from]
    List(Vec<Node>),
    Object(Map),
    /// A schema that the document lists under `components`, and the keywords beside the reference to it.
    #[serde(skip)]
    Named {
        name: String,
        schema: Box<Node>,
        /// Keywords of this place only, such as a description.
        beside: Map,
    },
}

impl Node {
    /// An object with these members.
    pub fn of<const N: usize>(members: [(&str, Self); N]) -> Self {
        members.into_iter().collect()
    }

    /// Parses JSON text; invalid JSON gives `null`.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or(Self::Null)
    }

    /// The same with one more member; if it is named, beside the reference.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Self>) -> Self {
        match &mut self {
            Self::Object(members) | Self::Named { beside: members, .. } => {
                members.insert(key.to_owned(), value.into());
            }
            _ => {}
        }
        self
    }

    /// The same with a description.
    #[must_use]
    pub fn describe(self, description: &str) -> Self {
        self.with("description", description)
    }

    /// The same with an example.
    #[must_use]
    pub fn example(self, example: impl Into<Self>) -> Self {
        self.with("examples", Self::List(vec![example.into()]))
    }

    /// The same as a named schema, which the document refers to by its name; one with a name gets another one.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        let (schema, beside) = match self {
            Self::Named { schema, beside, .. } => (schema, beside),
            unnamed => (Box::new(unnamed), Map::new()),
        };
        Self::Named {
            name: name.into(),
            schema,
            beside,
        }
    }

    /// A string with exactly these values.
    #[must_use]
    pub fn one_of<T: Into<String>>(self, values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter().map(|value| Self::Text(value.into()));
        self.with("enum", Self::List(values.collect()))
    }

    /// The same, marked as an enumeration that may grow, as its description says (contract: Versioning, 2).
    /// Tools that compare documents read the mark.
    #[must_use]
    pub fn extensible(self) -> Self {
        self.with("x-extensible", true)
    }

    /// The same schema that also accepts `null`, in the array of types. A named schema accepts it wherever it
    /// is used; `title` keeps its name in clients whose generators would number the types of the array.
    #[must_use]
    pub fn or_null(self) -> Self {
        match self {
            Self::Object(mut members) => {
                if let Some(kind) = members.get_mut("type") {
                    *kind = Self::List(vec![kind.clone(), "null".into()]);
                }
                if let Some(Self::List(values)) = members.get_mut("enum") {
                    values.push(Self::Null);
                }
                Self::Object(members)
            }
            Self::Named { name, schema, beside } => Self::Named {
                schema: Box::new(schema.or_null().with("title", name.as_str())),
                name,
                beside,
            },
            other => other,
        }
    }
}

impl fmt::Display for Node {
    /// JSON on one line; `{:#}` is indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if f.alternate() {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string(self)
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl<K: Into<String>> FromIterator<(K, Node)> for Node {
    fn from_iter<I: IntoIterator<Item = (K, Node)>>(members: I) -> Self {
        let members = members.into_iter();
        Self::Object(members.map(|(key, value)| (key.into(), value)).collect())
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

pub fn string() -> Node {
    Node::of([("type", "string".into())])
}

pub fn uuid() -> Node {
    string().with("format", "uuid")
}

/// An absolute URI.
pub fn uri() -> Node {
    string().with("format", "uri")
}

/// An instant: RFC 3339, in responses always UTC with `Z` and microseconds.
pub fn date_time() -> Node {
    string()
        .with("format", "date-time")
        .example("2026-11-20T08:41:00.123456Z")
}

/// An integer in this range, both ends included.
pub fn integer(least: i64, most: i64) -> Node {
    let format = i32::try_from(most).map_or("int64", |_| "int32");
    Node::of([
        ("type", "integer".into()),
        ("format", format.into()),
        ("minimum", least.into()),
        ("maximum", most.into()),
    ])
}

pub fn boolean() -> Node {
    Node::of([("type", "boolean".into())])
}

/// An array whose elements have this schema.
pub fn array(element: Node) -> Node {
    Node::of([("type", "array".into()), ("items", element)])
}

/// A response object: all of these members; later versions may add others.
pub fn object(members: &[(&str, Node)]) -> Node {
    let required: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    open_object(members.iter().cloned(), &required)
}

/// An object that may have additional members.
pub fn open_object<'a>(members: impl IntoIterator<Item = (&'a str, Node)>, required: &[&str]) -> Node {
    let mut object = Node::of([("type", "object".into())]);
    if !required.is_empty() {
        let names = required.iter().map(|name| Node::from(*name));
        object = object.with("required", names.collect::<Vec<_>>());
    }
    object.with("properties", members.into_iter().collect::<Node>())
}

/// Collects named schemas. A name identifies one schema.
#[derive(Debug, Default)]
pub struct Components {
    schemas: BTreeMap<String, Node>,
}

impl Components {
    /// The node with every named schema in it replaced by a reference.
    pub fn hoist(&mut self, node: Node) -> Node {
        match node {
            Node::List(list) => Node::List(list.into_iter().map(|element| self.hoist(element)).collect()),
            Node::Object(members) => Node::Object(self.hoist_members(members)),
            Node::Named { name, schema, beside } => {
                let schema = self.hoist(*schema);
                let reference = format!("#/components/schemas/{name}");
                match self.schemas.get(&name) {
                    Some(known) => debug_assert!(*known == schema, "two schemas have the name {name}"),
                    None => drop(self.schemas.insert(name, schema)),
                }
                let mut members = Map::from([("$ref".to_owned(), reference.into())]);
                members.extend(self.hoist_members(beside));
                Node::Object(members)
            }
            leaf => leaf,
        }
    }

    fn hoist_members(&mut self, members: Map) -> Map {
        let members = members.into_iter();
        members.map(|(key, value)| (key, self.hoist(value))).collect()
    }

    /// The schemas by name, in alphabetical order.
    pub fn schemas(self) -> Vec<(String, Node)> {
        self.schemas.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "two schemas have the name X")]
    fn two_schemas_with_one_name_clash() {
        let mut components = Components::default();
        components.hoist(vec![string().named("X"), object(&[]).named("X")].into());
    }
}
