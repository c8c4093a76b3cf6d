//! JSON of which only the parts that matter must be right.

use reqwest::StatusCode;
use serde_json::Value;

use crate::runtime::Failure;

/// A JSON object.
pub(crate) fn read(body: &[u8]) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(body).map_err(|_| Failure::Unreadable("no JSON"))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::Unreadable("no JSON object"))
    }
}

/// What stands at a JSON pointer (RFC 6901), as text; carriers write numbers and words with and without quotes.
pub(crate) fn text(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What stands at a pointer, as an integer.
pub(crate) fn integer(value: &Value, pointer: &str) -> Option<i64> {
    text(value, pointer)?.trim().parse().ok()
}

/// Whether `true` stands at a pointer.
pub(crate) fn flag(value: &Value, pointer: &str) -> bool {
    text(value, pointer).is_some_and(|text| text == "true")
}

/// The elements at a pointer. A single object counts as a list of one; anything else as an empty list.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    match value.pointer(pointer) {
        Some(Value::Array(elements)) => elements,
        Some(single @ Value::Object(_)) => std::slice::from_ref(single),
        _ => &[],
    }
}

/// What an answer means that holds no parcel and no known way of saying so: a question that the carrier refuses (400,
/// 422, in JSON), else trouble on its side.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let is_refusal = matches!(status.as_u16(), 400 | 422) && read(body).is_ok();
    if is_refusal {
        Failure::Refused(format!("HTTP status {}", status.as_u16()))
    } else {
        Failure::Status(status.as_u16())
    }
}
