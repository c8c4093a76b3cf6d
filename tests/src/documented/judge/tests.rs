//! Tests the checks with the document's examples.

use std::time::Instant;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::json;

use super::*;
use crate::documented::examples;
use crate::documented::examples::Example;
use crate::documented::schemas::MAY_LACK;
use crate::merged;

/// Checks an example with a change to the answer.
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

fn with_header(example: &Example, name: &HeaderName, value: &'static str) -> Judgement {
    let value = HeaderValue::from_static(value);
    with_headers(example, |headers| drop(headers.insert(name, value)))
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
fn examples_pass_and_each_missing_or_additional_member_is_found() {
    let mut found = 0;
    for example in all() {
        let name = format!("{} {}", example.operation.id, example.answer.status);
        assert_eq!(judged(&example, ("GET", ""), |_| {}), Ok(()), "{name}");
        if example.answer.bytes.is_empty() {
            continue;
        }
        let body = example.answer.json();
        for member in members(&body) {
            let (object, last) = member.rsplit_once('/').unwrap();
            let may_lack = MAY_LACK.iter().any(|(_, other)| *other == last) && !member.starts_with("/items/");
            // A shipment always has `item_ids`; an error has them only sometimes.
            let may_lack = may_lack && (example.answer.status >= 400 || last != "item_ids");
            let less = with_body(&example, "", &without(&body, &member));
            assert_eq!(less.is_ok(), may_lack, "{name} without {member}");
            found += usize::from(!may_lack);
            let mut more = body.clone();
            more.pointer_mut(object).unwrap()["surprise"] = json!(1);
            let more = with_body(&example, "", &more);
            assert!(more.is_err(), "{name} with {object}/surprise");
        }
    }
    assert!(found > 200, "{found}");
    let schemas = &Document::current().json["components"]["schemas"];
    for (name, member) in MAY_LACK {
        let schema = &schemas[name];
        assert!(schema["properties"].get(member).is_some(), "{name}.{member}");
        let required = schema["required"].as_array().unwrap();
        assert!(!required.contains(&json!(member)), "{name}.{member}");
    }
    // A nullable member is null or complete.
    let order = example("getOrder", 200);
    for (value, fine) in [(Value::Null, true), (json!({}), false), (json!([]), false)] {
        let mut body = order.answer.json();
        body["buyer"] = value;
        assert_eq!(with_body(&order, "", &body).is_ok(), fine);
    }
    // `fields` makes the chosen members and `id` the only ones, in a list too.
    let chosen = json!({"id": order.answer.json()["id"], "buyer": null});
    for (query, fine) in [
        ("fields=buyer", true),
        ("fields=buyer,status", false),
        ("fields=id", false),
    ] {
        assert_eq!(with_body(&order, query, &chosen).is_ok(), fine, "{query}");
    }
}

#[test]
fn each_missing_repeated_wrong_or_additional_header_is_found() {
    for example in all() {
        let name = format!("{} {}", example.operation.id, example.answer.status);
        let status = example.answer.status.to_string();
        let mut responses = example.operation.responses(Document::current());
        let (_, response) = responses.find(|(documented, _)| *documented == status).unwrap();
        for (header, value) in &example.answer.headers {
            let mut documented = response["headers"].as_object().unwrap().iter();
            let documented = documented.find(|(other, _)| other.eq_ignore_ascii_case(header.as_str()));
            let is_optional = documented
                .is_some_and(|(_, header)| Document::current().resolved(header)["required"] != true);
            let lacks = with_headers(&example, |headers| drop(headers.remove(header)));
            assert_eq!(lacks.is_ok(), is_optional, "{name} without `{header}`");
            let twice = with_headers(&example, |headers| assert!(headers.append(header, value.clone())));
            let other = with_header(&example, header, "?");
            assert!(twice.is_err(), "{name} with two `{header}`");
            assert!(other.is_err(), "{name} with another `{header}`");
        }
        let unknown = HeaderName::from_static("x-powered-by");
        assert!(with_header(&example, &unknown, "steam").is_err(), "{name}");
    }
    let (me, gone) = (example("getMe", 200), example("deleteWebhook", 204));
    for (example, kind) in [
        (&me, "application/json; charset=utf-8"),
        (&me, "application/problem+json"),
        (&me, "text/plain"),
        (&gone, "application/json"),
    ] {
        assert!(with_header(example, &CONTENT_TYPE, kind).is_err(), "{kind}");
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
fn deliveries_are_checked_like_answers() {
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
        wrong.extend(
            [
                json!({"id": "0191f3c4-6c7e-7b1a-8f2e-3d4c5b6a7f80"}),
                json!({"more": 1}),
            ]
            .map(|change| merged(body.clone(), change)),
        );
        let mut more = body.clone();
        more["data"]["buyer"] = json!("Jan");
        wrong.push(more);
        for body in wrong {
            let bytes = body.to_string().into_bytes();
            let is_fine = is_fine(&|delivery| delivery.body.clone_from(&bytes));
            assert!(!is_fine, "{event}: {body}");
        }
        for (n, header) in good.headers.iter().enumerate() {
            let of_http = ["host", "content-length"].contains(&header.0.as_str());
            let lacks = is_fine(&|delivery| drop(delivery.headers.remove(n)));
            let twice = is_fine(&|delivery| delivery.headers.push(header.clone()));
            assert_eq!((lacks, twice), (of_http, of_http), "{event}: {header:?}");
        }
        let more = ("x-attempt".to_owned(), "1".to_owned());
        let has_more = is_fine(&|delivery| delivery.headers.push(more.clone()));
        assert!(!has_more, "{event}");
    }
}
