//! The whole back office: one line for each call.

use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::Method;
use futures_util::future::LocalBoxFuture;
use web::Problem;

use crate::operation::{Operation, Streaming};
use crate::operations::applications::{Accept, Adjust, Delete, Read, Register, Reinstate, Suspend};
use crate::operations::changes::ListChanges;
use crate::operations::health::{Healthz, Metrics, Readyz};
use crate::operations::import::ImportOffers;
use crate::operations::links::{Invite, MakeSignInLink};
use crate::operations::moderation::{Moderate, SetAutomaticPrice};
use crate::operations::offers::{PutOffer, ReadOffer};
use crate::operations::orders::{
    BookPayment, CancelOrder, DeliverOrder, EraseBuyer, PlaceOrder, ReadOrder, ShipOrder,
};
use crate::operations::personal_tokens::{IssueToken, RevokeToken};
use crate::operations::sellers::{CloseSeller, CreateSeller, ListSellers, ReadSeller};
use crate::pipeline::{perform, stream};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;
use crate::state::BackOffice;

/// Every call. Names in braces stand for one part of the path each.
pub(crate) static TABLE: &[Route] = &[
    open::<Healthz>("/healthz"),
    open::<Readyz>("/readyz"),
    open::<Metrics>("/metrics"),
    route::<CreateSeller>(Method::POST, "/sellers"),
    route::<ListSellers>(Method::GET, "/sellers"),
    route::<ReadSeller>(Method::GET, "/sellers/{seller}"),
    route::<CloseSeller>(Method::POST, "/sellers/{seller}/closure"),
    route::<Invite>(Method::POST, "/sellers/{seller}/invitations"),
    route::<MakeSignInLink>(Method::POST, "/sellers/{seller}/sign-in-links"),
    route::<PutOffer>(Method::PUT, "/sellers/{seller}/offers/{offer}"),
    route::<ReadOffer>(Method::GET, "/sellers/{seller}/offers/{offer}"),
    route::<Moderate>(Method::POST, "/sellers/{seller}/offers/{offer}/moderation"),
    route::<SetAutomaticPrice>(Method::POST, "/sellers/{seller}/offers/{offer}/automatic-price"),
    streaming::<ImportOffers>(Method::POST, "/sellers/{seller}/offers:import"),
    route::<Register>(Method::POST, "/sellers/{seller}/applications"),
    route::<IssueToken>(Method::POST, "/sellers/{seller}/personal-tokens"),
    route::<RevokeToken>(Method::DELETE, "/sellers/{seller}/personal-tokens/{token}"),
    route::<Read>(Method::GET, "/applications/{client_id}"),
    route::<Adjust>(Method::PATCH, "/applications/{client_id}"),
    route::<Delete>(Method::DELETE, "/applications/{client_id}"),
    route::<Accept>(Method::POST, "/applications/{client_id}/acceptance"),
    route::<Suspend>(Method::POST, "/applications/{client_id}/suspension"),
    route::<Reinstate>(Method::POST, "/applications/{client_id}/reinstatement"),
    route::<PlaceOrder>(Method::POST, "/orders"),
    route::<ReadOrder>(Method::GET, "/orders/{order}"),
    route::<BookPayment>(Method::POST, "/orders/{order}/payment"),
    route::<CancelOrder>(Method::POST, "/orders/{order}/cancellation"),
    route::<DeliverOrder>(Method::POST, "/orders/{order}/delivery"),
    route::<ShipOrder>(Method::POST, "/orders/{order}/shipment"),
    route::<EraseBuyer>(Method::POST, "/orders/{order}/buyer-erasure"),
    waiting::<ListChanges>("/changes"),
];

/// Every call as a test can walk it: method, path, and whether it needs a token.
pub fn calls() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    TABLE.iter().map(|route| {
        let guarded = route.kind != Kind::Open;
        (route.method.as_str(), route.template, guarded)
    })
}

/// One line of the table.
pub(crate) struct Route {
    /// The method. Where it is GET, HEAD works too.
    pub(crate) method: Method,
    /// The path.
    pub(crate) template: &'static str,
    /// What is special about it.
    pub(crate) kind: Kind,
    /// The operation.
    pub(crate) perform: Perform,
}

/// What is special about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Plain,
    /// It needs no token.
    Open,
    /// The operation reads the body itself, so that an `Idempotency-Key` cannot be bound to it and is ignored.
    Streams,
    /// It only reads, but waits for something to read, and bounds that time itself.
    Waits,
}

/// An operation as a value.
pub(crate) type Perform =
    for<'a> fn(Parts<'a>, &'a Arc<BackOffice>, &'a mut Payload) -> LocalBoxFuture<'a, Result<Reply, Refusal>>;

impl Route {
    /// Whether an `Idempotency-Key` is looked at: on every POST whose body is read as a whole (D46, D130).
    pub(crate) fn is_keyed(&self) -> bool {
        self.method == Method::POST && self.kind != Kind::Streams
    }
}

const fn route<O: Operation + 'static>(method: Method, template: &'static str) -> Route {
    line::<O>(method, template, Kind::Plain)
}

const fn open<O: Operation + 'static>(template: &'static str) -> Route {
    line::<O>(Method::GET, template, Kind::Open)
}

const fn waiting<O: Operation + 'static>(template: &'static str) -> Route {
    line::<O>(Method::GET, template, Kind::Waits)
}

const fn line<O: Operation + 'static>(method: Method, template: &'static str, kind: Kind) -> Route {
    Route {
        method,
        template,
        kind,
        perform: |parts, office, _| Box::pin(perform::<O>(parts, office)),
    }
}

const fn streaming<O: Streaming + 'static>(method: Method, template: &'static str) -> Route {
    Route {
        method,
        template,
        kind: Kind::Streams,
        perform: |parts, office, body| Box::pin(stream::<O>(parts, office, body)),
    }
}

/// What the table has for a request.
pub(crate) enum Found<'a> {
    /// The call, and what stands in the places of the template's names.
    Route(&'static Route, Vec<&'a str>),
    /// The path exists, with these methods.
    WrongMethod(&'static Route, String),
    /// There is no such path.
    Nothing,
}

/// Finds a request's call. HEAD stands for GET (D5); paths are compared as they were sent, a trailing slash and all (D6).
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Found<'a> {
    let method = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut here = TABLE
        .iter()
        .filter(|route| ids(route.template, path).is_some())
        .peekable();
    let Some(first) = here.peek().copied() else {
        return Found::Nothing;
    };
    let methods: Vec<_> = here.clone().map(|route| route.method.as_str()).collect();
    match here.find(|route| route.method == *method) {
        Some(route) => Found::Route(route, ids(route.template, path).unwrap_or_default()),
        None => Found::WrongMethod(first, methods.join(", ")),
    }
}

impl<'a> Found<'a> {
    /// What stands for the route in logs and metrics.
    pub(crate) const fn template(&self) -> &'static str {
        match self {
            Self::Route(route, _) | Self::WrongMethod(route, _) => route.template,
            Self::Nothing => "-",
        }
    }

    /// Whether the path needs no token.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Route(route, _) | Self::WrongMethod(route, _) if matches!(route.kind, Kind::Open))
    }

    /// The call, or 404 (D4).
    pub(crate) fn route(self) -> Result<(&'static Route, Vec<&'a str>), Problem> {
        match self {
            Self::Route(route, ids) => Ok((route, ids)),
            Self::WrongMethod(_, allow) => Err(Problem::wrong_method(allow)),
            Self::Nothing => Err(Problem::not_found()),
        }
    }
}

/// What stands in `path` in the places of the template's names; nothing where the path is another.
fn ids<'a>(template: &str, path: &'a str) -> Option<Vec<&'a str>> {
    let (mut names, mut parts, mut ids) = (template.split('/'), path.split('/'), Vec::new());
    loop {
        match (names.next(), parts.next()) {
            (None, None) => return Some(ids),
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() => ids.push(part),
            (Some(name), Some(part)) if name == part => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_match_whole_paths() {
        let template = "/sellers/{seller}/offers/{offer}";
        assert_eq!(ids(template, "/sellers/1/offers/a%2Fb"), Some(vec!["1", "a%2Fb"]));
        for path in [
            "/sellers/1/offers",
            "/sellers/1/offers/",
            "/sellers//offers/2",
            "/sellers/1/offers/2/",
            "/Sellers/1/offers/2",
            "sellers/1/offers/2",
        ] {
            assert_eq!(ids(template, path), None, "{path}");
        }
    }

    #[test]
    fn head_is_get_and_other_methods_are_told_what_there_is() {
        assert_eq!(find(&Method::HEAD, "/sellers/1").template(), "/sellers/{seller}");
        let wrong = find(&Method::PUT, "/applications/psa_1");
        assert_eq!(wrong.template(), "/applications/{client_id}");
        assert!(matches!(wrong, Found::WrongMethod(_, allow) if allow == "GET, PATCH, DELETE"));
        assert!(matches!(find(&Method::GET, "/order"), Found::Nothing));
    }

    #[test]
    fn every_post_takes_a_key_but_the_stream_and_nothing_else_does() {
        for route in TABLE {
            let takes = route.method == Method::POST && !route.template.ends_with(":import");
            assert_eq!(route.is_keyed(), takes, "{} {}", route.method, route.template);
        }
    }

    #[test]
    fn no_two_calls_claim_the_same_request() {
        for route in TABLE {
            let path = route.template.replace(['{', '}'], "x");
            let claims = TABLE
                .iter()
                .filter(|other| other.method == route.method && ids(other.template, &path).is_some());
            assert_eq!(claims.count(), 1, "{}", route.template);
        }
    }
}
