//! Every page of the panel: its path, who may see it, and the handlers of its forms.

use actix_web::http::Method;
use futures_util::future::LocalBoxFuture;
use web::path::capture;

use crate::page_error::PageResult;
use crate::page_request::{PageRequest, SignedInRequest};
use crate::pages::{
    account, applications, connections, consent, deliveries, forgotten, home, links, once, registration,
    sign_in, sign_out, tokens, trade,
};

type Answer = LocalBoxFuture<'static, PageResult>;

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

/// Declares routes: method, path, and who may see what.
macro_rules! routes {
    ($($method:ident $template:literal: $access:ident $(($handler:path))?;)+) => {
        &[$(Route {
            method: Method::$method,
            template: $template,
            handler: Handler::$access $((|request| Box::pin($handler(request))))?,
        }),+]
    };
}

/// Every route. If two match a request, the first one wins.
pub(crate) static TABLE: &[Route] = routes! {
    GET "/panel": SignedIn(home);
    GET "/panel/assets/{name}": Asset;
    GET "/panel/sign-in": Open(sign_in::page);
    POST "/panel/sign-in": Open(sign_in::submit);
    GET "/panel/sign-out": SignedIn(sign_out::page);
    POST "/panel/sign-out": SignedIn(sign_out::submit);
    POST "/panel/sign-out-everywhere": SignedIn(sign_out::everywhere);
    GET "/panel/forgotten-password": Open(forgotten::page);
    POST "/panel/forgotten-password": Open(forgotten::submit);
    GET "/panel/invitation/{secret}": Open(links::page);
    POST "/panel/invitation/{secret}": Open(links::accept_password);
    GET "/panel/password-reset/{secret}": Open(links::page);
    POST "/panel/password-reset/{secret}": Open(links::accept_password);
    GET "/panel/sign-in/{secret}": Open(links::page);
    POST "/panel/sign-in/{secret}": Open(links::accept_sign_in);
    GET "/panel/consent": SignedIn(consent::page);
    POST "/panel/consent": SignedIn(consent::decide);
    POST "/panel/consent/another-account": SignedIn(consent::another_account);
    GET "/panel/applications": SignedIn(applications::list);
    GET "/panel/applications/new": SignedIn(registration::page);
    POST "/panel/applications/new": SignedIn(registration::submit);
    GET "/panel/applications/{client_id}": SignedIn(applications::details);
    POST "/panel/applications/{client_id}": SignedIn(applications::save);
    POST "/panel/applications/{client_id}/secret": SignedIn(applications::rotate);
    GET "/panel/applications/{client_id}/delete": SignedIn(applications::deletion);
    POST "/panel/applications/{client_id}/delete": SignedIn(applications::delete);
    GET "/panel/offers": SignedIn(trade::offers);
    GET "/panel/orders": SignedIn(trade::orders);
    GET "/panel/tokens": SignedIn(tokens::page);
    POST "/panel/tokens": SignedIn(tokens::issue);
    POST "/panel/tokens/{id}/revoke": SignedIn(tokens::revoke);
    GET "/panel/connections": SignedIn(connections::page);
    GET "/panel/connections/{client_id}/disconnect": SignedIn(connections::disconnection);
    POST "/panel/connections/{client_id}/disconnect": SignedIn(connections::disconnect);
    GET "/panel/deliveries": SignedIn(deliveries::page);
    POST "/panel/deliveries/{delivery}/again": SignedIn(deliveries::redeliver);
    POST "/panel/deliveries/{subscription}/test": SignedIn(deliveries::send_test_event);
    GET "/panel/deliveries/{subscription}/delete": SignedIn(deliveries::deletion);
    POST "/panel/deliveries/{subscription}/delete": SignedIn(deliveries::delete);
    GET "/panel/once/{form}": SignedIn(once::page);
    GET "/panel/account": SignedIn(account::page);
    POST "/panel/account": SignedIn(account::change_password);
};

/// Method and path of every page and form, and whether it is for signed-in sellers only, for tests.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    TABLE.iter().map(|route| {
        let is_for_sellers = matches!(route.handler, Handler::SignedIn(_));
        (route.method.as_str(), route.template, is_for_sellers)
    })
}

/// The template of a path and, if the path has the method, its route and the value of its variable part. HEAD
/// counts as GET.
pub(crate) fn find(method: &Method, path: &str) -> (Option<&'static str>, Option<(&'static Route, String)>) {
    let is_head = *method == Method::HEAD;
    let method = if is_head { &Method::GET } else { method };
    let captured = |route: &'static Route| Some((route, capture(route.template, path)?));
    let mut at_path = TABLE.iter().filter_map(captured).peekable();
    let template = at_path.peek().map(|(route, _)| route.template);
    let found = at_path.find(|(route, _)| route.method == *method);
    let found = found.map(|(route, [parameter, _])| (route, parameter.to_owned()));
    (template, found)
}
