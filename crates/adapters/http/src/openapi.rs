//! The OpenAPI document (3.1) of the public listener.
//!
//! The part for `/v1` is generated from the declarations that route and decode: each served field declares
//! its schema, the shape that decodes a body describes it, and the example of an error is the real response.
//! The fixed parts are in `openapi/*.json`, checked against the code by tests: authorization server,
//! webhooks, headers, security.

pub(crate) mod errors;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use oauth::Scope;
use web::openapi::{Docs, JsonBody, Parameter, section};
use web::operation::Effect;
use web::request::{Answer, Request};
use web::response;
use web::route::Route;
use web::schema::{Components, Map, Node, string};

use crate::Public;
use crate::documents::examples;
use crate::routes::TABLE;
use errors::Errors;

/// The path of the document.
pub(crate) const PATH: &str = "/openapi.json";

/// The metadata document of the authorization server (RFC 8414), with placeholders. `oauth.json` shows it as the
/// example.
pub(crate) const METADATA: &str = include_str!("../openapi/metadata.json");

/// How long clients may cache the document: it changes only with the program.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The headers that the document declares for every response of `/v1`. Those of a deprecation are not sent before one.
const HEADERS: [&str; 10] = [
    "X-Trace-Id",
    "Cache-Control",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit",
    "RateLimit-Policy",
    "Deprecation",
    "Sunset",
    "Link",
];

/// The document for this product name, public origin (without a trailing slash) and address of the
/// documentation. `{}` writes it as JSON on one line, `{:#}` indented.
pub fn openapi(name: &str, public_url: &str, docs_url: &str) -> impl Display + use<> {
    let fixed = |text| members(fixed_part(text, public_url, docs_url));
    let mut document = fixed(include_str!("../openapi/base.json"));
    let mut oauth = fixed(include_str!("../openapi/oauth.json"));
    let mut webhooks = fixed(include_str!("../openapi/webhooks.json"));
    let take = |part: &mut Map, key: &str| members(part.shift_remove(key).unwrap_or(Node::Null));

    let mut components = Components::default();
    let mut errors = Errors::default();
    let mut paths = Map::new();
    for route in TABLE {
        let item = paths
            .entry(route.path.to_owned())
            .or_insert_with(|| Node::Object(Map::new()));
        let method = route.method.as_str().to_ascii_lowercase();
        *item = item.clone().with(&method, operation(route, &mut errors));
    }
    let mut paths = members(components.hoist(Node::Object(paths)));
    paths.extend(take(&mut oauth, "paths"));
    let responses = components.hoist(errors.shared());
    for schemas in [take(&mut oauth, "schemas"), take(&mut webhooks, "schemas")] {
        for (name, schema) in schemas {
            components.hoist(schema.named(name));
        }
    }

    if let Some(Node::Object(info)) = document.get_mut("info") {
        let description = include_str!("../openapi/info.md").trim_end();
        info.insert("title".to_owned(), name.into());
        info.insert("description".to_owned(), description.into());
    }
    let mut shared = Map::from([
        ("schemas".to_owned(), components.schemas().into_iter().collect()),
        ("responses".to_owned(), responses),
    ]);
    shared.extend(take(&mut document, "components"));
    document.insert("paths".to_owned(), Node::Object(paths));
    document.extend(webhooks);
    document.insert("components".to_owned(), Node::Object(shared));
    Node::Object(document)
}

/// Answers a request for the document, without a token.
pub(crate) fn answer(state: &Public, request: Request) -> Answer {
    request.answer_document(PATH, |trace_id| {
        let mut response = response::json(StatusCode::OK, (state.openapi)(), trace_id);
        response.headers_mut().insert(CACHE_CONTROL, CACHED);
        response
    })
}

/// A fixed part for this public origin and address of the documentation.
pub(crate) fn fixed_part(text: &str, public_url: &str, docs_url: &str) -> Node {
    let text = text.replace("\"{metadata}\"", METADATA);
    let text = text.replace("{public_url}", public_url);
    Node::parse(&text.replace("{docs_url}", docs_url))
}

fn members(node: Node) -> Map {
    match node {
        Node::Object(members) => members,
        _ => Map::new(),
    }
}

fn operation(route: &Route<Public>, errors: &mut Errors) -> Node {
    let Some(docs) = route.docs else {
        return Node::Null;
    };
    let mut operation = Node::of([
        ("operationId", docs.id.into()),
        ("tags", vec![docs.tag.into()].into()),
        ("summary", docs.summary().into()),
        ("description", docs.description().into()),
        ("security", security(route.scope)),
        ("parameters", parameters(route, docs)),
    ]);
    if let Some(body) = &docs.body {
        let required = !docs.is_body_optional;
        let body = Node::of([("required", required.into()), ("content", content(body))]);
        operation = operation.with("requestBody", body);
    }
    let mut responses = Map::from([(docs.status.as_str().to_owned(), success(route, docs))]);
    responses.extend(errors.of(route, docs));
    operation.with("responses", Node::Object(responses))
}

/// Either scheme with each of the scopes, of which one is enough; without a scope, either scheme.
fn security(scopes: &[Scope]) -> Node {
    let with = |scheme: &str, scopes: Vec<Node>| Node::of([(scheme, scopes.into())]);
    let schemes = ["oauth2", "bearer"];
    if scopes.is_empty() {
        return schemes.map(|scheme| with(scheme, Vec::new())).to_vec().into();
    }
    let each = scopes.iter().flat_map(|scope| {
        let scope = Node::from(scope.as_str());
        schemes.map(|scheme| with(scheme, vec![scope.clone()]))
    });
    each.collect::<Vec<_>>().into()
}

fn parameters(route: &Route<Public>, docs: &Docs) -> Node {
    let id = |(name, _): (&str, &str)| {
        let (description, example) = match (name, route.path.split('/').nth(2)) {
            ("shipment_id", _) => ("The shipment's id.", examples::SHIPMENT),
            ("delivery_id", _) => ("The delivery's id.", examples::DELIVERY),
            (_, Some("offers")) => ("The offer's id.", examples::OFFER),
            (_, Some("orders")) => ("The order's id, or its number.", examples::ORDER),
            (_, Some("webhooks")) => ("The subscription's id.", examples::WEBHOOK),
            // A test finds what is not declared.
            _ => return None,
        };
        Some(Node::of([
            ("name", name.into()),
            ("in", "path".into()),
            ("required", true.into()),
            ("description", description.into()),
            ("schema", string()),
            ("example", example.into()),
        ]))
    };
    let variables = route
        .path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    let mut parameters: Vec<Node> = variables.filter_map(id).collect();
    parameters.push(reference("parameters", "UserAgent"));
    parameters.push(reference("parameters", "RequestId"));
    if route.effect == Effect::Write {
        parameters.push(reference("parameters", "IdempotencyKey"));
        if docs.is_tagged {
            parameters.push(reference("parameters", "IfMatch"));
        }
    }
    parameters.extend(route.query.iter().map(|parameter| query(parameter, route, docs)));
    parameters.into()
}

fn query(parameter: &Parameter, route: &Route<Public>, docs: &Docs) -> Node {
    let schema = match parameter.name {
        "fields" => fields(route.fields),
        _ => (parameter.schema)(),
    };
    let own = section(docs.prose, parameter.name);
    let description = if own.is_empty() {
        section(include_str!("../openapi/parameters.md"), parameter.name)
    } else {
        own
    };
    Node::of([
        ("name", parameter.name.into()),
        ("in", "query".into()),
        ("required", false.into()),
        ("description", description.into()),
        ("schema", schema),
    ])
}

/// The schema of a selection: field names, separated by commas.
fn fields(names: &[&str]) -> Node {
    let one = format!("({})", names.join("|"));
    let some: Vec<_> = names.iter().take(3).copied().collect();
    string()
        .with("pattern", format!("^{one}(,{one})*$"))
        .example(some.join(","))
}

fn success(route: &Route<Public>, docs: &Docs) -> Node {
    let mut more = Vec::new();
    if docs.is_tagged {
        more.push(("ETag", "ETag"));
    }
    if route.effect == Effect::Write {
        more.push(("Idempotent-Replayed", "Idempotent-Replayed"));
    }
    let response = Node::of([
        ("description", section(docs.prose, "Response").into()),
        ("headers", headers(&more)),
    ]);
    match &docs.response {
        Some(body) => response.with("content", content(body)),
        None => response,
    }
}

/// The headers of every response of `/v1` plus `more`, each as its name on the wire and the name of its
/// component.
fn headers(more: &[(&str, &str)]) -> Node {
    let every = HEADERS.into_iter().map(|name| (name, name));
    every
        .chain(more.iter().copied())
        .map(|(name, component)| (name, reference("headers", component)))
        .collect()
}

fn reference(kind: &str, name: &str) -> Node {
    Node::of([("$ref", format!("#/components/{kind}/{name}").into())])
}

fn content(body: &JsonBody) -> Node {
    let example = Node::of([("value", (body.example)())]);
    json((body.schema)(), Node::of([("example", example)]))
}

/// The content object of a JSON body.
fn json(schema: Node, examples: Node) -> Node {
    Node::of([(
        "application/json",
        Node::of([("schema", schema), ("examples", examples)]),
    )])
}
