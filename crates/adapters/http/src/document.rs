//! The OpenAPI document (3.1) of the public listener, made of the declarations that route and decode.
//!
//! `/v1` comes from the table of operations, `/oauth` from the endpoints' own declarations, webhooks from the events. Nothing
//! of it is written twice: a field that is served has its schema beside it, a body is told by the shape that reads it, and an
//! error's example is the error as it is answered.

mod errors;
mod events;
pub(crate) mod examples;
pub(crate) mod headers;
mod operations;
pub(crate) mod security;
#[cfg(test)]
mod tests;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use bytes::Bytes;
use web::reply;
use web::schema::{Components, Map, Node};

use crate::arrival::Arrival;
use crate::authorization_server;
use crate::declared::Tag;
use crate::deprecated::Ending;
use crate::listener::Answer;
use crate::routes::{Route, TABLE};

/// Where the document is.
pub(crate) const PATH: &str = "/openapi.json";

/// How long the document may be kept: it changes with the program alone.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The version of the API (contract: Versioning).
const VERSION: &str = "1.0.0";

const DESCRIPTION: &str = "\
The API of an online marketplace's sellers: offers, orders, shipments, webhooks, and OAuth 2.0 to reach them.

* Every request to `/v1` names its client in `User-Agent` and carries a bearer token.
* An application has a number of requests a minute, 600 unless another was agreed on. `X-RateLimit-*` tell where it stands, \
`RateLimit` and `RateLimit-Policy` the same for libraries that know them.
* What writes takes an `Idempotency-Key`: for 24 hours the same request with the same key gets the same answer.
* Lists are read page by page, by the opaque cursor in `next`.
* `fields` chooses the fields of a resource. Without it all are there; with it those alone, and `id`.
* Bodies are JSON objects of at most 64 KiB; under `/oauth` forms are taken too, of at most 16 KiB.
* `/v1` refuses fields and parameters that are not documented. `/oauth` passes them over, as RFC 6749 asks, and refuses what comes \
twice. In answers more fields may be added at any time, and clients ignore what they do not know.
* What goes away is marked `deprecated` here long before, and answers that have to do with it say so in `Deprecation`, `Sunset` and \
`Link`.
* Instants are RFC 3339 in UTC with microseconds. Amounts are integers in the minor unit.
* Errors have one shape. `traceId` finds the request in our logs, and is `X-Trace-Id` too.
* HEAD works wherever GET does.";

/// The document as JSON over many lines, for the origin that clients use (without a trailing slash) and the address where
/// developers read on.
pub fn openapi(public_url: &str, docs_url: &str) -> String {
    format!("{:#}\n", current(public_url, docs_url).0)
}

/// The document as it is served.
pub(crate) fn served(public_url: &str, docs_url: &str) -> Bytes {
    current(public_url, docs_url).0.to_string().into()
}

/// Answers a request for the document; nobody needs a token for it.
pub(crate) fn answer(document: &Bytes, arrival: Arrival) -> Answer {
    Answer::document(arrival, PATH, |arrival| {
        let mut response = reply::json(StatusCode::OK, document.clone(), &arrival.trace_id);
        response.headers_mut().insert(CACHE_CONTROL, CACHED);
        response
    })
}

/// [`document`] of what there is.
pub(crate) fn current(public_url: &str, docs_url: &str) -> (Node, Vec<String>) {
    document(TABLE, authorization_server::ENDING, public_url, docs_url)
}

/// The document of these operations while these endpoints go away, and the names that it gives to two different things.
pub(crate) fn document(
    table: &[Route],
    ending: &[Ending],
    public_url: &str,
    docs_url: &str,
) -> (Node, Vec<String>) {
    let mut components = Components::default();
    let mut errors = errors::Errors::default();
    let mut paths = Map::new();
    operations::add(table, &mut paths, &mut errors);
    authorization_server::document::add(&mut paths, ending, public_url);
    let paths = components.hoist(Node::Object(paths));
    let webhooks = components.hoist(events::webhooks());
    let responses = components.hoist(errors.shared());
    let parameters = components.hoist(headers::parameters());
    let clashes = components.clashes().to_vec();
    let document = Node::of([
        ("openapi", "3.1.1".into()),
        ("info", info()),
        ("externalDocs", external_docs(docs_url)),
        ("servers", vec![Node::of([("url", public_url.into())])].into()),
        ("tags", tags()),
        ("paths", paths),
        ("webhooks", webhooks),
        (
            "components",
            Node::of([
                ("schemas", components.schemas().into_iter().collect()),
                ("responses", responses),
                ("parameters", parameters),
                ("headers", headers::of_responses()),
                ("securitySchemes", security::schemes(public_url)),
            ]),
        ),
    ]);
    (document, clashes)
}

fn info() -> Node {
    let license = Node::of([
        ("name", "Apache License 2.0".into()),
        ("identifier", "Apache-2.0".into()),
    ]);
    Node::of([
        ("title", "Seller API".into()),
        ("summary", "The public API of a marketplace's sellers".into()),
        ("description", DESCRIPTION.into()),
        ("license", license),
        ("version", VERSION.into()),
    ])
}

fn external_docs(docs_url: &str) -> Node {
    Node::of([
        ("description", "Guides, reference, errors and changelog".into()),
        ("url", docs_url.into()),
    ])
}

fn tags() -> Node {
    let tag = |tag: Tag| {
        Node::of([
            ("name", tag.name().into()),
            ("description", tag.description().into()),
        ])
    };
    Tag::ALL.map(tag).to_vec().into()
}

/// A reference to a component.
fn reference(kind: &str, name: &str) -> Node {
    Node::of([("$ref", format!("#/components/{kind}/{name}").into())])
}

/// The content of a body that is JSON.
pub(crate) fn json(schema: Node, examples: Node) -> Node {
    Node::of([(
        "application/json",
        Node::of([("schema", schema), ("examples", examples)]),
    )])
}

/// One example.
pub(crate) fn example(value: Node) -> Node {
    examples_of([("example", value)])
}

/// Examples by their names.
pub(crate) fn examples_of<'a>(examples: impl IntoIterator<Item = (&'a str, Node)>) -> Node {
    let named = examples.into_iter();
    named
        .map(|(name, value)| (name, Node::of([("value", value)])))
        .collect()
}
