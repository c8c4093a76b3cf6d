//! What operations tell their callers of what goes away (contract: Versioning).
//!
//! An operation, a parameter, or a field of a body is declared deprecated where it is declared at all; an endpoint of the
//! authorization server in its list. From there the answers, the document and the changelog's test have it.

use std::collections::HashMap;

use actix_web::http::header::HeaderMap;
use web::deprecation::{self, Deprecation};
use web::percent;

use crate::authorization_server;
use crate::declared::Success;
use crate::routes::Route;

/// An endpoint of the authorization server that goes away, by its `operationId`, and what is said about it.
pub(crate) type Ending = (&'static str, &'static Deprecation);

/// Something of an operation that goes away.
#[derive(Debug, Clone)]
pub(crate) struct Going {
    /// What it is: `GET /v1/offers`, `limit` of it, or `Offer.brand`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the changelog's test looks for it"))]
    pub(crate) what: String,
    /// What is said about it.
    pub(crate) notice: &'static Deprecation,
    /// The parameter, where only requests that send it are told.
    parameter: Option<&'static str>,
}

/// All that goes away, by operation.
pub(crate) struct Notices(HashMap<&'static str, Vec<Going>>);

impl Notices {
    /// What these operations and endpoints have declared.
    pub(crate) fn of(table: &[Route], ending: &[Ending]) -> Self {
        let of = |route: &Route| (route.declared.id, going(route));
        let told = table.iter().map(of).chain(endpoints_going(ending));
        Self(told.filter(|(_, going)| !going.is_empty()).collect())
    }

    /// Tells the caller of an operation, by its `operationId`. A parameter is told of to those who send it, all else to everybody, whatever the
    /// answer.
    pub(crate) fn write(&self, operation: &str, query: Option<&str>, headers: &mut HeaderMap) {
        let Some(going) = self.0.get(operation) else {
            return;
        };
        let sent: Vec<_> = names(query.unwrap_or_default()).collect();
        let is_told = |going: &&Going| {
            going
                .parameter
                .is_none_or(|name| sent.iter().any(|sent| sent.as_deref() == Some(name)))
        };
        let notices = going.iter().filter(is_told).map(|going| going.notice);
        deprecation::write(notices, headers);
    }
}

/// What an operation has that goes away: itself, its parameters, fields of what it takes and of what it answers.
pub(crate) fn going(route: &Route) -> Vec<Going> {
    let declared = route.declared;
    let itself = declared.deprecated.map(|notice| Going {
        what: format!("{route:?}"),
        notice,
        parameter: None,
    });
    let parameter = |parameter: &crate::declared::Parameter| {
        Some(Going {
            what: format!("{} of {route:?}", parameter.name),
            notice: parameter.deprecated?,
            parameter: Some(parameter.name),
        })
    };
    let parameters = declared.parameters.iter().filter_map(parameter);
    let taken = declared.body.as_ref().map(|body| (body.schema)());
    let given = match &declared.success {
        Success::Json { schema, .. } => Some(schema()),
        Success::NoContent { .. } => None,
    };
    let fields = taken.into_iter().chain(given);
    let fields = fields
        .flat_map(|schema| schema.deprecations())
        .map(|(what, notice)| Going {
            what,
            notice,
            parameter: None,
        });
    itself.into_iter().chain(parameters).chain(fields).collect()
}

/// What the endpoints of the authorization server have that goes away: themselves, fields of what they take and answer.
pub(crate) fn endpoints_going(ending: &[Ending]) -> impl Iterator<Item = (&'static str, Vec<Going>)> {
    let of = move |told: authorization_server::document::Told| {
        let itself = ending.iter().filter(|(id, _)| *id == told.id);
        let itself =
            itself.map(|(_, notice)| (format!("{} {}", told.method.to_uppercase(), told.path), *notice));
        let fields = told.operation.deprecations();
        let going = itself.chain(fields).map(|(what, notice)| Going {
            what,
            notice,
            parameter: None,
        });
        (told.id, going.collect())
    };
    authorization_server::document::all("").into_iter().map(of)
}

/// The names in a query; nothing for one whose encoding is broken.
fn names(query: &str) -> impl Iterator<Item = Option<std::borrow::Cow<'_, str>>> {
    query.split('&').map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        percent::decode(name)
    })
}
