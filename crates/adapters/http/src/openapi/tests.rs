//! Tests of the document: it is complete, valid and equal to the committed one, and its examples match their
//! schemas.

use std::collections::{BTreeMap, BTreeSet};

use oauth::RedirectError;
use serde_json::Value;
use web::Code;
use webhooks::{Event, Subject, WebhookEvent};

use super::*;
use crate::authorization_server::{GrantType, METADATA_PATH};
use crate::documents::examples;
use crate::routes::TABLE;

/// The name of the product in the default configuration.
const DEFAULT_NAME: &str = "Seller API";

/// The origin of a server with the default configuration.
const DEFAULT_ORIGIN: &str = "http://127.0.0.1:8080";

/// The address of the documentation in the default configuration.
const DEFAULT_DOCS: &str = "http://127.0.0.1:8080/docs";

fn json() -> Value {
    serde_json::from_str(&openapi(DEFAULT_NAME, DEFAULT_ORIGIN, DEFAULT_DOCS).to_string()).unwrap()
}

/// Visits every value of a document with its path.
fn walk<'a>(value: &'a Value, path: &str, see: &mut dyn FnMut(&str, &'a Value)) {
    see(path, value);
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                walk(
                    member,
                    &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
                    see,
                );
            }
        }
        Value::Array(elements) => {
            for (n, element) in elements.iter().enumerate() {
                walk(element, &format!("{path}/{n}"), see);
            }
        }
        _ => {}
    }
}

/// The paths that `expected` accepts, anywhere in the document.
fn found(document: &Value, expected: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    walk(document, "", &mut |path, value| {
        if expected(path, value) {
            places.push(path.to_owned());
        }
    });
    places
}

fn is_example(path: &str) -> bool {
    path.contains("/example")
}

#[test]
fn the_committed_copy_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/openapi.json");
    let declared = format!("{:#}\n", openapi(DEFAULT_NAME, DEFAULT_ORIGIN, DEFAULT_DOCS));
    if std::env::var_os("RENEW").is_some() {
        std::fs::write(path, &declared).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == declared,
        "docs/openapi.json is not what the program declares. Look at what has changed, tell of it in docs/CHANGELOG.md, and \
         renew the copy: RENEW=1 cargo test -p adapter-http committed, or, without any configuration, cargo run -p seller-api \
         -- openapi > docs/openapi.json",
    );
}

#[test]
fn null_is_a_type_and_every_object_and_enumeration_has_a_name() {
    let document = json();
    let other_ways = found(&document, |path, value| {
        path.ends_with("/nullable") || (value["type"] == "null" && !is_example(path))
    });
    assert_eq!(other_ways, Vec::<String>::new());
    let anonymous = found(&document, |path, value| {
        let named = path
            .strip_prefix("/components/schemas/")
            .is_some_and(|name| !name.contains('/'));
        let is_object = value["type"] == "object" || value["type"][0] == "object";
        !named && !is_example(path) && is_object
    });
    assert_eq!(anonymous, Vec::<String>::new());
    let nameless = found(&document, |path, value| {
        let within = path.starts_with("/components/schemas/") && path.matches('/').count() > 3;
        let several = value["enum"].as_array().is_some_and(|values| values.len() > 1);
        within && several && value.is_object()
    });
    assert_eq!(nameless, Vec::<String>::new());
}

/// The fixed files list exactly the values that the code knows.
#[test]
fn the_json_files_list_the_values_of_the_code() {
    let document = json();
    let names = |value: &Value| -> Vec<String> {
        let texts = value.as_array().unwrap().iter();
        texts.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        names(&schemas["GrantType"]["enum"]),
        GrantType::ALL.map(GrantType::as_str)
    );
    assert_eq!(
        names(&schemas["AuthorizationRedirectError"]["enum"]),
        RedirectError::ALL.map(RedirectError::as_str)
    );
    let flows = &document["components"]["securitySchemes"]["oauth2"]["flows"];
    for flow in ["clientCredentials", "authorizationCode"] {
        let scopes: BTreeSet<_> = flows[flow]["scopes"].as_object().unwrap().keys().collect();
        assert_eq!(scopes.len(), Scope::ALL.len());
        assert!(
            Scope::ALL
                .iter()
                .all(|scope| scopes.contains(&scope.as_str().to_owned()))
        );
    }
    let tags: Vec<_> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| &tag["name"])
        .collect();
    // Generators write a file for each tag, of paths and of webhooks apart: the second would replace the first.
    let of_webhooks = document["webhooks"].to_string();
    for route in TABLE {
        let tag = Value::from(route.docs.unwrap().tag);
        assert!(
            tags.contains(&&tag) && !of_webhooks.contains(&format!("[{tag}]")),
            "{}",
            route.path
        );
        let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        let declared = found(operation, |_, value| value["in"] == "path");
        assert_eq!(declared.len(), route.path.matches('{').count(), "{}", route.path);
    }
    let endpoints: BTreeSet<_> = crate::endpoints().map(|(_, path)| path.to_owned()).collect();
    let paths = document["paths"].as_object().unwrap().keys();
    assert_eq!(
        paths
            .filter(|path| path.starts_with("/oauth"))
            .cloned()
            .collect::<BTreeSet<_>>(),
        endpoints
    );
    let content = &document["paths"][METADATA_PATH]["get"]["responses"]["200"]["content"];
    let metadata = &content["application/json"]["examples"]["example"]["value"];
    assert_eq!(
        names(&metadata["scopes_supported"]),
        Scope::ALL.map(Scope::as_str)
    );
    assert_eq!(
        names(&metadata["grant_types_supported"]),
        GrantType::ALL.map(GrantType::as_str)
    );
    let addresses: Vec<_> = crate::endpoints()
        .map(|(_, path)| format!("{DEFAULT_ORIGIN}{path}"))
        .collect();
    assert_eq!(
        addresses,
        ["authorization", "token", "revocation"]
            .map(|name| metadata[format!("{name}_endpoint")].as_str().unwrap())
    );
}

/// Each event, as the sender serialises it.
#[test]
fn webhook_examples_are_what_the_sender_serialises() {
    let document = json();
    let webhooks = document["webhooks"].as_object().unwrap();
    let names = WebhookEvent::ALL.map(WebhookEvent::as_str);
    let known: BTreeSet<_> = webhooks.keys().map(String::as_str).collect();
    assert_eq!(known, names.into_iter().collect());
    let seller = "01936a00-1c2d-7e3f-8a4b-5c6d7e8f9a0b".parse().unwrap();
    let order = |name| {
        let about = Subject::Order {
            order_id: examples::ORDER.parse().unwrap(),
            order_number: "ZAM-1-1001".to_owned(),
        };
        Event::recorded(seller, name, about)
    };
    let rejected = Subject::Offer {
        offer_id: examples::OFFER.parse().unwrap(),
    };
    let events = [
        order(WebhookEvent::OrderCreated),
        order(WebhookEvent::OrderPaid),
        order(WebhookEvent::OrderShipped),
        order(WebhookEvent::OrderDelivered),
        order(WebhookEvent::OrderCancelled),
        Event::recorded(seller, WebhookEvent::OfferRejected, rejected),
        Event::of_ended_connection(seller),
    ];
    for (name, event) in names.iter().zip(events) {
        let content = &webhooks[*name]["post"]["requestBody"]["content"]["application/json"];
        let shown = &content["examples"]["example"]["value"];
        let (id, at) = (
            shown["id"].as_str().unwrap(),
            shown["occurred_at"].as_str().unwrap(),
        );
        let event_id = shown["data"]["event_id"].as_str().unwrap();
        let sent = event.body(
            id.parse().unwrap(),
            event_id.parse().unwrap(),
            at.parse().unwrap(),
        );
        let sent = sent.unwrap();
        assert_eq!(*shown, serde_json::from_slice::<Value>(&sent).unwrap(), "{name}");
    }
}

/// A validator for a schema of the document, with its referenced components.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut schema = schema.clone();
    let root = BTreeMap::from([("components", document["components"].clone())]);
    schema
        .as_object_mut()
        .unwrap()
        .extend(root.into_iter().map(|(key, value)| (key.to_owned(), value)));
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

/// Of requests, answers, events, parameters and schemas.
#[test]
fn examples_match_their_schemas() {
    let document = json();
    let mut checked = 0;
    walk(&document, "", &mut |path, value| {
        let schema = value.get("schema");
        let examples: Vec<_> = match &value["examples"] {
            Value::Object(named) => named.values().map(|example| &example["value"]).collect(),
            Value::Array(examples) => examples.iter().collect(),
            _ => schema.and(value.get("example")).into_iter().collect(),
        };
        for example in examples {
            let validator = validator(&document, schema.unwrap_or(value));
            assert!(validator.is_valid(example), "{path}: {example}");
            checked += 1;
        }
    });
    assert!(checked > 70, "{checked}");
}

/// Each code has a section on the page about errors, or on that of the back office, with an example of the
/// right status, text and shape.
#[test]
fn the_page_of_errors_is_complete() {
    let page = concat!(
        include_str!("../../../../../docs/guide/errors.md"),
        include_str!("../../../../../docs/marketplace/back-office.md")
    );
    for code in Code::ALL {
        let (name, status) = (code.as_str(), code.status().as_u16());
        let section = section(page, &format!("### `{name}` ({status})\n"));
        let example = section
            .split("```json\n")
            .nth(1)
            .unwrap()
            .split("\n```")
            .next()
            .unwrap();
        let example: Value = serde_json::from_str(example).unwrap();
        let entry = &example["errors"][0];
        assert_eq!(entry["code"], name);
        assert_eq!(entry["userMessage"].as_str(), code.user_message(), "{name}");
        for route in TABLE {
            let refusals = route.docs.unwrap().refusals.iter().map(|refusal| refusal());
            for problem in refusals.filter(|problem| problem.entries()[0].code() == *code) {
                assert_eq!(entry["message"], problem.entries()[0].message());
            }
        }
    }
}

/// The same for the authorization server: its examples are those of the document, or redirects.
#[test]
fn the_page_of_errors_is_complete_for_oauth() {
    let page = include_str!("../../../../../docs/guide/errors.md");
    let document = json();
    let mut documented: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for error in RedirectError::ALL {
        documented.entry(error.as_str().to_owned()).or_default();
    }
    walk(&document["paths"], "", &mut |path, value| {
        if let (true, Some(error)) = (path.starts_with("/~1oauth"), value["value"]["error"].as_str()) {
            let description = value["value"]["error_description"].as_str().unwrap();
            documented
                .entry(error.to_owned())
                .or_default()
                .insert(description);
        }
    });
    assert_eq!(documented.len(), 9);
    for (code, descriptions) in documented {
        let section = section(page, &format!("### OAuth `{code}` ("));
        let example = section.split("```").nth(1).unwrap();
        match example.strip_prefix("json\n") {
            Some(example) => {
                let example: Value = serde_json::from_str(example).unwrap();
                let description = example["error_description"].as_str().unwrap();
                assert_eq!(example["error"], *code);
                assert!(descriptions.contains(description), "{code}: {description}");
            }
            None => assert!(
                descriptions.is_empty() && example.contains(&format!("?error={code}&")),
                "{code}"
            ),
        }
    }
}

/// The section under a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page
        .split_once(heading)
        .unwrap_or_else(|| panic!("docs/guide/errors.md has no {heading}"));
    let section = rest.split("\n#").next().unwrap();
    assert!(
        section.contains("**When.**") && section.contains("**What to do.**"),
        "{heading}"
    );
    section
}
