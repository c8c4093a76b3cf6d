//! Requests for the documentation: each response gets its headers, a line in the access log and a count in the metrics.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use actix_web::dev::Payload;
use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, CROSS_ORIGIN_OPENER_POLICY,
    CROSS_ORIGIN_RESOURCE_POLICY, ETAG, EntityTag, Header as _, HeaderMap, HeaderValue, IF_NONE_MATCH,
    IfNoneMatch, LOCATION, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{ServiceConfig, scope, to};
use actix_web::{HttpRequest, HttpResponse};
use kernel::Randomness;
use web::access_log::AccessLine;
use web::form::Form;
use web::meters::RequestMeters;
use web::trace_id::X_TRACE_ID;
use web::{RequestSpan, TraceId, head, response};

use crate::site::{DocsError, DocsSettings, Document, HOME, REFERENCE_PAGE, SEARCH_PAGE, Site};

/// The listener's name in logs and metrics.
const LISTENER: &str = "docs";
/// Pages change only with the program.
const FIVE_MINUTES: &str = "public, max-age=300";
/// The address of an asset has a hash of its content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Pages load files of their own origin only. Scripts create markup only through the policy `highlight` of `assets/docs.js`.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                           form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
                           require-trusted-types-for 'script'; trusted-types highlight";
/// The API reference also calls the API of its own origin, and Scalar adds inline styles to the page.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                                img-src 'self' data:; connect-src 'self'; form-action 'self'; \
                                frame-ancestors 'none'; base-uri 'none'";

/// The rendered site. Clones share it.
#[derive(Clone)]
pub struct Docs {
    site: Arc<Site>,
    randomness: Arc<dyn Randomness>,
    is_https: bool,
}

impl Docs {
    /// Renders every page; `openapi` is the program's OpenAPI document as JSON. `randomness` makes trace ids.
    pub fn new(
        settings: &DocsSettings,
        openapi: &str,
        randomness: Arc<dyn Randomness>,
    ) -> Result<Self, DocsError> {
        Ok(Self {
            site: Arc::new(Site::new(settings, openapi)?),
            randomness,
            is_https: settings.public_url.starts_with("https://"),
        })
    }
}

/// Serves `/docs` and everything below it. Call it once per server thread, before the listener that takes all other requests.
pub fn configure(docs: Docs) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let listener = Rc::new(Listener {
            docs,
            meters: RequestMeters::new(LISTENER),
        });
        config.service(scope("/docs").default_service(to(move |request, payload| {
            let listener = Rc::clone(&listener);
            async move { listener.serve(&request, payload) }
        })));
    }
}

/// The documentation in one server thread.
struct Listener {
    docs: Docs,
    meters: RequestMeters,
}

/// A response without its common headers, and the route's template for logs and metrics.
type Answer = (HttpResponse, &'static str);

impl Listener {
    fn serve(&self, request: &HttpRequest, payload: actix_web::web::Payload) -> HttpResponse {
        let at = Instant::now();
        let trace_id = TraceId::of(request.headers(), || {
            let random = self.docs.randomness.secret();
            random.first_chunk().copied().unwrap_or_default()
        });
        // Pages are public, so callers do not decide whether traces are recorded.
        let span = RequestSpan::begin(LISTENER, request.headers(), &trace_id, || false);
        let is_too_large = head::check(request.head()).is_err();
        let (mut response, route) = span.within(|| {
            if is_too_large {
                return page(StatusCode::BAD_REQUEST, self.docs.site.too_large.clone(), "-");
            }
            self.answer(request)
        });
        let headers = response.headers_mut();
        headers.insert(X_TRACE_ID, trace_id.to_header_value());
        secure(headers, request.uri().path(), self.docs.is_https);
        let response = match payload.into_inner() {
            payload if is_too_large => response::closing(response, payload),
            Payload::None => response,
            payload => response::keep_payload(response, payload),
        };
        let (status, duration) = (response.status(), at.elapsed());
        self.meters.count(route, request.method(), status, duration);
        let line = AccessLine {
            listener: LISTENER,
            trace_id: &trace_id,
            method: request.method(),
            route,
            status,
            duration,
        };
        span.end(request.method(), route, status, || line.write());
        response
    }

    fn answer(&self, request: &HttpRequest) -> Answer {
        let site = &self.docs.site;
        let path = request.uri().path();
        let document = site.documents.get(path);
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = page(StatusCode::NOT_FOUND, site.missing.clone(), "-");
            if document.is_some() || path == SEARCH_PAGE {
                let headers = answer.0.headers_mut();
                headers.insert(ALLOW, HeaderValue::from_static("GET"));
            }
            answer
        } else if let Some(document) = document {
            let (route, cached) = match path {
                HOME => (HOME, FIVE_MINUTES),
                _ if path.starts_with("/docs/assets/") => ("/docs/assets/{name}", FOR_EVER),
                _ => ("/docs/{page}", FIVE_MINUTES),
            };
            (of_document(request, document, cached), route)
        } else if let Some(location) = site.moved.get(path) {
            let mut response = HttpResponse::PermanentRedirect();
            response.insert_header((LOCATION, location.as_str()));
            let response = response.insert_header((CACHE_CONTROL, FIVE_MINUTES)).finish();
            (response, "/docs/{page}")
        } else if path == SEARCH_PAGE {
            let query = Form::parse(request.query_string().as_bytes()).unwrap_or_default();
            let html = site.search(query.get("q").unwrap_or_default());
            page(StatusCode::OK, html.unwrap_or_default(), SEARCH_PAGE)
        } else {
            page(StatusCode::NOT_FOUND, site.missing.clone(), "-")
        }
    }
}

/// Sets the security headers of every response.
fn secure(headers: &mut HeaderMap, path: &str, is_https: bool) {
    let policy = if path == REFERENCE_PAGE {
        REFERENCE_POLICY
    } else {
        PAGE_POLICY
    };
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
        (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_https {
        let a_year = HeaderValue::from_static("max-age=31536000");
        headers.insert(STRICT_TRANSPORT_SECURITY, a_year);
    }
}

/// A page rendered at the start; 304 if the client has the current version.
fn of_document(request: &HttpRequest, document: &Document, cached: &'static str) -> HttpResponse {
    let tag = EntityTag::new_strong(document.etag.clone());
    let is_known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => request.headers().contains_key(IF_NONE_MATCH),
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(&tag)),
        Err(_) => false,
    };
    let mut response = if is_known {
        HttpResponse::NotModified()
    } else {
        let mut response = HttpResponse::Ok();
        response.insert_header((CONTENT_TYPE, document.media_type));
        response
    };
    response.insert_header((CACHE_CONTROL, cached));
    response.insert_header((ETAG, tag.to_string()));
    if is_known {
        response.finish()
    } else {
        response.body(document.body.clone())
    }
}

/// A page rendered for one request.
fn page(status: StatusCode, html: String, route: &'static str) -> Answer {
    let mut response = HttpResponse::build(status);
    response.insert_header((CONTENT_TYPE, "text/html; charset=utf-8"));
    response.insert_header((CACHE_CONTROL, "no-store"));
    (response.body(html), route)
}
