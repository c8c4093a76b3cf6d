//! A JSON value that keeps the order of its members, and may be a schema with a name.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::deprecation::Deprecation;

/// The members of an object, in their order.
pub type Map = IndexMap<String, Node>;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; the documents have no others.
    Integer(i64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object.
    Object(Map),
    /// A schema that stands among the components under its name, and what stands beside the reference to it.
    #[serde(skip)]
    Named {
        /// What it is called.
        name: String,
        /// The schema.
        schema: Box<Node>,
        /// What else is said in this place, such as a description.
        beside: Map,
    },
    /// A schema of what goes away.
    #[serde(skip)]
    Deprecated {
        /// The schema.
        schema: Box<Node>,
        /// Since when, and until when.
        notice: &'static Deprecation,
    },
}

impl Node {
    /// An object with these members.
    pub fn of<const N: usize>(members: [(&str, Self); N]) -> Self {
        members.into_iter().collect()
    }

    /// Reads JSON text; what is no JSON is `null`.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or(Self::Null)
    }

    /// The same with one more member. Beside the reference, where it has a name.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Self>) -> Self {
        match &mut self {
            Self::Object(members) | Self::Named { beside: members, .. } => {
                members.insert(key.to_owned(), value.into());
            }
            Self::Deprecated { schema, notice } => {
                let schema = std::mem::replace(schema.as_mut(), Self::Null);
                return schema.with(key, value).deprecated(notice);
            }
            _ => {}
        }
        self
    }

    /// The same with a description.
    #[must_use]
    pub fn said(self, description: &str) -> Self {
        self.with("description", description)
    }

    /// The same with an example.
    #[must_use]
    pub fn such_as(self, example: impl Into<Self>) -> Self {
        self.with("examples", Self::List(vec![example.into()]))
    }

    /// The same under a name, by which the document refers to it.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self::Named {
            name: name.into(),
            schema: Box::new(self),
            beside: Map::new(),
        }
    }

    /// A string of which these are all the values.
    #[must_use]
    pub fn one_of<T: Into<String>>(self, values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter().map(|value| Self::Text(value.into()));
        self.with("enum", Self::List(values.collect()))
    }

    /// The same, marked as an enumeration that grows, as its description says (contract: Versioning, 2). Tools that compare
    /// documents go by the mark.
    #[must_use]
    pub fn extensible(self) -> Self {
        self.with("x-extensible", true)
    }

    /// The schema whose values are also `null`: by the array of types, or, where the type has a name, beside it.
    #[must_use]
    pub fn or_null(self) -> Self {
        match self {
            Self::Object(mut members) => {
                if let Some(kind) = members.get_mut("type") {
                    *kind = Self::List(vec![kind.clone(), "null".into()]);
                }
                Self::Object(members)
            }
            Self::Deprecated { schema, notice } => schema.or_null().deprecated(notice),
            named => {
                let null = Self::of([("type", "null".into())]);
                Self::of([("anyOf", Self::List(vec![named, null]))])
            }
        }
    }

    /// The member of this name.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(key),
            Self::Deprecated { schema, .. } => schema.get(key),
            _ => None,
        }
    }
}

impl fmt::Display for Node {
    /// As JSON on one line; `{:#}` in many.
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
        Self::Object(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Node {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Vec<Node>> for Node {
    fn from(elements: Vec<Node>) -> Self {
        Self::List(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{integer, object, string};

    #[test]
    fn text_is_read_and_written_in_its_order() {
        for text in ["null", "[]", r#"{"z":1,"a":[true,null,"x",-7],"m":{}}"#] {
            assert_eq!(Node::parse(text).to_string(), text);
        }
        assert_eq!(Node::parse("{"), Node::Null);
    }

    #[test]
    fn null_is_one_of_the_types_or_beside_a_named_one() {
        assert_eq!(string().or_null().to_string(), r#"{"type":["string","null"]}"#);
        let money = object(&[("amount", integer(0, 5))]).named("Money").or_null();
        assert!(matches!(money.get("anyOf"), Some(Node::List(both)) if both.len() == 2));
    }

    #[test]
    fn what_is_said_of_a_named_schema_stands_beside_its_reference() {
        let said = string().named("Name").said("The seller's.");
        assert!(matches!(said, Node::Named { beside, .. } if beside.contains_key("description")));
    }
}
