//! A request before any check.

use std::cell::Cell;
use std::net::IpAddr;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use tokio::time::Instant;
use usecases::own_wait;

use crate::access_log::CallerIds;
use crate::body::{self, BodyError, BodyLimits};
use crate::deadline::Deadline;
use crate::error::Error;
use crate::head;
use crate::observer::Bodies;
use crate::problem::Problem;
use crate::request_span::RequestSpan;
use crate::response::{self, Owner, in_slices};
use crate::trace_id::TraceId;

/// A request with what the front has determined about it.
pub struct Request {
    pub http: HttpRequest,
    pub payload: Payload,
    pub trace_id: TraceId,
    pub span: RequestSpan,
    /// The client's address, behind trusted proxies.
    pub client: IpAddr,
    /// What is known of the caller so far.
    pub(crate) caller: Cell<CallerIds>,
    pub received_at: Instant,
    /// How long the client took to send its body.
    pub(crate) body_took: Duration,
    /// The bodies, if somebody observes requests.
    pub(crate) bodies: Option<Bodies>,
}

/// A response, and the template of its route.
pub struct Answer {
    pub response: HttpResponse,
    pub route: &'static str,
    pub(crate) caller: CallerIds,
    pub(crate) bodies: Option<Bodies>,
}

impl Request {
    pub fn headers(&self) -> &HeaderMap {
        self.http.headers()
    }

    pub fn method(&self) -> &Method {
        self.http.method()
    }

    /// The path as sent, still percent-encoded.
    pub fn path(&self) -> &str {
        self.http.uri().path()
    }

    pub fn query(&self) -> &str {
        self.http.uri().query().unwrap_or_default()
    }

    /// Names the caller in the access log, and an application in the span too.
    pub fn record_caller(&self, record: impl FnOnce(&mut CallerIds)) {
        let mut caller = self.caller.get();
        record(&mut caller);
        if let Some(client_id) = caller.client_id {
            self.span.record_client(client_id);
        }
        self.caller.set(caller);
    }

    /// When the request is dropped. The time that the client took to send its body does not count.
    pub fn deadline(&self) -> Deadline {
        Deadline::of_request(self.received_at).extended_by(self.body_took)
    }

    /// Reads the body. After an error the caller must close the connection.
    pub async fn body(&mut self, limits: BodyLimits) -> Result<Bytes, BodyError> {
        if matches!(self.payload, Payload::None) {
            return Ok(Bytes::new());
        }
        let began = Instant::now();
        let waiting = own_wait::begin();
        let body = body::read(self.http.headers(), &mut self.payload, limits).await;
        drop(waiting);
        self.body_took = began.elapsed();
        if let (Some(bodies), Ok(body)) = (&mut self.bodies, &body) {
            bodies.request = body.clone();
        }
        body
    }

    /// Ends the request. The rest of its body is not read.
    pub fn end(mut self, response: HttpResponse, route: &'static str, closes: bool) -> Answer {
        let response = match &mut self.bodies {
            Some(bodies) => bodies.of_response(response),
            None => response,
        };
        let caller = self.caller.get();
        let owner = caller.seller.map_or(Owner::Address(self.client), Owner::Seller);
        let owners = [Some(owner), caller.client_id.map(Owner::Application)];
        // Before `keep_payload`: the bytes of a body that holds a payload cannot be counted.
        let response = in_slices(response, owners);
        let response = match self.payload {
            payload if closes => response::closing(response, payload),
            Payload::None => response,
            payload => response::keep_payload(response, payload),
        };
        Answer {
            response,
            route,
            caller,
            bodies: self.bodies,
        }
    }

    /// Answers with a document that needs no token.
    pub fn answer_document(
        self,
        route: &'static str,
        document: impl FnOnce(&TraceId) -> HttpResponse,
    ) -> Answer {
        let response = match *self.method() {
            Method::GET | Method::HEAD => Ok(document(&self.trace_id)),
            _ => Err(Problem::wrong_method("GET".to_owned())),
        };
        self.answer_unauthenticated(route, response)
    }

    /// Answers 404: nothing is served here.
    pub fn answer_not_found(self) -> Answer {
        self.answer_unauthenticated("-", Err(Problem::no_such_path()))
    }

    fn answer_unauthenticated(self, route: &'static str, response: Result<HttpResponse, Problem>) -> Answer {
        let response = head::check(self.http.head())
            .map_err(Error::closing)
            .and_then(|()| response.map_err(Error::from));
        let (response, closes) = match response {
            Ok(response) => (response, false),
            Err(error) => error.into_response(&self.trace_id),
        };
        self.end(response, route, closes)
    }
}
