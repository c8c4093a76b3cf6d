//! The error responses of `/v1`: their codes as enumerations, with an example of each.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use web::openapi::Docs;
use web::operation::Effect;
use web::route::Route;
use web::schema::{Node, array, object, open_object, string};
use web::{Code, Entry, Problem, TraceId, query};

use super::{headers, json, reference};
use crate::Public;
use crate::policy::check_user_agent;

/// The realm in the example of a challenge.
const REALM: &str = "seller-api";

/// Collects the responses that several operations share.
#[derive(Default)]
pub(super) struct Errors {
    shared: BTreeMap<&'static str, Node>,
}

impl Errors {
    /// The error responses of an operation, by status.
    pub(super) fn of(&mut self, route: &Route<Public>, docs: &Docs) -> Vec<(String, Node)> {
        let own: Vec<Problem> = docs.refusals.iter().map(|refusal| refusal()).collect();
        let common = common(route);
        let statuses: BTreeSet<_> = own.iter().chain(&common).map(Problem::status).collect();
        let with = |refusals: &[Problem], status| -> Vec<Problem> {
            let refusals = refusals.iter().filter(|problem| problem.status() == status);
            refusals.cloned().collect()
        };
        let response = |status: StatusCode| {
            let (own, common) = (with(&own, status), with(&common, status));
            let base = base_name(status);
            let response = if !own.is_empty() {
                let name = format!("{}{base}", capitalised(docs.id));
                response(&name, status, &[own, common].concat())
            } else if names_the_operation(route, status) {
                response(base, status, &common)
            } else {
                let shared = || response(base, status, &common);
                self.shared.entry(base).or_insert_with(shared);
                reference("responses", base)
            };
            (status.as_str().to_owned(), response)
        };
        statuses.into_iter().map(response).collect()
    }

    /// The shared responses.
    pub(super) fn shared(self) -> Node {
        self.shared.into_iter().collect()
    }
}

/// Whether messages of this status name the operation's scope or parameters, so that the response cannot be
/// shared.
fn names_the_operation(route: &Route<Public>, status: StatusCode) -> bool {
    match status {
        StatusCode::FORBIDDEN => true,
        StatusCode::BAD_REQUEST => !route.query.is_empty(),
        _ => false,
    }
}

/// The errors that follow from common rules, and from an operation's scope, path and effect.
fn common(route: &Route<Public>) -> Vec<Problem> {
    let mut refusals = vec![
        check_user_agent(&HeaderMap::new())
            .err()
            .unwrap_or_else(Problem::internal),
        unknown_parameter(route),
        Problem::unauthorized(REALM, "access token"),
    ];
    refusals.extend(
        route
            .scope
            .first()
            .map(|scope| Problem::insufficient_scope(scope.as_str(), REALM)),
    );
    if route.path.contains('{') || route.needs_finished {
        refusals.push(Problem::not_found());
    }
    if route.effect == Effect::Write {
        refusals.extend([Problem::key_in_progress(), Problem::key_reused()]);
    }
    refusals.extend([Problem::rate_limited(17), Problem::internal()]);
    refusals
}

/// The error for an unknown parameter, with the names of the operation's own ones.
fn unknown_parameter(route: &Route<Public>) -> Problem {
    query::read("colour=red", route.query, |_| ()).map_or_else(Problem::from, |()| Problem::internal())
}

/// The response for refusals of one status, with an example of each.
fn response(name: &str, status: StatusCode, refusals: &[Problem]) -> Node {
    let trace_id = TraceId::from_random(*b"an example's own");
    let code = |problem: &Problem| problem.entries().first().map(Entry::code);
    let codes: Vec<_> = refusals.iter().filter_map(code).collect();
    let example = |(code, problem): (&Code, &Problem)| {
        let value = Node::parse(&String::from_utf8_lossy(&problem.body(&trace_id)));
        (code.as_str(), Node::of([("value", value)]))
    };
    let examples: Node = codes.iter().zip(refusals).map(example).collect();
    let named: Vec<_> = codes.iter().map(|code| format!("`{}`", code.as_str())).collect();
    Node::of([
        ("description", format!("Refused: {}.", named.join(", ")).into()),
        ("headers", headers(own_headers(status, &codes))),
        ("content", json(body(name, status, &codes), examples)),
    ])
}

fn own_headers(status: StatusCode, codes: &[Code]) -> &'static [(&'static str, &'static str)] {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => &[("WWW-Authenticate", "WWW-Authenticate")],
        StatusCode::TOO_MANY_REQUESTS => &[("Retry-After", "Retry-After")],
        StatusCode::CONFLICT if codes == [Code::IdempotencyInProgress] => &[("Retry-After", "Retry-After")],
        StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR => &[("Retry-After", "Retry-After-Perhaps")],
        _ => &[],
    }
}

/// The error shape with these codes (contract: Errors).
fn body(name: &str, status: StatusCode, codes: &[Code]) -> Node {
    let all = string().one_of(codes.iter().map(|code| code.as_str()));
    let trace_id = string().describe("The request's `X-Trace-Id`.").named("TraceId");
    object(&[
        ("traceId", trace_id),
        (
            "errors",
            array(entry(name, all, codes))
                .with("minItems", 1)
                .with("maxItems", max_entries(status)),
        ),
    ])
    .named(format!("{}Error", name.trim_end_matches("Error")))
}

/// The schema of an entry; `all` is that of these codes.
pub(crate) fn entry(name: &str, all: Node, codes: &[Code]) -> Node {
    let mut members = vec![
        ("code", all.named(format!("{name}Code"))),
        (
            "message",
            string().describe("For developers; the wording may change."),
        ),
    ];
    if codes.iter().any(|code| code.user_message().is_some()) {
        members.push((
            "userMessage",
            string().describe("In Polish, to be shown to the seller."),
        ));
    }
    let has_path = [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY];
    if codes.iter().any(|code| has_path.contains(&code.status())) {
        let path = "The invalid field, such as `price.amount` or `item_ids[2]`, header or parameter.";
        members.push(("path", string().describe(path)));
    }
    if codes.contains(&Code::MultiSellerOrder) {
        let item_ids =
            array(web::schema::uuid()).describe("With `multi_seller_order`: the seller's own items.");
        members.push(("item_ids", item_ids));
    }
    open_object(members, &["code", "message"]).named(format!("{name}Entry"))
}

fn max_entries(status: StatusCode) -> i64 {
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => 20,
        _ => 1,
    }
}

/// The name of a shared response, by status.
fn base_name(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        412 => "PreconditionFailed",
        422 => "Unprocessable",
        429 => "TooManyRequests",
        _ => "InternalError",
    }
}

/// `createShipment` as `CreateShipment`.
fn capitalised(id: &str) -> String {
    let mut letters = id.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_ascii_uppercase(), letters.as_str())
    })
}
