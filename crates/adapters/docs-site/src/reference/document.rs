//! Walking through an OpenAPI document.

use web::schema::Node;

/// The document, in which references are followed.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a>(&'a Node);

impl<'a> Tree<'a> {
    pub(super) fn new(document: &'a Node) -> Self {
        Self(document)
    }

    /// What stands in this place: itself, or what it refers to.
    pub(super) fn resolve(self, node: &'a Node) -> &'a Node {
        let Some(Node::Text(reference)) = node.get("$ref") else {
            return node;
        };
        let mut names = reference.trim_start_matches("#/").split('/');
        let found = names.try_fold(self.0, |place, name| place.get(name));
        found.unwrap_or(&Node::Null)
    }

    /// The members of a part of the document.
    pub(super) fn members(self, name: &str) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        self.0.get(name).into_iter().flat_map(members)
    }

    /// The elements of a part of the document.
    pub(super) fn list(self, name: &str) -> &'a [Node] {
        list(self.0, name)
    }
}

/// The members of an object.
pub(super) fn members(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let members = match node {
        Node::Object(members) => Some(members),
        _ => None,
    };
    let members = members.into_iter().flatten();
    members.map(|(name, member)| (name.as_str(), member))
}

/// The elements of a member that is an array; none where it is not.
pub(super) fn list<'a>(node: &'a Node, name: &str) -> &'a [Node] {
    match node.get(name) {
        Some(Node::List(elements)) => elements,
        _ => &[],
    }
}

/// A member that is text; empty where it is not.
pub(super) fn text<'a>(node: &'a Node, name: &str) -> &'a str {
    match node.get(name) {
        Some(Node::Text(text)) => text,
        _ => "",
    }
}

/// Whether a member is `true`.
pub(super) fn is_true(node: &Node, name: &str) -> bool {
    node.get(name) == Some(&Node::Bool(true))
}

/// The first example of a parameter or schema.
pub(super) fn example(node: &Node) -> Option<&Node> {
    node.get("example").or_else(|| list(node, "examples").first())
}

/// A value as people write it: text without quotes.
pub(super) fn plain(node: &Node) -> String {
    match node {
        Node::Text(text) => text.clone(),
        other => other.to_string(),
    }
}
