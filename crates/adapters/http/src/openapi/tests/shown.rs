//! Tests of the examples: each refers to a thing by the one id of that thing, credentials look like real ones, and examples do not
//! contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use oauth::{BearerToken, ClientId, Credential, CredentialKind, Scope, TokenKind};
use orders::OrderNumber;
use serde_json::Value;
use uuid::Uuid;
use webhooks::WebhookSecret;

use super::{json, judge, walk};
use crate::routes::TABLE;

/// The kind of id, number or credential in examples, by schema and member, by path, or by parameter.
const KINDS: [(&str, Kind); 32] = [
    ("Offer.id", Kind::Offer),
    ("OrderItem.id", Kind::Offer),
    ("OrderItem.offer_id", Kind::Offer),
    ("Shipment.item_ids", Kind::Offer),
    ("CreateShipmentConflictEntry.item_ids", Kind::Offer),
    ("OfferEventData.offer_id", Kind::Offer),
    ("/v1/offers/{id}", Kind::Offer),
    ("Order.id", Kind::Order),
    ("Shipment.order_id", Kind::Order),
    ("OrderEventData.order_id", Kind::Order),
    ("/v1/orders/{id}", Kind::Order),
    ("/v1/orders/{id}/shipments", Kind::Order),
    ("Order.order_number", Kind::OrderNumber),
    ("OrderEventData.order_number", Kind::OrderNumber),
    ("Shipment.id", Kind::Shipment),
    ("Webhook.id", Kind::Webhook),
    ("WebhookCreated.id", Kind::Webhook),
    ("/v1/webhooks/{id}", Kind::Webhook),
    ("/v1/webhooks/{id}/deliveries", Kind::Webhook),
    ("WebhookCreated.secret", Kind::WebhookSecret),
    ("WebhookDelivery.id", Kind::Delivery),
    ("OrderPaidEvent.id", Kind::Delivery),
    ("Seller.id", Kind::Seller),
    ("Application.client_id", Kind::Application),
    ("client_id", Kind::Application),
    ("TokenResponse.access_token", Kind::AccessToken),
    ("TokenResponse.refresh_token", Kind::RefreshToken),
    ("TokenRequest.refresh_token", Kind::RefreshToken),
    ("RevocationRequest.token", Kind::RefreshToken),
    ("TokenRequest.code", Kind::Code),
    ("Idempotency-Key", Kind::Key),
    ("BadRequestError.traceId", Kind::Request),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Offer,
    Order,
    OrderNumber,
    Shipment,
    Webhook,
    WebhookSecret,
    Delivery,
    Seller,
    Application,
    AccessToken,
    RefreshToken,
    Code,
    Key,
    Request,
}

impl Kind {
    /// The kind of value at this place. All events share their entries, and so do all errors.
    fn at(place: &str) -> Option<Self> {
        let known = |place: &str| {
            KINDS
                .iter()
                .find(|(other, _)| *other == place)
                .map(|(_, kind)| *kind)
        };
        match place.rsplit_once('.') {
            Some((owner, "id")) if owner.ends_with("Event") => known("OrderPaidEvent.id"),
            Some((owner, "traceId")) if owner.ends_with("Error") => known("BadRequestError.traceId"),
            _ => known(place),
        }
    }

    /// Whether the product could have made this value.
    fn is_real(self, text: &str) -> bool {
        let of = |kind| Credential::parse(kind, text).is_some();
        match self {
            Self::Offer | Self::Order | Self::Shipment | Self::Webhook | Self::Delivery | Self::Seller => {
                Uuid::try_parse(text).is_ok_and(|id| id.get_version_num() == 7 && id.to_string() == text)
            }
            Self::OrderNumber => OrderNumber::new(text.to_owned()).is_ok(),
            Self::WebhookSecret => WebhookSecret::parse(text.to_owned()).is_ok(),
            Self::Application => text.parse::<ClientId>().is_ok(),
            Self::AccessToken => {
                BearerToken::parse(text).is_some_and(|token| token.kind() == TokenKind::Access)
            }
            Self::RefreshToken => of(CredentialKind::RefreshToken),
            Self::Code => of(CredentialKind::AuthorizationCode),
            Self::Key => Uuid::try_parse(text).is_ok(),
            Self::Request => text.len() == 32,
        }
    }
}

/// Every string of every example, with its place.
fn texts(document: &Value) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    walk(document, "", &mut |path, value| {
        let Some(schema) = value.get("schema") else {
            return;
        };
        for example in value["examples"].as_object().into_iter().flatten() {
            told(document, schema, &example.1["value"], "", &mut texts);
        }
        if let Some(example) = value["example"].as_str() {
            let name = value["name"].as_str().unwrap();
            let template = path.split('/').nth(2).unwrap_or_default().replace("~1", "/");
            let place = if value["in"] == "path" { &template } else { name };
            texts.push((place.to_owned(), example.to_owned()));
        }
    });
    texts
}

/// The strings within a value, each with the name of its schema and member.
fn told(document: &Value, schema: &Value, value: &Value, place: &str, texts: &mut Vec<(String, String)>) {
    let resolved = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => (
            reference.rsplit('/').next().unwrap().to_owned(),
            document.pointer(&reference[1..]).unwrap().clone(),
        ),
        None => (String::new(), schema.clone()),
    };
    let (mut name, mut schema) = resolved(schema);
    if let Some(either) = schema["anyOf"].as_array().cloned() {
        (name, schema) = resolved(&either[0]);
    }
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                let place = format!("{name}.{member}");
                told(document, &schema["properties"][member], value, &place, texts);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                told(document, &schema["items"], element, place, texts);
            }
        }
        Value::String(text) => texts.push((place.to_owned(), text.clone())),
        _ => {}
    }
}

#[test]
fn each_kind_of_thing_has_one_real_id() {
    let mut ids: BTreeMap<Kind, BTreeSet<String>> = BTreeMap::new();
    let mut places = BTreeSet::new();
    for (place, text) in texts(&json()) {
        match Kind::at(&place) {
            Some(kind) => {
                assert!(kind.is_real(&text), "{place}: {text}");
                ids.entry(kind).or_default().insert(text);
                places.insert(place);
            }
            None => assert!(
                Uuid::try_parse(&text).is_err() && !text.starts_with("ps"),
                "{place} has an id or a credential and no kind: {text}"
            ),
        }
    }
    let missing: Vec<_> = KINDS
        .iter()
        .map(|(place, _)| *place)
        .filter(|place| !places.contains(*place))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    let all: BTreeSet<_> = ids.values().flatten().collect();
    assert_eq!(all.len(), ids.len(), "{ids:#?}");
}

#[test]
fn events_orders_and_deliveries_go_together() {
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
    assert_eq!(body("order.shipped")["occurred_at"], shipment["created_at"]);
    assert_eq!(shipment["item_ids"][0], order["items"][0]["id"]);
}

#[test]
fn a_missing_scope_is_the_operations_own() {
    let document = json();
    for route in TABLE {
        let method = route.method.as_str().to_ascii_lowercase();
        let refusal = &document["paths"][route.path][method.as_str()]["responses"]["403"];
        let Some(scope) = route.scope else {
            assert!(refusal.is_null(), "{route:?}");
            continue;
        };
        let example = &refusal["content"]["application/json"]["examples"]["insufficient_scope"]["value"];
        let message = example["errors"][0]["message"].as_str().unwrap();
        let named: Vec<_> = Scope::ALL
            .iter()
            .filter(|scope| message.contains(scope.as_str()))
            .collect();
        assert_eq!(named, [&scope], "{route:?}: {message}");
    }
}

#[test]
fn examples_within_schemas_fit_them() {
    let document = json();
    let mut checked = 0;
    walk(&document, "", &mut |path, value| {
        for example in value["examples"].as_array().into_iter().flatten() {
            assert!(judge(&document, value).is_valid(example), "{path}: {example}");
            checked += 1;
        }
    });
    assert!(checked > 20, "{checked}");
}
