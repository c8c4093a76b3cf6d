//! What an operation answers.

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use bytes::Bytes;
use kernel::Remembered;
use serde::Serialize;
use usecases::Answer;
use web::{TraceId, idempotency_key, reply};

/// The text format of Prometheus.
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

/// A status with what goes along.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    body: Body,
    replayed: bool,
}

#[derive(Debug)]
enum Body {
    Json(Bytes),
    Metrics(String),
    Nothing,
}

impl Reply {
    /// A JSON body.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        let body = Body::Json(serde_json::to_vec(body)?.into());
        Ok(Self::new(status, body))
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
        Self::new(StatusCode::NO_CONTENT, Body::Nothing)
    }

    /// 200 with text in the format of Prometheus.
    pub(crate) const fn metrics(text: String) -> Self {
        Self::new(StatusCode::OK, Body::Metrics(text))
    }

    /// An answer of ours, out of the row where it is remembered.
    pub(crate) fn remembered(answer: Remembered) -> Self {
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
        let body = match status {
            StatusCode::NO_CONTENT => Body::Nothing,
            _ => Body::Json(answer.body.into()),
        };
        Self::new(status, body)
    }

    /// The answer that an earlier request with the same key got.
    pub(crate) fn replayed(answer: Remembered) -> Self {
        Self {
            replayed: true,
            ..Self::remembered(answer)
        }
    }

    const fn new(status: StatusCode, body: Body) -> Self {
        Self {
            status,
            body,
            replayed: false,
        }
    }

    /// The response, with the headers that every one has.
    pub(crate) fn into_response(self, trace_id: &TraceId) -> HttpResponse {
        let mut response = match self.body {
            Body::Json(body) => reply::json(self.status, body, trace_id),
            Body::Nothing => reply::empty(self.status, trace_id),
            Body::Metrics(text) => {
                let mut response = HttpResponse::with_body(self.status, BoxBody::new(text));
                response.headers_mut().insert(CONTENT_TYPE, PROMETHEUS);
                reply::stamp(response.headers_mut(), trace_id);
                response
            }
        };
        if self.replayed {
            idempotency_key::mark_replayed(response.headers_mut());
        }
        response
    }
}

impl Answer for Reply {
    fn remembered(&self) -> Remembered {
        let body = match &self.body {
            Body::Json(body) => body.to_vec(),
            Body::Metrics(_) | Body::Nothing => Vec::new(),
        };
        Remembered {
            status: self.status.as_u16(),
            body,
        }
    }
}
