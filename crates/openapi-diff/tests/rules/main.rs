//! Each rule by itself: a released document, one edit of it, and what an existing client would notice.
#![expect(clippy::unwrap_used, reason = "tests")]

mod access;
mod given;
mod taken;

use openapi_diff::breaks;
use serde_json::{Value, json};

fn released() -> Value {
    json!({
        "paths": {
            "/v1/offers": {
                "get": {
                    "operationId": "listOffers",
                    "security": [{"oauth2": ["offers:read"]}, {"bearer": ["offers:read"]}],
                    "parameters": [
                        {"$ref": "#/components/parameters/UserAgent"},
                        {"name": "status", "in": "query", "schema": {"type": "string", "enum": ["draft", "published"]}},
                        {"name": "fields", "in": "query", "schema": {"type": "string", "pattern": "^(id|title)(,(id|title))*$"}},
                        {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 50}}
                    ],
                    "responses": {
                        "200": {
                            "headers": {"X-Trace-Id": {"required": true, "schema": {"type": "string", "maxLength": 64}}},
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Page"}}}
                        },
                        "204": {},
                        "400": {"$ref": "#/components/responses/BadRequest"}
                    }
                },
                "post": {
                    "operationId": "createOffer",
                    "security": [{}],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewOffer"}}}},
                    "responses": {"201": {}}
                }
            }
        },
        "webhooks": {
            "offer.rejected": {
                "post": {
                    "operationId": "onOfferRejected",
                    "parameters": [{"name": "X-Event", "in": "header", "required": true, "schema": {"type": "string"}}],
                    "requestBody": {
                        "required": true,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}}
                    },
                    "responses": {"2XX": {}}
                }
            }
        },
        "components": {
            "parameters": {"UserAgent": {"name": "User-Agent", "in": "header", "required": true, "schema": {"type": "string"}}},
            "responses": {"BadRequest": {"content": {"application/json": {"schema": {
                "type": "object",
                "properties": {"errors": {"type": "array", "items": {"$ref": "#/components/schemas/Entry"}}}
            }}}}},
            "securitySchemes": {"oauth2": {"type": "oauth2", "flows": {"clientCredentials": {
                "tokenUrl": "/oauth/token", "scopes": {"offers:read": "read"}
            }}}},
            "schemas": {
                "Page": {"type": "object", "required": ["items"], "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/components/schemas/Offer"}},
                    "next": {"type": ["string", "null"]}
                }},
                "Offer": {"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "string", "format": "uuid"},
                    "status": {"type": "string", "enum": ["draft", "published"]},
                    "kind": {"type": "string", "enum": ["new"], "x-extensible": true},
                    "stock": {"type": ["integer", "null"], "minimum": 0, "maximum": 10},
                    "price": {"anyOf": [{"$ref": "#/components/schemas/Money"}, {"type": "null"}]},
                    "related": {"type": "array", "uniqueItems": true, "items": {"$ref": "#/components/schemas/Offer"}},
                    "owner": {"$ref": "#/components/schemas/Money"}
                }},
                "Money": {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}},
                "NewOffer": {"type": "object", "required": ["title"], "additionalProperties": false, "minProperties": 1, "properties": {
                    "title": {"type": "string", "maxLength": 100},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "stock": {"type": ["integer", "null"], "minimum": 0},
                    "status": {"type": "string", "enum": ["draft", "published"]}
                }},
                "Entry": {"type": "object", "properties": {"code": {"type": "string", "enum": ["a", "b"]}}},
                "Event": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
            }
        }
    })
}

/// What is found where the value at `pointer` is another one; `null` removes it.
fn after(pointer: &str, value: &Value) -> Vec<String> {
    let released = released();
    let mut current = released.clone();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let parent = current.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(members), Value::Null) => drop(members.remove(&last.replace("~1", "/")).unwrap()),
        (Value::Object(members), value) => drop(members.insert(last.replace("~1", "/"), value.clone())),
        (Value::Array(elements), Value::Null) => drop(elements.remove(last.parse().unwrap())),
        (Value::Array(elements), value) => match last.parse::<usize>() {
            Ok(at) => *elements.get_mut(at).unwrap() = value.clone(),
            Err(_) => elements.push(value.clone()),
        },
        (other, _) => unreachable!("{other}"),
    }
    let told = breaks(&released, &current).into_iter();
    told.map(|found| found.to_string()).collect()
}

const LIST: &str = "/paths/~1v1~1offers/get";
const POST: &str = "/paths/~1v1~1offers/post";
const HOOK: &str = "/webhooks/offer.rejected/post";
const OFFER: &str = "/components/schemas/Offer/properties";
const NEW: &str = "/components/schemas/NewOffer";

#[track_caller]
fn breaks_as(at: &str, rest: &str, value: &Value, expected: &[&str]) {
    assert_eq!(after(&format!("{at}{rest}"), value), expected, "{at}{rest}");
}

#[track_caller]
fn passes(at: &str, rest: &str, value: &Value) {
    breaks_as(at, rest, value, &[]);
}

#[test]
fn a_document_is_compatible_with_itself() {
    assert_eq!(breaks(&released(), &released()), []);
}

#[test]
fn operations_stay_and_keep_their_names() {
    breaks_as(
        "/paths",
        "/~1v1~1offers",
        &Value::Null,
        &["`createOffer`: it is gone", "`listOffers`: it is gone"],
    );
    breaks_as(LIST, "", &Value::Null, &["`listOffers`: it is gone"]);
    breaks_as(
        LIST,
        "/operationId",
        &json!("getOffers"),
        &["`listOffers`: its operationId is `getOffers` now"],
    );
    breaks_as(HOOK, "", &Value::Null, &["`onOfferRejected`: it is gone"]);
    passes(
        "/paths",
        "/~1v1~1new",
        &json!({"get": {"operationId": "new", "responses": {}}}),
    );
    passes("/webhooks", "/new", &json!({"post": {"operationId": "onNew"}}));
    passes(LIST, "/deprecated", &json!(true));
    passes(LIST, "/summary", &json!("Other words"));
}

#[test]
fn schemas_keep_their_names() {
    let released = released();
    let text = released.to_string();
    let current = serde_json::from_str(&text.replace("Money", "Amount")).unwrap();
    let told: Vec<_> = breaks(&released, &current)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, ["`Money`: no schema has this name any more"]);
}
