//! One entry of the error shape: a code, a message for developers, and where it applies.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::code::Code;

/// `{code, message, userMessage?, path?, …}` (contract: Errors). `path` reads `price.amount`, `item_ids[2]`, or is
/// the name of a header or query parameter (D14).
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    code: Code,
    message: Cow<'static, str>,
    path: Option<Cow<'static, str>>,
    more: Vec<(&'static str, Value)>,
}

impl Entry {
    /// An entry about the request as a whole. The `userMessage` follows from the code.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            path: None,
            more: Vec::new(),
        }
    }

    /// A `validation_error` at a field, header or query parameter.
    pub fn validation(path: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::ValidationError, message).at(path)
    }

    /// A `validation_error` without a path: about the body, or the request, as a whole.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::ValidationError, message)
    }

    /// The same at this path.
    #[must_use]
    pub fn at(self, path: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: Some(path.into()),
            ..self
        }
    }

    /// The same with one more member, such as the `item_ids` of `multi_seller_order` (D39). Members come after the
    /// four common ones, in the order in which they were added.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((name, value.into()));
        self
    }

    /// The code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The status of a response with this entry.
    pub const fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// The message for developers.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it applies, if not to the whole.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code.as_str())?;
        map.serialize_entry("message", &self.message)?;
        if let Some(user_message) = self.code.user_message() {
            map.serialize_entry("userMessage", user_message)?;
        }
        if let Some(path) = &self.path {
            map.serialize_entry("path", path)?;
        }
        for (name, value) in &self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
