//! Whether an answer is what the document says: its status, its headers, its body.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use jsonschema::Validator;
use serde_json::Value;
use testkit::Answer;

use super::{Document, Operation, is_json};
use crate::Received;

/// Judges the answer of an operation.
pub(super) fn judge(document: &Document, operation: &Operation, method: &str, answer: &Answer) {
    let name = operation.name();
    let status = answer.status.to_string();
    let Some((_, response)) = operation
        .responses(document)
        .find(|(documented, _)| *documented == status)
    else {
        panic!("{name}: {status} is not documented: {answer:?}");
    };
    against(
        document,
        &format!("{name} {status}"),
        response,
        method == "HEAD",
        answer,
    );
}

/// Judges an answer where there is no operation: 404, or what comes before it.
pub(super) fn judge_elsewhere(document: &Document, path: &str, answer: &Answer) {
    let shared = match answer.status {
        400 => "BadRequest",
        401 => "Unauthorized",
        404 => "NotFound",
        429 => "TooManyRequests",
        500 => "InternalError",
        other => panic!("{path}: {other} is not documented: {answer:?}"),
    };
    if path.starts_with("/v1/") {
        let response = &document.json["components"]["responses"][shared];
        against(
            document,
            &format!("{path} {shared}"),
            response,
            answer.bytes.is_empty(),
            answer,
        );
    }
}

/// Judges a delivery: the headers and the body of its event.
pub(super) fn judge_delivery(document: &Document, delivery: &Received) {
    let event = delivery.event();
    let documented = &document.json["webhooks"][&event]["post"];
    assert!(documented.is_object(), "the event `{event}` is not documented");
    for header in documented["parameters"].as_array().expect("headers") {
        let name = header["name"].as_str().expect("a name");
        let value = Value::from(delivery.header(&name.to_lowercase()));
        fits(document, &format!("{event}, `{name}`"), &header["schema"], &value);
    }
    let schema = &documented["requestBody"]["content"]["application/json"]["schema"];
    fits(document, &event, schema, &delivery.json());
}

fn against(document: &Document, name: &str, response: &Value, bare: bool, answer: &Answer) {
    for (header, documented) in response["headers"].as_object().into_iter().flatten() {
        let documented = document.resolved(documented);
        let value = answer
            .headers
            .get(header)
            .map(|value| value.to_str().expect("a header in ASCII"));
        match value {
            None => assert!(
                documented["required"] != true,
                "{name}: no `{header}`: {answer:?}"
            ),
            Some(value) => {
                let number = (documented["schema"]["type"] == "integer")
                    .then(|| value.parse::<i64>().ok())
                    .flatten();
                let value = number.map_or_else(|| Value::from(value), Value::from);
                fits(
                    document,
                    &format!("{name}, `{header}`"),
                    &documented["schema"],
                    &value,
                );
            }
        }
    }
    match response.get("content") {
        None => assert!(
            answer.bytes.is_empty(),
            "{name}: a body that is not documented: {answer:?}"
        ),
        Some(_) if bare => {}
        Some(content) => {
            assert!(is_json(&answer.headers), "{name}: not JSON: {answer:?}");
            fits(
                document,
                name,
                &content["application/json"]["schema"],
                &answer.json(),
            );
        }
    }
}

fn fits(document: &Document, name: &str, schema: &Value, value: &Value) {
    let validator = validator(document, schema);
    let wrong: Vec<_> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        wrong.is_empty(),
        "{name} is not what the document says: {wrong:#?}\n{value}"
    );
}

/// A schema of the document, ready to judge by; made once for each process.
fn validator(document: &Document, schema: &Value) -> Arc<Validator> {
    static MADE: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let key = schema.to_string();
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let validator = made.entry(key).or_insert_with(|| {
        let mut whole = schema.clone();
        whole["components"] = document.json["components"].clone();
        let validator = jsonschema::options().should_validate_formats(true).build(&whole);
        Arc::new(validator.expect("the document's schemas are sound"))
    });
    Arc::clone(validator)
}
