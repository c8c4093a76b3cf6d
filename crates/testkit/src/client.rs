//! A small HTTP client with answers that are easy to assert on.

use std::sync::{Once, OnceLock};

use reqwest::{Method, header::HeaderMap};
use serde_json::Value;

static PROVIDER: Once = Once::new();
static HOOK: OnceLock<AnswerHook> = OnceLock::new();

/// Inspects an answer, given the request's method and URL. Panics if the answer is not valid.
pub type AnswerHook = fn(method: &str, url: &str, answer: &Answer);

/// Calls `hook` with every answer that a [`Client`] of this process reads from now on. Only the first call
/// has an effect.
pub fn set_answer_hook(hook: AnswerHook) {
    HOOK.get_or_init(|| hook);
}

/// An HTTP client. Every request has a proper `User-Agent` unless the test removes it.
#[derive(Debug, Clone)]
pub struct Client {
    inner: reqwest::Client,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client that follows no redirect and uses no proxy.
    pub fn new() -> Self {
        PROVIDER.call_once(|| {
            // A test may have installed a provider already.
            drop(rustls::crypto::ring::default_provider().install_default());
        });
        let inner = reqwest::Client::builder()
            .no_proxy()
            // No test uses it for TLS, and reading the machine's certificates takes long in a debug build.
            .tls_certs_only([])
            .redirect(reqwest::redirect::Policy::none());
        Self {
            inner: inner.build().expect("a client is built"),
        }
    }

    pub fn request(&self, method: Method, url: &str) -> Request {
        let request = Request {
            client: self.inner.clone(),
            method,
            url: url.to_owned(),
            headers: Vec::new(),
            body: None,
        };
        request.header("user-agent", "Tests/1.0 (+https://tests.example)")
    }

    pub fn get(&self, url: &str) -> Request {
        self.request(Method::GET, url)
    }

    pub fn post(&self, url: &str) -> Request {
        self.request(Method::POST, url)
    }
}

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Request {
    client: reqwest::Client,
    method: Method,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// Adds a header line. It does not replace earlier lines with the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes all lines of a header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sets a JSON body and its content type.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Sets a form body and its content type.
    #[must_use]
    pub fn form(self, body: &str) -> Self {
        self.header("content-type", "application/x-www-form-urlencoded")
            .body(body.to_owned())
    }

    /// Sets the body without a content type.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends the request and reads the whole answer. Panics if the connection breaks.
    pub async fn send(self) -> Answer {
        self.try_send()
            .await
            .unwrap_or_else(|e| panic!("no answer: {e:?}"))
    }

    /// Sends the request. The error is a broken connection.
    pub async fn try_send(self) -> Result<Answer, reqwest::Error> {
        let mut request = self.client.request(self.method.clone(), &self.url);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        let answer = Answer {
            status,
            headers,
            bytes,
        };
        if let Some(hook) = HOOK.get() {
            hook(self.method.as_str(), &self.url, &answer);
        }
        Ok(answer)
    }
}

/// An answer that was read completely.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body as JSON; `null` if it is empty.
    pub fn json(&self) -> Value {
        if self.bytes.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|e| panic!("no JSON ({e}): {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// A header's value, if the header has exactly one line.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.get_all(name).iter();
        let value = lines.next()?.to_str().ok();
        assert!(lines.next().is_none(), "`{name}` is there more than once");
        value
    }

    /// The code and path of each error entry, in order.
    pub fn errors(&self) -> Vec<(String, Option<String>)> {
        let body = self.json();
        let entries = body.get("errors").and_then(Value::as_array);
        let text = |entry: &Value, name| entry.get(name)?.as_str().map(str::to_owned);
        let entry = |entry| (text(entry, "code").unwrap_or_default(), text(entry, "path"));
        entries.into_iter().flatten().map(entry).collect()
    }

    /// The code of the error entry. Panics unless there is exactly one.
    pub fn code(&self) -> String {
        let errors = self.errors();
        match errors.as_slice() {
            [(code, _)] => code.clone(),
            other => panic!("not one error entry but {other:?} in {:?}", self.json()),
        }
    }

    /// Asserts the status. A failure shows the body.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }
}
