//! Schemas as lists of fields: what lies deeper stands under its whole name, such as `price.amount` or `items[].id`.

use web::schema::Node;

use super::document::{Tree, example, is_true, list, members, plain, text};
use crate::markdown;

/// Schemas that hold one another end somewhere.
const DEEPEST: usize = 6;

/// A field of a body, a parameter or a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Such as `string (uuid) or null`.
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) deprecated: bool,
    /// As HTML.
    pub(crate) about: String,
    /// What values may be, as HTML.
    pub(crate) rules: Vec<String>,
}

/// A parameter or header.
pub(super) fn parameter(tree: Tree<'_>, name: &str, node: &Node) -> Field {
    let schema = node.get("schema").unwrap_or(&Node::Null);
    let mut field = field(tree, name, schema, is_true(node, "required"));
    field.about = markdown::fragment(&said([text(node, "description"), &about(tree, schema)]));
    field.deprecated |= is_true(node, "deprecated");
    if let Some(value) = node.get("example") {
        field.rules.push(format!("Example: {}", code(&plain(value))));
    }
    field
}

/// All fields of a body with this schema.
pub(super) fn fields(tree: Tree<'_>, schema: &Node) -> Vec<Field> {
    let mut found = Vec::new();
    descend(tree, schema, "", 0, &mut found);
    found
}

fn descend(tree: Tree<'_>, schema: &Node, prefix: &str, depth: usize, found: &mut Vec<Field>) {
    let (schema, _) = present(tree, schema);
    if depth > DEEPEST {
        return;
    }
    if let Some(items) = schema.get("items") {
        descend(
            tree,
            items,
            &format!("{prefix}[]"),
            depth.saturating_add(1),
            found,
        );
        return;
    }
    let required = list(schema, "required");
    for (name, member) in schema.get("properties").into_iter().flat_map(members) {
        let whole = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        };
        let needed = required.iter().any(|one| *one == Node::from(name));
        found.push(field(tree, &whole, member, needed));
        descend(tree, member, &whole, depth.saturating_add(1), found);
    }
}

/// The schema of the values that are there, and whether `null` is one beside them.
fn present<'a>(tree: Tree<'a>, schema: &'a Node) -> (&'a Node, bool) {
    let choices = list(schema, "anyOf");
    let is_null = |choice: &&Node| choice.get("type") == Some(&"null".into());
    match choices.iter().find(|choice| !is_null(choice)) {
        Some(choice) => (
            tree.resolve(choice),
            choices.iter().any(|choice| is_null(&choice)),
        ),
        None => (tree.resolve(schema), false),
    }
}

fn field(tree: Tree<'_>, name: &str, node: &Node, required: bool) -> Field {
    let (schema, nullable) = present(tree, node);
    let null = if nullable { " or null" } else { "" };
    Field {
        name: name.to_owned(),
        kind: format!("{}{null}", kind(tree, schema)),
        required,
        deprecated: is_true(node, "deprecated") || is_true(schema, "deprecated"),
        about: markdown::fragment(&about(tree, node)),
        rules: rules(tree, schema),
    }
}

/// What the document says of a value: where it stands, of its schema, and of its elements.
fn about(tree: Tree<'_>, node: &Node) -> String {
    let (schema, _) = present(tree, node);
    let of_elements = schema.get("items").map(|items| {
        let shared = present(tree, items).0;
        let of_each = said([text(items, "description"), text(shared, "description")]);
        let has_fields = shared.get("properties").is_some();
        if of_each.is_empty() || has_fields {
            of_each
        } else {
            format!("Each element: {of_each}")
        }
    });
    said([
        text(node, "description"),
        text(schema, "description"),
        of_elements.as_deref().unwrap_or_default(),
    ])
}

/// Paragraphs of what there is to say, each once.
fn said<const COUNT: usize>(parts: [&str; COUNT]) -> String {
    let mut paragraphs: Vec<&str> = Vec::new();
    for part in parts {
        if !part.is_empty() && !paragraphs.contains(&part) {
            paragraphs.push(part);
        }
    }
    paragraphs.join("\n\n")
}

fn kind(tree: Tree<'_>, schema: &Node) -> String {
    let of = |name: &Node| match (plain(name).as_str(), schema.get("items")) {
        ("array", Some(items)) => format!("array of {}", kind(tree, present(tree, items).0)),
        (name, _) => name.to_owned(),
    };
    let kinds = match schema.get("type") {
        Some(Node::List(kinds)) => kinds.iter().map(of).collect::<Vec<_>>().join(" or "),
        Some(kind) => of(kind),
        None => "any".to_owned(),
    };
    match text(schema, "format") {
        "" | "int32" | "int64" => kinds,
        format => kinds.replacen("string", &format!("string ({format})"), 1),
    }
}

/// What values may be.
fn rules(tree: Tree<'_>, schema: &Node) -> Vec<String> {
    let mut rules = Vec::new();
    let values = list(schema, "enum");
    let values: Vec<_> = values.iter().map(|value| code(&plain(value))).collect();
    match values.as_slice() {
        [] => {}
        [only] => rules.push(format!("Always {only}")),
        _ => rules.push(format!("One of {}", values.join(", "))),
    }
    if let Some(only) = schema.get("const") {
        rules.push(format!("Always {}", code(&plain(only))));
    }
    if is_true(schema, "x-extensible") {
        rules.push("Values may be added".to_owned());
    }
    rules.extend(range(schema, "minimum", "maximum", ""));
    rules.extend(range(schema, "minLength", "maxLength", " characters"));
    rules.extend(range(schema, "minItems", "maxItems", " elements"));
    rules.extend(range(schema, "minProperties", "maxProperties", " fields"));
    if is_true(schema, "uniqueItems") {
        rules.push("Each once".to_owned());
    }
    if let Some(value) = schema.get("default") {
        rules.push(format!("By default {}", code(&plain(value))));
    }
    if !text(schema, "pattern").is_empty() {
        rules.push(format!("Pattern {}", code(text(schema, "pattern"))));
    }
    if let Some(items) = schema.get("items") {
        let items = present(tree, items).0;
        if items.get("properties").is_none() {
            let each = self::rules(tree, items);
            rules.extend(each.into_iter().map(|rule| format!("Each element: {rule}")));
        }
    }
    if let Some(value) = example(schema) {
        rules.push(format!("Example: {}", code(&plain(value))));
    }
    rules
}

fn range(schema: &Node, least: &str, most: &str, what: &str) -> Option<String> {
    match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) if least == most => Some(format!("Exactly {least}{what}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}{what}")),
        (Some(least), None) => Some(format!("At least {least}{what}")),
        (None, Some(most)) => Some(format!("At most {most}{what}")),
        (None, None) => None,
    }
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", markdown::escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r##"{"components": {"schemas": {
        "Money": {"type": "object", "required": ["amount"], "properties": {
            "amount": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 9},
            "currency": {"type": "string", "enum": ["PLN"]}}},
        "Order": {"type": "object", "properties": {
            "price": {"anyOf": [{"$ref": "#/components/schemas/Money"}, {"type": "null"}], "description": "What `it` costs."},
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/Money"}, "minItems": 1},
            "tags": {"type": ["array", "null"], "items": {"type": "string", "format": "uuid", "maxLength": 3}}}},
        "Event": {"type": "string", "enum": ["a", "b"], "x-extensible": true, "description": "Further ones may be added."},
        "Hook": {"type": "object", "properties": {
            "event": {"anyOf": [{"$ref": "#/components/schemas/Event"}], "description": "The first."},
            "events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}, "description": "All of them."},
            "kind": {"const": "hook", "type": "string"}}}}}}"##;

    #[test]
    fn what_may_grow_is_told_with_everything_that_is_said_of_it() {
        let document = Node::parse(DOCUMENT);
        let tree = Tree::new(&document);
        let hook = Node::parse(r##"{"$ref": "#/components/schemas/Hook"}"##);
        let told: Vec<_> = fields(tree, &hook)
            .into_iter()
            .map(|field| (field.about, field.rules.join("; ")))
            .collect();
        let values = "One of <code>a</code>, <code>b</code>";
        assert_eq!(
            told,
            [
                (
                    "<p>The first.</p>\n<p>Further ones may be added.</p>\n".to_owned(),
                    format!("{values}; Values may be added")
                ),
                (
                    "<p>All of them.</p>\n<p>Each element: Further ones may be added.</p>\n".to_owned(),
                    format!("Each element: {values}; Each element: Values may be added")
                ),
                (String::new(), "Always <code>hook</code>".to_owned()),
            ]
        );
        let parameter_said =
            Node::parse(r##"{"description": "Which.", "schema": {"$ref": "#/components/schemas/Event"}}"##);
        assert_eq!(
            parameter(tree, "event", &parameter_said).about,
            "<p>Which.</p>\n<p>Further ones may be added.</p>\n"
        );
    }

    #[test]
    fn fields_have_their_whole_names_kinds_and_rules() {
        let document = Node::parse(DOCUMENT);
        let tree = Tree::new(&document);
        let order = Node::parse(r##"{"$ref": "#/components/schemas/Order"}"##);
        let told: Vec<_> = fields(tree, &order)
            .into_iter()
            .map(|field| {
                format!(
                    "{} {} {} {}",
                    field.name,
                    field.kind,
                    field.required,
                    field.rules.join("; ")
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "price object or null false ",
                "price.amount integer true 0 to 9",
                "price.currency string false Always <code>PLN</code>",
                "items array of object false At least 1 elements",
                "items[].amount integer true 0 to 9",
                "items[].currency string false Always <code>PLN</code>",
                "tags array of string (uuid) or null false Each element: At most 3 characters",
            ]
        );
        assert_eq!(
            fields(tree, &order).remove(0).about,
            "<p>What <code>it</code> costs.</p>\n"
        );
    }
}
