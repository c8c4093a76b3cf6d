//! A request as it comes in, before anybody has looked at it.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use tokio::time::Instant;
use web::body::{self, Body, BodyLimits};
use web::{RequestSpan, TraceId, reply};

/// What every part of the listener answers from.
pub(crate) struct Arrival {
    pub(crate) request: HttpRequest,
    payload: Payload,
    pub(crate) trace_id: TraceId,
    /// What traces tell of it.
    pub(crate) span: RequestSpan,
    /// Whom the request comes from, trusted proxies left out.
    pub(crate) client: IpAddr,
    pub(crate) at: Instant,
    /// How long the client took to send its body.
    reading: Duration,
}

impl Arrival {
    pub(crate) fn new(
        request: HttpRequest,
        payload: Payload,
        (trace_id, span): (TraceId, RequestSpan),
        client: IpAddr,
        at: Instant,
    ) -> Self {
        Self {
            request,
            payload,
            trace_id,
            span,
            client,
            at,
            reading: Duration::ZERO,
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The path as it was sent, still percent-encoded.
    pub(crate) fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// How long the client took to send its body.
    pub(crate) const fn reading(&self) -> Duration {
        self.reading
    }

    /// Reads the body; where that fails, the complaint for the client, after which the connection is to be closed.
    pub(crate) async fn body(&mut self, limits: BodyLimits) -> Result<Bytes, &'static str> {
        if matches!(self.payload, Payload::None) {
            return Ok(Bytes::new());
        }
        let began = Instant::now();
        let body = body::read(self.request.headers(), &mut self.payload, limits).await;
        self.reading = began.elapsed();
        match (body.complaint(), body) {
            (None, Body::Whole(bytes)) => Ok(bytes),
            (complaint, _) => Err(complaint.unwrap_or_default()),
        }
    }

    /// Ends the request: what is left of its body is not read.
    pub(crate) fn end(self, response: HttpResponse, closes: bool) -> HttpResponse {
        match self.payload {
            payload if closes => reply::closing(response, payload),
            Payload::None => response,
            payload => reply::holding(response, payload),
        }
    }
}
