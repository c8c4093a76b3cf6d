//! Tests of the examples: ids and credentials look like real ones, and examples do not contradict each other.

use kernel::OfferId;
use oauth::{BearerToken, ClientId, Credential, CredentialKind, Scope};
use serde_json::Value;
use webhooks::WebhookSecret;

use super::{json, validator, walk};
use crate::routes::TABLE;

/// Whether the product could have made this id or credential.
fn is_real(text: &str) -> bool {
    let kinds = [CredentialKind::AuthorizationCode, CredentialKind::RefreshToken];
    text.parse::<OfferId>()
        .is_ok_and(|id| id.uuid().get_version_num() == 7)
        || text.parse::<ClientId>().is_ok()
        || BearerToken::presented(text).is_some()
        || kinds.iter().any(|kind| Credential::parse(*kind, text).is_some())
        || WebhookSecret::parse(text.to_owned()).is_ok()
}

#[test]
fn example_ids_and_credentials_are_valid() {
    let mut checked = 0;
    walk(&json(), "", &mut |path, value| {
        let Some(text) = value.as_str().filter(|_| path.contains("/example")) else {
            return;
        };
        let is_secret = text.starts_with("ps") && text.contains('_');
        if is_secret || text.parse::<OfferId>().is_ok() {
            assert!(
                path.contains("Idempotency-Key") || is_real(text),
                "{path}: {text}"
            );
            checked += 1;
        }
    });
    assert!(checked > 40, "{checked}");
}

#[test]
fn example_events_orders_and_deliveries_agree() {
    let document = json();
    let of = |operation: &str, response: &str| {
        let pointer = format!("/paths/{operation}/responses/{response}/content/application~1json/examples");
        document.pointer(&pointer).unwrap()["example"]["value"].clone()
    };
    let order = of("~1v1~1orders~1{id}/get", "200");
    let shipment = of("~1v1~1orders~1{id}~1shipments/post", "201");
    let delivery = &of("~1v1~1webhooks~1{id}~1deliveries/get", "200")["items"][0];
    let body = |event: &str| {
        let content = &document["webhooks"][event]["post"]["requestBody"]["content"];
        content["application/json"]["examples"]["example"]["value"].clone()
    };
    assert_eq!(body("order.created")["occurred_at"], order["placed_at"]);
    assert_eq!(body("order.paid")["occurred_at"], order["paid_at"]);
    assert_eq!(body("order.paid")["occurred_at"], delivery["created_at"]);
    assert_eq!(delivery["event"], "order.paid");
    let with_body = of("~1v1~1webhooks~1{id}~1deliveries~1{delivery_id}/get", "200");
    let sent: Value = serde_json::from_str(with_body["body"].as_str().unwrap()).unwrap();
    assert_eq!(sent, body("order.paid"));
    assert_eq!(body("order.shipped")["occurred_at"], shipment["created_at"]);
    assert_eq!(shipment["item_ids"][0], order["items"][0]["id"]);
    let created = of("~1v1~1webhooks/post", "201");
    let secret = WebhookSecret::parse(created["secret"].as_str().unwrap().to_owned()).unwrap();
    assert_eq!(created["standard_secret"], secret.reveal_standard());
}

#[test]
fn each_operation_documents_its_own_missing_scope() {
    let document = json();
    for route in TABLE {
        let method = route.method.as_str().to_ascii_lowercase();
        let refusal = &document["paths"][route.path][method.as_str()]["responses"]["403"];
        let Some(scope) = route.scope.first() else {
            assert!(refusal.is_null(), "{route:?}");
            continue;
        };
        let example = &refusal["content"]["application/json"]["examples"]["insufficient_scope"]["value"];
        let message = example["errors"][0]["message"].as_str().unwrap();
        let named: Vec<_> = Scope::ALL
            .iter()
            .filter(|scope| message.contains(scope.as_str()))
            .collect();
        assert_eq!(named, [scope], "{route:?}: {message}");
    }
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
