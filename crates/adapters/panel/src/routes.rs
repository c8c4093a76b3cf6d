//! Every page of the panel: its path, who may see it, and what its forms do.

use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;

use crate::fields::Fields;
use crate::next::Destination;
use crate::pages::{
    account, applications, connections, consent, deliveries, forgotten, home, links, once, registration,
    sign_in, sign_out, tokens,
};
use crate::refusal::Refusal;
use crate::visit::{Member, Visitor};

type Answer = LocalBoxFuture<'static, Result<HttpResponse, Refusal>>;

/// What answers a request. A form has always shown that its browser has read it.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// An embedded file.
    Asset,
    /// A page for anybody.
    Open(fn(Visitor) -> Answer),
    /// A form of anybody.
    OpenForm(fn(Visitor, Fields) -> Answer),
    /// A page for somebody who is signed in.
    Member(fn(Member) -> Answer),
    /// A form of somebody who is signed in.
    MemberForm(fn(Member, Fields) -> Answer),
}

/// A page.
pub(crate) struct Route {
    /// Its path, with a name in braces where anything can stand.
    pub(crate) template: &'static str,
    pub(crate) get: Option<Handler>,
    pub(crate) post: Option<Handler>,
    /// Where signing in leads that was asked for here.
    pub(crate) next: Option<Destination>,
}

macro_rules! handler {
    (-) => {
        None
    };
    (asset) => {
        Some(Handler::Asset)
    };
    (open $page:path) => {
        Some(Handler::Open(|visitor| Box::pin($page(visitor))))
    };
    (open form $page:path) => {
        Some(Handler::OpenForm(|visitor, fields| {
            Box::pin($page(visitor, fields))
        }))
    };
    (member $page:path) => {
        Some(Handler::Member(|member| Box::pin($page(member))))
    };
    (member form $page:path) => {
        Some(Handler::MemberForm(|member, fields| {
            Box::pin($page(member, fields))
        }))
    };
}

macro_rules! table {
    ($($template:literal => get($($get:tt)+), post($($post:tt)+), $next:expr;)+) => {
        &[$(Route {
            template: $template,
            get: handler!($($get)+),
            post: handler!($($post)+),
            next: $next,
        },)+]
    };
}

/// Every route. Where two fit a path the first is meant.
pub(crate) static TABLE: &[Route] = table! {
    "/panel" => get(member home::lead), post(-), None;
    "/panel/assets/{name}" => get(asset), post(-), None;
    "/panel/sign-in" => get(open sign_in::page), post(open form sign_in::sent), None;
    "/panel/sign-out" => get(member sign_out::page), post(member form sign_out::sent), None;
    "/panel/sign-out-everywhere" => get(-), post(member form sign_out::everywhere), Some(Destination::Account);
    "/panel/forgotten-password" => get(open forgotten::page), post(open form forgotten::sent), None;
    "/panel/invitation/{secret}" => get(open links::invitation), post(open form links::accept_invitation), None;
    "/panel/password-reset/{secret}" => get(open links::reset), post(open form links::accept_reset), None;
    "/panel/sign-in/{secret}" => get(open links::sign_in), post(open form links::accept_sign_in), None;
    "/panel/consent" => get(member consent::page), post(member form consent::decide), None;
    "/panel/consent/another-account" => get(-), post(member form consent::another_account), None;
    "/panel/applications" => get(member applications::list), post(-), Some(Destination::Applications);
    "/panel/applications/new" =>
        get(member registration::page), post(member form registration::sent), Some(Destination::NewApplication);
    "/panel/applications/{client_id}" =>
        get(member applications::one), post(member form applications::save), Some(Destination::Applications);
    "/panel/applications/{client_id}/secret" =>
        get(-), post(member form applications::rotate), Some(Destination::Applications);
    "/panel/applications/{client_id}/delete" =>
        get(member applications::deletion), post(member form applications::delete), Some(Destination::Applications);
    "/panel/tokens" => get(member tokens::page), post(member form tokens::issue), Some(Destination::Tokens);
    "/panel/tokens/{id}/revoke" => get(-), post(member form tokens::revoke), Some(Destination::Tokens);
    "/panel/connections" => get(member connections::page), post(-), Some(Destination::Connections);
    "/panel/connections/{client_id}/disconnect" =>
        get(-), post(member form connections::disconnect), Some(Destination::Connections);
    "/panel/deliveries" => get(member deliveries::page), post(-), Some(Destination::Deliveries);
    "/panel/deliveries/{delivery}/again" =>
        get(-), post(member form deliveries::again), Some(Destination::Deliveries);
    "/panel/deliveries/{subscription}/test" =>
        get(-), post(member form deliveries::test), Some(Destination::Deliveries);
    "/panel/once/{form}" => get(member once::page), post(-), Some(Destination::Applications);
    "/panel/account" => get(member account::page), post(member form account::change_password), Some(Destination::Account);
};

/// Who may ask for a page or send a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Anybody,
    /// Who is signed in.
    SignedIn,
}

/// Every page and form as a test can walk it: method, path, and who may.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str, Access)> {
    let access = |handler: Handler| match handler {
        Handler::Asset | Handler::Open(_) | Handler::OpenForm(_) => Access::Anybody,
        Handler::Member(_) | Handler::MemberForm(_) => Access::SignedIn,
    };
    TABLE.iter().flat_map(move |route| {
        let both = [("GET", route.get), ("POST", route.post)];
        both.into_iter()
            .filter_map(move |(method, handler)| Some((method, route.template, access(handler?))))
    })
}

/// The route of a path, with what stands in its braces.
pub(crate) fn find(path: &str) -> Option<(&'static Route, String)> {
    TABLE
        .iter()
        .find_map(|route| Some((route, parameter(route.template, path)?)))
}

fn parameter(template: &str, path: &str) -> Option<String> {
    let (mut expected, mut given) = (template.split('/'), path.split('/'));
    let mut found = String::new();
    loop {
        match (expected.next(), given.next()) {
            (None, None) => return Some(found),
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() => {
                part.clone_into(&mut found);
            }
            (Some(name), Some(part)) if name == part => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_routes() {
        let found = |path: &str| find(path).map(|(route, parameter)| (route.template, parameter));
        let one = |template, parameter: &str| Some((template, parameter.to_owned()));
        assert_eq!(
            found("/panel/applications/new"),
            one("/panel/applications/new", "")
        );
        assert_eq!(
            found("/panel/applications/psa_1/secret"),
            one("/panel/applications/{client_id}/secret", "psa_1")
        );
        assert_eq!(
            found("/panel/sign-in/ps_ln_x"),
            one("/panel/sign-in/{secret}", "ps_ln_x")
        );
        for none in [
            "/panel/",
            "/panel/applications/",
            "/panel/tokens//revoke",
            "/panel/x",
            "/Panel",
        ] {
            assert_eq!(found(none), None, "{none}");
        }
    }
}
