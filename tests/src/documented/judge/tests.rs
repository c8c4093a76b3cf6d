//! The judge, held to the document's own examples and to a small document that was made up.

use std::time::Instant;

use serde_json::json;

use super::*;
use crate::documented::{
    examples::{self, Example},
    schemas::MAY_LACK,
};

const METHOD_AND_QUERY: (&str, &str) = ("GET", "");

fn judged(example: &Example, query: &str, body: &Value) -> Judgement {
    let mut answer = example.answer.clone();
    answer.bytes = body.to_string().into_bytes();
    judge(Document::current(), example.operation, ("GET", query), &answer)
}

fn with_headers(example: &Example, change: impl FnOnce(&mut HeaderMap)) -> Judgement {
    let mut answer = example.answer.clone();
    change(&mut answer.headers);
    judge(Document::current(), example.operation, METHOD_AND_QUERY, &answer)
}

/// Examples with a body.
fn bodies() -> impl Iterator<Item = Example> {
    let examples = examples::all(Document::current()).into_iter();
    examples.filter(|example| !example.answer.bytes.is_empty())
}

fn example(operation: &str, status: u16) -> Example {
    let mut examples = examples::all(Document::current()).into_iter();
    let found = examples.find(|example| example.operation.id == operation && example.answer.status == status);
    found.expect("there is an example")
}

/// Where the members of all objects within `value` are.
fn members(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value, bool)> = match value {
        Value::Object(members) => members.iter().map(|(name, v)| (name.clone(), v, true)).collect(),
        Value::Array(items) => (0..)
            .zip(items)
            .map(|(n, v): (usize, _)| (n.to_string(), v, false))
            .collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (name, value, is_member) in inner {
        found.extend(is_member.then(|| format!("/{name}")));
        found.extend(members(value).iter().map(|below| format!("/{name}{below}")));
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
fn the_examples_of_the_document_are_as_documented() {
    for example in examples::all(Document::current()) {
        let judgement = judge(
            Document::current(),
            example.operation,
            METHOD_AND_QUERY,
            &example.answer,
        );
        assert_eq!(judgement, Ok(()), "{}", example.operation.id);
    }
}

#[test]
fn an_answer_that_lacks_a_member_at_any_depth_is_refused() {
    let mut refused = 0;
    for example in bodies() {
        let body = example.answer.json();
        for member in members(&body) {
            let name = member.rsplit('/').next().unwrap();
            let may_lack = MAY_LACK.iter().any(|(_, other)| *other == name) && !member.starts_with("/items/");
            let judgement = judged(&example, "", &without(&body, &member));
            let told = format!(
                "{} {} without {member}",
                example.operation.id, example.answer.status
            );
            // A shipment's `item_ids` are there, those of a refusal are not always.
            if may_lack && (example.answer.status >= 400 || name != "item_ids") {
                assert_eq!(judgement, Ok(()), "{told}");
            } else {
                assert!(judgement.is_err(), "{told}");
                refused += 1;
            }
        }
        assert!(
            judged(&example, "", &json!({})).is_err(),
            "{}",
            example.operation.id
        );
    }
    assert!(refused > 200, "{refused}");
}

#[test]
fn an_answer_with_a_member_that_is_not_documented_is_refused_at_any_depth() {
    for example in bodies() {
        let body = example.answer.json();
        let objects = members(&body)
            .into_iter()
            .map(|member| member.rsplit_once('/').unwrap().0.to_owned());
        for object in objects {
            let mut more = body.clone();
            more.pointer_mut(&object).unwrap()["surprise"] = json!(1);
            let judgement = judged(&example, "", &more);
            assert!(
                judgement.is_err(),
                "{} with {object}/surprise",
                example.operation.id
            );
        }
    }
}

#[test]
fn what_was_chosen_has_to_be_there_and_nothing_else() {
    let choosing = bodies().filter(|example| example.operation.has_choice() && example.answer.status < 300);
    let mut lists = 0;
    for example in choosing {
        let whole = example.answer.json();
        let is_list = example.operation.id.starts_with("list");
        lists += usize::from(is_list);
        let resource = if is_list { "/items/0" } else { "" };
        let names: Vec<String> = whole
            .pointer(resource)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for name in &names {
            let always = |other: &String| other == "id" || other == "secret";
            let mut chosen = whole.clone();
            let items = if is_list {
                chosen["items"].as_array_mut().unwrap().as_mut_slice()
            } else {
                std::slice::from_mut(&mut chosen)
            };
            for item in items {
                let item = item.as_object_mut().unwrap();
                item.retain(|other, _| other == name || always(other));
            }
            let query = format!("limit=2&fields={name}");
            let told = format!("{} {query}", example.operation.id);
            assert_eq!(judged(&example, &query, &chosen), Ok(()), "{told}");
            assert!(judged(&example, "", &chosen).is_err(), "{told}, not chosen");
            assert!(judged(&example, &query, &whole).is_err(), "{told}, too much");
            let less = without(&chosen, &format!("{resource}/{name}"));
            assert!(judged(&example, &query, &less).is_err(), "{told}, too little");
        }
        let all = format!("fields={}", names.join("%2C"));
        assert_eq!(judged(&example, &all, &whole), Ok(()), "{all}");
    }
    assert_eq!(lists, 4);
}

#[test]
fn what_may_be_null_is_null_or_whole() {
    let order = example("getOrder", 200);
    let body = order.answer.json();
    for member in ["buyer", "shipping_address", "shipment"] {
        let with = |value: Value| {
            let mut body = body.clone();
            body[member] = value;
            judged(&order, "", &body)
        };
        assert_eq!(with(Value::Null), Ok(()), "{member}");
        assert!(with(json!({})).is_err(), "{member}");
        assert!(with(json!([])).is_err(), "{member}");
    }
}

#[test]
fn each_variant_of_a_schema_is_required_whole() {
    let parcel =
        json!({"type": "object", "properties": {"kind": {"const": "parcel"}, "weight": {"type": "integer"}}});
    let letter =
        json!({"type": "object", "properties": {"kind": {"const": "letter"}, "stamp": {"type": "string"}}});
    let either = json!({"oneOf": [{"$ref": "#/components/schemas/Parcel"}, letter]});
    let document = Document::of(json!({
        "paths": {"/post": {"get": {"operationId": "getPost", "responses": {"200": {
            "content": {"application/json": {"schema": {"type": "array", "items": either}}},
        }}}}},
        "components": {"schemas": {"Parcel": parcel}},
    }));
    let answered = |body: Value| {
        let mut answer = Answer {
            status: 200,
            headers: HeaderMap::new(),
            bytes: body.to_string().into_bytes(),
        };
        answer
            .headers
            .insert("content-type", "application/json".parse().unwrap());
        judge(&document, &document.operations()[0], METHOD_AND_QUERY, &answer)
    };
    let (parcel, letter) = (
        json!({"kind": "parcel", "weight": 3}),
        json!({"kind": "letter", "stamp": "blue"}),
    );
    assert_eq!(answered(json!([parcel, letter])), Ok(()));
    for wrong in [
        json!({}),
        json!({"kind": "parcel"}),
        json!({"kind": "letter"}),
        json!({"kind": "letter", "weight": 3}),
        json!({"kind": "parcel", "weight": 3, "stamp": "blue"}),
    ] {
        assert!(answered(json!([parcel, wrong])).is_err(), "{wrong}");
    }
}

#[test]
fn headers_are_there_once_and_no_others() {
    for example in examples::all(Document::current()) {
        let told = format!("{} {}", example.operation.id, example.answer.status);
        let responses = example.operation.responses(Document::current());
        let status = example.answer.status.to_string();
        let (_, response) = { responses }
            .find(|(documented, _)| *documented == status)
            .unwrap();
        for (name, value) in &example.answer.headers {
            let lacks = with_headers(&example, |headers| {
                headers.remove(name);
            });
            let documented = response["headers"].as_object().unwrap().iter();
            let mut documented = documented.filter(|(other, _)| other.eq_ignore_ascii_case(name.as_str()));
            let is_optional = documented
                .next()
                .is_some_and(|(_, header)| Document::current().resolved(header)["required"] != true);
            assert_eq!(lacks.is_ok(), is_optional, "{told} without `{name}`");
            let twice = with_headers(&example, |headers| {
                headers.append(name, value.clone());
            });
            assert!(twice.is_err(), "{told} with two `{name}`");
            let other = with_headers(&example, |headers| {
                headers.insert(name, "?".parse().unwrap());
            });
            assert!(other.is_err(), "{told} with another `{name}`");
        }
        let more = with_headers(&example, |headers| {
            headers.insert("x-powered-by", "steam".parse().unwrap());
        });
        assert!(more.is_err(), "{told}");
    }
}

#[test]
fn a_body_is_of_the_documented_type_or_not_there() {
    let me = example("getMe", 200);
    for other in [
        "application/json; charset=utf-8",
        "application/problem+json",
        "text/plain",
    ] {
        let judgement = with_headers(&me, |headers| {
            headers.insert("content-type", other.parse().unwrap());
        });
        assert!(judgement.is_err(), "{other}");
    }
    let head = |answer: &Answer| judge(Document::current(), me.operation, ("HEAD", ""), answer);
    assert!(head(&me.answer).is_err(), "HEAD has no body");
    let mut bare = me.answer.clone();
    bare.bytes.clear();
    assert_eq!(head(&bare), Ok(()));
    let gone = example("deleteWebhook", 204);
    let typed = with_headers(&gone, |headers| {
        headers.insert("content-type", "application/json".parse().unwrap());
    });
    assert!(typed.is_err());
    assert!(judged(&gone, "", &json!({})).is_err());
    let mut other = me.answer.clone();
    other.status = 418;
    assert!(judge(Document::current(), me.operation, METHOD_AND_QUERY, &other).is_err());
}

/// A delivery as the document shows it.
fn delivery(event: &str) -> Received {
    let body =
        &Document::current().json["webhooks"][event]["post"]["requestBody"]["content"]["application/json"];
    let body = body["examples"]["example"]["value"].clone();
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
        let judged = |delivery: &Received| judge_delivery(Document::current(), delivery);
        assert_eq!(judged(&good), Ok(()), "{event}");
        let with = |body: &Value| {
            let mut delivery = good.clone();
            delivery.body = body.to_string().into_bytes();
            judged(&delivery)
        };
        let body = good.json();
        for member in members(&body) {
            assert!(
                with(&without(&body, &member)).is_err(),
                "{event} without {member}"
            );
        }
        let mut more = body.clone();
        more["data"]["buyer"] = json!("Jan");
        assert!(with(&more).is_err(), "{event} with a buyer");
        let mut other = body;
        other["id"] = json!("0191f3c4-6c7e-7b1a-8f2e-3d4c5b6a7f80");
        assert!(with(&other).is_err(), "{event} with another id");
        for n in 0..good.headers.len() {
            let (mut lacks, mut twice) = (good.clone(), good.clone());
            let (name, _) = lacks.headers.remove(n);
            twice.headers.push(good.headers[n].clone());
            let of_http = ["host", "content-length"].contains(&name.as_str());
            assert_eq!(judged(&lacks).is_ok(), of_http, "{event} without `{name}`");
            assert_eq!(judged(&twice).is_ok(), of_http, "{event} with two `{name}`");
        }
        let mut more = good.clone();
        more.headers.push(("x-attempt".to_owned(), "1".to_owned()));
        assert!(judged(&more).is_err(), "{event}");
    }
}

#[test]
fn what_may_be_lacking_is_documented_as_such() {
    let schemas = &Document::current().json["components"]["schemas"];
    for (name, member) in MAY_LACK {
        let schema = &schemas[name];
        assert!(schema["properties"].get(member).is_some(), "{name}.{member}");
        let required = schema["required"].as_array().unwrap();
        assert!(!required.contains(&json!(member)), "{name}.{member}");
    }
}
