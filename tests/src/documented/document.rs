//! The committed OpenAPI document, prepared for tests.

use std::sync::OnceLock;

use serde_json::Value;

use super::schemas::Schemas;

/// The document and its compiled schemas.
#[derive(Debug)]
pub struct Document {
    pub(super) json: Value,
    pub(super) schemas: Schemas,
    operations: Vec<Operation>,
}

#[derive(Debug, Clone)]
pub struct Operation {
    /// `operationId`.
    pub id: String,
    /// The method in upper case.
    pub method: String,
    /// The path template, such as `/v1/offers/{id}`.
    pub template: String,
    /// The operation in the document.
    pub json: Value,
}

impl Document {
    /// The committed document.
    pub fn current() -> &'static Self {
        static DOCUMENT: OnceLock<Document> = OnceLock::new();
        DOCUMENT.get_or_init(|| {
            let text = include_str!("../../../docs/openapi.json");
            Self::of(serde_json::from_str(text).expect("the document is JSON"))
        })
    }

    fn of(json: Value) -> Self {
        let operations = operations(&json);
        let schemas = Schemas::of(&json);
        Self {
            json,
            schemas,
            operations,
        }
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operation of a request. HEAD is treated as GET.
    pub fn operation(&self, method: &str, path: &str) -> Option<&Operation> {
        let method = if method == "HEAD" { "GET" } else { method };
        // A path without ids comes before one that has an id at the same place.
        let is_literal = self.operations.iter().any(|operation| operation.template == path);
        self.operations.iter().find(|operation| {
            let is_at = if is_literal {
                operation.template == path
            } else {
                matches(&operation.template, path)
            };
            operation.method == method && is_at
        })
    }

    /// The node, or the target of its `$ref`.
    pub fn resolved<'a>(&'a self, node: &'a Value) -> &'a Value {
        match node["$ref"].as_str() {
            Some(reference) => self
                .json
                .pointer(&reference[1..])
                .expect("the reference leads somewhere"),
            None => node,
        }
    }
}

impl Operation {
    /// The documented responses: the status and the response, references resolved.
    pub fn responses<'a>(&'a self, document: &'a Document) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let responses = self.json["responses"].as_object().expect("responses");
        responses
            .iter()
            .map(|(status, response)| (status.as_str(), document.resolved(response)))
    }

    /// Whether the operation has the parameter `fields`.
    pub(super) fn has_choice(&self) -> bool {
        let mut parameters = self.json["parameters"].as_array().into_iter().flatten();
        parameters.any(|parameter| parameter["name"] == "fields")
    }

    /// The name in lists.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.template)
    }
}

fn operations(json: &Value) -> Vec<Operation> {
    let paths = json["paths"].as_object().expect("paths").iter();
    let of_path = |(template, item): (&String, &Value)| {
        let methods = item.as_object().expect("a path item").iter();
        let operation = |(method, operation): (&String, &Value)| Operation {
            id: operation["operationId"].as_str().expect("an id").to_owned(),
            method: method.to_uppercase(),
            template: template.clone(),
            json: operation.clone(),
        };
        methods.map(operation).collect::<Vec<_>>()
    };
    paths.flat_map(of_path).collect()
}

fn matches(template: &str, path: &str) -> bool {
    let (parts, segments) = (template.split('/'), path.split('/'));
    let is_same =
        |(part, segment): (&str, &str)| part == segment || part.starts_with('{') && !segment.is_empty();
    parts.clone().count() == segments.clone().count() && parts.zip(segments).all(is_same)
}
