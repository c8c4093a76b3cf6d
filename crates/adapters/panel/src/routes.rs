//! Every page of the panel: its path, who may see it, and the handlers of its forms.

use actix_web::HttpResponse;
use actix_web::http::Method;
use futures_util::future::LocalBoxFuture;
use web::route::capture;

use crate::pages::{
    account, applications, connections, consent, deliveries, forgotten, home, links, once, registration,
    sign_in, sign_out, tokens,
};
use crate::refusal::Refusal;
use crate::visit::{Member, Visit};

type Answer = LocalBoxFuture<'static, Result<HttpResponse, Refusal>>;

/// The handler of a request.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// An embedded file.
    Asset,
    /// A page or form for anybody.
    Open(fn(Visit) -> Answer),
    /// A page or form for a signed-in seller.
    Member(fn(Member) -> Answer),
}

/// A page (GET) or a form (POST). A form always needs a valid CSRF token.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path, with a name in braces for a variable part.
    pub(crate) template: &'static str,
    pub(crate) handler: Handler,
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
        Handler::Open(|visit| Box::pin($handler(visit)))
    };
}

macro_rules! member {
    ($handler:path) => {
        Handler::Member(|member| Box::pin($handler(member)))
    };
}

/// Every route. If two match a request, the first one wins.
pub(crate) static TABLE: &[Route] = &[
    page("/panel", member!(home)),
    page("/panel/assets/{name}", Handler::Asset),
    page("/panel/sign-in", open!(sign_in::page)),
    form("/panel/sign-in", open!(sign_in::sent)),
    page("/panel/sign-out", member!(sign_out::page)),
    form("/panel/sign-out", member!(sign_out::sent)),
    form("/panel/sign-out-everywhere", member!(sign_out::everywhere)),
    page("/panel/forgotten-password", open!(forgotten::page)),
    form("/panel/forgotten-password", open!(forgotten::sent)),
    page("/panel/invitation/{secret}", open!(links::invitation)),
    form("/panel/invitation/{secret}", open!(links::accept_invitation)),
    page("/panel/password-reset/{secret}", open!(links::reset)),
    form("/panel/password-reset/{secret}", open!(links::accept_reset)),
    page("/panel/sign-in/{secret}", open!(links::sign_in)),
    form("/panel/sign-in/{secret}", open!(links::accept_sign_in)),
    page("/panel/consent", member!(consent::page)),
    form("/panel/consent", member!(consent::decide)),
    form(
        "/panel/consent/another-account",
        member!(consent::another_account),
    ),
    page("/panel/applications", member!(applications::list)),
    page("/panel/applications/new", member!(registration::page)),
    form("/panel/applications/new", member!(registration::sent)),
    page("/panel/applications/{client_id}", member!(applications::one)),
    form("/panel/applications/{client_id}", member!(applications::save)),
    form(
        "/panel/applications/{client_id}/secret",
        member!(applications::rotate),
    ),
    page(
        "/panel/applications/{client_id}/delete",
        member!(applications::deletion),
    ),
    form(
        "/panel/applications/{client_id}/delete",
        member!(applications::delete),
    ),
    page("/panel/tokens", member!(tokens::page)),
    form("/panel/tokens", member!(tokens::issue)),
    form("/panel/tokens/{id}/revoke", member!(tokens::revoke)),
    page("/panel/connections", member!(connections::page)),
    form(
        "/panel/connections/{client_id}/disconnect",
        member!(connections::disconnect),
    ),
    page("/panel/deliveries", member!(deliveries::page)),
    form("/panel/deliveries/{delivery}/again", member!(deliveries::again)),
    form("/panel/deliveries/{subscription}/test", member!(deliveries::test)),
    page("/panel/once/{form}", member!(once::page)),
    page("/panel/account", member!(account::page)),
    form("/panel/account", member!(account::change_password)),
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
            Handler::Member(_) => Access::SignedIn,
        };
        (route.method.as_str(), route.template, access)
    })
}

/// The template of a path and, if the path has the method, its route and the value of its variable part. HEAD counts as GET.
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
