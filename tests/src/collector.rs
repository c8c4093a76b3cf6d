//! An OTLP collector on a loopback address. It decodes spans, and keeps every byte so that a test can search
//! it for data that must not be exported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use testkit::{HttpServer, Received, response};

use crate::{eventually, hex, serving::lock};

/// An exported span.
#[derive(Debug, Clone)]
pub struct Exported {
    /// 32 hexadecimal digits.
    pub trace: String,
    /// 16 hexadecimal digits.
    pub id: String,
    /// The id of the parent span; empty if there is none.
    pub parent: String,
    pub name: String,
    pub kind: SpanKind,
    /// Whether the span's status is an error.
    pub failed: bool,
    /// The attributes as text.
    pub attributes: BTreeMap<String, String>,
    /// Start and end in nanoseconds since 1970.
    pub times: (u64, u64),
}

impl Exported {
    /// An attribute; panics if it is missing.
    #[track_caller]
    pub fn attribute(&self, attribute: &str) -> &str {
        let value = self.attributes.get(attribute);
        value.unwrap_or_else(|| panic!("no `{attribute}`: {self:?}"))
    }

    /// Whether `other` is its parent.
    pub fn is_under(&self, other: &Self) -> bool {
        self.trace == other.trace && self.parent == other.id
    }
}

/// A running collector. It stops with the runtime of its test.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The URL without a path.
    pub url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    requests: Vec<Received>,
    /// The status of its answers; `None` for no answer.
    answer: Option<u16>,
}

impl Collector {
    /// Starts a collector that accepts everything.
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State {
            requests: Vec::new(),
            answer: Some(200),
        }));
        let serving = Arc::clone(&state);
        let server = HttpServer::start(move |request| answer(Arc::clone(&serving), request)).await;
        let url = server.url();
        Self { url, state }
    }

    /// Sets the status of all later answers; `None` for no answer.
    pub fn answers(&self, status: Option<u16>) {
        lock(&self.state).answer = status;
    }

    /// The requests so far, byte for byte.
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.state).requests.clone()
    }

    /// The resource attributes of the exporting programs.
    pub fn resources(&self) -> Vec<BTreeMap<String, String>> {
        let batches = self.batches();
        let resources = batches.iter().flat_map(|batch| &batch.resource_spans);
        resources
            .filter_map(|spans| spans.resource.as_ref())
            .map(|resource| texts(&resource.attributes))
            .collect()
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Exported> {
        let batches = self.batches();
        let scopes = batches
            .iter()
            .flat_map(|batch| &batch.resource_spans)
            .flat_map(|spans| &spans.scope_spans);
        scopes.flat_map(|scope| &scope.spans).map(exported).collect()
    }

    /// Waits for the first span for which `is` returns true.
    pub async fn span(&self, what: &str, is: impl Fn(&Exported) -> bool) -> Exported {
        eventually(what, async || self.spans().into_iter().find(|span| is(span))).await
    }

    /// Waits for the span of the request that got this `X-Trace-Id`.
    pub async fn request(&self, trace_id: &str) -> Exported {
        let is_it = |span: &Exported| span.attributes.get("x_trace_id").is_some_and(|id| id == trace_id);
        self.span(&format!("the span of {trace_id}"), is_it).await
    }

    /// All spans of a trace so far.
    pub fn of(&self, trace: &str) -> Vec<Exported> {
        let mut spans = self.spans();
        spans.retain(|span| span.trace == trace);
        spans
    }

    fn batches(&self) -> Vec<ExportTraceServiceRequest> {
        let decode = |request: Received| {
            ExportTraceServiceRequest::decode(request.body.as_slice()).expect("a batch of spans")
        };
        self.requests().into_iter().map(decode).collect()
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Received) -> Option<Vec<u8>> {
    let status = {
        let mut state = lock(&state);
        state.requests.push(request);
        state.answer
    };
    match status {
        Some(status) => Some(response(status, [("connection", "close")], b"")),
        None => std::future::pending().await,
    }
}

fn exported(span: &Span) -> Exported {
    let status = span.status.as_ref();
    Exported {
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        name: span.name.clone(),
        kind: span.kind(),
        failed: status.is_some_and(|status| status.code() == StatusCode::Error),
        attributes: texts(&span.attributes),
        times: (span.start_time_unix_nano, span.end_time_unix_nano),
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|any| any.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("an attribute of another kind: {other:?}"),
    };
    let texts = attributes.iter();
    texts
        .map(|attribute| (attribute.key.clone(), text(&attribute.value)))
        .collect()
}
