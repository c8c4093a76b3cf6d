//! What an operation answers.

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use web::{TraceId, reply};

/// The text format of Prometheus.
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

/// A status with what goes along.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Json(Vec<u8>),
    Metrics(String),
    Nothing,
}

impl Reply {
    /// A JSON body.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            status,
            body: Body::Json(serde_json::to_vec(body)?),
        })
    }

    /// 200 with a JSON body.
    pub(crate) fn ok(body: &impl Serialize) -> Result<Self, serde_json::Error> {
        Self::json(StatusCode::OK, body)
    }

    /// 201 with a JSON body.
    pub(crate) fn created(body: &impl Serialize) -> Result<Self, serde_json::Error> {
        Self::json(StatusCode::CREATED, body)
    }

    /// 204.
    pub(crate) const fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: Body::Nothing,
        }
    }

    /// 200 with text in the format of Prometheus.
    pub(crate) const fn metrics(text: String) -> Self {
        Self {
            status: StatusCode::OK,
            body: Body::Metrics(text),
        }
    }

    /// The response, with the headers that every one has.
    pub(crate) fn into_response(self, trace_id: &TraceId) -> HttpResponse {
        match self.body {
            Body::Json(body) => reply::json(self.status, body, trace_id),
            Body::Nothing => reply::empty(self.status, trace_id),
            Body::Metrics(text) => {
                let mut response = HttpResponse::with_body(self.status, BoxBody::new(text));
                response.headers_mut().insert(CONTENT_TYPE, PROMETHEUS);
                reply::stamp(response.headers_mut(), trace_id);
                response
            }
        }
    }
}
