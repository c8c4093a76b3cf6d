//! Every page of the panel: its path, who may see it, and the handlers of its forms.

use actix_web::HttpResponse;
use actix_web::http::Method;
use futures_util::future::LocalBoxFuture;
use web::path::capture;

use crate::page_error::PageError;
use crate::page_request::{PageRequest, SignedInRequest};
use crate::pages::{
    account, applications, connections, consent, deliveries, forgotten, home, links, once, registration,
    sign_in, sign_out, tokens,
};

type Answer = LocalBoxFuture<'static, Result<HttpResponse, PageError>>;

/// The handler of a request.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// An embedded file.
    Asset,
    /// A page or form for anybody.
    Open(fn(PageRequest) -> Answer),
    /// A page or form for a signed-in seller.
    SignedIn(fn(SignedInRequest) -> Answer),
}

/// A page (GET) or a form (POST). A form always needs a valid CSRF token.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path, with a name in braces for a variable part.
    pub(crate) template: &'static str,
    pub(crate) handler: Handler,
}

impl Route {
    /// Whether it counts against the account's limit of pages. Signing out does not, so that the owner can
    /// always end a session that uses the limit up.
    pub(crate) fn is_limited(&self) -> bool {
        !self.template.starts_with("/panel/sign-out")
    }
}

const fn page(template: &'static str, handler: Handler) -> Route {
    let method = Method::GET;
    Route {
        method,
        template,
        handler,
    }
}

const fn form(template: &'static str, handler: Handler) -> Route {
    let method = Method::POST;
    Route {
        method,
        template,
        handler,
    }
}

macro_rules! open {
    ($handler:path) => {
        Handler::Open(|request| Box::pin($handler(request)))
    };
}

macro_rules! signed_in {
    ($handler:path) => {
        Handler::SignedIn(|request| Box::pin($handler(request)))
    };
}

/// Every route. If two match a request, the first one wins.
pub(crate) static TABLE: &[Route] = &[
    page("/panel", signed_in!(home)),
    page("/panel/assets/{name}", Handler::Asset),
    page("/panel/sign-in", open!(sign_in::page)),
    form("/panel/sign-in", open!(sign_in::submit)),
    page("/panel/sign-out", signed_in!(sign_out::page)),
    form("/panel/sign-out", signed_in!(sign_out::submit)),
    form("/panel/sign-out-everywhere", signed_in!(sign_out::everywhere)),
    page("/panel/forgotten-password", open!(forgotten::page)),
    form("/panel/forgotten-password", open!(forgotten::submit)),
    page("/panel/invitation/{secret}", open!(links::page)),
    form("/panel/invitation/{secret}", open!(links::accept_password)),
    page("/panel/password-reset/{secret}", open!(links::page)),
    form("/panel/password-reset/{secret}", open!(links::accept_password)),
    page("/panel/sign-in/{secret}", open!(links::page)),
    form("/panel/sign-in/{secret}", open!(links::accept_sign_in)),
    page("/panel/consent", signed_in!(consent::page)),
    form("/panel/consent", signed_in!(consent::decide)),
    form(
        "/panel/consent/another-account",
        signed_in!(consent::another_account),
    ),
    page("/panel/applications", signed_in!(applications::list)),
    page("/panel/applications/new", signed_in!(registration::page)),
    form("/panel/applications/new", signed_in!(registration::submit)),
    page(
        "/panel/applications/{client_id}",
        signed_in!(applications::details),
    ),
    form("/panel/applications/{client_id}", signed_in!(applications::save)),
    form(
        "/panel/applications/{client_id}/secret",
        signed_in!(applications::rotate),
    ),
    page(
        "/panel/applications/{client_id}/delete",
        signed_in!(applications::deletion),
    ),
    form(
        "/panel/applications/{client_id}/delete",
        signed_in!(applications::delete),
    ),
    page("/panel/tokens", signed_in!(tokens::page)),
    form("/panel/tokens", signed_in!(tokens::issue)),
    form("/panel/tokens/{id}/revoke", signed_in!(tokens::revoke)),
    page("/panel/connections", signed_in!(connections::page)),
    page(
        "/panel/connections/{client_id}/disconnect",
        signed_in!(connections::disconnection),
    ),
    form(
        "/panel/connections/{client_id}/disconnect",
        signed_in!(connections::disconnect),
    ),
    page("/panel/deliveries", signed_in!(deliveries::page)),
    form(
        "/panel/deliveries/{delivery}/again",
        signed_in!(deliveries::redeliver),
    ),
    form(
        "/panel/deliveries/{subscription}/test",
        signed_in!(deliveries::send_test_event),
    ),
    page("/panel/once/{form}", signed_in!(once::page)),
    page("/panel/account", signed_in!(account::page)),
    form("/panel/account", signed_in!(account::change_password)),
];

/// Who may request a page or send a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Anybody,
    /// Signed-in sellers only.
    SignedIn,
}

/// Method, path and access of every page and form, for tests.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str, Access)> {
    TABLE.iter().map(|route| {
        let access = match route.handler {
            Handler::Asset | Handler::Open(_) => Access::Anybody,
            Handler::SignedIn(_) => Access::SignedIn,
        };
        (route.method.as_str(), route.template, access)
    })
}

/// The template of a path and, if the path has the method, its route and the value of its variable part. HEAD
/// counts as GET.
pub(crate) fn find(method: &Method, path: &str) -> (Option<&'static str>, Option<(&'static Route, String)>) {
    let method = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut at_path = TABLE
        .iter()
        .filter_map(|route| Some((route, capture(route.template, path)?)))
        .peekable();
    let template = at_path.peek().map(|(route, _)| route.template);
    let found = at_path.find(|(route, _)| route.method == *method);
    (
        template,
        found.map(|(route, [parameter, _])| (route, parameter.to_owned())),
    )
}
