//! `/v1`, operation by operation, from the table.

use web::schema::{Map, Node, string};

use super::errors::Errors;
use super::headers::of_v1;
use super::{example, json, reference, security};
use crate::declared::{Parameter, Resource, Success};
use crate::operation::Effect;
use crate::routes::Route;

/// Adds every operation of a table.
pub(super) fn add(table: &[Route], paths: &mut Map, errors: &mut Errors) {
    for route in table {
        let item = paths
            .entry(route.template.to_owned())
            .or_insert_with(|| Node::Object(Map::new()));
        let method = route.method.as_str().to_ascii_lowercase();
        *item = item.clone().with(&method, operation(route, errors));
    }
}

fn operation(route: &Route, errors: &mut Errors) -> Node {
    let declared = route.declared;
    let mut operation = Node::of([
        ("operationId", declared.id.into()),
        ("tags", vec![declared.tag.name().into()].into()),
        ("summary", declared.summary.into()),
        ("description", declared.description.into()),
        ("security", security::of_v1(route.scope)),
        ("parameters", parameters(route)),
    ]);
    if let Some(body) = &declared.body {
        let content = json((body.schema)(), example((body.example)()));
        let body = Node::of([("required", true.into()), ("content", content)]);
        operation = operation.with("requestBody", body);
    }
    let (status, answer) = success(route);
    let mut responses = Map::from([(status, answer)]);
    responses.extend(errors.of(route));
    let operation = operation.with("responses", Node::Object(responses));
    match declared.deprecated {
        Some(notice) => operation.marked(notice),
        None => operation,
    }
}

fn parameters(route: &Route) -> Node {
    let mut parameters: Vec<Node> = route.declared.resource.iter().map(id).collect();
    parameters.push(reference("parameters", "UserAgent"));
    parameters.push(reference("parameters", "RequestId"));
    if route.effect == Effect::Write {
        parameters.push(reference("parameters", "IdempotencyKey"));
    }
    parameters.extend(
        route
            .declared
            .parameters
            .iter()
            .map(|parameter| query(parameter, route)),
    );
    parameters.into()
}

fn id(resource: &Resource) -> Node {
    Node::of([
        ("name", "id".into()),
        ("in", "path".into()),
        ("required", true.into()),
        ("description", resource.description.into()),
        ("schema", string()),
        ("example", resource.example.to_string().into()),
    ])
}

fn query(parameter: &Parameter, route: &Route) -> Node {
    let schema = match parameter.name {
        "fields" => fields(route.fields),
        _ => (parameter.schema)(),
    };
    let described = Node::of([
        ("name", parameter.name.into()),
        ("in", "query".into()),
        ("required", false.into()),
        ("description", parameter.description.into()),
        ("schema", schema),
    ]);
    match parameter.deprecated {
        Some(notice) => described.marked(notice),
        None => described,
    }
}

/// The names that can be chosen, separated by commas.
fn fields(names: &[&str]) -> Node {
    let one = format!("({})", names.join("|"));
    let some: Vec<_> = names.iter().take(3).copied().collect();
    string()
        .with("pattern", format!("^{one}(,{one})*$"))
        .such_as(some.join(","))
}

fn success(route: &Route) -> (String, Node) {
    let replayed: &[_] = match route.effect {
        Effect::Read => &[],
        Effect::Write => &[("Idempotent-Replayed", "Idempotent-Replayed")],
    };
    match &route.declared.success {
        Success::Json {
            status,
            description,
            schema,
            example: shown,
        } => {
            let response = Node::of([
                ("description", (*description).into()),
                ("headers", of_v1(replayed)),
                ("content", json(schema(), example(shown()))),
            ]);
            (status.as_str().to_owned(), response)
        }
        Success::NoContent { description } => {
            let response = Node::of([
                ("description", (*description).into()),
                ("headers", of_v1(replayed)),
            ]);
            ("204".to_owned(), response)
        }
    }
}
