//! Where every request of the documentation comes in, and leaves with the headers that every response has, a line in the log
//! and a mark in the meters.

use std::time::Instant;

use actix_web::body::BoxBody;
use actix_web::dev::Payload;
use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, Header as _, HeaderValue, IfNoneMatch, LOCATION,
};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use web::access_log::AccessLine;
use web::form::Form;
use web::meters::RequestMeters;
use web::{RequestSpan, TraceId, head, reply};

use crate::layout::HOME;
use crate::security::Policy;
use crate::site::Document;
use crate::{Docs, assets, search, security};

/// What the documentation is called in logs and metrics.
const LISTENER: &str = "docs";
/// What people type for it.
const HOME_AS_FOLDER: &str = "/docs/";
/// Pages change with the program alone.
const A_WHILE: &str = "public, max-age=300";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// The documentation in one server thread.
pub(crate) struct Listener {
    docs: Docs,
    meters: RequestMeters,
}

/// A response, before it has the headers that all have.
struct Answer {
    response: HttpResponse,
    /// The route's template, for logs and meters.
    route: &'static str,
    policy: Policy,
    /// Whether what is left of the request is not to be read.
    closes: bool,
}

impl Listener {
    pub(crate) fn new(docs: Docs) -> Self {
        Self {
            docs,
            meters: RequestMeters::new(LISTENER),
        }
    }

    /// Answers any request.
    pub(crate) fn serve(&self, request: &HttpRequest, payload: actix_web::web::Payload) -> HttpResponse {
        let at = Instant::now();
        let trace_id = TraceId::of(request.headers(), || {
            let random = self.docs.randomness.secret();
            random.first_chunk().copied().unwrap_or_default()
        });
        // Pages are everybody's: nobody's word counts for whether they are recorded.
        let span = RequestSpan::begin(LISTENER, request.headers(), &trace_id, || false);
        let mut answer = span.within(|| self.answer(request));
        let headers = answer.response.headers_mut();
        security::apply(headers, &trace_id, answer.policy, self.docs.https);
        let response = match payload.into_inner() {
            payload if answer.closes => reply::closing(answer.response, payload),
            Payload::None => answer.response,
            payload => reply::holding(answer.response, payload),
        };
        let (status, duration) = (response.status(), at.elapsed());
        self.meters
            .count(answer.route, request.method(), status, duration);
        let line = AccessLine {
            listener: LISTENER,
            trace_id: &trace_id,
            method: request.method(),
            route: answer.route,
            status,
            duration,
        };
        span.end(request.method(), answer.route, status, || line.write());
        response
    }

    fn answer(&self, request: &HttpRequest) -> Answer {
        if head::check(request.head()).is_err() {
            return Answer {
                response: page(StatusCode::BAD_REQUEST, self.docs.site.unreadable()),
                closes: true,
                ..Answer::of(HttpResponse::new(StatusCode::BAD_REQUEST), "-")
            };
        }
        let path = request.uri().path();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = self.missing();
            if self.docs.site.find(path).is_some() || path == search::PATH || assets::find(path).is_some() {
                let headers = answer.response.headers_mut();
                headers.insert(ALLOW, HeaderValue::from_static("GET"));
            }
            return answer;
        }
        if path == HOME_AS_FOLDER {
            let mut response = HttpResponse::new(StatusCode::PERMANENT_REDIRECT);
            let headers = response.headers_mut();
            headers.insert(LOCATION, HeaderValue::from_static(HOME));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(A_WHILE));
            return Answer::of(response, HOME);
        }
        if let Some(document) = self.docs.site.find(path) {
            let route = if path == HOME { HOME } else { "/docs/{page}" };
            return Answer {
                policy: document.policy,
                ..Answer::of(of_document(request, document), route)
            };
        }
        if path == search::PATH {
            let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes()).unwrap_or_default();
            let html = self.docs.site.search(query.get("q").unwrap_or_default());
            return Answer::of(page(StatusCode::OK, html), search::PATH);
        }
        match assets::find(path) {
            Some(asset) => {
                let body = Bytes::from_static(asset.content.as_bytes());
                let response = kept(body, asset.media_type, FOR_EVER);
                Answer::of(response, "/docs/assets/{name}")
            }
            None => self.missing(),
        }
    }

    fn missing(&self) -> Answer {
        Answer::of(page(StatusCode::NOT_FOUND, self.docs.site.missing()), "-")
    }
}

impl Answer {
    fn of(response: HttpResponse, route: &'static str) -> Self {
        Self {
            response,
            route,
            policy: Policy::Page,
            closes: false,
        }
    }
}

/// A page that was rendered at the start; nothing, where the reader has it already.
fn of_document(request: &HttpRequest, document: &Document) -> HttpResponse {
    let known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => request.headers().contains_key("if-none-match"),
        Ok(IfNoneMatch::Items(tags)) => {
            let tag = EntityTag::new_strong(document.mark.clone());
            tags.iter().any(|known| known.weak_eq(&tag))
        }
        Err(_) => false,
    };
    let mut response = if known {
        let mut response = HttpResponse::with_body(StatusCode::NOT_MODIFIED, BoxBody::new(()));
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(A_WHILE));
        response
    } else {
        kept(document.body.clone(), document.media_type, A_WHILE)
    };
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", document.mark)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn kept(body: Bytes, media_type: &'static str, cached: &'static str) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cached));
    response
}

/// A page that is made for one request.
fn page(status: StatusCode, html: String) -> HttpResponse {
    let mut response = HttpResponse::with_body(status, BoxBody::new(html));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
