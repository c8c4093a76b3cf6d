//! Tests the checks with the document's examples and with a small invented document.

use std::time::Instant;

use serde_json::json;

use super::*;
use crate::documented::{
    examples::{self, Example},
    schemas::MAY_LACK,
};

/// Checks an example with a changed body or changed headers.
fn judged(example: &Example, request: (&str, &str), change: impl FnOnce(&mut Answer)) -> Judgement {
    let mut answer = example.answer.clone();
    change(&mut answer);
    judge(Document::current(), example.operation, request, &answer)
}

fn with_body(example: &Example, query: &str, body: &Value) -> Judgement {
    judged(example, ("GET", query), |answer| {
        answer.bytes = body.to_string().into_bytes();
    })
}

fn with_headers(example: &Example, change: impl FnOnce(&mut HeaderMap)) -> Judgement {
    judged(example, ("GET", ""), |answer| change(&mut answer.headers))
}

fn with_header(example: &Example, name: &str, value: &str) -> Judgement {
    let name: HeaderName = name.parse().unwrap();
    with_headers(example, |headers| {
        drop(headers.insert(name, value.parse().unwrap()));
    })
}

fn all() -> Vec<Example> {
    examples::all(Document::current())
}

fn example(operation: &str, status: u16) -> Example {
    let is_it = |example: &Example| example.operation.id == operation && example.answer.status == status;
    all().into_iter().find(is_it).expect("there is an example")
}

/// JSON pointers to the members of all objects within `value`.
fn members(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut below =
        |name: &str, value: &Value| found.extend(members(value).iter().map(|path| format!("/{name}{path}")));
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| below(name, value));
            found.extend(members.keys().map(|name| format!("/{name}")));
        }
        Value::Array(items) => (0..items.len()).for_each(|n| below(&n.to_string(), &items[n])),
        _ => {}
    }
    found
}

fn without(value: &Value, member: &str) -> Value {
    let mut less = value.clone();
    let (object, name) = member.rsplit_once('/').unwrap();
    let object = less.pointer_mut(object).unwrap().as_object_mut().unwrap();
    assert!(object.remove(name).is_some(), "{member}");
    less
}

#[test]
fn the_examples_are_as_documented_and_each_member_more_or_less_is_refused() {
    let mut refused = 0;
    for example in all() {
        let told = format!("{} {}", example.operation.id, example.answer.status);
        assert_eq!(judged(&example, ("GET", ""), |_| {}), Ok(()), "{told}");
        if example.answer.bytes.is_empty() {
            continue;
        }
        let body = example.answer.json();
        assert!(with_body(&example, "", &json!({})).is_err(), "{told}");
        for member in members(&body) {
            let (object, name) = member.rsplit_once('/').unwrap();
            let may_lack = MAY_LACK.iter().any(|(_, other)| *other == name) && !member.starts_with("/items/");
            // A shipment always has `item_ids`; an error has them only sometimes.
            let may_lack = may_lack && (example.answer.status >= 400 || name != "item_ids");
            let less = with_body(&example, "", &without(&body, &member));
            assert_eq!(less.is_ok(), may_lack, "{told} without {member}");
            refused += usize::from(!may_lack);
            let mut more = body.clone();
            more.pointer_mut(object).unwrap()["surprise"] = json!(1);
            let more = with_body(&example, "", &more);
            assert!(more.is_err(), "{told} with {object}/surprise");
        }
    }
    assert!(refused > 200, "{refused}");
    let schemas = &Document::current().json["components"]["schemas"];
    for (name, member) in MAY_LACK {
        let schema = &schemas[name];
        assert!(schema["properties"].get(member).is_some(), "{name}.{member}");
        let required = schema["required"].as_array().unwrap();
        assert!(!required.contains(&json!(member)), "{name}.{member}");
    }
    // A nullable member is null or complete.
    let order = example("getOrder", 200);
    for member in ["buyer", "shipping_address", "shipment"] {
        for (value, fine) in [(Value::Null, true), (json!({}), false), (json!([]), false)] {
            let mut body = order.answer.json();
            body[member] = value;
            assert_eq!(with_body(&order, "", &body).is_ok(), fine, "{member}");
        }
    }
}

#[test]
fn what_was_chosen_has_to_be_there_and_nothing_else() {
    let mut lists = 0;
    for example in all() {
        if !example.operation.has_choice() || example.answer.status >= 300 {
            continue;
        }
        let whole = example.answer.json();
        let is_list = example.operation.id.starts_with("list");
        lists += usize::from(is_list);
        let resource = if is_list { "/items/0" } else { "" };
        let names = whole.pointer(resource).unwrap().as_object().unwrap().keys();
        for name in names.clone() {
            let mut chosen = whole.clone();
            let items = if is_list {
                chosen["items"].as_array_mut().unwrap().as_mut_slice()
            } else {
                std::slice::from_mut(&mut chosen)
            };
            for item in items {
                let kept = |other: &String| other == name || other == "id" || other == "secret";
                item.as_object_mut().unwrap().retain(|other, _| kept(other));
            }
            let query = format!("limit=2&fields={name}");
            let less = without(&chosen, &format!("{resource}/{name}"));
            for (query, body, fine) in [
                (query.as_str(), &chosen, true),
                ("", &chosen, false),
                (&query, &whole, false),
                (&query, &less, false),
            ] {
                let judgement = with_body(&example, query, body);
                assert_eq!(judgement.is_ok(), fine, "{} {query}", example.operation.id);
            }
        }
        let all = format!("fields={}", names.cloned().collect::<Vec<_>>().join("%2C"));
        assert_eq!(with_body(&example, &all, &whole), Ok(()), "{all}");
    }
    assert_eq!(lists, 4);
}

#[test]
fn each_variant_of_a_schema_is_required_whole() {
    let document = Document::of(json!({
        "paths": {"/post": {"get": {"operationId": "getPost", "responses": {"200": {
            "content": {"application/json": {"schema": {"type": "array", "items": {"oneOf": [
                {"$ref": "#/components/schemas/Parcel"},
                {"type": "object", "properties": {"kind": {"const": "letter"}, "stamp": {"type": "string"}}},
            ]}}}},
        }}}}},
        "components": {"schemas": {"Parcel":
            {"type": "object", "properties": {"kind": {"const": "parcel"}, "weight": {"type": "integer"}}},
        }},
    }));
    for (item, fine) in [
        (json!({"kind": "parcel", "weight": 3}), true),
        (json!({"kind": "letter", "stamp": "blue"}), true),
        (json!({}), false),
        (json!({"kind": "parcel"}), false),
        (json!({"kind": "letter"}), false),
        (json!({"kind": "letter", "weight": 3}), false),
        (json!({"kind": "parcel", "weight": 3, "stamp": "blue"}), false),
    ] {
        let answer = Answer {
            status: 200,
            headers: [(reqwest::header::CONTENT_TYPE, "application/json".parse().unwrap())]
                .into_iter()
                .collect(),
            bytes: json!([item]).to_string().into_bytes(),
        };
        let judgement = judge(&document, &document.operations()[0], ("GET", ""), &answer);
        assert_eq!(judgement.is_ok(), fine, "{item}");
    }
}

#[test]
fn headers_are_there_once_and_no_others_and_a_body_is_of_its_type() {
    for example in all() {
        let told = format!("{} {}", example.operation.id, example.answer.status);
        let status = example.answer.status.to_string();
        let mut responses = example.operation.responses(Document::current());
        let (_, response) = responses.find(|(documented, _)| *documented == status).unwrap();
        for (name, value) in &example.answer.headers {
            let mut documented = response["headers"].as_object().unwrap().iter();
            let documented = documented.find(|(other, _)| other.eq_ignore_ascii_case(name.as_str()));
            let is_optional = documented
                .is_some_and(|(_, header)| Document::current().resolved(header)["required"] != true);
            let lacks = with_headers(&example, |headers| drop(headers.remove(name)));
            assert_eq!(lacks.is_ok(), is_optional, "{told} without `{name}`");
            let twice = with_headers(&example, |headers| assert!(headers.append(name, value.clone())));
            let other = with_header(&example, name.as_str(), "?");
            assert!(
                twice.is_err() && other.is_err(),
                "{told} with two or another `{name}`"
            );
        }
        assert!(with_header(&example, "x-powered-by", "steam").is_err(), "{told}");
    }
    let (me, gone) = (example("getMe", 200), example("deleteWebhook", 204));
    for (example, kind) in [
        (&me, "application/json; charset=utf-8"),
        (&me, "application/problem+json"),
        (&me, "text/plain"),
        (&gone, "application/json"),
    ] {
        assert!(with_header(example, "content-type", kind).is_err(), "{kind}");
    }
    assert!(judged(&me, ("HEAD", ""), |_| {}).is_err(), "HEAD has no body");
    assert_eq!(judged(&me, ("HEAD", ""), |answer| answer.bytes.clear()), Ok(()));
    assert!(judged(&me, ("GET", ""), |answer| answer.status = 418).is_err());
    assert!(with_body(&gone, "", &json!({})).is_err());
}

/// A delivery as in the document's example.
fn delivery(event: &str) -> Received {
    let body = &Document::current().json["webhooks"][event]["post"]["requestBody"]["content"];
    let body = &body["application/json"]["examples"]["example"]["value"];
    let headers = [
        ("host", "shop.example"),
        ("content-type", "application/json"),
        ("content-length", "1"),
        ("user-agent", "marketplace-webhooks/1.0 (+https://docs.example)"),
        ("x-signature", &format!("sha256={}", "0".repeat(64))),
        ("x-event", event),
        ("x-delivery-id", body["id"].as_str().unwrap()),
    ];
    Received {
        at: Instant::now(),
        request_line: "POST /hooks HTTP/1.1".to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        body: body.to_string().into_bytes(),
    }
}

#[test]
fn deliveries_are_judged_like_answers() {
    for event in crate::EVENTS {
        let good = delivery(event);
        let is_fine = |change: &dyn Fn(&mut Received)| {
            let mut delivery = good.clone();
            change(&mut delivery);
            judge_delivery(Document::current(), &delivery).is_ok()
        };
        assert!(is_fine(&|_| {}), "{event}");
        let body = good.json();
        let mut wrong: Vec<_> = members(&body)
            .iter()
            .map(|member| without(&body, member))
            .collect();
        for (pointer, value) in [
            ("/data/buyer", "Jan"),
            ("/id", "0191f3c4-6c7e-7b1a-8f2e-3d4c5b6a7f80"),
        ] {
            let (object, name) = pointer.rsplit_once('/').unwrap();
            let mut other = body.clone();
            other.pointer_mut(object).unwrap()[name] = json!(value);
            wrong.push(other);
        }
        for body in wrong {
            assert!(
                !is_fine(&|delivery| delivery.body = body.to_string().into_bytes()),
                "{event}: {body}"
            );
        }
        for (n, header) in good.headers.iter().enumerate() {
            let of_http = ["host", "content-length"].contains(&header.0.as_str());
            let lacks = is_fine(&|delivery| drop(delivery.headers.remove(n)));
            let twice = is_fine(&|delivery| delivery.headers.push(header.clone()));
            assert_eq!((lacks, twice), (of_http, of_http), "{event}: {header:?}");
        }
        let more = ("x-attempt".to_owned(), "1".to_owned());
        assert!(
            !is_fine(&|delivery| delivery.headers.push(more.clone())),
            "{event}"
        );
    }
}
