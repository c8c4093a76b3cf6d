//! Requests for the documentation, and the headers of their responses.

use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::Instant;

use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, CROSS_ORIGIN_OPENER_POLICY, ETAG, EntityTag, Header as _,
    HeaderValue, IF_NONE_MATCH, IfNoneMatch, LOCATION, RETRY_AFTER,
};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{ServiceConfig, scope};
use actix_web::{HttpRequest, HttpResponse};
use tokio::sync::{Mutex, oneshot};
use tokio::task::spawn_blocking;
use web::error::{Cause, log_failure};
use web::form::Form;
use web::front::Front;
use web::openapi::ServedDocument;
use web::places::{Network, Places, network};
use web::request::{Answer, Request};
use web::response::{SAME_ORIGIN, set_page_headers};
use web::{ServiceSettings, TraceId, head};

use crate::site::{Document, HOME, REFERENCE_PAGE, SEARCH_PAGE, Site};
use crate::sources::Audience;

/// Pages change only with the program.
const FIVE_MINUTES: &str = "public, max-age=300";
/// The address of an asset has a hash of its content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// How many searches of one network run or wait at a time; one, once [`MANY_SEARCHES`] do, and none, once
/// [`MOST_SEARCHES`] do. Each takes up to a few milliseconds.
const SEARCHES_OF_ONE: usize = 4;
const MANY_SEARCHES: usize = 12;
const MOST_SEARCHES: usize = 64;

/// Pages load files of their own origin only, and `assets/docs.js` fetches suggestions there. Scripts create
/// markup only through its policy `highlight`.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                           connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
                           require-trusted-types-for 'script'; trusted-types highlight";
/// The API reference also calls the API of its own origin, and Scalar adds inline styles to the page.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                                img-src 'self' data:; connect-src 'self'; form-action 'self'; \
                                frame-ancestors 'none'; base-uri 'none'";

/// The site for `readers`, rendered at the first request. Clones share it.
#[derive(Clone)]
pub struct Docs {
    /// `None` if it cannot be rendered: a second try would fail in the same way.
    site: Arc<OnceLock<Option<Arc<Site>>>>,
    service: Arc<ServiceSettings>,
    readers: Audience,
    openapi: ServedDocument,
    /// One search runs at a time, whatever the number of server threads.
    turn: Arc<Mutex<()>>,
    places: Places<Network>,
}

impl Docs {
    pub fn new(service: Arc<ServiceSettings>, readers: Audience, openapi: ServedDocument) -> Self {
        Self {
            site: Arc::default(),
            service,
            readers,
            openapi,
            turn: Arc::default(),
            places: Places::default(),
        }
    }

    /// The first call takes some 20 ms, outside the server thread.
    async fn site(&self, trace_id: &TraceId) -> Option<Arc<Site>> {
        if self.site.get().is_none() {
            let (docs, trace_id) = (self.clone(), *trace_id);
            let rendering = spawn_blocking(move || {
                docs.site.get_or_init(|| docs.render(&trace_id));
            });
            // After a panic, which is logged, there is no site.
            let _ = rendering.await;
        }
        self.site.get()?.clone()
    }

    fn render(&self, trace_id: &TraceId) -> Option<Arc<Site>> {
        let site = Site::new(&self.service, self.readers, &(self.openapi)());
        site.map_err(|error| log_failure(trace_id, HOME, &error.into()))
            .ok()
            .map(Arc::new)
    }
}

/// Serves `/docs` and everything below it, and leads there from `/`. Call it once per server thread, before
/// the listener that takes all other requests.
pub fn configure(docs: Docs) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let pages = || {
            let docs = docs.clone();
            let front = Front::public("docs", &docs.service);
            front.route(move |request| {
                let docs = docs.clone();
                async move { docs.answer(request).await }
            })
        };
        config.route("/", pages());
        config.service(scope("/docs").default_service(pages()));
    }
}

/// A response without its common headers, and the route's template for logs and metrics.
type Routed = (HttpResponse, &'static str);

impl Docs {
    async fn answer(&self, request: Request) -> Answer {
        let is_refused = head::check(request.http.head()).is_err();
        let (mut response, route) = match self.site(&request.trace_id).await {
            None => (failure(&request.trace_id), "-"),
            Some(site) if is_refused => page(StatusCode::BAD_REQUEST, site.refused.clone(), "-"),
            Some(site) if is_read(&request.http) && request.path() == SEARCH_PAGE => {
                self.search(site, &request).await
            }
            Some(site) => respond(&site, &request.http),
        };
        let headers = response.headers_mut();
        headers.insert(CROSS_ORIGIN_OPENER_POLICY, SAME_ORIGIN);
        let policy = HeaderValue::from_static(match request.path() {
            REFERENCE_PAGE => REFERENCE_POLICY,
            _ => PAGE_POLICY,
        });
        set_page_headers(headers, &request.trace_id, policy, self.service.is_https());
        request.end(response, route, is_refused)
    }

    /// The page of search results. The search runs outside the server threads, after those that came before
    /// it.
    async fn search(&self, site: Arc<Site>, request: &Request) -> Routed {
        let most = |taken| match taken {
            ..MANY_SEARCHES => SEARCHES_OF_ONE,
            MANY_SEARCHES..MOST_SEARCHES => 1,
            _ => 0,
        };
        let Some(place) = self.places.take(network(request.client), most) else {
            let mut answer = page(StatusCode::SERVICE_UNAVAILABLE, site.busy.clone(), SEARCH_PAGE);
            let headers = answer.0.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return answer;
        };
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let query = Form::parse(request.query().as_bytes()).unwrap_or_default();
        let query = query.get("q").unwrap_or_default().to_owned();
        let (answer, html) = oneshot::channel();
        spawn_blocking(move || {
            // Held for four times as long as the search takes, so that all together use a quarter of a core. A client that
            // disconnects does not end it.
            let _held = (place, turn);
            let began = Instant::now();
            drop(answer.send(site.search(&query)));
            sleep(3 * began.elapsed());
        });
        let html = html.await.map_err(Cause::from);
        match html.and_then(|html| html.map_err(Cause::from)) {
            Ok(html) => page(StatusCode::OK, html, SEARCH_PAGE),
            Err(cause) => {
                log_failure(&request.trace_id, SEARCH_PAGE, &cause);
                (failure(&request.trace_id), SEARCH_PAGE)
            }
        }
    }
}

fn is_read(request: &HttpRequest) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// The response to any request but a search.
fn respond(site: &Site, request: &HttpRequest) -> Routed {
    let path = request.uri().path();
    let document = site.documents.get(path);
    if !is_read(request) {
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
    } else {
        page(StatusCode::NOT_FOUND, site.missing.clone(), "-")
    }
}

/// A page of the site; 304 if the client has the current version.
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

/// The answer where there is no site.
fn failure(trace_id: &TraceId) -> HttpResponse {
    let mut response = HttpResponse::InternalServerError();
    response.insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"));
    let trace_id = trace_id.as_str();
    response.body(format!(
        "The documentation cannot be shown. Report this to support, with the trace id {trace_id}.\n"
    ))
}

/// A page rendered for one request.
fn page(status: StatusCode, html: String, route: &'static str) -> Routed {
    let mut response = HttpResponse::build(status);
    response.insert_header((CONTENT_TYPE, "text/html; charset=utf-8"));
    (response.body(html), route)
}
