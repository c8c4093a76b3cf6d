//! The kinds of values that the document speaks of.

use super::node::Node;

/// A string.
pub fn string() -> Node {
    Node::of([("type", "string".into())])
}

/// An id.
pub fn uuid() -> Node {
    string().with("format", "uuid")
}

/// An absolute URI.
pub fn uri() -> Node {
    string().with("format", "uri")
}

/// An instant: RFC 3339, in answers always UTC with `Z` and microseconds.
pub fn date_time() -> Node {
    string()
        .with("format", "date-time")
        .such_as("2026-11-20T08:41:00.123456Z")
}

/// An integer of this range, both ends included.
pub fn integer(least: i64, most: i64) -> Node {
    let format = if i32::try_from(most).is_ok() {
        "int32"
    } else {
        "int64"
    };
    Node::of([
        ("type", "integer".into()),
        ("format", format.into()),
        ("minimum", least.into()),
        ("maximum", most.into()),
    ])
}

/// `true` or `false`.
pub fn boolean() -> Node {
    Node::of([("type", "boolean".into())])
}

/// An array whose elements are all of this kind.
pub fn array(element: Node) -> Node {
    Node::of([("type", "array".into()), ("items", element)])
}

/// An object of an answer: all of these members, and perhaps more in a later version.
pub fn object(members: &[(&str, Node)]) -> Node {
    let required: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    partial_object(members, &required)
}

/// An object of an answer: `required` of these members at least, and perhaps more in a later version.
pub fn partial_object(members: &[(&str, Node)], required: &[&str]) -> Node {
    open_object(
        members.iter().map(|(name, schema)| (*name, schema.clone())),
        required,
    )
}

/// An object that may have other members than these.
pub fn open_object<'a>(members: impl IntoIterator<Item = (&'a str, Node)>, required: &[&str]) -> Node {
    let object = Node::of([("type", "object".into())]);
    let object = if required.is_empty() {
        object
    } else {
        let names = required.iter().map(|name| Node::from(*name));
        object.with("required", names.collect::<Vec<_>>())
    };
    object.with("properties", members.into_iter().collect::<Node>())
}
