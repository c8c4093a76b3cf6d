//! The whole of `/v1`: one line for each operation.

use std::fmt;

use actix_web::http::Method;
use oauth::Scope;
use web::{Problem, Violations};

use crate::call::{self, Call};
use crate::declared::{Declared, Parameter};
use crate::operation::{Context, Effect, Incoming, Operation, Read, Write};
use crate::operations::{
    CreateWebhook, DeleteWebhook, ListDeliveries, ListOffers, ListOrders, ListWebhooks, PatchOffer, ReadMe,
    ReadOffer, ReadOrder, ReportShipment,
};

/// Every operation of `/v1`, in the contract's order.
pub static TABLE: &[Route] = &[
    Route::reads::<ReadMe>(),
    Route::reads::<ListOffers>(),
    Route::reads::<ReadOffer>(),
    Route::writes::<PatchOffer>(),
    Route::reads::<ListOrders>(),
    Route::reads::<ReadOrder>(),
    Route::writes::<ReportShipment>(),
    Route::reads::<ListWebhooks>(),
    Route::writes::<CreateWebhook>(),
    Route::writes::<DeleteWebhook>(),
    Route::reads::<ListDeliveries>(),
];

/// An operation's declaration as a value, so that the table can be walked.
pub struct Route {
    /// The method. Where it is GET, HEAD works too.
    pub method: Method,
    /// The path; its one variable part, if it has any, is `{id}`.
    pub template: &'static str,
    /// The scope that a token needs.
    pub scope: Option<Scope>,
    /// Whether it changes anything.
    pub effect: Effect,
    /// The names of its query parameters, in the contract's order.
    pub parameters: &'static [&'static str],
    /// The fields that `fields` chooses from: of the body, or of each item where it is a list.
    pub fields: &'static [&'static str],
    pub(crate) declared: &'static Declared,
    pub(crate) decode: Decode,
}

type Decode = fn(&Incoming<'_>, Context) -> Result<Call, Violations>;

impl Route {
    pub(crate) const fn reads<R: Read>() -> Self {
        Self::of::<R>(Effect::Read, call::reading::<R>)
    }

    pub(crate) const fn writes<W: Write>() -> Self {
        Self::of::<W>(Effect::Write, call::writing::<W>)
    }

    const fn of<O: Operation>(effect: Effect, decode: Decode) -> Self {
        const {
            assert!(
                Parameter::are_named(O::DECLARED.parameters, O::PARAMETERS),
                "the parameters that are declared are not those that are read",
            );
        }
        Self {
            method: O::METHOD,
            template: O::TEMPLATE,
            scope: O::SCOPE,
            effect,
            parameters: O::PARAMETERS,
            fields: O::FIELDS,
            declared: O::DECLARED,
            decode,
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.template)
    }
}

/// The operation that a request is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) route: &'static Route,
    /// What stands in the place of `{id}`.
    pub(crate) id: &'a str,
}

/// No operation has this method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// There is no such path.
    Path,
    /// The path exists, with these methods.
    Method { template: &'static str, allow: String },
}

/// Finds the operation of a request. HEAD stands for GET (D5); paths are compared as they were sent, a trailing slash and
/// all (D6).
pub(crate) fn find<'a>(
    table: &'static [Route],
    method: &Method,
    path: &'a str,
) -> Result<Found<'a>, NoRoute> {
    let method = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut here = table
        .iter()
        .filter_map(|route| capture(route.template, path).map(|id| Found { route, id }));
    here.clone()
        .find(|found| found.route.method == *method)
        .ok_or_else(|| match here.next() {
            None => NoRoute::Path,
            Some(first) => NoRoute::Method {
                template: first.route.template,
                allow: allowed(table, first.route.template),
            },
        })
}

impl NoRoute {
    /// What stands for the route in logs and metrics.
    pub(crate) const fn template(&self) -> &'static str {
        match self {
            Self::Path => "-",
            Self::Method { template, .. } => template,
        }
    }
}

impl From<NoRoute> for Problem {
    fn from(none: NoRoute) -> Self {
        match none {
            NoRoute::Path => Self::not_found(),
            NoRoute::Method { allow, .. } => Self::wrong_method(allow),
        }
    }
}

/// The contract's methods of a path: HEAD is not among them (D118).
fn allowed(table: &[Route], template: &str) -> String {
    let methods = table
        .iter()
        .filter(|route| route.template == template)
        .map(|route| route.method.as_str());
    methods.collect::<Vec<_>>().join(", ")
}

/// What stands in `path` in the place of `{id}`, empty where the template has none; nothing where the path is another.
fn capture<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = template.split_once("{id}") else {
        return (template == path).then_some("");
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(method: &Method, path: &str) -> String {
        find(TABLE, method, path).map_or_else(
            |none| format!("{none:?}"),
            |found| found.route.template.to_owned(),
        )
    }

    #[test]
    fn templates_match_whole_paths() {
        assert_eq!(capture("/v1/offers/{id}", "/v1/offers/17"), Some("17"));
        assert_eq!(
            capture("/v1/orders/{id}/shipments", "/v1/orders/a%2Fb/shipments"),
            Some("a%2Fb")
        );
        assert_eq!(capture("/v1/me", "/v1/me"), Some(""));
        for path in [
            "/v1/offers/",
            "/v1/offers//",
            "/v1/offers/1/2",
            "/v1/offers",
            "/V1/offers/1",
        ] {
            assert_eq!(capture("/v1/offers/{id}", path), None, "{path}");
        }
        assert_eq!(capture("/v1/me", "/v1/me/"), None);
        assert_eq!(capture("/v1/orders/{id}/shipments", "/v1/orders/shipments"), None);
    }

    #[test]
    fn head_is_get_and_other_methods_are_told_what_there_is() {
        assert_eq!(template(&Method::HEAD, "/v1/offers"), "/v1/offers");
        assert_eq!(find(TABLE, &Method::GET, "/v1/offers/x%20").unwrap().id, "x%20");
        let wrong = find(TABLE, &Method::OPTIONS, "/v1/me").unwrap_err();
        assert_eq!(wrong.template(), "/v1/me");
        assert!(matches!(wrong, NoRoute::Method { allow, .. } if allow == "GET"));
        assert_eq!(
            find(TABLE, &Method::GET, "/v1/nothing").unwrap_err(),
            NoRoute::Path
        );
    }

    #[test]
    fn no_two_operations_claim_the_same_request() {
        for (n, route) in TABLE.iter().enumerate() {
            let path = route.template.replace("{id}", "x");
            let claims = TABLE
                .iter()
                .filter(|other| other.method == route.method && capture(other.template, &path).is_some());
            assert_eq!(claims.count(), 1, "line {n}");
            assert!(route.template.starts_with("/v1/"));
        }
    }
}
