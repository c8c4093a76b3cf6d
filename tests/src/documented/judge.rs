//! Checks answers and deliveries against the document: status, headers, body.

#[cfg(test)]
mod tests;

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
        let name = header["name"].as_str().expect("a name").to_lowercase();
        let value = Value::from(judging.line(delivery, &name)?);
        judging.fits(&header["schema"], &value, &format!("`{name}`"))?;
        known.insert(name);
    }
    let mut names = delivery.headers.iter().map(|(name, _)| name);
    if let Some(name) = names.find(|name| !known.contains(*name)) {
        return judging.fault(&format!("`{name}` is not documented: {delivery:?}"));
    }
    let content = &documented["requestBody"]["content"];
    let Some(stated) = content.get(judging.line(delivery, "content-type")?) else {
        return judging.fault(&format!("its content type is not documented: {delivery:?}"));
    };
    judging.fits(&stated["schema"], &body, "the body")?;
    if body["id"] == judging.line(delivery, "x-delivery-id")? {
        Ok(())
    } else {
        judging.fault(&format!("another id than `X-Delivery-Id`: {delivery:?}"))
    }
}

/// A check against the document, with the name for its errors.
struct Judging<'a> {
    document: &'a Document,
    name: &'a str,
}

impl Judging<'_> {
    /// Each header is documented and valid. Each documented one occurs exactly once; an optional one may be missing.
    fn headers(&self, response: &Value, headers: &HeaderMap, more: &[&str]) -> Judgement {
        let documented = || response["headers"].as_object().into_iter().flatten();
        for (header, stated) in documented() {
            let stated = self.document.resolved(stated);
            let lines: Vec<_> = headers.get_all(header).iter().collect();
            let &[line] = lines.as_slice() else {
                if lines.is_empty() && stated["required"] != true {
                    continue;
                }
                return self.fault(&format!("`{header}` is there {} times: {headers:?}", lines.len()));
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
        match headers.keys().find(|name| !is_known(name)) {
            Some(name) => self.fault(&format!("`{name}` is not documented: {headers:?}")),
            None => Ok(()),
        }
    }

    /// The body has the documented content type and schema. Without a documented body, there is none.
    fn body(&self, response: &Value, is_head: bool, members: &Members, answer: &Answer) -> Judgement {
        let types: Vec<_> = answer.headers.get_all("content-type").iter().collect();
        let Some(content) = response.get("content") else {
            return if answer.bytes.is_empty() && types.is_empty() {
                Ok(())
            } else {
                self.fault(&format!("a body that is not documented: {answer:?}"))
            };
        };
        let stated = match types.as_slice() {
            [only] => only.to_str().ok().and_then(|only| content.get(only)),
            _ => None,
        };
        let Some(stated) = stated else {
            return self.fault(&format!("its content type is not documented: {answer:?}"));
        };
        if is_head {
            return if answer.bytes.is_empty() {
                Ok(())
            } else {
                self.fault(&format!("a body to HEAD: {answer:?}"))
            };
        }
        let faults = self
            .document
            .schemas
            .faults(&stated["schema"], members, &answer.json());
        self.none(&faults, &answer.json())
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
        self.none(&faults, &format!("{what}: {value}"))
    }

    fn none(&self, faults: &[String], of: &impl std::fmt::Display) -> Judgement {
        if faults.is_empty() {
            return Ok(());
        }
        self.fault(&format!("not what the document says: {faults:#?}\n{of}"))
    }

    fn fault(&self, what: &str) -> Judgement {
        Err(format!("{}: {what}", self.name))
    }
}
