//! The way of a request through the panel, in order: head, page, body and CSRF token, session, then the page itself.

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::http::header::SET_COOKIE;
use actix_web::{HttpRequest, HttpResponse};
use oauth::BrowserSecret;
use web::body::BodyLimits;
use web::error::{catch_panic, log_failure};
use web::form::Form;
use web::head;
use web::media_type::MediaType;
use web::request::{Answer, Request};

use crate::browser::{self, Cookies};
use crate::fields::Fields;
use crate::language::Language;
use crate::meters;
use crate::next::Next;
use crate::refusal::Refusal;
use crate::routes::{self, Handler, Route};
use crate::visit::{Member, Visit, Visitor};
use crate::{Panel, assets, pages, security};

/// The most that a form may have, in bytes: twenty redirect addresses and a description of the greatest length, each byte
/// written in three.
const BODY_CAP: usize = 192 * 1024;

/// Answers a request.
pub(crate) async fn answer(panel: &Arc<Panel>, mut request: Request) -> Answer {
    let found = routes::find(request.path());
    let template = found.as_ref().map_or("-", |(route, _)| route.template);
    let language = language(panel, &request.http);
    let trace_id = request.trace_id;
    let outcome = catch_panic(&trace_id, pass(panel, &mut request, language, found)).await;
    let outcome = outcome.unwrap_or_else(|panicked| Err(Refusal::Failed(panicked.into())));
    let closes = matches!(outcome, Err(Refusal::Unreadable));
    let mut response = outcome.unwrap_or_else(|refusal| {
        if let Some(cause) = refusal.cause() {
            log_failure(&trace_id, template, cause);
        }
        if matches!(refusal, Refusal::Crowded) {
            meters::crowded();
        }
        pages::failure::response(panel, (&trace_id, language), &refusal)
    });
    if chosen(&request.http).is_some() {
        browser::set_language(response.headers_mut(), language, panel.settings.https());
    }
    security::apply(response.headers_mut(), &trace_id, panel.settings.https());
    request.end(response, template, closes)
}

async fn pass(
    panel: &Arc<Panel>,
    request: &mut Request,
    language: Language,
    found: Option<(&'static Route, String)>,
) -> Result<HttpResponse, Refusal> {
    head::check(request.http.head()).map_err(|_| Refusal::Unreadable)?;
    let (route, parameter) = found.ok_or(Refusal::NotFound)?;
    let (handler, sends) = match *request.method() {
        Method::GET | Method::HEAD => (route.get, false),
        Method::POST => (route.post, true),
        _ => (None, false),
    };
    let handler = handler.ok_or(Refusal::NotFound)?;
    if let Handler::Asset = handler {
        return assets::find(&parameter);
    }
    let query = request.query();
    let query = Form::parse(query.as_bytes()).map_err(|_| Refusal::Malformed)?;
    let presented = Cookies::new(request.headers(), panel.settings.https()).browser();
    let fields = if sends {
        Some(sent(panel, request, presented.as_ref()).await?)
    } else {
        None
    };
    let visit = Visit {
        panel: Arc::clone(panel),
        trace_id: request.trace_id,
        client: request.client,
        language,
        path: request.path().to_owned(),
        query,
        parameter,
        head: *request.method() == Method::HEAD,
    };
    match (handler, fields) {
        (Handler::Open(page), None) => open(visit, presented, page).await,
        (Handler::OpenForm(page), Some(fields)) => {
            open(visit, presented, |visitor| page(visitor, fields)).await
        }
        (Handler::Member(page), None) => page(member(visit, presented, route).await?).await,
        (Handler::MemberForm(page), Some(fields)) => {
            page(member(visit, presented, route).await?, fields).await
        }
        _ => Err(Refusal::NotFound),
    }
}

/// A page that anybody may see. A browser that comes without a secret is given one with it.
async fn open<F: Future<Output = Result<HttpResponse, Refusal>>>(
    visit: Visit,
    presented: Option<BrowserSecret>,
    page: impl FnOnce(Visitor) -> F,
) -> Result<HttpResponse, Refusal> {
    let https = visit.panel.settings.https();
    let random = visit.panel.randomness.secret();
    let (browser, fresh) = match presented {
        Some(browser) => (browser, None),
        None => (
            BrowserSecret::from_random(&random),
            Some(BrowserSecret::from_random(&random)),
        ),
    };
    let mut response = page(Visitor { visit, browser }).await?;
    if let Some(fresh) = fresh.filter(|_| !response.headers().contains_key(SET_COOKIE)) {
        browser::set_browser(response.headers_mut(), &fresh, false, https);
    }
    Ok(response)
}

/// Who is signed in; without a session the request leads to the page to sign in on.
async fn member(
    visit: Visit,
    presented: Option<BrowserSecret>,
    route: &'static Route,
) -> Result<Member, Refusal> {
    let signed_in = match &presented {
        Some(browser) => visit.panel.panel.signed_in(browser.hash()).await?,
        None => None,
    };
    match (presented, signed_in) {
        (Some(browser), Some(signed_in)) => Ok(Member {
            visit,
            browser,
            signed_in,
        }),
        _ => Err(Refusal::SignIn(match visit.query.get("request") {
            Some(handle) => Next::consent(handle),
            None => route.next.map_or_else(Next::default, Next::page),
        })),
    }
}

/// The form that was sent, by a browser that has read it.
async fn sent(
    panel: &Panel,
    request: &mut Request,
    presented: Option<&BrowserSecret>,
) -> Result<Fields, Refusal> {
    if MediaType::of(request.headers()) != Some(MediaType::Form) {
        return Err(Refusal::Unreadable);
    }
    let limits = BodyLimits {
        cap: BODY_CAP,
        within: panel.settings.body_timeout,
    };
    let bytes = request.body(limits).await.map_err(|_| Refusal::Unreadable)?;
    let form = Form::parse(&bytes).map_err(|_| Refusal::Malformed)?;
    let fields = Fields::new(form).ok_or(Refusal::Malformed)?;
    match presented {
        Some(browser) if fields.are_of(browser) => Ok(fields),
        _ => Err(Refusal::StaleForm),
    }
}

fn language(panel: &Panel, request: &HttpRequest) -> Language {
    let cookies = Cookies::new(request.headers(), panel.settings.https());
    chosen(request)
        .or_else(|| cookies.language())
        .unwrap_or_else(|| Language::preferred(request.headers()))
}

/// The language that a link of ours chooses.
fn chosen(request: &HttpRequest) -> Option<Language> {
    let mut pairs = request.uri().query()?.split('&');
    Language::parse(pairs.find_map(|pair| pair.strip_prefix("lang="))?)
}
