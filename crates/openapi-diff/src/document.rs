//! An OpenAPI document, as far as rules need it.

use std::collections::BTreeMap;

use serde_json::Value;

/// A document.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a>(pub(crate) &'a Value);

/// An operation or a webhook.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    /// The path item's, which has parameters of its own.
    item: &'a Value,
    pub(crate) json: &'a Value,
}

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

impl<'a> Document<'a> {
    /// What a node is, or what it refers to.
    pub(crate) fn resolved(self, node: &'a Value) -> &'a Value {
        let target = |reference: &str| self.0.pointer(reference.strip_prefix('#')?);
        node["$ref"].as_str().and_then(target).unwrap_or(node)
    }

    /// The name of the schema that a node refers to.
    pub(crate) fn schema_name(node: &'a Value) -> Option<&'a str> {
        node["$ref"].as_str()?.strip_prefix("#/components/schemas/")
    }

    /// The operations of `paths` or `webhooks`, by their path (or event) and method.
    pub(crate) fn operations(self, section: &str) -> BTreeMap<(&'a str, &'a str), Operation<'a>> {
        let items = members(&self.0[section]);
        let of_item = |(path, item): (&'a str, &'a Value)| {
            let here = members(item).filter(|(method, _)| METHODS.contains(method));
            here.map(move |(method, json)| ((path, method), Operation { item, json }))
        };
        items.flat_map(of_item).collect()
    }

    /// The parameters of an operation, by where they are and their names.
    pub(crate) fn parameters(self, operation: Operation<'a>) -> BTreeMap<(&'a str, &'a str), &'a Value> {
        let shared = elements(&operation.item["parameters"]);
        let all = shared.chain(elements(&operation.json["parameters"]));
        all.filter_map(|parameter| {
            let parameter = self.resolved(parameter);
            Some(((text(parameter, "in")?, text(parameter, "name")?), parameter))
        })
        .collect()
    }
}

/// What lies below these names; `null` where there is nothing.
pub(crate) fn at<'a>(node: &'a Value, path: &[&str]) -> &'a Value {
    static NULL: Value = Value::Null;
    path.iter()
        .try_fold(node, |node, name| node.get(name))
        .unwrap_or(&NULL)
}

/// The members of an object; none of anything else.
pub(crate) fn members(node: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = node.as_object().into_iter().flatten();
    members.map(|(name, member)| (name.as_str(), member))
}

/// The elements of an array; none of anything else.
pub(crate) fn elements(node: &Value) -> impl Iterator<Item = &Value> {
    node.as_array().into_iter().flatten()
}

/// A member that is text.
pub(crate) fn text<'a>(node: &'a Value, name: &str) -> Option<&'a str> {
    node[name].as_str()
}
