//! The path of a request through the panel, in order: head, page, body and CSRF token, session, the account's
//! limit, then the page itself.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::SET_COOKIE;
use kernel::SellerId;
use oauth::{BrowserSecret, ConsentRefusal, Limiter, Subject};
use web::assets::Asset;
use web::body::{self, BodyLimits};
use web::form::Form;
use web::head;
use web::media_type::MediaType;
use web::meters;
use web::request::{Answer, Request};
use web::response::set_page_headers;
use web::tasks::catch_panic;

use crate::browser;
use crate::fields::Fields;
use crate::next::Next;
use crate::page_error::{PageError, PageResult};
use crate::page_request::{PageRequest, SignedInRequest};
use crate::pages::sign_out;
use crate::places::SMALL_FORM;
use crate::routes::{self, Handler, Route};
use crate::texts::Language;
use crate::{Panel, frame};

/// The largest form, in bytes: twenty redirect addresses and a description of maximum length, with every byte
/// percent-encoded to three.
const BODY_CAP: usize = 192 * 1024;

pub(crate) async fn answer(panel: Arc<Panel>, mut request: Request) -> Answer {
    let (template, found) = routes::find(request.method(), request.path());
    let template = template.unwrap_or("-");
    let https = panel.ports.service.is_https();
    let language = language(&request.http, https);
    let trace_id = request.trace_id;
    let outcome = catch_panic(check_and_respond(&panel, &mut request, language, found)).await;
    let closes = matches!(outcome, Err(PageError::Unreadable));
    let mut response =
        outcome.unwrap_or_else(|error| error.into_response(&panel, &trace_id, language, template));
    // An asset sets no cookie: shared caches keep it with its headers.
    if template != "/panel/assets/{name}" && chosen(&request.http).is_some() {
        browser::set_language(response.headers_mut(), language, https);
    }
    // No Cross-Origin-Opener-Policy: an application may open the consent screen in a popup.
    set_page_headers(response.headers_mut(), &trace_id, browser::policy(None), https);
    request.end(response, template, closes)
}

async fn check_and_respond(
    panel: &Arc<Panel>,
    request: &mut Request,
    language: Language,
    found: Option<(&'static Route, String)>,
) -> PageResult {
    head::check(request.http.head()).map_err(|_| PageError::Unreadable)?;
    let (route, parameter) = found.ok_or(PageError::NotFound)?;
    if let Handler::Asset = route.handler {
        let mut all = [&*frame::STYLE, &*frame::ICON].into_iter();
        let asset = all.find(|asset| asset.address.ends_with(&format!("/{parameter}")));
        return asset.map(Asset::response).ok_or(PageError::NotFound);
    }
    let https = panel.ports.service.is_https();
    let query = Form::parse(request.query().as_bytes()).map_err(|_| PageError::Malformed)?;
    let presented = browser::presented(request.headers(), https);
    let fields = match route.method {
        Method::POST => read_form(panel, request, route, presented.as_ref()).await?,
        _ => Fields::default(),
    };
    // A browser without a secret gets one with its first page.
    let is_new = presented.is_none();
    let random = || BrowserSecret::from_random(&panel.ports.randomness.secret());
    let browser = presented.unwrap_or_else(random);
    let new_secret = is_new.then(|| browser.clone());
    let mut page_request = PageRequest {
        panel: Arc::clone(panel),
        trace_id: request.trace_id,
        client: request.client,
        language,
        path: request.path().to_owned(),
        query,
        parameter,
        head: *request.method() == Method::HEAD,
        browser,
        fields,
        seller: None,
    };
    match route.handler {
        Handler::Asset => Err(PageError::NotFound),
        Handler::Open(page) => {
            let mut response = page(page_request).await?;
            request.record_caller(|caller| caller.seller = response.extensions().get().copied());
            if let Some(secret) = new_secret.filter(|_| !response.headers().contains_key(SET_COOKIE)) {
                browser::set_browser(response.headers_mut(), &secret, false, https);
            }
            Ok(response)
        }
        Handler::SignedIn(page) => {
            let signed_in = match new_secret {
                None => panel.accounts.signed_in(page_request.browser.hash()).await?,
                Some(_) => None,
            };
            let Some(signed_in) = signed_in else {
                return without_session(&page_request, route);
            };
            page_request.seller = Some(signed_in.seller.id);
            request.record_caller(|caller| caller.seller = page_request.seller);
            if route.is_limited() {
                limit_pages(panel, signed_in.seller.id).await?;
            }
            let signed_in = SignedInRequest {
                request: page_request,
                signed_in,
            };
            let response = page(signed_in).await?;
            request.record_caller(|caller| caller.client_id = response.extensions().get().copied());
            Ok(response)
        }
    }
}

/// The answer to a request that requires a session, and has none.
fn without_session(request: &PageRequest, route: &Route) -> PageResult {
    let next = match request.query.get("request") {
        Some(handle) => Next::consent(handle),
        None => Next::at(route.template),
    };
    match (&route.method, route.template) {
        (&Method::POST, "/panel/sign-out") => sign_out::submitted(request),
        // The screen belongs to the session that has ended.
        (&Method::POST, "/panel/consent" | "/panel/consent/another-account") => {
            Err(PageError::Consent(ConsentRefusal::AnotherViewer))
        }
        (&Method::POST, _) => Err(PageError::SignedOut(next)),
        _ => Err(PageError::SignIn(next)),
    }
}

/// Counts a page or form of an account.
async fn limit_pages(panel: &Panel, seller: SellerId) -> PageResult<()> {
    let counted = panel.rates.count(Limiter::PanelPages, Subject::seller(seller));
    let quota = counted.await?.against(panel.settings.pages_per_minute);
    if !meters::admits("panel_pages", &quota) {
        return Err(PageError::TooMany(quota));
    }
    Ok(())
}

/// Reads the form, and checks its CSRF token.
async fn read_form(
    panel: &Panel,
    request: &mut Request,
    route: &Route,
    presented: Option<&BrowserSecret>,
) -> PageResult<Fields> {
    if MediaType::of(request.headers()) != Some(MediaType::Form) {
        return Err(PageError::Unreadable);
    }
    let is_large = matches!(route.handler, Handler::SignedIn(_))
        && body::announced(request.headers()).is_some_and(|length| length > SMALL_FORM);
    // A seller's place: nobody else may take it.
    let place = match presented.filter(|_| is_large) {
        Some(browser) => {
            let signed_in = panel.accounts.signed_in(browser.hash()).await?;
            let signed_in = signed_in.ok_or_else(|| PageError::SignedOut(Next::at(route.template)))?;
            let place = panel.places.large_form(signed_in.seller.id);
            Some(place.ok_or(PageError::Busy)?)
        }
        None => None,
    };
    let limits = BodyLimits {
        cap: if place.is_some() { BODY_CAP } else { SMALL_FORM },
        within: panel.ports.service.body_timeout,
    };
    let bytes = request.body(limits).await.map_err(|_| PageError::Unreadable)?;
    let form = Form::parse(&bytes).map_err(|_| PageError::Malformed)?;
    let fields = Fields::new(form).ok_or(PageError::Malformed)?;
    match presented {
        Some(browser) if browser.is_csrf_token(fields.get("csrf")) => Ok(fields),
        _ => Err(PageError::StaleForm(match Next::of(fields.form()) {
            named if named != Next::default() => named,
            _ => Next::at(route.template),
        })),
    }
}

fn language(request: &HttpRequest, https: bool) -> Language {
    chosen(request)
        .or_else(|| browser::language(request.headers(), https))
        .or_else(|| Language::preferred(request))
        .unwrap_or(Language::English)
}

/// The language that a link on our pages selects.
fn chosen(request: &HttpRequest) -> Option<Language> {
    let mut pairs = request.uri().query()?.split('&');
    Language::parse(pairs.find_map(|pair| pair.strip_prefix("lang="))?)
}
