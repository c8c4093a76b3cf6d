//! Checks answers and deliveries against the document: status, headers, body.

use std::collections::BTreeSet;

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::Value;
use testkit::Answer;

use super::{Document, Operation, schemas::Members};
use crate::Received;

/// Headers of answers that HTTP defines; the document does not list them.
const OF_HTTP: [&str; 5] = [
    "connection",
    "content-length",
    "content-type",
    "date",
    // In every answer, for browsers.
    "x-content-type-options",
];

/// Headers of requests that HTTP defines.
const OF_HTTP_REQUESTS: [&str; 3] = ["host", "content-length", "content-type"];

/// The error describes the difference from the document.
pub(super) type Judgement = Result<(), String>;

/// Checks an operation's answer to a request with this method and query.
pub(super) fn judge(
    document: &Document,
    operation: &Operation,
    (method, query): (&str, &str),
    answer: &Answer,
) -> Judgement {
    let name = format!("{} {}", operation.name(), answer.status);
    let status = answer.status.to_string();
    let mut responses = operation.responses(document);
    let Some((_, response)) = responses.find(|(documented, _)| *documented == status) else {
        return Err(format!("{name} is not documented: {answer:?}"));
    };
    let members = if operation.has_choice() && answer.status < 300 {
        Members::asked_for(query)
    } else {
        Members::All
    };
    let judging = Judging {
        document,
        name: &name,
    };
    judging.headers(response, &answer.headers, &[])?;
    judging.body(response, method == "HEAD", &members, answer)
}

/// Checks an answer on a path without an operation: 404, or an error of an earlier step.
pub(super) fn judge_elsewhere(
    document: &Document,
    (method, path): (&str, &str),
    answer: &Answer,
) -> Judgement {
    let shared = match answer.status {
        400 => "BadRequest",
        401 => "Unauthorized",
        404 => "NotFound",
        429 => "TooManyRequests",
        500 => "InternalError",
        other => return Err(format!("{path}: {other} is not documented: {answer:?}")),
    };
    if !path.starts_with("/v1/") {
        return Ok(());
    }
    let name = format!("{method} {path} {shared}");
    let judging = Judging {
        document,
        name: &name,
    };
    let response = &document.json["components"]["responses"][shared];
    judging.headers(response, &answer.headers, &["allow"])?;
    judging.body(response, method == "HEAD", &Members::All, answer)
}

/// Checks a delivery: the headers and the body of its event.
pub(super) fn judge_delivery(document: &Document, delivery: &Received) -> Judgement {
    let body = delivery.json();
    let event = body["event"].as_str().unwrap_or_default();
    let documented = &document.json["webhooks"][event]["post"];
    if !documented.is_object() {
        return Err(format!("the event `{event}` is not documented: {body}"));
    }
    let judging = Judging {
        document,
        name: event,
    };
    let mut known: BTreeSet<String> = OF_HTTP_REQUESTS.map(str::to_owned).into();
    for header in documented["parameters"].as_array().expect("headers") {
        let header = document.resolved(header);
        let name = header["name"].as_str().expect("a name").to_lowercase();
        let value = Value::from(judging.line(delivery, &name)?);
        judging.fits(&header["schema"], &value, &format!("`{name}`"))?;
        known.insert(name);
    }
    let mut names = delivery.headers.iter().map(|(name, _)| name);
    let is_known = names.all(|name| known.contains(name));
    judging.ensure(is_known, "a header that is not documented", delivery)?;
    let content = &documented["requestBody"]["content"];
    let stated = content.get(judging.line(delivery, "content-type")?);
    judging.ensure(
        stated.is_some(),
        "a content type that is not documented",
        delivery,
    )?;
    let schema = stated.map_or(&Value::Null, |stated| &stated["schema"]);
    judging.fits(schema, &body, "the body")?;
    let is_own = body["id"] == judging.line(delivery, "x-delivery-id")?;
    judging.ensure(is_own, "another id than `X-Delivery-Id`", delivery)
}

/// A check against the document, with the name for its errors.
struct Judging<'a> {
    document: &'a Document,
    name: &'a str,
}

impl Judging<'_> {
    /// Each header is documented and valid. Each documented one occurs exactly once; an optional one may be
    /// missing.
    fn headers(&self, response: &Value, headers: &HeaderMap, more: &[&str]) -> Judgement {
        let documented = || response["headers"].as_object().into_iter().flatten();
        for (header, stated) in documented() {
            let stated = self.document.resolved(stated);
            let lines: Vec<_> = headers.get_all(header).iter().collect();
            let &[line] = lines.as_slice() else {
                let is_fine = lines.is_empty() && stated["required"] != true;
                self.ensure(is_fine, &format!("`{header}` is missing or repeated"), headers)?;
                continue;
            };
            let text = line.to_str().expect("a header in ASCII");
            let is_number = stated["schema"]["type"] == "integer";
            let number = is_number.then(|| text.parse::<i64>().ok()).flatten();
            let value = number.map_or_else(|| Value::from(text), Value::from);
            self.fits(&stated["schema"], &value, &format!("`{header}`"))?;
        }
        let is_known = |name: &HeaderName| {
            let name = name.as_str();
            OF_HTTP.contains(&name)
                || more.contains(&name)
                || documented().any(|(header, _)| header.eq_ignore_ascii_case(name))
        };
        self.ensure(
            headers.keys().all(is_known),
            "a header that is not documented",
            headers,
        )
    }

    /// The body has the documented content type and schema. Without a documented body, there is none.
    fn body(&self, response: &Value, is_head: bool, members: &Members, answer: &Answer) -> Judgement {
        let types: Vec<_> = answer.headers.get_all("content-type").iter().collect();
        let Some(content) = response.get("content") else {
            let has_none = answer.bytes.is_empty() && types.is_empty();
            return self.ensure(has_none, "a body that is not documented", answer);
        };
        let stated = match types.as_slice() {
            [only] => only.to_str().ok().and_then(|only| content.get(only)),
            _ => None,
        };
        self.ensure(stated.is_some(), "a content type that is not documented", answer)?;
        if is_head {
            return self.ensure(answer.bytes.is_empty(), "a body to HEAD", answer);
        }
        let schema = stated.map_or(&Value::Null, |stated| &stated["schema"]);
        let schemas = &self.document.schemas;
        let faults = schemas.faults(schema, members, &answer.json());
        self.ensure(faults.is_empty(), "not as documented", &(faults, answer))
    }

    /// The only line of a delivery's header.
    fn line<'d>(&self, delivery: &'d Received, name: &str) -> Result<&'d str, String> {
        let lines = delivery.headers.iter().filter(|(other, _)| other == name);
        match lines.collect::<Vec<_>>().as_slice() {
            [(_, line)] => Ok(line),
            other => Err(format!("{}: `{name}` is there as {other:?}", self.name)),
        }
    }

    fn fits(&self, schema: &Value, value: &Value, what: &str) -> Judgement {
        let faults = self.document.schemas.faults(schema, &Members::All, value);
        self.ensure(faults.is_empty(), what, &(faults, value))
    }

    fn ensure(&self, is_fine: bool, what: &str, of: &impl std::fmt::Debug) -> Judgement {
        let fault = || format!("{}: {what}: {of:#?}", self.name);
        is_fine.then_some(()).ok_or_else(fault)
    }
}
