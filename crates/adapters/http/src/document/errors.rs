//! The refusals of `/v1` as responses: which codes, as enumerations, with each as it is answered.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use web::schema::{Map, Node, array, object, open_object, string};
use web::{Code, Problem, TraceId, idempotency_key, query};

use super::headers::of_v1;
use super::{json, reference};
use crate::operation::Effect;
use crate::routes::Route;
use crate::user_agent;

/// What names the service in an example of a challenge.
const REALM: &str = "seller-api";

/// Collects the responses that operations share.
#[derive(Default)]
pub(super) struct Errors {
    shared: BTreeMap<&'static str, Node>,
}

/// Refusals of one status.
struct Group {
    status: StatusCode,
    refusals: Vec<Problem>,
}

impl Errors {
    /// The refusals of an operation by their statuses.
    pub(super) fn of(&mut self, route: &Route) -> Vec<(String, Node)> {
        let own: Vec<Problem> = route.declared.refusals.iter().map(|refusal| refusal()).collect();
        let common = common(route);
        let statuses: BTreeSet<_> = own.iter().chain(&common).map(Problem::status).collect();
        let of = |status, refusals: &[Problem]| -> Vec<Problem> {
            let refusals = refusals.iter().filter(|problem| problem.status() == status);
            refusals.cloned().collect()
        };
        let response = |status| {
            let (own, common) = (of(status, &own), of(status, &common));
            let base = base_name(status);
            // Its message names the operation's scope, in the shape that all have.
            if status == StatusCode::FORBIDDEN {
                let group = Group {
                    status,
                    refusals: common,
                };
                return (status.as_str().to_owned(), group.response(base));
            }
            if own.is_empty() {
                let group = Group {
                    status,
                    refusals: common,
                };
                // Its message names the operation's parameters, where it has any.
                if status == StatusCode::BAD_REQUEST && !route.parameters.is_empty() {
                    return (status.as_str().to_owned(), group.response(base));
                }
                self.shared.entry(base).or_insert_with(|| group.response(base));
                return (status.as_str().to_owned(), reference("responses", base));
            }
            let group = Group {
                status,
                refusals: [own, common].concat(),
            };
            let name = format!("{}{base}", capitalised(route.declared.id));
            (status.as_str().to_owned(), group.response(&name))
        };
        statuses.into_iter().map(response).collect()
    }

    /// The responses that operations refer to.
    pub(super) fn shared(self) -> Node {
        self.shared.into_iter().collect()
    }
}

/// The refusals that follow from the rules which all operations share, and from scope, path and effect.
pub(super) fn common(route: &Route) -> Vec<Problem> {
    let mut refusals = vec![
        user_agent::check(&HeaderMap::new())
            .err()
            .unwrap_or_else(Problem::internal),
        unknown_parameter(route),
        Problem::unauthorized(REALM),
    ];
    refusals.extend(
        route
            .scope
            .map(|scope| Problem::insufficient_scope(scope.as_str(), REALM)),
    );
    if route.declared.resource.is_some() {
        refusals.push(Problem::not_found());
    }
    if route.effect == Effect::Write {
        refusals.extend([idempotency_key::in_progress(), idempotency_key::reused()]);
    }
    refusals.extend([Problem::rate_limited(17), Problem::internal()]);
    refusals
}

/// What every operation refuses, each with the names of its own parameters.
fn unknown_parameter(route: &Route) -> Problem {
    query::read("colour=red", route.parameters, |_| ()).map_or_else(Problem::from, |()| Problem::internal())
}

impl Group {
    fn response(&self, name: &str) -> Node {
        let codes: Vec<_> = self
            .refusals
            .iter()
            .filter_map(|problem| Some(problem.entries().first()?.code()))
            .collect();
        let named = |codes: &[Code]| {
            codes
                .iter()
                .map(|code| format!("`{}`", code.as_str()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        Node::of([
            ("description", format!("Refused: {}.", named(&codes)).into()),
            ("headers", of_v1(self.headers(&codes))),
            ("content", json(body(name, self.status, &codes), self.examples())),
        ])
    }

    fn headers(&self, codes: &[Code]) -> &'static [(&'static str, &'static str)] {
        match self.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => &[("WWW-Authenticate", "WWW-Authenticate")],
            StatusCode::TOO_MANY_REQUESTS => &[("Retry-After", "Retry-After")],
            StatusCode::CONFLICT if codes == [Code::IdempotencyInProgress] => {
                &[("Retry-After", "Retry-After")]
            }
            StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR => {
                &[("Retry-After", "Retry-After-Perhaps")]
            }
            _ => &[],
        }
    }

    /// Each refusal as it is answered.
    fn examples(&self) -> Node {
        let trace_id = TraceId::from_random(*b"an example's own");
        let named = |problem: &Problem| {
            let code = problem
                .entries()
                .first()
                .map_or("", |entry| entry.code().as_str());
            let body = problem.body(&trace_id);
            let value = Node::parse(&String::from_utf8_lossy(&body));
            (code.to_owned(), Node::of([("value", value)]))
        };
        let examples: Map = self.refusals.iter().map(named).collect();
        Node::Object(examples)
    }
}

/// The error shape with these codes (contract: Errors).
fn body(name: &str, status: StatusCode, codes: &[Code]) -> Node {
    let all = string().one_of(codes.iter().map(|code| code.as_str()));
    let trace_id = string().said("The request's `X-Trace-Id`.").named("TraceId");
    object(&[
        ("traceId", trace_id),
        (
            "errors",
            array(entry(name, all, codes))
                .with("minItems", 1)
                .with("maxItems", most_entries(status)),
        ),
    ])
    .named(format!("{}Error", name.trim_end_matches("Error")))
}

fn entry(name: &str, all: Node, codes: &[Code]) -> Node {
    let mut members = vec![
        ("code", all.named(format!("{name}Code"))),
        ("message", string().said("For developers. The words may change.")),
    ];
    if codes.iter().any(|code| code.user_message().is_some()) {
        members.push((
            "userMessage",
            string().said("In Polish, to be shown to the seller."),
        ));
    }
    if matches!(
        codes.first().map(|code| code.status()),
        Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
    ) {
        let path = "Where it applies: `price.amount`, `item_ids[2]`, or the name of a header or parameter.";
        members.push(("path", string().said(path)));
    }
    if codes.contains(&Code::MultiSellerOrder) {
        let item_ids = array(web::schema::uuid()).said("With `multi_seller_order`: the seller's own items.");
        members.push(("item_ids", item_ids));
    }
    open_object(members, &["code", "message"]).named(format!("{name}Entry"))
}

fn most_entries(status: StatusCode) -> i64 {
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => 20,
        _ => 1,
    }
}

/// What refusals of a status are called where operations share them.
fn base_name(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        422 => "Unprocessable",
        429 => "TooManyRequests",
        _ => "InternalError",
    }
}

/// `createShipment` as `CreateShipment`.
pub(super) fn capitalised(id: &str) -> String {
    let mut letters = id.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_ascii_uppercase(), letters.as_str())
    })
}
