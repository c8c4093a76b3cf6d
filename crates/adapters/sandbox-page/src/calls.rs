//! Calls of the public interfaces: as `curl` commands, and as the page makes them.

use std::time::Duration;

use kernel::error_chain;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;
use web::form::Form;

use crate::SandboxPage;

/// The API answers within a few seconds; a carrier that does not answer takes up to 10 s.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Whose credentials a call carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum By {
    /// The personal token of the seller at this place.
    Seller(usize),
    /// The operator's token; the call goes to the back office.
    Office,
    /// The page: its endpoints want its origin, and its token in the form.
    Page,
    Bearer(String),
    Nobody,
}

/// A call of the API, of the back office, or of the page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) by: By,
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    /// Null for none. It goes as a form to the token endpoint and to the page, and as JSON elsewhere.
    pub(crate) body: Value,
    /// The `Idempotency-Key`: see [`Self::keyed`].
    pub(crate) key: Option<String>,
}

/// An answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) trace_id: Option<String>,
    pub(crate) body: String,
}

impl Answered {
    /// The body; null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The body for people.
    pub(crate) fn pretty(&self) -> String {
        match self.json() {
            Value::Null => self.body.clone(),
            json => format!("{json:#}"),
        }
    }
}

impl Call {
    pub(crate) fn new(by: By, method: Method, path: impl Into<String>, body: Value) -> Self {
        Self {
            by,
            method,
            path: path.into(),
            body,
            key: None,
        }
    }

    /// With a key for its repetition, if it has none, would do something twice, and the interface takes one.
    pub(crate) fn keyed(mut self, page: &SandboxPage) -> Self {
        let is_keyed = self.method == Method::POST && matches!(self.by, By::Seller(_) | By::Office);
        let new = || page.settings.randomness.uuid().to_string();
        self.key = self.key.or_else(|| is_keyed.then(new));
        self
    }

    /// For the field `call` of a form: see [`Self::parse`].
    pub(crate) fn kept(&self) -> String {
        json!([self.by, self.method.as_str(), self.path, self.body]).to_string()
    }

    /// The call that a form of the page asks for. Its fields: `call`; and JSON pointers into the call's body, such
    /// as `/price/amount`, with the values that a person entered.
    pub(crate) fn parse(form: &Form) -> Option<Self> {
        let (by, method, path, mut body): (By, String, String, Value) =
            serde_json::from_str(form.get("call")?).ok()?;
        for (pointer, entered) in form.pairs().filter(|(name, _)| name.starts_with('/')) {
            let value = body.pointer_mut(pointer)?;
            *value = entered_value(value, entered);
        }
        let call = Self::new(by, method.parse().ok()?, path, body);
        Some(call).filter(|call| call.path.starts_with('/'))
    }

    /// The value that an input for this place of the body begins with.
    pub(crate) fn entered(&self, pointer: &str) -> String {
        match self.body.pointer(pointer) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    fn url(&self, page: &SandboxPage) -> String {
        let origin = match self.by {
            By::Office => &page.settings.backoffice_url,
            _ => &page.settings.api_url,
        };
        format!("{origin}{}", self.path)
    }

    fn headers(&self, page: &SandboxPage) -> impl Iterator<Item = (&'static str, String)> {
        let settings = &page.settings;
        let token = match &self.by {
            By::Seller(n) => page.sellers.get(*n).map(|seller| &seller.personal_token),
            By::Office => Some(&settings.backoffice_token),
            By::Bearer(token) => Some(token),
            By::Page | By::Nobody => None,
        };
        let token = token.map(|token| ("Authorization", format!("Bearer {token}")));
        let key = self.key.clone().map(|key| ("Idempotency-Key", key));
        let origin = (self.by == By::Page).then(|| ("Origin", settings.api_url.clone()));
        [token, key, origin].into_iter().flatten()
    }

    /// The fields of the body, if it goes as a form.
    fn fields(&self) -> Option<impl Iterator<Item = (&str, &str)>> {
        let fields = self.body.as_object()?.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
        matches!(self.by, By::Page | By::Nobody).then_some(fields)
    }

    /// The command that makes the call, for a POSIX shell.
    pub(crate) fn curl(&self, page: &SandboxPage) -> String {
        let mut parts = vec!["curl -s".to_owned()];
        if !(self.method == Method::GET || self.method == Method::POST && !self.body.is_null()) {
            parts.push(format!("-X {}", self.method));
        }
        parts.push(quoted(&self.url(page)));
        if !matches!(self.by, By::Office | By::Page) {
            parts.push("-A MyShop/1.0".to_owned());
        }
        let headers = self.headers(page);
        parts.extend(headers.map(|(name, value)| format!("\\\n  -H '{name}: {value}'")));
        if let Some(fields) = self.fields() {
            let fields = fields.map(|(name, value)| quoted(&format!("{name}={value}")));
            parts.extend(fields.map(|field| format!("\\\n  --data-urlencode {field}")));
        } else if !self.body.is_null() {
            let body = quoted(&self.body.to_string());
            parts.push(format!("\\\n  -H 'Content-Type: application/json' -d {body}"));
        }
        parts.join(" ")
    }
}

/// What a person entered, of the type of the value that it replaces.
pub(crate) fn entered_value(value: &Value, entered: &str) -> Value {
    match (value, entered.parse::<i64>()) {
        (Value::Number(_), Ok(number)) => number.into(),
        _ => entered.into(),
    }
}

/// One word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // The client wants one, though it speaks plain HTTP only. Fails if one is installed, which does as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::builder()
        .user_agent("SandboxPage/1.0")
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(TIMEOUT);
    client.build()
}

impl SandboxPage {
    /// The answer, or a sentence about its absence.
    pub(crate) async fn make(&self, call: &Call) -> Result<Answered, String> {
        let no_answer = |error: reqwest::Error| {
            let cause = error_chain(&error);
            format!("The call got no answer ({cause}): see the sandbox's log.")
        };
        let mut request = self.http.request(call.method.clone(), call.url(self));
        for (name, value) in call.headers(self) {
            request = request.header(name, value);
        }
        if let Some(fields) = call.fields() {
            let form = Serializer::new(String::new()).extend_pairs(fields).finish();
            request = request
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form);
        } else if !call.body.is_null() {
            request = request.json(&call.body);
        }
        let response = request.send().await.map_err(no_answer)?;
        let trace_id = response.headers().get("x-trace-id");
        // The timeline has none of the page's own.
        let trace_id = trace_id.filter(|_| call.by != By::Page);
        Ok(Answered {
            status: response.status(),
            trace_id: trace_id.and_then(|id| id.to_str().ok()).map(str::to_owned),
            body: response.text().await.map_err(no_answer)?,
        })
    }
}

/// A string of an object; empty for none.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_enters_keeps_the_types_of_the_body() {
        let form = Form::parse(
            b"call=[{\"Seller\":1},\"PATCH\",\"/v1/offers/1\",{\"price\":{\"amount\":1},\"name\":\"a\"}]\
              &/price/amount=250&/name=12",
        );
        let call = Call::parse(&form.unwrap()).unwrap();
        let body = json!({"price": {"amount": 250}, "name": "12"});
        assert_eq!(
            call,
            Call::new(By::Seller(1), Method::PATCH, "/v1/offers/1", body)
        );
    }

    #[test]
    fn a_call_goes_nowhere_else() {
        for form in [
            r#"call=["Office","GET","@example.com/",null]"#,
            r#"call=["Office","GET"]"#,
            "method=GET&path=/sellers",
        ] {
            assert_eq!(
                Call::parse(&Form::parse(form.as_bytes()).unwrap()),
                None,
                "{form}"
            );
        }
    }

    #[test]
    fn a_word_is_quoted_for_the_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
